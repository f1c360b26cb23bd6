"""The embedding in input order: refined by passes over the graph, or Z times the landmarks' coordinates.

By landmarks alone, tasks compute all of it, block by block. For other solvers the driver does: the vectors, N rows
of a few columns, are held in memory or mapped, and so is the graph from the first pass over its
blocks on. Refinement starts from the eigenvectors of a coarse graph, with `lll+refine` also from the landmarks'
embedding. The coarse graphs precondition each step. The vectors are stored now and then: a refinement that was killed
resumes from there and ends the same to the last bit.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from scalemani.config.limits import MOST_ANGLE
from scalemani.config.methods import beside, declared, load
from scalemani.config.params import Resolved
from scalemani.config.stages import LLL, REFINE
from scalemani.engine.checkpoints import Checkpoints
from scalemani.engine.needs import Disk, Memory, array, entries
from scalemani.engine.sizes import Sizes, coarse_graphs, pixels, written
from scalemani.engine.task import EarlierResults
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.errors import ShortfallWarning
from scalemani.kernels.arrays.columns import column_squares, panels, residuals_into, unit_roots
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.graph.product import Rows, dirichlet_energies, normalized_product, spread_to_neighbors
from scalemani.kernels.spectral.accuracy import (
    ROUNDINGS,
    UNKNOWN,
    Following,
    SubspaceAccuracy,
    count_near_zero,
    following_value,
    subspace_accuracy,
)
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps
from scalemani.kernels.spectral.eigenproblem import DENSE_LANDMARKS, within_range
from scalemani.kernels.spectral.multilevel import Multilevel, Transfer, jacobi_shares
from scalemani.kernels.spectral.pieces import PieceTarget
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
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.embeddings import StoredCoarseEmbedding, StoredCoarseGraphs, StoredEmbedding
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding
from scalemani.stages.arrays.points import StoredWeights, StoredWorkPoints
from scalemani.stages.embedding.by_blocks import block_sums, memory_by_blocks, write_by_blocks
from scalemani.stages.embedding.by_pieces import embed_pieces, memory_of_pieces, pieces_of
from scalemani.stages.shared.appended import rows_of_appended
from scalemani.stages.shared.output import embedding_memory, over_landmarks, write_embedding
from scalemani.stages.shared.tiles import added

CHECKPOINT_SECONDS = 10.0
START_BITS = 16  # that are kept of what landmarks give a refinement to start from
# Solvers whose vectors are Z times those of the landmarks, without a pass.
BY_LANDMARKS = (LLL, *declared("REDUCTIONS"))
SMALL_EIGENVALUE = 32  # times the rounding of 1 - theta: eigenvalues below are computed as sums of squares
COPIES_IN_CHECKPOINT = 4  # vectors and directions, and their products
COLUMNS_OF_POINT, COLUMNS_ON_THE_WAY = 6, 4
FEWEST_LANCZOS_VECTORS = 20  # of ARPACK


def vector_dtype(params: Resolved) -> type:
    """Return the type of the vectors while they are refined, or where they are not."""
    refined_roughly = params.embedding.by_passes and params.residual >= params.embedding.float32_reaches
    return np.float32 if refined_roughly else np.float64


def memory(sizes: Sizes) -> Memory:
    """Return what W takes where it is passed over again and again, the vectors, and a block."""
    params, n_points, width = sizes.params, sizes.dimensions.n_points, sizes.params.n_components
    if of_method := beside("SOLVERS", params.embedding.solver, "memory"):
        solving: Memory = of_method(sizes)
        return solving
    if params.embedding.solver in BY_LANDMARKS:
        return memory_by_blocks(sizes)
    exact = params.embedding.solver == "exact"  # its matrices are in memory in any case
    by_point = {"degrees, their roots, the trivial vector, damping": array("float64", n_points, 6)}
    on_the_way = {"one of these on its way, and an order": array("float64", n_points, 4)}
    held = embedding_memory(sizes) + Memory(
        process={**pixels(sizes), **on_the_way, **(by_point if exact else {})},
        task={"a block of W: as read, decoded, and where it lies": 3 * entries(sizes.block_nonzeros, "float32")},
        points={} if exact else by_point,
    )
    if exact:
        # W by blocks and whole, scaled from the left, and from both sides; ARPACK's basis, buffers and the answer.
        basis = 3 * array("float64", n_points, 2 * width + FEWEST_LANCZOS_VECTORS)
        matrices = Memory({"W and its scaled copies": 4 * entries(sizes.nonzeros)})
        following = {"the vector that follows": 2 * array("float64", n_points)}
        held += matrices + Memory(steps={"solving": Memory({"Lanczos vectors": basis}), "writing": Memory(following)})
    return held + memory_of_pieces(sizes) + (memory_of_passes(sizes) if params.embedding.by_passes else Memory())


def memory_of_passes(sizes: Sizes) -> Memory:
    """Return what refinement takes beside."""
    n_points, width, dtype = sizes.dimensions.n_points, sizes.params.n_components, vector_dtype(sizes.params)
    vectors = array(dtype, n_points, n_columns(width, n_points))
    wanted = {"vectors wanted": array(dtype, n_points, width)}
    guards = {"vectors that follow": array("float32", n_points, n_guards(sizes))}
    start = 2 * array(dtype, n_points, n_start_columns(width, n_points) + width)
    appended = {"W's rows of the appended points": 4 * array("float32", sizes.n_appended_nonzeros)}
    return coarse_graphs(sizes) + Memory(
        points={"W": entries(sizes.nonzeros, "float32")},
        steps={
            "start": Memory(
                appended if sizes.n_appended else {},
                points={"start vectors and their products": start, "first vectors and directions": 4 * vectors},
            ),
            # Vectors, directions, what is added, their products, and what a correction makes.
            "passes": Memory(points={"vectors while they are refined": 8 * vectors}),
            "scaling": Memory(
                points={
                    "vectors and directions, and their products": COPIES_IN_CHECKPOINT * vectors,
                    **wanted,
                    **guards,
                }
            ),
            "writing": Memory(points={**wanted, **guards}),
        },
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the embedding, the vectors that follow; and the checkpoints of a refinement."""
    n_points, params = sizes.dimensions.n_points, sizes.params
    stored = written([StoredEmbedding.embedding, StoredEmbedding.eigenvalues], sizes)
    if params.embedding.solver in declared("SOLVERS"):
        return Disk({**stored, **written([StoredEmbedding.reach], sizes)})
    stored = {**stored, **written([StoredEmbedding.guards], sizes, guard=n_guards(sizes))}
    if params.may_fall_apart:  # two points each at least
        pieces = [StoredEmbedding.pieces, StoredEmbedding.piece_eigenvalues]
        stored = {**stored, **written(pieces, sizes, piece=n_points // 2)}
    if not params.embedding.by_passes:
        return Disk(stored)
    columns = 2 * COPIES_IN_CHECKPOINT * n_columns(params.n_components, n_points)
    return Disk(stored, {"vectors of two checkpoints": array(vector_dtype(params), n_points, columns)})


def n_guards(sizes: Sizes) -> int:
    """Return how many vectors that follow are stored."""
    embedding, n_points, width = sizes.params.embedding, sizes.dimensions.n_points, sizes.params.n_components
    if embedding.by_passes:
        return max(0, n_columns(width, n_points) - width)
    return int(embedding.solver == "exact" and n_points > DENSE_LANDMARKS)


def run(work: StageWork) -> dict[str, Any]:
    """Solve as asked, write the embedding in input order, and certify how far it is from the exact one."""
    params = work.task.params
    solver = params.embedding.solver
    if solver in declared("SOLVERS"):
        return load("SOLVERS", solver)(work)
    workspace = work.workspace()
    rounding = rounding_of(vector_dtype(params))
    solved, of_pieces = by_pieces(work, workspace)
    if solved is None:
        solved = with_small_eigenvalues(work, workspace, SOLVERS[solver](work, workspace), rounding)
    residual = of_pieces.get("residual", float(solved.residuals.max()))
    if params.embedding.by_passes and residual > params.residual:
        work.warn(
            f"embedding: residual {residual:.1e} after {solved.passes} passes is above the "
            f"{params.residual:.1e} asked for: raise embedding.max_passes",
            ShortfallWarning,
        )
    accuracy = subspace_accuracy(1 - solved.eigenvalues, solved.residuals, solved.following, rounding, largest=1.0)
    if solver in BY_LANDMARKS:
        # The residual of the next vector is not known: its value is one from above.
        widest = max(abs(accuracy.eigengap), accuracy.eigengap_error_bound)
        accuracy = accuracy._replace(eigengap_error_bound=widest)
    n_zero = count_near_zero(solved.eigenvalues)
    if n_zero > 1:
        tell_of_parts(work, n_zero)
    else:
        tell_of_angle(work, accuracy, float(solved.eigenvalues[-1]))
    if solved.vectors is None:
        write_by_blocks(work)
    else:
        write_embedding(work, StoredEmbedding.embedding, solved.vectors, workspace.empty, guards_of(solved))
    work.task.output.write_whole(values_of(solved, params.n_components))
    Checkpoints(work.task.output).clear()
    found = {"residual": residual, "passes": solved.passes, **accuracy._asdict()}
    return {**found, "near_zero_eigenvalues": n_zero, **of_pieces}


def by_pieces(work: StageWork, workspace: Workspace) -> tuple["Solved | None", dict[str, Any]]:
    """Return the solution and certificates of a graph in pieces, each solved by itself; None where it is connected."""
    params = work.task.params
    if not params.may_fall_apart:
        return None, {}
    found = pieces_of(work, StreamedGraph(work, workspace).degrees, workspace)
    if found is None:
        return None, {}
    asked, exact = params.embedding, params.embedding.solver == "exact"
    target = PieceTarget(
        params.n_components, exact, params.residual, asked.max_passes, vector_dtype(params), params.seed
    )
    vectors, largest, certificates = embed_pieces(work, found, target, workspace)
    return Solved(vectors, *largest[1:]), certificates


def with_small_eigenvalues(work: StageWork, workspace: Workspace, solved: "Solved", rounding: float) -> "Solved":
    """Return an embedding with eigenvalues in [0, 2], ascending; those that rounding reaches are computed anew.

    1 - theta has the rounding of theta, which is near 1. The quadratic form of L is a sum of squares, and exact for the
    vectors as they are.

    Parameters
    ----------
    rounding : of 1 - theta
    """
    if solved.vectors is None or solved.eigenvalues.min() >= SMALL_EIGENVALUE * rounding:
        return solved._replace(eigenvalues=within_range(solved.eigenvalues, rounding))
    values = StreamedGraph(work, workspace).quotients(solved.vectors)
    order = np.argsort(values, kind="stable")
    vectors = solved.vectors if (np.diff(order) > 0).all() else solved.vectors[:, order]
    return solved._replace(
        vectors=vectors, eigenvalues=within_range(values[order], rounding), residuals=solved.residuals[order]
    )


class StreamedGraph:
    """W as an operator on vectors in memory: S = D^-1/2 W D^-1/2, one pass over the blocks for each product."""

    def __init__(self, work: StageWork, workspace: Workspace) -> None:
        self._work, self.workspace = work, workspace
        self._stored = affinity_graph(work.task.inputs)
        self.degrees = self._stored.read_degrees(work.task.dimensions.n_points, workspace.empty)
        self._inverse_roots = workspace.as_large(1 / np.sqrt(self.degrees))
        self.trivial = workspace.as_large(unit_roots(self.degrees))
        self._passes_again = work.task.params.embedding.by_passes
        self._known: dict[int, Rows] = {}  # rows by block, where passes follow each other

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Return S times vectors (N, m)."""
        out, dimensions = self.workspace.empty(vectors.shape, vectors.dtype), self._work.task.dimensions

        def of_block(block: int) -> None:
            start, stop = dimensions.rows(block)
            normalized_product(self._rows(block), self._inverse_roots, start, vectors, out[start:stop])

        self._work.executor.over(of_block, list(range(dimensions.n_blocks)))
        self._work.executor.progress.advance()
        return out

    def quotients(self, vectors: np.ndarray) -> np.ndarray:
        """Return v^T L v / v^T D v (m,) of vectors (N, m), as sums of squares."""
        energies, dimensions = self.workspace.empty(vectors.shape, np.float64), self._work.task.dimensions

        def of_block(block: int) -> None:
            start, stop = dimensions.rows(block)
            dirichlet_energies(self._rows(block), start, vectors, energies[start:stop])

        self._work.executor.over(of_block, list(range(dimensions.n_blocks)))
        lengths = np.einsum("i,ij,ij->j", self.degrees, vectors, vectors, dtype=np.float64)
        return np.asarray(energies.sum(axis=0) / lengths)

    def loops(self) -> np.ndarray:
        """Return the diagonal (N,) of S: zero, as no point is its own neighbour, but where copies of it are."""
        found, dimensions = np.zeros(len(self.degrees)), self._work.task.dimensions
        if StoredWeights.STAGE in self._work.task.inputs:
            for block in range(dimensions.n_blocks):
                start, stop = dimensions.rows(block)
                found[start:stop] = self._stored.read_matrix(block, dimensions.n_points).diagonal(start)
            found /= self.degrees
        return found

    def _rows(self, block: int) -> Rows:
        if block in self._known:
            return self._known[block]
        as_large = self.workspace.as_large
        indptr, indices, values = self._stored.read_rows(block)
        rows = as_large(indptr), as_large(indices), as_large(values)
        if self._passes_again:
            self._known[block] = rows
        return rows


class Solved(NamedTuple):
    """An embedding (N, d) in work order, its eigenvalues and residuals (d,), what follows these, and passes made.

    Without vectors where these are yet to be written, by blocks.
    """

    vectors: np.ndarray | None
    eigenvalues: np.ndarray
    residuals: np.ndarray
    following: Following
    passes: int = 0


def guards_of(solved: Solved) -> Arrays:
    """Return the vectors that follow as they are stored, where they were computed."""
    guards = solved.following.vectors
    return {} if guards is None else {StoredEmbedding.guards: guards.astype(np.float32, copy=False)}


def values_of(solved: Solved, n_components: int) -> Arrays:
    """Return eigenvalues and residuals as they are stored: of those kept, and of those that follow."""
    values, residuals = np.ones(n_components), np.zeros(n_components)
    count = len(solved.eigenvalues)  # fewer where the largest piece has too few points
    values[:count], residuals[:count] = solved.eigenvalues, solved.residuals
    return {
        StoredEmbedding.eigenvalues: values,
        StoredEmbedding.residuals: residuals,
        StoredEmbedding.guard_values: solved.following.values,
        StoredEmbedding.guard_residuals: solved.following.residuals,
    }


def rounding_of(dtype: DTypeLike) -> float:
    """Return the rounding of an inner product of unit vectors of a dtype."""
    return ROUNDINGS * float(np.finfo(dtype).eps)


def by_landmarks(work: StageWork, workspace: Workspace) -> Solved:
    """Return the solution over the landmarks, whose vectors are Z times their coordinates: one pass certifies them.

    The coordinates of the next vector are not stored: its residual is taken to be the largest of those before it.
    Vectors are made here where eigenvalues are so small that they have to be computed anew.
    """
    solved, vectors = work.task.stored(StoredLandmarkEmbedding), None
    if solved.eigenvalues.read().min() >= SMALL_EIGENVALUE * rounding_of(np.float64):
        residuals = work.fold_blocks(block_sums, added).residuals
    else:
        work.executor.progress.start(work.task.stage, 1, "pass")
        vectors = over_landmarks(work.task, solved.vectors.read(), workspace.empty)
        residuals = residuals_of(StreamedGraph(work, workspace), vectors)
    # A store that an older version wrote may not say it.
    following = solved.group.record["certificates"].get("following_eigenvalue")
    known = UNKNOWN if following is None else Following.one(1 - following, float(residuals.max()))
    return Solved(vectors, solved.eigenvalues.read(), residuals, known)


def unit_vectors(graph: StreamedGraph, vectors: np.ndarray) -> np.ndarray:
    """Return u = D^1/2 v at unit length, (N, d)."""
    unit = vectors * np.sqrt(graph.degrees)[:, np.newaxis]
    unit /= np.sqrt(column_squares(unit))
    return np.asarray(unit)


def residuals_of(graph: StreamedGraph, vectors: np.ndarray) -> np.ndarray:
    """Return |S u - theta u| (d,) of the unit vectors u = D^1/2 v, theta = u . S u."""
    unit = unit_vectors(graph, vectors)
    image = graph.product(unit)
    return residuals_into(None, unit, image, np.einsum("ij,ij->j", unit, image))


def by_refinement(work: StageWork, workspace: Workspace) -> Solved:
    """Return the vectors refined to the residual asked for, or as far as the passes allowed go."""
    task, asked, graph = work.task, work.task.params.embedding, StreamedGraph(work, workspace)
    work.executor.progress.start(task.stage, asked.max_passes, "pass")
    wanted = task.params.n_components
    stored = task.stored(StoredCoarseGraphs)
    labels = stored.labels.read(workspace.empty)
    transfer = Transfer(labels, graph.degrees, stored.read_degrees(), workspace)

    @functools.cache  # a start that is good enough asks for no correction
    def correction() -> tuple[Multilevel, np.ndarray]:
        coarse = Multilevel(stored.read_levels(workspace.empty), workspace)
        return coarse, workspace.as_large(jacobi_shares(graph.loops()))

    def correct(residuals: np.ndarray) -> np.ndarray:
        coarse, smoothing = correction()
        return coarse.correct_below(transfer, 0, smoothing, residuals)

    problem = RefinementProblem(graph.product, correct, graph.trivial, workspace)
    checkpoints = Checkpoints(task.output)
    state = stored_state(checkpoints, task.dimensions.n_points, workspace)
    if state is None:
        width = n_columns(wanted, task.dimensions.n_points)
        state = initial_state(start_vectors(task, graph, transfer), problem, width)
    else:
        work.executor.progress.advance(state.passes)
    for following in refinement(state, problem, wanted, task.params.residual, asked.max_passes):
        state = following
        if checkpoints.due(CHECKPOINT_SECONDS):
            checkpoints.save(state.arrays())
    values, vectors = refined_embedding(state, graph.degrees, wanted, workspace)
    if len(state.values) > wanted:
        guards = guard_vectors(state, wanted, workspace)
        beyond = Following(state.values[wanted:], state.residuals[wanted:], guards)
    else:  # few points have no vectors beside those wanted
        beyond = following_value(whole_matrix(task), state.values, state.vectors)
    return Solved(vectors, values, state.residuals[:wanted], beyond, state.passes)


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
    """Return the vectors u (N, n) that refinement starts from: those of the coarse graph, and of others beside them."""
    empty = graph.workspace.empty
    coarse = task.stored(StoredCoarseEmbedding).vectors.read(empty)
    others = vectors_beside(task, coarse.shape[1], graph.workspace)
    start = empty((len(graph.degrees), coarse.shape[1] + others.shape[1]), vector_dtype(task.params))
    transfer.prolong(coarse, start[:, : coarse.shape[1]])
    for panel in panels(len(start)):
        start[panel, coarse.shape[1] :] = others[panel] * graph.trivial[panel, np.newaxis]
    return start


def vectors_beside(task: StageTask, n_coarse: int, workspace: Workspace) -> np.ndarray:
    """Return the vectors v (N, n) that a start has beside those of the coarse graph.

    They are the landmarks' where the solver asks for these; those of an earlier run where points were appended to it;
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


def by_exact_solver(work: StageWork, workspace: Workspace) -> Solved:
    """Return what a sparse eigensolver finds in memory, to machine precision."""
    graph = StreamedGraph(work, workspace)
    work.executor.progress.start(work.task.stage, 1, "eigenproblem")
    affinities = whole_matrix(work.task)
    found = exact_eigenmaps(affinities, work.task.params.n_components)
    following = following_value(affinities, 1 - found.eigenvalues, unit_vectors(graph, found.embedding))
    return Solved(found.embedding, found.eigenvalues, residuals_of(graph, found.embedding), following)


def whole_matrix(task: StageTask) -> sp.csr_matrix:
    """Return W (N, N) in memory."""
    stored, dimensions = affinity_graph(task.inputs), task.dimensions
    blocks = [stored.read_matrix(block, dimensions.n_points) for block in range(dimensions.n_blocks)]
    return sp.vstack(blocks, format="csr")


SOLVERS = {
    REFINE: by_refinement,
    **dict.fromkeys(BY_LANDMARKS, by_landmarks),
    "lll+refine": by_refinement,
    "exact": by_exact_solver,
}


LEAST_RESIDUAL = 1e-13  # that passes in float64 reach


def tell_of_parts(work: StageWork, n_zero: int) -> None:
    """Say that eigenvalues are zero to rounding; not of the start of a descent."""
    params = work.task.params
    if params.layout.objective is not None:
        return
    if params.affinities.precomputed or params.neighbors.by_window:
        remedy = "give affinities that join these parts, or those of one part"
    else:
        bandwidths = {"entropic": " or affinities.perplexity", "gaussian": " or affinities.sigma"}
        remedy = f"raise neighbors.n_neighbors{bandwidths.get(params.affinities.kind or '', '')}"
    work.warn(
        f"{work.task.stage}: {n_zero} eigenvalues are zero to rounding, where that of the constant vector should be "
        f"the only one: the graph falls into {n_zero} parts that next to nothing joins, and the embedding is one basis "
        f"of many of the vectors that tell these apart; {remedy}",
        ShortfallWarning,
    )


def known_of_angle(accuracy: SubspaceAccuracy) -> str:
    """Return in words what residuals say of the angle between an embedding and the exact one."""
    if accuracy.angle_bound is not None:
        return f"the embedding is only known to be within {accuracy.angle_bound:.2g} rad of the exact one"
    unresolved = "no angle between the embedding and the exact one follows"
    if accuracy.resolved_angle_bound is None:
        return unresolved
    first = accuracy.resolved_components
    return f"{unresolved}, only one of {accuracy.resolved_angle_bound:.2g} rad at most for its first {first} columns"


def tell_of_angle(work: StageWork, accuracy: SubspaceAccuracy, last: float) -> None:
    """Say that the subspace is not told from its neighbours, and what tells it; not of the start of a descent.

    `last` is the largest eigenvalue kept: gaps are no wider than that where those at hand are not in order.
    """
    params = work.task.params
    angle = accuracy.angle_bound
    if params.layout.objective is not None or (angle is not None and angle <= MOST_ANGLE):
        return
    count = params.n_components
    gap = accuracy.eigengap if accuracy.eigengap > 0 else last / count
    needed = min(params.residual / 10, MOST_ANGLE * gap / (2 * np.sqrt(count)))
    remedy = f"ask for embedding.residual={needed:.0e} or less, or for " if needed >= LEAST_RESIDUAL else "ask for "
    refine = "refine the embedding (embedding.solver=refine), or ask for "
    by_solver = {"exact": "ask for ", **dict.fromkeys(BY_LANDMARKS, refine)}
    work.warn(
        f"{work.task.stage}: eigenvalues {count} and {count + 1} are {accuracy.eigengap:.1e} apart: at these residuals "
        f"that is wrong by up to {accuracy.eigengap_error_bound:.0e}, and {known_of_angle(accuracy)}; "
        f"{by_solver.get(params.embedding.solver, remedy)}another landmark_embedding.n_components"
    )
