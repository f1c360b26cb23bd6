"""Refinement to a residual by passes over W, from coarse vectors and others, with checkpoints."""

import functools

import numpy as np

from scalemani.config.params import Resolved
from scalemani.engine.checkpoints import Checkpoints
from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.task import EarlierResults
from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.graph.product import spread_to_neighbors
from scalemani.kernels.spectral.accuracy import (
    Following,
    following_value,
)
from scalemani.kernels.spectral.filtering import filtered_state
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
from scalemani.stages.shared.edges import rows_of_appended
from scalemani.stages.shared.output import over_landmarks

LAST_PASSES = 2  # that are left for a refinement after polynomials
START_BITS = 16  # that are retained of what landmarks give a refinement to start from


def vector_dtype(params: Resolved) -> type:
    """Return the type of the vectors while they are refined, or where they are not."""
    refined_roughly = params.embedding.by_passes and params.residual >= params.embedding.float32_reaches
    return np.float32 if refined_roughly else np.float64


def by_refinement(context: StageContext) -> Solved:
    """Return the vectors refined to the requested residual, or as far as the allowed passes go."""
    task, params, graph = context.task, context.task.params.embedding, StreamedGraph(context)
    workspace = context.workspace
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
    checkpoints = Checkpoints(task.output, context.executor.checkpoint_seconds)
    state = stored_state(checkpoints, task.dimensions.n_points, workspace)
    passes = 0 if state is None else state.passes
    context.executor.progress.start(task.stage, params.max_passes, "pass", passes)
    if state is None:
        state = first_state(task, graph, transfer, problem)
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


def first_state(
    task: StageTask, graph: StreamedGraph, transfer: Transfer, problem: RefinementProblem
) -> RefinementState:
    """Return the state that a refinement starts from: of coarse vectors, or of those of an earlier run.

    The latter err where edges have changed, which products alone put right for the most part.
    """
    params, width = task.params.embedding, n_columns(task.params.n_components, task.dimensions.n_points)
    vectors = None if task.earlier is None else earlier_vectors(task, task.earlier, graph)
    if vectors is None:
        return initial_state(start_vectors(task, graph, transfer), problem, width)
    most = params.max_passes - LAST_PASSES
    return filtered_state(vectors, problem, width, task.params.n_components, task.params.residual, most)


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


def earlier_vectors(task: StageTask, earlier: EarlierResults, graph: StreamedGraph) -> np.ndarray | None:
    """Return the vectors u (N, m) of an earlier run and those that follow them, to be refined; None to start as others.

    That is where coarse graphs were made anew: appended points are so many, or so much among themselves, that vectors
    of these graphs know more.
    """
    stored, n_points = earlier.stored(StoredEmbedding), task.dimensions.n_points
    reused = task.stored(StoredCoarseGraphs).points_when_made(n_points) < n_points
    has_guards = stored.group.holds(StoredEmbedding.guards.name) and not stored.in_pieces
    if task.params.embedding.by_landmarks or not (reused and has_guards):
        return None
    guards, before = stored.guards.read(), earlier.stored(StoredWorkPoints).input_rows.read()
    rows = inverse_order(task.stored(StoredWorkPoints).input_rows.read())[before]
    following = np.full((n_points, guards.shape[1]), np.nan)
    following[rows] = guards / graph.trivial[rows, np.newaxis]
    vectors = continued_vectors(task, earlier, graph.workspace, following)
    start = graph.workspace.empty(vectors.shape, vector_dtype(task.params))
    for panel in panels(len(start)):
        start[panel] = vectors[panel] * graph.trivial[panel, np.newaxis]
    return start


def continued_vectors(
    task: StageTask, earlier: EarlierResults, workspace: Workspace, following: np.ndarray | None = None
) -> np.ndarray:
    """Return the vectors v (N, d) of an earlier run in work order, those of appended points from their neighbours.

    `following` (N, g) are further columns, NaN at appended points.
    """
    order = task.stored(StoredWorkPoints).input_rows.read()
    stored = earlier.stored(StoredEmbedding).embedding.read()
    vectors = np.full((len(order), stored.shape[1]), np.nan)
    known = order < earlier.n_points
    vectors[known] = stored[order[known]]
    if following is not None:
        vectors = np.concatenate([vectors, following], axis=1)
    appended = np.flatnonzero(~known)
    spread_to_neighbors(rows_of_appended(task, appended, workspace.over), vectors, appended)
    return vectors
