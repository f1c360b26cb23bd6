"""The refinement of eigenvectors that lie on workers, and where it stands."""

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from scalemani.chunked.on_workers.graphs import SpreadGraph
from scalemani.chunked.on_workers.hierarchy import SpreadLevels
from scalemani.chunked.on_workers.rows import FOLDER, ArrayPanels, StoredPanels
from scalemani.chunked.on_workers.spread import Spread
from scalemani.chunked.on_workers.transfers import SpreadTransfer
from scalemani.chunked.work import StageWork
from scalemani.errors import ScalemaniError
from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.tall import DistantRows, Tall, written_panel
from scalemani.kernels.arrays.tiles import run
from scalemani.kernels.spectral.refinement import (
    RefinementProblem,
    RefinementState,
    draw_rows,
    initial_state,
    n_columns,
    n_start_columns,
    refinement,
)
from scalemani.records.coarse import StoredCoarseEmbedding, StoredCoarseGraphs
from scalemani.store.groups import StageGroup

TABLE = "panels.json"


class SpreadCheckpoints:
    """The state of a refinement whose vectors are panels of objects: a table that names them, and all small numbers."""

    def __init__(self, spread: Spread) -> None:
        self._spread, self._objects = spread, spread.place.objects
        self._kept: list[str] = []

    def save(self, state: RefinementState) -> None:
        """Replace the table; panels that the one before has named go."""
        basis, images = stored_panels(state)
        before, self._kept = self._kept, [basis.name, images.name]
        for name in self._kept:
            self._spread.keep(name)
        numbers = {name: [values.dtype.str, values.tolist()] for name, values in state.numbers.items()}
        shape = {"shape": list(basis.shape), "dtype": basis.dtype.str}
        self._objects.set_json(TABLE, {"panels": self._kept, **shape, "numbers": numbers})
        for name in before:
            self._spread.remove(name)

    def load(self) -> RefinementState | None:
        """Return the state last saved, or None where there is none or some of it was damaged; all else is removed."""
        state = self._whole_state()
        self._kept = [] if state is None else [rows.name for rows in stored_panels(state)]
        for name in self._objects.names(FOLDER):
            if name not in self._kept:
                self._spread.remove(name)
        return state

    def _whole_state(self) -> RefinementState | None:
        try:
            table = self._objects.get_json(TABLE)
            if table is None:
                return None
            shape, dtype = tuple(table["shape"]), np.dtype(table["dtype"])
            basis, images = (StoredPanels(name, shape, dtype, self._spread.place) for name in table["panels"])
            numbers = {name: np.array(values, dtype) for name, (dtype, values) in table["numbers"].items()}
            state = RefinementState.of_numbers(basis, images, numbers)
            intact = self._spread.over(functools.partial(is_intact, basis, images), panels(len(basis)))
        except (ScalemaniError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return state if all(intact) else None


def stored_panels(state: RefinementState) -> list[StoredPanels]:
    """Return the vectors of a state and their products."""
    return [rows for rows in (state.basis, state.images) if isinstance(rows, StoredPanels)]


def is_intact(basis: DistantRows, images: DistantRows, panel: slice) -> bool:
    """Return whether a panel of both is what was written."""
    try:
        return len(basis[panel]) == len(images[panel])
    except (ScalemaniError, ValueError):
        return False


def clear_panels(group: StageGroup) -> None:
    """Remove all panels of a stage, and the table that names some."""
    group.objects.delete(TABLE)
    group.objects.delete_below(FOLDER)


def start_panel(prolonged: DistantRows, trivial: DistantRows, seed: int, out: Tall, panel: slice) -> None:
    """Write a panel of start vectors: those of the coarse graph, and random ones beside them.

    Parameters
    ----------
    prolonged : (N, m), the vectors of the coarse graph.
    trivial : (N,), by which random ones are scaled.
    seed : of the draws.
    out : (N, n), written; it has a random column for each beyond m.
    panel : the rows.
    """
    known = prolonged[panel]
    with written_panel(out, panel) as target:
        draws = np.empty((len(target), target.shape[1] - known.shape[1]), np.float32)
        draw_rows(draws, panel.start, seed)
        target[:, : known.shape[1]] = known
        target[:, known.shape[1] :] = draws * trivial[panel][:, np.newaxis]


def start_vectors(spread: Spread, graph: SpreadGraph, transfer: SpreadTransfer, dtype: DTypeLike) -> Tall:
    """Return the vectors u (N, n) that refinement starts from: those of the coarse graph, and others where it has few.

    Parameters
    ----------
    spread : where panels are worked on.
    graph : W.
    transfer : from it to the first coarse graph.
    dtype : of the vectors.
    """
    task = spread.work.task
    stored = StoredCoarseEmbedding(task.inputs[StoredCoarseEmbedding.STAGE])
    coarse = ArrayPanels(stored.group, stored.VECTORS.name, spread.place.cache_bytes)
    n_points, n_coarse = task.dimensions.n_points, coarse.shape[1]
    prolonged = spread.rows((n_points, n_coarse), dtype)
    transfer.prolong(coarse, prolonged)
    width = n_start_columns(task.params.n_components, n_points)
    if n_coarse >= width:
        return prolonged
    start = spread.rows((n_points, width), dtype)
    part = functools.partial(start_panel, prolonged, graph.trivial, task.params.seed, start)
    run(spread.over(part, panels(n_points)))
    return start


class Refined(NamedTuple):
    """The last state of a refinement on workers, and the degrees (N,) of W."""

    state: RefinementState
    degrees: DistantRows


def refine_on_workers(work: StageWork, dtype: DTypeLike, has_loops: bool) -> Refined:
    """Return the eigenvectors of W refined to the residual asked for, or as far as the passes allowed go.

    Parameters
    ----------
    work : the stage, which reads W, the coarse graphs and the vectors of the first of them.
    dtype : of the vectors.
    has_loops : whether points may be their own neighbours.
    """
    task, asked, spread = work.task, work.task.params.embedding, Spread(work)
    work.executor.progress.start(task.stage, asked.max_passes, "pass")
    checkpoints = SpreadCheckpoints(spread)
    state = checkpoints.load()
    graph = SpreadGraph.of_affinities(spread, has_loops)
    levels = SpreadLevels(spread, StoredCoarseGraphs(task.inputs[StoredCoarseGraphs.STAGE]), work.workspace())
    coarse, transfer = levels.multilevel(), levels.transfer(0, graph.graph.degrees)

    def apply(vectors: DistantRows) -> Tall:
        product = graph.product(vectors)
        work.executor.progress.advance()
        return product

    def correct(residuals: DistantRows) -> Tall:
        return coarse.correct_below(transfer, 0, graph.smoothing, residuals)

    problem = RefinementProblem(apply, correct, graph.trivial, spread.workspace)
    if state is None:
        width = n_columns(task.params.n_components, task.dimensions.n_points)
        state = initial_state(start_vectors(spread, graph, transfer, dtype), problem, width)
        checkpoints.save(state)
    else:
        work.executor.progress.advance(state.passes)
    for following in refinement(state, problem, task.params.n_components, task.params.residual, asked.max_passes):
        checkpoints.save(following)
        state = following
    return Refined(state, graph.graph.degrees)
