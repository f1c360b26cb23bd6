"""New points in a finished nonlinear embedding: each minimises its own objective while the embedding stays fixed.

E'(x) = sum_n p_n a(|x - x_n|^2) + strength S(x), or strength log S(x) for normalised objectives, where p are the new
point's affinities to its nearest training points and S sums the kernel over all of them ([NB] eq. (5.9), halved). All
points are moved at once, so that a step takes one N-body sum; each has a step length of its own, so that where a point
ends does not depend on what else is placed.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scalemani.config.objectives import Objective
from scalemani.kernels.repulsion.pair_sums import LEAST_SUM, ExactSums, PairSums

MOST_STEPS = 100
SUFFICIENT_DECREASE = 1e-4
SHORTEST_STEP = 1e-3  # in units of the kernels: a point whose full step is shorter has arrived
LEAST_LENGTH = 1e-3  # of the full step; one that has to be cut below this has arrived as well
MARGIN = 8.0  # about the training points, in units of the kernels, within which a mesh answers


class FixedSources:
    """Sums over sources that stay where they are; exact for the few targets beyond the reach of what was made once."""

    def __init__(self, sums: PairSums, sources: np.ndarray, charges: np.ndarray | None = None) -> None:
        self._sources, self._charges, self._exact = sources, charges, ExactSums(sums.kernel)
        self._potential = sums.potential(sources, MARGIN, charges)

    def field(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return S (M,) and its gradient (M, d) at targets (M, d)."""
        inside = self._potential.inside(targets)
        if inside.all():
            return self._potential.field(targets)
        values, gradients = np.empty(len(targets)), np.empty(targets.shape)
        values[inside], gradients[inside] = self._potential.field(targets[inside])
        values[~inside], gradients[~inside] = self._exact.field(self._sources, targets[~inside], self._charges)
        return values, gradients


class Evaluated(NamedTuple):
    """Objectives (M,), their gradients (M, d), and the curvature (M,) of a quadratic above each attraction."""

    values: np.ndarray
    gradients: np.ndarray
    curvatures: np.ndarray


@dataclass(frozen=True)
class PlacementProblem:
    """The attraction and repulsion of new points.

    `sources` (N, d) are the training points' positions; `neighbors` (M, k) rows of these, nearest first; `affinities`
    (M, k), rows sum to one; `fixed` sums the kernel over the sources.
    """

    objective: Objective
    strength: float
    fixed: FixedSources
    sources: np.ndarray
    neighbors: np.ndarray
    affinities: np.ndarray

    def attraction(self, rows: np.ndarray, positions: np.ndarray) -> Evaluated:
        """Return the attraction of some of the new points at positions (m, d)."""
        affinities = self.affinities[rows]
        differences = positions[:, np.newaxis] - self.sources[self.neighbors[rows]]
        squares = np.einsum("mkd,mkd->mk", differences, differences)
        if self.objective.attraction == "quadratic":
            weights, values = affinities, squares
        else:
            weights, values = affinities / (1.0 + squares), np.log1p(squares)
        gradients = 2.0 * np.einsum("mk,mkd->md", weights, differences)
        return Evaluated(np.einsum("mk,mk->m", affinities, values), gradients, 2.0 * weights.sum(axis=1))

    def evaluate(self, rows: np.ndarray, positions: np.ndarray) -> Evaluated:
        """Return the objectives of some of the new points at positions (m, d)."""
        values, gradients, curvatures = self.attraction(rows, positions)
        sums, slopes = self.fixed.field(positions)
        if self.objective.combine == "sum":
            return Evaluated(values + self.strength * sums, gradients + self.strength * slopes, curvatures)
        bounded = np.maximum(sums, LEAST_SUM)
        slopes /= bounded[:, np.newaxis]
        return Evaluated(values + self.strength * np.log(bounded), gradients + self.strength * slopes, curvatures)


class Placing:
    """New points on their way: positions (M, d), values, directions and slopes of their objectives, step lengths."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._problem = problem
        self.positions = problem.sources[problem.neighbors[:, 0]]
        n_points = len(self.positions)
        self.lengths, self.values, self.slopes = np.ones(n_points), np.empty(n_points), np.empty(n_points)
        self.directions = np.empty_like(self.positions)
        self.moving = np.arange(n_points)
        self._accept(self.moving, self.positions, problem.evaluate(self.moving, self.positions))

    def _accept(self, rows: np.ndarray, positions: np.ndarray, evaluated: Evaluated) -> None:
        self.positions[rows], self.values[rows] = positions, evaluated.values
        directions = -evaluated.gradients / evaluated.curvatures[:, np.newaxis]
        self.directions[rows] = directions
        self.slopes[rows] = np.einsum("md,md->m", directions, evaluated.gradients)

    def let_rest(self) -> None:
        """Leave the points that have arrived where they are."""
        full = np.sqrt(np.einsum("md,md->m", self.directions[self.moving], self.directions[self.moving]))
        self.moving = self.moving[(full > SHORTEST_STEP) & (self.lengths[self.moving] > LEAST_LENGTH)]

    def step(self) -> None:
        """Move the points that have not arrived, each if its objective falls."""
        rows = self.moving
        trial = self.positions[rows] + self.lengths[rows, np.newaxis] * self.directions[rows]
        evaluated = self._problem.evaluate(rows, trial)
        lower = evaluated.values <= self.values[rows] + SUFFICIENT_DECREASE * self.lengths[rows] * self.slopes[rows]
        self._accept(rows[lower], trial[lower], Evaluated(*(part[lower] for part in evaluated)))
        self.lengths[rows] *= np.where(lower, 2.0, 0.5)
        np.minimum(self.lengths, 1.0, out=self.lengths)


class PlacedPoints(NamedTuple):
    """Positions (M, d) of new points, whether each has arrived (M,), and how far its objective fell on the way (M,)."""

    positions: np.ndarray
    arrived: np.ndarray
    falls: np.ndarray


def place_points(problem: PlacementProblem) -> PlacedPoints:
    """Return the positions of new points.

    A point starts at its nearest neighbour and goes down along the fixed-point direction -g / h, h the attraction's
    curvature, by steps that are halved until its objective falls.
    """
    placing = Placing(problem)
    start = placing.values.copy()
    placing.let_rest()
    for _ in range(MOST_STEPS):
        if len(placing.moving) == 0:
            break
        placing.step()
        placing.let_rest()
    arrived = np.ones(len(start), np.bool_)
    arrived[placing.moving] = False
    return PlacedPoints(placing.positions, arrived, start - placing.values)
