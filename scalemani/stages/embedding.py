"""The embedding in input order: refined by passes over the graph, or Z times the landmarks' coordinates.

The vectors, N rows of a few columns, are held in memory or mapped, and so is the graph from the first pass over its
blocks on. Refinement starts from the eigenvectors of a coarse graph, with `lll+refine` also from the landmarks'
embedding. The coarse graphs also precondition each step.
The vectors are stored now and then: a refinement that was killed goes on from there and ends the same to the last bit.
"""

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.chunked.checkpoints import Checkpoints
from scalemani.chunked.output import write_embedding
from scalemani.chunked.work import Dimensions, DiskNeed, StageTask, StageWork
from scalemani.kernels.arrays.columns import column_squares, panels, residuals_into, unit_roots
from scalemani.kernels.arrays.workspace import Empty, Workspace
from scalemani.kernels.graph.product import Rows, normalized_product
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps
from scalemani.kernels.spectral.multilevel import DAMPING, Multilevel, Transfer, hierarchy_bytes
from scalemani.kernels.spectral.refinement import (
    RefinementProblem,
    RefinementState,
    initial_state,
    n_columns,
    n_start_columns,
    random_columns,
    refined_embedding,
    refinement,
)
from scalemani.params import Parameters
from scalemani.records.affinities import StoredSymmetricAffinities
from scalemani.records.coarse import StoredCoarseEmbedding, StoredCoarseGraphs
from scalemani.records.embeddings import StoredEmbedding
from scalemani.records.landmarks import StoredLandmarkEmbedding, StoredLandmarkWeights
from scalemani.workers.budget import MemoryNeed

CHECKPOINT_SECONDS = 10.0
FLOAT32_REACHES = 4e-6  # of the residual; below it the vectors are float64
EDGES_PER_NEIGHBOR = 1.6  # nonzeros of W for every edge of the graph
BYTES_PER_EDGE = 8
COPIES_OF_VECTORS = 8  # vectors, directions, what is added, their products, and what a correction makes
COPIES_AT_START = 2  # start vectors and their products, beside the first vectors and what comes to lie beside them
BYTES_PER_POINT = 48  # degrees, their roots, the trivial vector, damping, and row numbers
KEPT_BYTES_PER_POINT, KEPT_COPIES = 32, 3  # always in memory: one of these on its way, and the vectors wanted


def vector_dtype(params: Parameters) -> type:
    """Return the type of the vectors while they are refined, or where they are not."""
    refined_roughly = params.embedding.by_passes and params.embedding.residual >= FLOAT32_REACHES
    return np.float32 if refined_roughly else np.float64


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the vectors, of W where it is passed over again and again, and of a block of it."""
    n_points, width = dimensions.n_points, params.n_components
    edges = int(EDGES_PER_NEIGHBOR * params.n_neighbors * BYTES_PER_EDGE)
    vectors = 24 * width * n_points
    if params.embedding.by_passes:
        columns, starting = n_columns(width, n_points), n_start_columns(width, n_points) + width
        held = max(COPIES_OF_VECTORS * columns, COPIES_AT_START * starting + 4 * columns)
        refining = (
            hierarchy_bytes(n_points, params.n_neighbors) + n_points * held * np.dtype(vector_dtype(params)).itemsize
        )
        # the vectors in input order are made when those that were refined are gone
        vectors = max(vectors, refining) + n_points * edges
    elif params.embedding.solver == "exact":
        vectors += n_points * (4 * edges + 8 * 3 * (2 * width + 20))
    vectors += BYTES_PER_POINT * n_points
    block = 3 * dimensions.block_rows * edges
    if params.embedding.solver == "exact":
        return MemoryNeed(vectors, block)  # its matrices are in memory whatever there is of it
    least = n_points * (KEPT_BYTES_PER_POINT + KEPT_COPIES * np.dtype(vector_dtype(params)).itemsize * width)
    least += hierarchy_bytes(0, params.n_neighbors) if params.embedding.by_passes else 0
    return MemoryNeed(least, block, growing=max(0, vectors - least))


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the embedding, and of two checkpoints of a refinement."""
    n_points, width = dimensions.n_points, params.n_components
    state = 4 * n_columns(width, n_points) * np.dtype(vector_dtype(params)).itemsize
    refined = params.embedding.by_passes
    return DiskNeed(8 * width * n_points, 2 * state * n_points if refined else 0)


