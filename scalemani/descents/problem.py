"""An objective over fixed affinities: its value and its gradient at any positions.

`scalemani.config.objectives` is the table of objectives. Sums run over ordered pairs of different points.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from scalemani.config.objectives import Objective
from scalemani.descents.pull import Pull
from scalemani.descents.repulsion import make_repulsion
from scalemani.kernels.arrays.coordinates import scale_and_add
from scalemani.kernels.arrays.tiles import Mapper, slices
from scalemani.kernels.arrays.workspace import Workspace, recycling
from scalemani.kernels.graph.attraction import (
    AffinityRows,
    attraction_energy,
    attraction_gradient,
    rounded_attraction_gradient,
)
from scalemani.kernels.repulsion.pair_sums import LEAST_SUM, ExactSums, PairSums

# An approximation errs by a share of the sums as they are in the middle of a map. Where a sum is smaller than this and
# is divided by, that error can exceed the sum itself: such points are summed exactly.
ISOLATED = 0.1
ENTROPY_ROWS = 8192  # whose affinities have their entropy summed at a time


class Evaluation(NamedTuple):
    """The value of an objective and its gradient (N, d) float64."""

    value: float
    gradient: np.ndarray


@dataclass(frozen=True)
class Problem:
    """An objective over fixed affinities, with values and gradients.

    The affinities are multiplied by `scale`, E+ by `exaggeration`, E- by `strength`; `offset` is added to values, such
    as what makes E a Kullback-Leibler divergence. `masses` (N,) say how many equal points each stands for, and
    affinities are then sums over these; None: one. Points that are `still` (N,) do not move against each other:
    gradients are zero there. A `pull` to a reference map is added, whatever the exaggeration. `workspace` runs panels
    of rows and makes the arrays of each iteration: by default on one thread, in the memory that those of earlier
    iterations have left. The repulsion is that of `pairs`, where they are there, in place of all.
    """

    rows: AffinityRows
    objective: Objective
    scale: float
    strength: float = 1.0
    exaggeration: float = 1.0
    offset: float = 0.0
    masses: np.ndarray | None = None
    still: np.ndarray | None = None
    pull: Pull | None = None
    pairs: PairSums | None = None
    workspace: Workspace = field(default_factory=recycling, repr=False)

    @property
    def n_copies(self) -> float:
        """How many points there are with all copies."""
        return self.rows.n_points if self.masses is None else float(self.masses.sum())

    def repulsion(self, method: str, tolerance: float) -> PairSums:
        """Return the sums of the repulsion: those of its pairs, else over all by a method of `make_repulsion`."""
        return self.pairs or make_repulsion(method, self.objective.kernel, tolerance, self.workspace)

    def value(self, positions: np.ndarray, sums: PairSums) -> float:
        """Return E at positions (N, d) float64."""
        push = repulsive_term(self.objective, positions, sums, self.masses).value
        pulled = 0.0 if self.pull is None else self.pull.add(positions)
        attraction = self.scale * self.exaggeration * self.attraction(positions)
        return attraction + self.strength * push + self.offset + pulled

    def attraction(self, positions: np.ndarray) -> float:
        """Return E+ at positions (N, d) float64, before its factors."""
        dof = self.objective.dof
        return dof * attraction_energy(
            self.rows, self.in_units(positions), self.objective.attraction, self.workspace.over
        )

    def in_units(self, positions: np.ndarray) -> np.ndarray:
        """Return positions in the units in which Student's attraction is dof log(1 + d^2): the root of dof."""
        return positions if self.objective.dof == 1 else positions / self.objective.dof**0.5

    def evaluate(self, positions: np.ndarray, sums: PairSums, with_value: bool = True) -> Evaluation:
        """Return E and its gradient at positions (N, d) float64; a value that is not requested is NaN."""
        kernel, factor = self.objective.attraction, self.scale * self.exaggeration
        over, gradient = self.workspace.over, self.workspace.empty(positions.shape, float)
        scaled = self.in_units(positions)
        if sums.exact:
            attraction_gradient(self.rows, scaled, kernel, gradient, over)
        else:
            rounded_attraction_gradient(self.rows, scaled, kernel, gradient, self.workspace)
        push = repulsive_term(self.objective, positions, sums, self.masses)
        scale_and_add(gradient, factor * self.objective.dof**0.5, push.gradients, self.strength * push.factor, over)
        pulled = 0.0 if self.pull is None else self.pull.add(positions, gradient)
        if self.still is not None:
            gradient[self.still] = 0.0
        if not with_value:
            return Evaluation(np.nan, gradient)
        attraction = factor * self.attraction(positions)
        return Evaluation(attraction + self.strength * push.value + self.offset + pulled, gradient)


class Push(NamedTuple):
    """E-, and its gradient as `factor` times `gradients` (N, d)."""

    value: float
    gradients: np.ndarray
    factor: float


