"""Which points of a map to believe: each is placed anew with all others fixed, and its neighbours compared.

A point goes down its part of the objective from where it lies, and from the centre of those of its neighbours that lie
elsewhere in the map. Where it ends lower, as far as that is from where it lies in units of its neighbours' distances in
the map, is its perturbation. The least eigenvalue of its Hessian over the largest one, its singularity, tells how well
its place is determined. Source of both: Liu, Ma and Zhong, arXiv 2410.16608, whose perturbation moves the data instead.
A point of a spectral map is placed by the equation of its eigenvectors (`stages/doubt/spectral.py`).

How well its distances to a sample of the points agree between data and map is compared with a map of points without
structure (`stages/doubt/null.py`). On request, halves of the points are mapped anew (`stages/doubt/halves.py`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.spatial import cKDTree

from scalemani.config.objectives import Objective, objective_of
from scalemani.descents.placement import SHORTEST_STEP, FixedSources, PlacementProblem, place_points
from scalemani.descents.pull import PullOfOne, towards
from scalemani.descents.repulsion import chosen_method, make_repulsion, mesh_values
from scalemani.engine.context import Arrays, StageContext, StageTask
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.workspace import threads
from scalemani.kernels.doubt import (
    centers_elsewhere,
    shares_within,
)
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.measures import without_self
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities, affinity_graph
from scalemani.stages.arrays.embeddings import BEYOND, StoredDoubt, StoredLayout
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.doubt import halves, null
from scalemani.stages.doubt.spectral import read_spectral_map
from scalemani.stages.shared.edges import rows_made

MOST_ENTRIES = 2**19  # of rows of W whose points are placed at a time
# Over which a Hessian is the difference of gradients, in units of the kernels: of exact sums, and of those of a mesh.
EXACT_STEP, MESH_STEP = 1e-4, 0.03
# The least distance that counts for a point's neighbours in a map, in units of the kernels: the descent and what places
# points end where steps are shorter than a third of this.
LEAST_UNIT = 3 * SHORTEST_STEP
SCORES = (
    StoredDoubt.perturbation,
    StoredDoubt.singularity,
    StoredDoubt.preservation,
    StoredDoubt.trusted,
    StoredDoubt.continued,
    StoredDoubt.agreement,
    StoredDoubt.p_values,
)


class PlacingMap(Protocol):
    """A finished map in work order, in which single points are placed.

    It has `positions` (N, d) and a tree of them; nearer than the `least_unit` no two places are told apart.
    """

    @property
    def positions(self) -> np.ndarray:
        """Where points lie."""

    @property
    def tree(self) -> cKDTree:
        """A tree of the positions."""

    @property
    def least_unit(self) -> float:
        """The least distance that counts."""

    def placed(self, rows: Rows, first: int) -> Arrays:
        """Return the other places of points from a `first` work row on, by their rows of W, and their singularity."""


class FixedMap(NamedTuple):
    """A finished map in work order, as single points are placed in it.

    `positions` (N, d) and a tree of them; `fixed` sums the kernel over them; `total` is the sum over all pairs;
    affinities are multiplied by `scale`; Hessians are differences over a `step`; `pull` is that of a reference map.
    """

    positions: np.ndarray
    tree: cKDTree
    fixed: FixedSources
    total: float
    objective: Objective
    strength: float
    scale: float
    step: float
    pull: PullOfOne | None
    least_unit: float = LEAST_UNIT

    def problem(self, own: np.ndarray, rows: Rows) -> PlacementProblem:
        """Return the part that points (m,) have in the objective, by their rows of W, over 2 where a sum.

        Of log sum S it is 2 sum p a + strength log(Z + 2 S), where Z is the sum over pairs of others.
        """
        factor = self.scale if self.objective.combine == "sum" else 2.0 * self.scale
        scaled = (rows[0], rows[1], factor * rows[2].astype(np.float64))
        single = PlacementProblem(
            self.objective, self.strength, self.fixed, self.positions, scaled, own, pull=self.pull
        )
        if self.objective.combine == "sum":
            return single
        sums, _ = single.field(np.arange(len(own)), self.positions[own])
        return replace(single, offsets=0.5 * self.total - sums)

    def placed(self, rows: Rows, first: int) -> Arrays:
        """Return the better places of points from a `first` work row on, and what is known there."""
        own = np.arange(first, first + len(rows[0]) - 1)
        at, problem = self.positions[own], self.problem(own, rows)
        here = place_points(problem, starts=at)
        there = place_points(problem, starts=centers_elsewhere(self.positions, problem.rows, own))
        lower = there.values < here.values
        eigenvalues = np.linalg.eigvalsh(problem.hessians(at, self.step))
        largest = np.abs(eigenvalues).max(axis=1)
        return {
            StoredDoubt.places: np.where(lower[:, np.newaxis], there.positions, here.positions),
            StoredDoubt.singularity: eigenvalues[:, 0] / np.where(largest > 0, largest, 1.0),
        }


def memory(sizes: Sizes) -> Memory:
    """Return what the map takes with its tree and mesh, a block of W and of the graph, and the null map."""
    n_points, d, rows = sizes.dimensions.n_points, sizes.params.n_components, sizes.dimensions.block_rows
    k = sizes.params.n_neighbors
    pulled = sizes.params.layout.global_weight > 0
    reference = {"reference map, and products with it": array("float64", n_points, 3 * d)} if pulled else {}
    scores = Memory(
        process={
            "positions as stored, in work order, and in a tree": array("float64", n_points, 4 * d + 3),
            "mesh, and while it is made": 2 * array("float64", mesh_values(n_points)),
            **reference,
        },
        task={
            "rows of W of a block": 3 * entries(sizes.block_nonzeros, "float32") + array("int64", rows),
            "neighbours of a block in the data and in the map": array("int64", rows, 8 * k),
            "rows of W that are placed together": array("float64", MOST_ENTRIES + sizes.params.n_neighbors, 3),
            "scores of a block": array("float64", rows, 8 + 2 * d),
            **null.compared(sizes),
        },
    )
    steps = {"null map": null.memory(sizes), "maps of halves": halves.memory(sizes)}
    return Memory(steps={**steps, "scores": scores + rows_made(sizes)})


def run(context: StageContext) -> dict[str, Any]:
    """Write the scores of all points and the agreements of the null map; certify what share may be believed.

    Where halves of the points are mapped as well, how far points are from their places there.
    """
    task, output = context.task, StoredDoubt(context.task.output)
    if not task.output.committed(StoredDoubt.NULL_UNIT):
        with threads(context.executor.workers) as side_by_side:
            agreements = null.null_agreements(task, side_by_side.over)
        task.output.write_whole({StoredDoubt.null: agreements}, StoredDoubt.NULL_UNIT)
    if task.params.doubt.halves and not task.output.committed(StoredDoubt.HALVES_UNIT):
        task.output.write_whole(halves.stability(context), StoredDoubt.HALVES_UNIT)
    scored = [one.sized() for one in SCORES]
    task.output.create(task.dimensions.n_points, [*scored, StoredDoubt.places.sized(task.params.n_components)])
    context.map_blocks(block_scores)
    p_values, moved = output.p_values.read(), output.perturbation.read()
    bound = believable_bound(p_values, task.params.doubt.rate)
    return {
        "null_points": len(output.null.read()),
        "believable_p_value": bound,
        "believable": float(np.mean(p_values <= bound)),
        "moved_beyond": float(np.mean(moved > BEYOND)),
        "median_perturbation": float(np.median(moved)),
        "median_preservation": float(np.median(output.preservation.read())),
        **(halves_certified(output) if task.params.doubt.halves else {}),
    }


def halves_certified(output: StoredDoubt) -> dict[str, float]:
    """Return what is certified of maps of halves."""
    return {"median_spread": float(np.median(output.spread.read())), "mean_stable": float(output.stable.read().mean())}


def believable_bound(p_values: np.ndarray, rate: float) -> float:
    """Return the largest p-value (N,) that is believable at a rate, 0 where none is [Benjamini and Hochberg 1995]."""
    ordered = np.sort(p_values)
    below = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / len(ordered))
    return float(ordered[below[-1]]) if len(below) else 0.0


def placing_map(task: StageTask) -> PlacingMap:
    """Return the map of a run as points are placed in it."""
    return fixed_map(task) if StoredLayout.STAGE in task.inputs else read_spectral_map(task)


def fixed_map(task: StageTask) -> FixedMap:
    """Return the map that a descent has made, its repulsion summed exactly or on a mesh."""
    params, stored = task.params, task.stored(StoredLayout)
    descent, objective = params.descent, objective_of(params.descent.objective, params.descent.dof)
    positions = np.ascontiguousarray(stored.embedding.read()[task.stored(StoredWorkPoints).input_rows.read()])
    method = chosen_method("auto", objective.kernel, len(positions), params.n_components, descent.exact_up_to)
    tolerance = stored.group.record["certificates"].get("repulsion_tolerance", descent.tolerance)
    fixed = FixedSources(make_repulsion(method, objective.kernel, tolerance), positions)
    total = float(np.sum(fixed.field(positions)[0] - 1.0)) if objective.combine == "log-sum" else 0.0
    degrees = task.stored(StoredSymmetricAffinities).read_degrees(len(positions))
    total_affinity = float(degrees.sum())
    scale = 1.0 / total_affinity if objective.total == "one" else 1.0
    pull = None
    if params.layout.global_weight > 0:
        # Attraction and repulsion are divided by the exaggeration at the end, and the pull has none.
        weight = params.layout.global_weight / descent.late_exaggeration
        whole = towards(halves.reference_of(task), weight * scale * total_affinity)
        pull = whole.alone(positions, 0.5 if objective.combine == "sum" else 1.0)
    step = EXACT_STEP if method == "exact" else MESH_STEP
    return FixedMap(
        positions, cKDTree(positions), fixed, total, objective, descent.relative_strength, scale, step, pull
    )


def block_scores(task: StageTask, block: int) -> Arrays:
    """Return the scores of a block of work rows."""
    start, stop = task.dimensions.rows(block)
    fixed, null_scores = task.once(placing_map), StoredDoubt(task.output).null.read_once()
    rows = affinity_graph(task.inputs, task.cache_bytes).read_rows(block)
    parts = [fixed.placed(part, start + first) for first, part in parts_of(rows)]
    columns = {one: np.concatenate([part[one] for part in parts]) for one in parts[0]}
    lists, _ = task.stored(StoredNeighbors).read_graph_block(block)
    kept, unit = compared_lists(fixed, lists, np.arange(start, stop), task.params.doubt.n_neighbors)
    away = np.linalg.norm(columns[StoredDoubt.places] - fixed.positions[start:stop], axis=1)
    agreement = null.agreements_of_block(task, block, fixed.positions)
    columns |= {StoredDoubt.agreement: agreement, StoredDoubt.p_values: null.p_values_of(agreement, null_scores)}
    return {**columns, **kept, StoredDoubt.perturbation: away / unit}


def parts_of(rows: Rows, most_entries: int = MOST_ENTRIES) -> Iterator[tuple[int, Rows]]:
    """Yield consecutive rows in CSR form, with the number of the first: one, or as many as have few entries."""
    indptr, indices, values = rows
    first = 0
    while first < len(indptr) - 1:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + most_entries, side="right")) - 1)
        inside = slice(indptr[first], indptr[last])
        yield first, (indptr[first : last + 1] - indptr[first], indices[inside], values[inside])
        first = last


def compared_lists(
    fixed: PlacingMap, lists: np.ndarray, own: np.ndarray, n_neighbors: int
) -> tuple[Arrays, np.ndarray]:
    """Return the shares of neighbours that a map has in common with lists (n, K) of the data, and their distances (n,).

    These are the means of the distances to the nearest `n_neighbors` in the map.
    """
    distances, nearest = fixed.tree.query(fixed.positions[own], lists.shape[1] + 1)
    in_map, k = without_self(nearest, own), min(n_neighbors, lists.shape[1])
    shares = {
        StoredDoubt.preservation: shares_within(lists[:, :k], in_map[:, :k]),
        StoredDoubt.trusted: shares_within(in_map[:, :k], lists),
        StoredDoubt.continued: shares_within(lists[:, :k], in_map),
    }
    return shares, np.maximum(distances[:, : k + 1].sum(axis=1) / k, fixed.least_unit)
