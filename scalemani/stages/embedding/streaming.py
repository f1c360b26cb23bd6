"""W as an operator on vectors: one pass over its blocks for each product."""

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import StageContext, StageTask
from scalemani.kernels.arrays.columns import column_squares, residuals_into, unit_roots
from scalemani.kernels.graph.product import Rows, dirichlet_energies, normalized_product
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.points import StoredWeights


class StreamedGraph:
    """W as an operator on vectors in memory: S = D^-1/2 W D^-1/2, one pass over the blocks for each product."""

    def __init__(self, context: StageContext) -> None:
        self._context, self.workspace = context, context.workspace
        self._stored = affinity_graph(context.task.inputs, context.task.cache_bytes)
        self.degrees = self._stored.read_degrees(context.task.dimensions.n_points, self.workspace.empty)
        self._inverse_roots = self.workspace.as_large(1 / np.sqrt(self.degrees))
        self.trivial = self.workspace.as_large(unit_roots(self.degrees))
        self._passes_again = context.task.params.embedding.by_passes
        self._known: dict[int, Rows] = {}  # rows by block, where passes follow each other

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Return S times vectors (N, m)."""
        out, dimensions = self.workspace.empty(vectors.shape, vectors.dtype), self._context.task.dimensions

        def of_block(block: int) -> None:
            start, stop = dimensions.rows(block)
            normalized_product(self._rows(block), self._inverse_roots, start, vectors, out[start:stop])

        self._context.executor.over(of_block, list(range(dimensions.n_blocks)))
        self._context.executor.progress.advance()
        return out

    def quotients(self, vectors: np.ndarray) -> np.ndarray:
        """Return v^T L v / v^T D v (m,) of vectors (N, m), as sums of squares."""
        energies, dimensions = self.workspace.empty(vectors.shape, np.float64), self._context.task.dimensions

        def of_block(block: int) -> None:
            start, stop = dimensions.rows(block)
            dirichlet_energies(self._rows(block), start, vectors, energies[start:stop])

        self._context.executor.over(of_block, list(range(dimensions.n_blocks)))
        lengths = np.einsum("i,ij,ij->j", self.degrees, vectors, vectors, dtype=np.float64)
        return np.asarray(energies.sum(axis=0) / lengths)

    def loops(self) -> np.ndarray:
        """Return the diagonal (N,) of S: zero, as no point is a neighbour of itself, except where it has copies."""
        diagonal, dimensions = np.zeros(len(self.degrees)), self._context.task.dimensions
        if StoredWeights.STAGE in self._context.task.inputs:
            for block in range(dimensions.n_blocks):
                start, stop = dimensions.rows(block)
                diagonal[start:stop] = self._stored.read_matrix(block, dimensions.n_points).diagonal(start)
            diagonal /= self.degrees
        return diagonal

    def _rows(self, block: int) -> Rows:
        if block in self._known:
            return self._known[block]
        as_large = self.workspace.as_large
        indptr, indices, values = self._stored.read_rows(block)
        rows = as_large(indptr), as_large(indices), as_large(values)
        if self._passes_again:
            self._known[block] = rows
        return rows


def whole_matrix(task: StageTask) -> sp.csr_matrix:
    """Return W (N, N) in memory."""
    stored, dimensions = affinity_graph(task.inputs), task.dimensions
    blocks = [stored.read_matrix(block, dimensions.n_points) for block in range(dimensions.n_blocks)]
    return sp.vstack(blocks, format="csr")


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
