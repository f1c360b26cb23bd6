"""How landmarks are chosen, and what every rule returns."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.rows.points_by_row import PointsByRow


class Diversity(NamedTuple):
    """What determinantal landmarks depend on beside their number.

    Parameters
    ----------
    sigma : bandwidth of the kernel, in the unit of the points; None chooses it by `spacing_sigma`
    update, neighborhood : of the approximation, as in `Repulsion`
    geodesic : whether the exact kernel is of lengths of shortest paths, else of Euclidean distances
    """

    sigma: float | None = None
    update: str = "gaussian"
    neighborhood: int | None = None
    geodesic: bool = False


class Process(NamedTuple):
    """How landmarks of a Gaussian process are found.

    Parameters
    ----------
    eta : bandwidth, in squared units of the points; None: the sum of the variances of their columns
    projection : "none", "orthant" or "sphere", the set S that landmarks stay in
    batch_points : B; None: 1,000, or twice the landmarks if more
    """

    eta: float | None = None
    projection: str = "none"
    batch_points: int | None = None
    steps: int = 1000


class Choice(NamedTuple):
    """How landmarks are chosen.

    Parameters
    ----------
    n_landmarks : L, at most N
    method : one of `LANDMARK_METHODS`
    sample_points : points that k-means takes in batches, and among which the methods choose that compare every
        candidate with every landmark
    snap : whether a centroid of k-means gives way to the data point nearest to it
    advance : called after each landmark by rules that a method lists as `ONE_BY_ONE`
    """

    n_landmarks: int
    method: str = "random"
    seed: int = 0
    sample_points: int = 100_000
    snap: bool = True
    diversity: Diversity = Diversity()
    process: Process = Process()
    advance: Callable[[], None] | None = None


class Selected(NamedTuple):
    """Landmarks (L, D), and their rows (L,) int64, ascending; None where they lie off the data.

    `certificates` say what a method measured on its way.
    """

    points: np.ndarray
    rows: np.ndarray | None
    certificates: Mapping[str, float] = MappingProxyType({})


def at_rows(points: PointsByRow, rows: np.ndarray) -> Selected:
    """Return the points at rows as landmarks."""
    ascending = np.sort(rows)
    return Selected(points[ascending], ascending)


def sample_of(points: PointsByRow, choice: Choice) -> np.ndarray:
    """Return the rows (S,) among which rules choose that compare every candidate with every landmark."""
    return sample_rows(choice.seed, "landmarks/sample", len(points), max(choice.sample_points, choice.n_landmarks))
