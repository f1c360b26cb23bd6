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
from scalemani.kernels.repulsion.pair_sums import LEAST_SUM, Potential

MOST_STEPS = 100
SUFFICIENT_DECREASE = 1e-4
SHORTEST_STEP = 1e-3  # in units of the kernels: a point whose full step is shorter has arrived
LEAST_LENGTH = 1e-3  # of the full step; one that has to be cut below this has arrived as well


class Evaluated(NamedTuple):
    """Objectives (M,), their gradients (M, d), and the curvature (M,) of a quadratic above each attraction."""

    values: np.ndarray
    gradients: np.ndarray
    curvatures: np.ndarray


@dataclass(frozen=True)
class PlacementProblem:
    """The attraction and repulsion of new points.

    `sources` (N, d) are the training points' positions; `neighbors` (M, k) rows of these, nearest first; `affinities`
    (M, k), rows sum to one; `fixed` is the field of the sources.
    """

    objective: Objective
    strength: float
    fixed: Potential
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
        sums, slopes = self.fixed(positions)
        if self.objective.combine == "sum":
            return Evaluated(values + self.strength * sums, gradients + self.strength * slopes, curvatures)
        bounded = np.maximum(sums, LEAST_SUM)
        slopes /= bounded[:, np.newaxis]
        return Evaluated(values + self.strength * np.log(bounded), gradients + self.strength * slopes, curvatures)


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
    positions = problem.sources[problem.neighbors[:, 0]]
    moving, lengths = np.arange(len(positions)), np.ones(len(positions))
    values, gradients, curvatures = problem.evaluate(moving, positions)
    directions = -gradients / curvatures[:, np.newaxis]
    slopes, start = np.einsum("md,md->m", directions, gradients), values.copy()
    for step in range(MOST_STEPS + 1):
        full = np.sqrt(np.einsum("md,md->m", directions[moving], directions[moving]))
        moving = moving[(full > SHORTEST_STEP) & (lengths[moving] > LEAST_LENGTH)]
        if len(moving) == 0 or step == MOST_STEPS:
            break
        trial = positions[moving] + lengths[moving, np.newaxis] * directions[moving]
        found = problem.evaluate(moving, trial)
        lower = found.values <= values[moving] + SUFFICIENT_DECREASE * lengths[moving] * slopes[moving]
        rows, gradients = moving[lower], found.gradients[lower]
        positions[rows], values[rows] = trial[lower], found.values[lower]
        directions[rows] = -gradients / found.curvatures[lower, np.newaxis]
        slopes[rows] = np.einsum("md,md->m", directions[rows], gradients)
        lengths[moving] = np.minimum(lengths[moving] * np.where(lower, 2.0, 0.5), 1.0)
    arrived = np.ones(len(start), np.bool_)
    arrived[moving] = False
    return PlacedPoints(positions, arrived, start - values)
