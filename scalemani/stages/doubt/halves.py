"""Which places of a map come again: the points are split in two at random, several times, and each half mapped anew.

A half has its points' affinities to each other and the start, objective and descent of the run. Its map is brought onto
that of the run by a similarity, so that only what a turn, a shift and a scale do not explain counts. Source of the
idea: Sun et al., Dynamic visualization of high-dimensional data, Nature Computational Science 3, 2023, who draw with
replacement.
"""

from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from scalemani.config.objectives import objective_of
from scalemani.descents.descent import State
from scalemani.descents.phases import descend, phases_of
from scalemani.descents.problem import problem_of
from scalemani.descents.pull import towards
from scalemani.descents.repulsion import chosen_method, mesh_values
from scalemani.engine.checkpoints import Checkpoints
from scalemani.engine.context import Arrays, StageContext, StageTask
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.arrays.workspace import threads
from scalemani.kernels.doubt import shares_within
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.measures import similarity_of, without_self
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredDoubt, StoredLayout
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.shared.starts import RANDOM_START, noise, standardized, start_of

SIGN_BIT = np.uint64(63)


def memory(sizes: Sizes) -> Memory:
    """Return what the affinities of a half take, its descent, and the trees of two maps; nothing without halves."""
    n_points, params = sizes.dimensions.n_points, sizes.params
    if params.doubt.halves == 0:
        return Memory()
    positions = array("float64", n_points, params.n_components)
    remembered = 4 * (params.layout.pairs or 0)
    return Memory(
        {
            "affinities of a half, by block and together": 2 * entries(sizes.nonzeros // 2, "float32")
            + 3 * entries(sizes.block_nonzeros, "float32"),
            "the map, starts, positions of a half, gradients and what is like them": (20 + remembered) * positions,
            "trees of two maps, and the nearest points in both": array(
                "float64", n_points, 2 * params.n_components + 4 * params.doubt.n_neighbors + 8
            ),
            "mesh of a half": array("float64", mesh_values(n_points, params.layout.dof, params.n_components)),
        }
    )


class Half(NamedTuple):
    """Points of a half that have a neighbour in it, ascending work rows (n,), and their affinities to each other."""

    own: np.ndarray
    rows: AffinityRows


def stability(context: StageContext) -> Arrays:
    """Return how far the places of each point (N,) are from that in the map, and how many of its neighbours they keep.

    Points are in work order. A computation that was interrupted goes on after the last half that was mapped.
    """
    task, progress = context.task, context.executor.progress
    n_points, n_halves = task.dimensions.n_points, 2 * task.params.doubt.halves
    order = task.stored(StoredWorkPoints).input_rows.read()
    positions = np.ascontiguousarray(task.stored(StoredLayout).embedding.read()[order])
    checkpoints = Checkpoints(task.output, context.executor.checkpoint_seconds)
    saved = checkpoints.load({"squares": (n_points,), "kept": (n_points,), "done": (1,)})
    state = saved or {"squares": np.zeros(n_points), "kept": np.zeros(n_points), "done": np.zeros(1, np.int64)}
    squares, kept = state["squares"], state["kept"]
    starts, jitter = None, task.params.layout.jitter * noise(task)[order]
    with threads(context.executor.workers) as side_by_side:
        for number in range(int(state["done"][0]), n_halves):
            progress.note(f"{task.stage}: half {number + 1} of {n_halves}")
            inside = members(task, number)[order]
            half = half_of(task, inside)
            starts = starts_of(task, order, number, starts)
            anew = mapped(task, half, starts, jitter, side_by_side.over) if len(half.own) else positions[half.own]
            away, shares = compared(positions, inside, half.own, anew, task.params.doubt.n_neighbors)
            squares, kept = squares + away, kept + shares
            checkpoints.save({"squares": squares, "kept": kept, "done": np.array([number + 1])})
    checkpoints.clear()
    radius = np.sqrt(((positions - positions.mean(axis=0)) ** 2).sum(axis=1).mean())
    return {
        StoredDoubt.spread: np.sqrt(squares / task.params.doubt.halves) / (radius or 1.0),
        StoredDoubt.stable: kept / task.params.doubt.halves,
    }


def members(task: StageTask, number: int) -> np.ndarray:
    """Return which points (N,), rows in input order, are in a half; the next of an even number has the others."""
    words = row_words(task.params.seed, f"doubt/halves/{number // 2}", 0, task.dimensions.n_points)
    return (words >> SIGN_BIT) == number % 2


def half_of(task: StageTask, inside: np.ndarray) -> Half:
    """Return the affinities between the points (N,) that are inside, without points that then have none."""
    numbers = np.cumsum(inside) - 1
    counts, columns, values = [], [], []
    for block in range(task.dimensions.n_blocks):
        start, stop = task.dimensions.rows(block)
        bounds, indices, affinities = task.stored(StoredSymmetricAffinities).read_rows(block)
        of_row = np.repeat(np.arange(start, stop), np.diff(bounds))
        both = inside[indices] & inside[of_row] & (indices != of_row)
        counts.append(np.bincount(of_row[both] - start, minlength=stop - start)[inside[start:stop]])
        columns.append(numbers[indices[both]])
        values.append(affinities[both])
    lengths = np.concatenate(counts)
    joined = lengths > 0  # affinities are symmetric: who has no neighbour is none
    renumbered = (np.cumsum(joined) - 1)[np.concatenate(columns)].astype(np.uint32)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[joined], dtype=np.int64)])
    return Half(np.flatnonzero(inside)[joined], AffinityRows(indptr, renumbered, np.concatenate(values)))


