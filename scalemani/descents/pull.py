"""A pull of each point towards a reference map: a quadratic in closed form, in addition to the sums over pairs.

With a the root mean square distance of the points y_n from their mean, and a reference r_n about its mean at a root
mean square of one, the pull adds

    weight A mean |y_n - mean y - a r_n|^2 / (1 + a^2)  =  weight A 2 a (a - c) / (1 + a^2),  c = mean of y_n . r_n,

A the total of the scaled affinities (one of t-SNE). The reference takes the size of the map, and for maps wider than
the kernels the mean is a share of the squared size: neither term of an objective grows with the number of points, so
that one weight serves any number. c / a is the correlation of map and reference.
Source: the term of DREAMS (Kury, Kobak and Damrich, arXiv 2508.13747), there relative to one, not to the size.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from scalemani.errors import DataError
from scalemani.kernels.arrays.coordinates import add_multiple, dot
from scalemani.kernels.measures import similarity_of

LEAST_SQUARE = 1e-300  # of the size of a map whose points coincide


@dataclass(frozen=True)
class Pull:
    """The pull of a `weight` towards a `reference` (N, d) float64, as `towards` makes it.

    The reference is zero at points without any, and times their masses. `masses` (N,) count in means, zero for points
    without a reference; None: one each. `total` is their sum.
    """

    weight: float
    reference: np.ndarray
    masses: np.ndarray | None
    total: float

    @property
    def n_pulled(self) -> int:
        """How many points have a reference."""
        return len(self.reference) if self.masses is None else int(np.count_nonzero(self.masses))

    def add(self, positions: np.ndarray, gradient: np.ndarray | None = None) -> float:
        """Return the term at positions (N, d) float64, and add its gradient to one (N, d) float64 in place."""
        weighted = positions if self.masses is None else positions * self.masses[:, np.newaxis]
        size, mean = self._size(positions, weighted)
        if size == 0.0:
            return 0.0
        value, by_map, by_reference = self.term(size, dot(positions, self.reference) / self.total)
        if gradient is not None:
            add_multiple(gradient, by_map, weighted)
            gradient -= by_map * mean if self.masses is None else np.outer(self.masses, by_map * mean)
            add_multiple(gradient, by_reference, self.reference)
        return float(value)

    def alone(self, positions: np.ndarray, factor: float) -> "PullOfOne":
        """Return a factor times the term as a single point moves among others that stay at positions (N, d)."""
        weighted = positions if self.masses is None else positions * self.masses[:, np.newaxis]
        _, mean = self._size(positions, weighted)
        square, along = dot(weighted, positions) / self.total, dot(positions, self.reference) / self.total
        return PullOfOne(replace(self, weight=factor * self.weight), positions, square, mean, along)

    def distance(self, positions: np.ndarray) -> float:
        """Return the root mean square distance of points from the reference at the map's size, in units of that."""
        size, _ = self._size(positions, positions if self.masses is None else positions * self.masses[:, np.newaxis])
        along = dot(positions, self.reference) / self.total
        return float(np.sqrt(max(0.0, 2.0 * (1.0 - along / size)))) if size > 0 else 0.0

    def turned(self, positions: np.ndarray) -> np.ndarray:
        """Return positions (N, d), rotated or reflected so that they come nearest to the reference."""
        _, turn = similarity_of(np.einsum("ni,nj->ij", positions, self.reference), 1.0)
        return np.einsum("ni,ij->nj", positions, turn)

    def term(self, size: Any, along: Any) -> tuple[Any, Any, Any]:
        """Return the term of a and c, and the factors of places about the mean and of references in its gradient."""
        wide = 1.0 + size * size
        factor = 2.0 * self.weight / (self.total * wide)
        by_map = factor * (2.0 + (size * size - 1.0) * along / size) / wide
        return 2.0 * self.weight * size * (size - along) / wide, by_map, -factor * size

    def _size(self, positions: np.ndarray, weighted: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a and the mean (d,) of positions, by these times their masses."""
        mean = weighted.sum(axis=0) / self.total
        return float(np.sqrt(max(0.0, dot(weighted, positions) / self.total - np.sum(mean * mean)))), mean


class PullOfOne(NamedTuple):
    """A pull as a single point moves among others that stay at `positions` (N, d): of the sums over all, it moves one.

    `square` is the mean squared distance of points from the origin, `mean` (d,) their mean, `along` the c of the term.
    """

    pull: Pull
    positions: np.ndarray
    square: float
    mean: np.ndarray
    along: float

    def evaluate(self, rows: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the term (m,) with one of these rows at its place (m, d), its gradient (m, d) and curvature (m,)."""
        pull, before = self.pull, self.positions[rows]
        masses = np.ones(len(rows)) if pull.masses is None else pull.masses[rows]
        squares = np.einsum("md,md->m", places, places) - np.einsum("md,md->m", before, before)
        moved = places - before
        means = self.mean + (masses / pull.total)[:, np.newaxis] * moved
        sizes = self.square + masses * squares / pull.total - np.einsum("md,md->m", means, means)
        along = self.along + np.einsum("md,md->m", pull.reference[rows], moved) / pull.total
        values, by_map, by_reference = pull.term(np.sqrt(np.maximum(sizes, LEAST_SQUARE)), along)
        by_map *= masses
        gradients = by_map[:, np.newaxis] * (places - means) + by_reference[:, np.newaxis] * pull.reference[rows]
        return values, gradients, np.maximum(by_map, 0.0)


def towards(coordinates: np.ndarray, weight: float, masses: np.ndarray | None = None) -> Pull:
    """Return the pull towards coordinates (N, d), rows of NaN for points that nothing pulls, of points of masses (N,).

    Raises DataError for coordinates that are all the same.
    """
    known = ~np.isnan(coordinates[:, 0])
    counted = masses if known.all() else known * (1.0 if masses is None else masses)
    weights = np.ones(len(coordinates)) if counted is None else counted
    reference, total = np.where(known[:, np.newaxis], coordinates, 0.0), float(weights.sum())
    reference -= np.einsum("n,nd->d", weights, reference) / total
    size = np.sqrt(np.einsum("n,nd,nd->", weights, reference, reference) / total)
    if not size > 0:
        raise DataError("the reference has one place for all points: give one with two places at least")
    reference *= weights[:, np.newaxis] / size
    return Pull(weight, reference, counted, total)
