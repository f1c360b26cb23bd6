"""How far the map of a run may be believed at each point, as users read it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalemani.stages.arrays.embeddings import BEYOND, StoredDoubt


class Doubt(NamedTuple):
    """How far the map of a run may be believed at each point, rows in input order, (N,) each but `places`.

    Attributes
    ----------
    perturbation : float64, how far the better of two places is from where a point lies, over the mean distance of its
        15 nearest neighbours in the map; a place is a minimum of its part of the objective with all others fixed. Of a
        spectral map: where the equation of the eigenvectors puts it, by all neighbours or all but one, at the farthest
    singularity : float64 in [-1, 1], the least eigenvalue of the Hessian there over the largest magnitude: near zero, a
        point could lie anywhere along a line; below, it lies at no minimum. Of a spectral map that of 1 - eigenvalue
    preservation : float64, the share of its 15 nearest points in the data that are among as many in the map
    trusted : float64, the share of its 15 nearest points in the map that the graph lists among its neighbours
    continued : float64, the share of its 15 nearest points in the data among as many in the map as the graph lists
    agreement : float64 in [-1, 1], the correlation of its distances in the map to the nearer half of 300 points, in the
        order of the data, with the least ones in ascending order; 0 where points have no coordinates
    p_value : float64, the share of points without structure that agree as well, by a map of a sample whose columns are
        permuted; 1 where there is no such map
    believable : bool, whether that is small enough, by Benjamini and Hochberg's rule: if points without structure agree
        as those of that map do, at most a share `doubt.rate` of the believable ones is expected to be such
    doubtful : bool, whether the better place is beyond two of its neighbours' distances: it could as well lie there. A
        rank with a threshold; no rate of errors is known of it
    places : (N, d) float64, the better places, or those farthest ones
    spread : float64 or None, the root mean square distance of its places in maps of halves of the points, each brought
        onto the map by a similarity, from that in the map, over the root mean square distance of all points from their
        mean; None where `doubt.halves` mapped none
    stable : float64 or None, the mean share of its 15 nearest points in a half that are as near in the map of that half
    """

    perturbation: np.ndarray
    singularity: np.ndarray
    preservation: np.ndarray
    trusted: np.ndarray
    continued: np.ndarray
    agreement: np.ndarray
    p_value: np.ndarray
    believable: np.ndarray
    doubtful: np.ndarray
    places: np.ndarray
    spread: np.ndarray | None = None
    stable: np.ndarray | None = None

    @property
    def verdicts(self) -> np.ndarray:
        """What is to be said of each point in a legend, (N,) texts."""
        left_out = np.isnan(self.perturbation)
        words = ["left out", "could lie elsewhere", "believable"]
        return np.select([left_out, self.doubtful, self.believable], words, "not told from noise")

    @staticmethod
    def read_doubtful(stored: StoredDoubt, rows: np.ndarray) -> np.ndarray:
        """Return which work rows (M,) are doubtful, of what the stage has stored."""
        return stored.perturbation.read()[rows] > BEYOND

    @classmethod
    def read(cls, stored: StoredDoubt, rows: np.ndarray) -> "Doubt":
        """Return the doubt at work rows (M,) of what the stage has stored."""
        p_value, moved = stored.p_values.read()[rows], stored.perturbation.read()[rows]
        derived = {
            "p_value": p_value,
            "believable": p_value <= stored.group.certificate("believable_p_value", float),
            "doubtful": moved > BEYOND,
            "perturbation": moved,
        }
        mapped = stored.group.committed(StoredDoubt.HALVES_UNIT)
        absent = () if mapped else (StoredDoubt.spread.name, StoredDoubt.stable.name)
        read = [name for name in cls._fields if name not in (*derived, *absent)]
        return cls(**derived, **{name: getattr(stored, name).read()[rows] for name in read})

    def each(self, of: Callable[[np.ndarray], np.ndarray]) -> "Doubt":
        """Return what a function makes of each column that was measured."""
        return Doubt(**{name: of(column) for name, column in self.measured().items()})

    def measured(self) -> dict[str, np.ndarray]:
        """Return the columns that were measured, by name."""
        return {name: column for name, column in self._asdict().items() if column is not None}