def run(work: StageWork) -> dict[str, Any]:
    """Solve as asked, write the embedding in input order, and certify the residual on the full problem."""
    graph = StreamedGraph(work, work.workspace())
    vectors, values, certificates = SOLVERS[work.task.params.embedding.solver](work, graph)
    residual = certificates["residual"]
    if work.task.params.embedding.by_passes and residual > work.task.params.embedding.residual:
        work.executor.progress.note(
            f"embedding: residual {residual:.1e} after {certificates['passes']} passes is above the "
            f"{work.task.params.embedding.residual:.1e} asked for: raise embedding.max_passes"
        )
    write_embedding(work, StoredEmbedding.EMBEDDING, vectors, graph.workspace.empty)
    work.task.output.write_whole({StoredEmbedding.EIGENVALUES: values})
    Checkpoints(work.task.output).clear()
    return certificates


class StreamedGraph:
    """W as an operator on vectors in memory: S = D^-1/2 W D^-1/2, one pass over the blocks for each product."""

    def __init__(self, work: StageWork, workspace: Workspace) -> None:
        self._work, self.workspace = work, workspace
        self._stored = StoredSymmetricAffinities(work.task.inputs["symmetric_affinities"])
        self.degrees = self._stored.read_degrees(work.task.dimensions.n_points, workspace.empty)
        self._inverse_roots = workspace.as_large(1 / np.sqrt(self.degrees))
        self.trivial = workspace.as_large(unit_roots(self.degrees))
        self._passes_again = work.task.params.embedding.by_passes
        self._known: dict[int, Rows] = {}  # rows by block, where passes follow each other

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Return S times vectors (N, m)."""
        out = self.workspace.empty(vectors.shape, vectors.dtype)
        blocks = list(range(self._work.task.dimensions.n_blocks))
        self._work.executor.over(functools.partial(self._block_product, vectors, out), blocks)
        self._work.executor.progress.advance()
        return out

    def _block_product(self, vectors: np.ndarray, out: np.ndarray, block: int) -> None:
        start, stop = self._work.task.dimensions.rows(block)
        normalized_product(self._rows(block), self._inverse_roots, start, vectors, out[start:stop])

    def _rows(self, block: int) -> Rows:
        if block in self._known:
            return self._known[block]
        as_large = self.workspace.as_large
        indptr, indices, values = self._stored.read_rows(block)
        rows = as_large(indptr), as_large(indices), as_large(values)
        if self._passes_again:
            self._known[block] = rows
        return rows


Solved = tuple[np.ndarray, np.ndarray, dict[str, Any]]


def landmark_vectors(task: StageTask, empty: Empty) -> np.ndarray:
    """Return Z times the coordinates of the landmarks: (N, d) float64, in work order."""
    stored = StoredLandmarkWeights(task.inputs["landmark_weights"])
    coordinates = StoredLandmarkEmbedding(task.inputs["landmark_embedding"]).vectors.read()
    vectors = empty((task.dimensions.n_points, coordinates.shape[1]), np.float64)
    for block in range(task.dimensions.n_blocks):
        weights = stored.read_matrix(block, len(coordinates))
        vectors[slice(*task.dimensions.rows(block))] = weights @ coordinates
    return vectors


def by_landmarks(work: StageWork, graph: StreamedGraph) -> Solved:
    """Return plain LLL: no pass, and one for the certificate."""
    work.executor.progress.start(work.task.stage, 1)
    vectors = landmark_vectors(work.task, graph.workspace.empty)
    values = StoredLandmarkEmbedding(work.task.inputs["landmark_embedding"]).eigenvalues.read()
    return vectors, values, {"residual": residual_of(graph, vectors), "passes": 0}


def residual_of(graph: StreamedGraph, vectors: np.ndarray) -> float:
    """Return the largest |S u - theta u| over the unit vectors u = D^1/2 v, theta = u . S u."""
    unit = vectors * np.sqrt(graph.degrees)[:, np.newaxis]
    unit /= np.sqrt(column_squares(unit))
    image = graph.product(unit)
    return float(residuals_into(None, unit, image, np.einsum("ij,ij->j", unit, image)).max())


def by_refinement(work: StageWork, graph: StreamedGraph) -> Solved:
    """Return the vectors refined to the residual asked for, or as far as the passes allowed go."""
    task, asked, workspace = work.task, work.task.params.embedding, graph.workspace
    work.executor.progress.start(task.stage, asked.max_passes)
    wanted = task.params.n_components
    stored = StoredCoarseGraphs(task.inputs["coarse_graphs"])
    levels = stored.read_levels(workspace.empty)
    coarse = Multilevel(levels, workspace)
    labels = stored.labels.read(workspace.empty)
    transfer = Transfer(labels, graph.degrees, levels[0].degrees, workspace)
    # The diagonal of S is zero: no point is its own neighbour.
    smoothing = workspace.as_large(np.full(len(graph.degrees), DAMPING))

    def correct(residuals: np.ndarray) -> None:
        coarse.correct_below(transfer, 0, smoothing, residuals)

    problem = RefinementProblem(graph.product, correct, graph.trivial, workspace)
    checkpoints = Checkpoints(task.output)
    state = stored_state(checkpoints, workspace)
    if state is None:
        width = n_columns(wanted, task.dimensions.n_points)
        state = initial_state(start_vectors(task, graph, transfer), problem, width)
    else:
        work.executor.progress.advance(state.passes)
    for following in refinement(state, problem, wanted, asked.residual, asked.max_passes):
        state = following
        if checkpoints.due(CHECKPOINT_SECONDS):
            checkpoints.save(state.arrays())
    values, vectors = refined_embedding(state, graph.degrees, wanted)
    return vectors, values, {"residual": float(state.residuals[:wanted].max()), "passes": state.passes}


def stored_state(checkpoints: Checkpoints, workspace: Workspace) -> RefinementState | None:
    """Return where a run that was killed had come to, if it had."""
    arrays = checkpoints.load()
    return None if arrays is None else RefinementState.of_arrays(arrays, workspace)


def start_vectors(task: StageTask, graph: StreamedGraph, transfer: Transfer) -> np.ndarray:
    """Return the vectors u (N, n) that refinement starts from: those of the coarse graph, and of others beside them."""
    empty = graph.workspace.empty
    coarse = StoredCoarseEmbedding(task.inputs["coarse_embedding"]).vectors.read(empty)
    others = vectors_beside(task, coarse.shape[1], empty)
    start = empty((len(graph.degrees), coarse.shape[1] + others.shape[1]), vector_dtype(task.params))
    transfer.prolong(coarse, start[:, : coarse.shape[1]])
    for panel in panels(len(start)):
        start[panel, coarse.shape[1] :] = others[panel] * graph.trivial[panel, np.newaxis]
    return start


def vectors_beside(task: StageTask, n_coarse: int, empty: Empty) -> np.ndarray:
    """Return the vectors v (N, n) that a start has beside those of the coarse graph.

    They are the landmarks' where the solver asks for these, else random ones where the coarse graph has too few nodes.
    """
    if task.params.embedding.by_landmarks:
        return landmark_vectors(task, empty)
    n_points = task.dimensions.n_points
    missing = n_start_columns(task.params.n_components, n_points) - n_coarse
    return random_columns(n_points, max(0, missing), task.params.seed)


def by_exact_solver(work: StageWork, graph: StreamedGraph) -> Solved:
    """Return what a sparse eigensolver finds in memory, to machine precision."""
    work.executor.progress.start(work.task.stage, 1)
    stored = StoredSymmetricAffinities(work.task.inputs["symmetric_affinities"])
    dimensions = work.task.dimensions
    blocks = [stored.read_matrix(block, dimensions.n_points) for block in range(dimensions.n_blocks)]
    found = exact_eigenmaps(sp.csr_matrix(sp.vstack(blocks, format="csr")), work.task.params.n_components)
    return found.embedding, found.eigenvalues, {"residual": residual_of(graph, found.embedding), "passes": 0}


SOLVERS = {"refine": by_refinement, "lll": by_landmarks, "lll+refine": by_refinement, "exact": by_exact_solver}
