"""Refinement to a residual by passes over W, from coarse vectors and others, with checkpoints."""

import functools

import numpy as np

from scalemani.config.params import Resolved
from scalemani.engine.checkpoints import Checkpoints
from scalemani.engine.task import EarlierResults
from scalemani.engine.work import StageTask, StageWork
from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.graph.product import spread_to_neighbors
from scalemani.kernels.spectral.accuracy import (
    Following,
    following_value,
)
from scalemani.kernels.spectral.multilevel import Multilevel, Transfer, jacobi_shares
from scalemani.kernels.spectral.refinement import (
    RefinementProblem,
    RefinementState,
    guard_vectors,
    initial_state,
    n_columns,
    n_start_columns,
    random_columns,
    refined_embedding,
    refinement,
)
from scalemani.stages.arrays.embeddings import StoredCoarseEmbedding, StoredCoarseGraphs, StoredEmbedding
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.embedding.solved import Solved
from scalemani.stages.embedding.streaming import StreamedGraph, whole_matrix
from scalemani.stages.shared.appended import rows_of_appended
from scalemani.stages.shared.output import over_landmarks

START_BITS = 16  # that are retained of what landmarks give a refinement to start from


def vector_dtype(params: Resolved) -> type:
    """Return the type of the vectors while they are refined, or where they are not."""
    refined_roughly = params.embedding.by_passes and params.residual >= params.embedding.float32_reaches
    return np.float32 if refined_roughly else np.float64


def by_refinement(work: StageWork, workspace: Workspace) -> Solved:
    """Return the vectors refined to the requested residual, or as far as the allowed passes go."""
    task, params, graph = work.task, work.task.params.embedding, StreamedGraph(work, workspace)
    work.executor.progress.start(task.stage, params.max_passes, "pass")
    n_requested = task.params.n_components
    stored = task.stored(StoredCoarseGraphs)
    labels = stored.labels.read(workspace.empty)
    transfer = Transfer(labels, graph.degrees, stored.read_degrees(), workspace)

    @functools.cache  # a start that is good enough needs no correction
    def correction() -> tuple[Multilevel, np.ndarray]:
        coarse = Multilevel(stored.read_levels(workspace.empty), workspace)
        return coarse, workspace.as_large(jacobi_shares(graph.loops()))

    def correct(residuals: np.ndarray) -> np.ndarray:
        coarse, smoothing = correction()
        return coarse.correct_below(transfer, 0, smoothing, residuals)

    problem = RefinementProblem(graph.product, correct, graph.trivial, workspace)
    checkpoints = Checkpoints(task.output, work.executor.checkpoint_seconds)
    state = stored_state(checkpoints, task.dimensions.n_points, workspace)
    if state is None:
        width = n_columns(n_requested, task.dimensions.n_points)
        state = initial_state(start_vectors(task, graph, transfer), problem, width)
    else:
        work.executor.progress.advance(state.passes)
    for following in refinement(state, problem, n_requested, task.params.residual, params.max_passes):
        state = following
        if checkpoints.due():
            checkpoints.save(state.arrays())
    values, vectors = refined_embedding(state, graph.degrees, n_requested, workspace)
    if len(state.values) > n_requested:
        guards = guard_vectors(state, n_requested, workspace)
        beyond = Following(state.values[n_requested:], state.residuals[n_requested:], guards)
    else:  # few points have no more vectors than those requested
        beyond = following_value(whole_matrix(task), state.values, state.vectors)
    return Solved(vectors, values, state.residuals[:n_requested], beyond, state.passes)


def stored_state(checkpoints: Checkpoints, n_points: int, workspace: Workspace) -> RefinementState | None:
    """Return where a run that was killed had come to, if it had."""
    arrays = checkpoints.load(
        {
            "basis": (n_points, None),
            "images": (n_points, None),
            "quotients": (None, None),
            "values": (None,),
            "residuals": (None,),
            "passes": (),
            "fresh": (),
        }
    )
    return None if arrays is None else RefinementState.of_arrays(arrays, workspace)


def start_vectors(task: StageTask, graph: StreamedGraph, transfer: Transfer) -> np.ndarray:
    """Return the vectors u (N, n) that refinement starts from: those of the coarse graph, and others."""
    empty = graph.workspace.empty
    coarse = task.stored(StoredCoarseEmbedding).vectors.read(empty)
    others = other_vectors(task, coarse.shape[1], graph.workspace)
    start = empty((len(graph.degrees), coarse.shape[1] + others.shape[1]), vector_dtype(task.params))
    transfer.prolong(coarse, start[:, : coarse.shape[1]])
    for panel in panels(len(start)):
        start[panel, coarse.shape[1] :] = others[panel] * graph.trivial[panel, np.newaxis]
    return start


def other_vectors(task: StageTask, n_coarse: int, workspace: Workspace) -> np.ndarray:
    """Return the vectors v (N, n) that a start has in addition to those of the coarse graph.

    They are the landmarks' where the solver uses these; those of an earlier run where points were appended to it;
    else random ones where the coarse graph has too few nodes.
    """
    if task.params.embedding.by_landmarks:
        solved = task.stored(StoredLandmarkEmbedding).vectors.read()
        return over_landmarks(task, coarsely_rounded(solved), workspace.empty)
    if task.earlier is not None:
        return continued_vectors(task, task.earlier, workspace)
    n_points = task.dimensions.n_points
    missing = n_start_columns(task.params.n_components, n_points) - n_coarse
    return random_columns(n_points, max(0, missing), task.params.seed)


def coarsely_rounded(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (n, d) to some five digits of the largest entry of each.

    The reduced problem is a sum over blocks, whose order moves the last bits of its solution. A refinement rounds what
    it starts from to float32, where such a bit becomes one 10 million times as large, and eigenvalues that lie close
    together make that larger by what lies between them. A start has no use for more digits than these.
    """
    _, exponents = np.frexp(np.abs(vectors).max(axis=0))
    steps = np.ldexp(1.0, exponents - START_BITS)
    return np.rint(vectors / steps) * steps


def continued_vectors(task: StageTask, earlier: EarlierResults, workspace: Workspace) -> np.ndarray:
    """Return the vectors (N, d) of an earlier run in work order, those of appended points from their neighbours."""
    order = task.stored(StoredWorkPoints).input_rows.read()
    stored = earlier.stored(StoredEmbedding).embedding.read()
    vectors = np.full((len(order), stored.shape[1]), np.nan)
    known = order < earlier.n_points
    vectors[known] = stored[order[known]]
    appended = np.flatnonzero(~known)
    spread_to_neighbors(rows_of_appended(task, appended, workspace.over), vectors, appended)
    return vectors