def starts_of(task: StageTask, order: np.ndarray, number: int, before: np.ndarray | None) -> np.ndarray:
    """Return the starts (N, d) of a half in work order: those of the half `before`, unless they are drawn anew."""
    init = task.params.layout.init
    if before is not None and init != RANDOM_START:
        return before
    return start_of(task, init, order, f"doubt/halves/{number} start")[order]


def mapped(task: StageTask, half: Half, starts: np.ndarray, jitter: np.ndarray, over: Mapper) -> np.ndarray:
    """Return the map (n, d) of a half, as the run makes that of all points (N, d) from their starts and jitter."""
    params, layout, own = task.params.descent, task.params.layout, half.own
    objective = objective_of(params.objective, params.dof)
    problem = problem_of(half.rows, objective, params.strength, over)
    if layout.global_weight > 0:
        affinities = problem.scale * float(half.rows.values.sum(dtype=np.float64))
        problem = replace(problem, pull=towards(reference_of(task)[own], layout.global_weight * affinities))
    positions = (standardized(starts[own]) + jitter[own]) * (params.start_deviation or 1.0)
    state = State(positions if problem.pull is None else problem.pull.turned(positions))
    n_points, n_dims = positions.shape
    method = chosen_method(layout.repulsion, objective.kernel, n_points, n_dims, params.exact_up_to)
    return deque(descend(problem, phases_of(params, n_points), method, state), 1)[0].positions


def reference_of(task: StageTask) -> np.ndarray:
    """Return the map (N, d) that points of a run were pulled to, in work order; NaN where it has no place for one."""
    stored = task.stored(StoredLayout)
    reference = stored.reference.read()
    if stored.group.certificate("pulled", int) < len(reference):
        reference[(reference == 0).all(axis=1)] = np.nan
    return reference


def compared(
    positions: np.ndarray, inside: np.ndarray, own: np.ndarray, anew: np.ndarray, n_neighbors: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far points (N,) of a half lie from where they are, squared, and the share of neighbours they keep.

    Of the points (N,) that are inside, rows `own` (n,) of the map at `positions` (N, d) are mapped `anew` (n, d). The
    others of them have no neighbour there: they count as in the middle of the map, and keep none. Points that are not
    inside have zeros.
    """
    squares, kept = np.zeros(len(positions)), np.zeros(len(positions))
    middle = positions[own if len(own) else slice(None)].mean(axis=0)
    squares[inside] = ((positions[inside] - middle) ** 2).sum(axis=1)
    if len(own) == 0:
        return squares, kept
    there, here = positions[own] - middle, anew - anew.mean(axis=0)
    scale, turn = similarity_of(here.T @ there, float((here**2).sum()))
    squares[own] = ((scale * here @ turn - there) ** 2).sum(axis=1)
    k = min(n_neighbors, len(own) - 1)
    kept[own] = shares_within(nearest_in(there, k), nearest_in(here, k))
    return squares, kept


def nearest_in(positions: np.ndarray, k: int) -> np.ndarray:
    """Return the nearest others (n, k) of each position (n, d)."""
    return without_self(cKDTree(positions).query(positions, k + 1)[1], np.arange(len(positions)))
