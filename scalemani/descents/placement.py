"""New points in a finished nonlinear embedding: each minimises an objective while the embedding stays fixed.

E'(x) = sum_n p_n a(|x - x_n|^2) + strength S(x), or strength log S(x) for normalised objectives, where p are the new
point's affinities to its nearest training points and S sums the kernel over all of them ([NB] eq. (5.9), halved). All
points are moved at once, so that a step takes one N-body sum; each has a separate step length, so that where a point
ends does not depend on what else is placed.

A point of the embedding is placed anew in the same way, in its part of the objective: it does not push itself, and
where the logarithm is that of the sum over all pairs, those of the others are an offset to its S.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scalemani.config.objectives import Objective
from scalemani.descents.pull import PullOfOne
from scalemani.kernels.graph.attraction import attraction_at
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.repulsion.pair_sums import LEAST_SUM, SLOPE, ExactSums, PairSums, responses

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

    def reaches(self, targets: np.ndarray) -> np.ndarray:
        """Return which targets (M, d) are within the reach of what was made once: others meet all sources, each."""
        return self._potential.inside(targets)

    def field(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return S (M,) and its gradient (M, d) at targets (M, d)."""
        inside = self.reaches(targets)
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


def rows_of_lists(neighbors: np.ndarray, affinities: np.ndarray) -> Rows:
    """Return lists of neighbours and their affinities (M, k) in CSR form."""
    return np.arange(0, neighbors.size + 1, neighbors.shape[1]), neighbors.ravel(), affinities.ravel()


@dataclass(frozen=True)
class PlacementProblem:
    """The attraction and repulsion of new points.

    `sources` (N, d) are the training points' positions; `rows` in CSR form name M points' neighbours among these,
    nearest first, with affinities that sum to one; `fixed` sums the kernel over the sources. Of points that are
    sources, `own` (M,) are their rows, `offsets` (M,) what is added to their sums before the logarithm, affinities have
    any sum, and `pull` is what a reference map adds.
    """

    objective: Objective
    strength: float
    fixed: FixedSources
    sources: np.ndarray
    rows: Rows
    own: np.ndarray | None = None
    offsets: np.ndarray | None = None
    pull: PullOfOne | None = None

    def field(self, rows: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums (m,) over the sources other than the point itself, and their gradients (m, d)."""
        sums, gradients = self.fixed.field(positions)
        if self.own is None:
            return sums, gradients
        away = positions - self.sources[self.own[rows]]
        values, slopes = responses(self.objective.kernel, np.einsum("md,md->m", away, away))
        return sums - values, gradients - SLOPE * slopes[:, np.newaxis] * away

    def evaluate(self, rows: np.ndarray, positions: np.ndarray) -> Evaluated:
        """Return the objectives of some of the new points at positions (m, d)."""
        student, dof = self.objective.attraction == "student", self.objective.dof
        pulls, gradients, curvatures = attraction_at(positions, self.sources, rows, self.rows, student, dof)
        pushes, slopes = self.field(rows, positions)
        if self.objective.combine != "sum":
            bounded = np.maximum(pushes if self.offsets is None else self.offsets[rows] + pushes, LEAST_SUM)
            pushes, slopes = np.log(bounded), slopes / bounded[:, np.newaxis]
        evaluated = Evaluated(pulls + self.strength * pushes, gradients + self.strength * slopes, curvatures)
        if self.pull is None or self.own is None:
            return evaluated
        pulled = self.pull.evaluate(self.own[rows], positions)
        return Evaluated(*(one + other for one, other in zip(evaluated, pulled, strict=True)))

    def hessians(self, positions: np.ndarray, step: float) -> np.ndarray:
        """Return the Hessian (M, d, d) of each objective, by central differences of its gradient over a step."""
        rows, n_dims = np.arange(len(positions)), positions.shape[1]
        columns = [
            self.evaluate(rows, positions + way).gradients - self.evaluate(rows, positions - way).gradients
            for way in step * np.eye(n_dims)
        ]
        hessians = np.stack(columns, axis=2) / (2.0 * step)
        return 0.5 * (hessians + hessians.transpose(0, 2, 1))


class PlacedPoints(NamedTuple):
    """Positions (M, d) of new points, whether each has arrived (M,), its objective (M,) and how far that fell (M,)."""

    positions: np.ndarray
    arrived: np.ndarray
    falls: np.ndarray
    values: np.ndarray


def place_points(
    problem: PlacementProblem, most_steps: int = MOST_STEPS, starts: np.ndarray | None = None
) -> PlacedPoints:
    """Return the positions of new points, after so many steps at most.

    A point starts at its nearest neighbour, or at `starts` (M, d), and goes down along the direction -g / h of a fixed
    point, h the attraction's curvature, by steps that are halved until its objective falls, and doubled up to the full
    one where it does.
    """
    indptr, indices, _ = problem.rows
    positions = problem.sources[indices[indptr[:-1]]] if starts is None else starts.copy()
    moving, lengths = np.arange(len(positions)), np.ones(len(positions))
    at = problem.evaluate(moving, positions)
    start = at.values.copy()
    for number in range(most_steps + 1):
        directions = -at.gradients[moving] / at.curvatures[moving, np.newaxis]
        full = np.sqrt(np.einsum("md,md->m", directions, directions))
        on_the_way = (full > SHORTEST_STEP) & (lengths[moving] > LEAST_LENGTH)
        moving, directions = moving[on_the_way], directions[on_the_way]
        if number == most_steps or len(moving) == 0:
            break
        slopes = np.einsum("md,md->m", directions, at.gradients[moving])
        trial = positions[moving] + lengths[moving, np.newaxis] * directions
        if problem.own is not None:  # none has its place that far outside: a step back to where it is gets cut
            trial = np.where(problem.fixed.reaches(trial)[:, np.newaxis], trial, positions[moving])
        evaluation = problem.evaluate(moving, trial)
        lower = evaluation.values <= at.values[moving] + SUFFICIENT_DECREASE * lengths[moving] * slopes
        positions[moving[lower]] = trial[lower]
        for current, part in zip(at, evaluation, strict=True):
            current[moving[lower]] = part[lower]
        lengths[moving] = np.minimum(lengths[moving] * np.where(lower, 2.0, 0.5), 1.0)
    arrived = np.ones(len(start), np.bool_)
    arrived[moving] = False
    return PlacedPoints(positions, arrived, start - at.values, at.values)