def repulsive_term(
    objective: Objective, positions: np.ndarray, sums: PairSums, masses: np.ndarray | None = None
) -> Push:
    """Return E- and its gradient at positions (N, d) float64.

    With the sums S and their gradients G: sum S has gradient 2 G, log sum S has 2 G / sum S, and sum log S has
    G_n / S_n and the gradient of the sums with charges 1 / S_m.

    Points may stand for several at one place, by their `masses` (N,) float64. The gradient is then that with respect to
    the place that the copies share, w times that of a copy.

    *Erratum of the thesis.* Section 5.3 writes the repulsion of s-SNE as a sum of logs, which is that of SNE; it is the
    log of the sum, `log-sum`.
    """
    sums_at, gradients = field_of_copies(sums, positions, masses)
    if objective.combine != "sum-log":
        total = float(sums_at.sum() if masses is None else masses @ sums_at)
        if masses is not None:
            gradients *= masses[:, np.newaxis]
        if objective.combine == "sum":
            return Push(total, gradients, 2.0)
        total = max(total, LEAST_SUM)
        return Push(float(np.log(total)), gradients, 2.0 / total)
    exact, isolated = ExactSums(objective.kernel), correct_isolated(sums, positions, (sums_at, gradients), masses)
    bounded = np.maximum(sums_at, LEAST_SUM)
    charges = (1.0 if masses is None else masses) / bounded
    if masses is None:
        gradients *= charges[:, np.newaxis]
    else:
        gradients /= bounded[:, np.newaxis]
    if len(isolated):
        gradients += exact.field(positions[isolated], positions, charges[isolated])[1]  # none pushes itself
        charges[isolated] = 0.0
    gradients += sums.field(positions, charges=charges)[1]
    logarithms = np.log(bounded)
    if masses is None:
        return Push(float(logarithms.sum()), gradients, 1.0)
    return Push(float(masses @ logarithms), gradients * masses[:, np.newaxis], 1.0)


def correct_isolated(
    sums: PairSums, positions: np.ndarray, field: tuple[np.ndarray, np.ndarray], masses: np.ndarray | None = None
) -> np.ndarray:
    """Replace the `field_of_copies` at isolated points by exact sums, in place, and return the rows of these."""
    sums_at, gradients = field
    isolated = np.flatnonzero(sums_at < ISOLATED) if not sums.exact else np.empty(0, np.int64)
    sums_at[isolated], gradients[isolated] = ExactSums(sums.kernel).field(positions, charges=masses, rows=isolated)
    if masses is not None:
        sums_at[isolated] += masses[isolated] - 1.0
    return isolated


def field_of_copies(
    sums: PairSums, positions: np.ndarray, masses: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums (N,) that a copy of each point meets and their gradients (N, d).

    A copy meets its w - 1 others at distance zero, where every kernel is one.
    """
    sums_at, gradients = sums.field(positions, charges=masses)
    return sums_at if masses is None else sums_at + (masses - 1.0), gradients


def problem_of(
    rows: AffinityRows,
    objective: Objective,
    strength: float,
    over: Mapper = map,
    masses: np.ndarray | None = None,
) -> Problem:
    """Return an objective over symmetric affinities, which it scales; with affinities of one total it is a divergence.

    The `masses` (N,) float64 say how many points each stands for; None: one.
    """
    scale = affinity_scale(objective, rows, masses)
    offset = 0.0 if objective.total == "given" else entropy_term(rows, scale, masses)
    return Problem(rows, objective, scale, strength, offset=offset, masses=masses, workspace=recycling(over))


def affinity_scale(objective: Objective, rows: AffinityRows, masses: np.ndarray | None = None) -> float:
    """Return the factor that brings affinities to the total that an objective needs."""
    if objective.total == "given":
        return 1.0
    total = float(rows.values.sum(dtype=np.float64))
    if objective.total == "one":
        return 1.0 / total
    return (rows.n_points if masses is None else float(masses.sum())) / total


def entropy_term(rows: AffinityRows, scale: float, masses: np.ndarray | None = None) -> float:
    """Return sum p log p of the scaled affinities: what E lacks to be a Kullback-Leibler divergence.

    An affinity between masses is the sum of those between their copies, which are equal.
    """
    # Terms of all affinities at once would take five times the memory of the affinities.
    return math.fsum(entropy_of_tile(rows, tile, scale, masses) for tile in slices(rows.n_points, ENTROPY_ROWS))


def entropy_of_tile(rows: AffinityRows, tile: slice, scale: float, masses: np.ndarray | None) -> float:
    """Return what the rows of a tile add to the sum; the other parameters are those of `entropy_term`."""
    indptr = rows.indptr[tile.start : tile.stop + 1]
    inside = slice(indptr[0], indptr[-1])
    positive = rows.values[inside] > 0
    values = rows.values[inside][positive].astype(np.float64) * scale
    if masses is None:
        return float((values * np.log(values)).sum())
    sources = np.repeat(np.arange(tile.start, tile.stop), np.diff(indptr))[positive]
    targets = rows.indices[inside][positive]
    pairs = masses[sources] * (masses[targets] - (sources == targets))
    return float((values * np.log(values / pairs)).sum())
