"""A hierarchy of coarse graphs at work: approximate solutions of (I - S) x = r, and approximate eigenvectors.

In the coordinates u = D^1/2 v the prolongation P = D^1/2 Q D_c^-1/2 has orthonormal columns and S_c = P^T S P: the
coarse problem is the Galerkin one. A V-cycle damps what is rough by a Jacobi step after the coarse correction. None
comes before it: it would cost as much as all the rest, and a refinement, which finds the best vectors of a span and
asks for no symmetric correction, makes as many steps without. Sources: aggregation multigrid [Vanek, Mandel and
Brezina 1996]; multilevel eigensolvers for graphs [Barnard and Simon 1994].
"""

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.columns import panels, unit_roots
from scalemani.kernels.arrays.tiles import TILE_ROWS, run, slices
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.graph.product import normalized_product, smoothed
from scalemani.kernels.machine.compile import compiled, compiled_sums
from scalemani.kernels.spectral.coarsening import DENSE_NODES, Level, Rows, row_slice
from scalemani.kernels.spectral.refinement import RefinementProblem, initial_state, random_columns, step

DAMPING = 0.7  # of the Jacobi steps
LEAST_DIAGONAL = 1e-3  # of I - S: a component of the graph that has become one node has none
LEAST_GAP = 1e-6  # of 1 - theta on the coarsest graph: zero where there are several components
STEPS_PER_LEVEL, MOST_STEPS = 2, 8  # of refinement on a level of STEPS_NODES; smaller levels take more
STEPS_NODES = 2**18
STEPS_FROM_RANDOM = 60  # where coarsening ended early there is no start
LEAST_RESIDUAL = 1e-5  # of the vectors of a level, which float32 reaches: prolongation adds far more


@compiled_sums
def restrict_rows(
    indptr: np.ndarray, members: np.ndarray, scale: np.ndarray, vectors: np.ndarray, first: int, out: np.ndarray
) -> None:
    """Write the sums of scale * vectors over the members of each node.

    Parameters
    ----------
    scale : (N,) float64, by row.
    vectors : (N, m).
    first : node whose sum is the first row of `out`.
    out : (n, m), written.
    """
    n_columns = out.shape[1]
    sums = np.empty(n_columns, np.float64)
    for row in range(out.shape[0]):
        for column in range(n_columns):
            sums[column] = 0.0
        for entry in range(indptr[first + row], indptr[first + row + 1]):
            member = members[entry]
            for column in range(n_columns):
                sums[column] += scale[member] * np.float64(vectors[member, column])
        for column in range(n_columns):
            out[row, column] = sums[column]


@compiled
def prolong_rows(labels: np.ndarray, scale: np.ndarray, coarse: np.ndarray, first: int, out: np.ndarray) -> None:
    """Write scale times the vector of each row's node.

    Parameters
    ----------
    labels : (N,) int32, the node of each row.
    scale : (N,) float64.
    coarse : (C, m), vectors of the nodes.
    first : row that is the first of `out`.
    out : (n, m), written.
    """
    for row in range(out.shape[0]):
        node = labels[first + row]
        factor = scale[first + row]
        for column in range(out.shape[1]):
            out[row, column] = factor * coarse[node, column]


@compiled
def prolong_rows_beside(
    labels: np.ndarray,
    scale: np.ndarray,
    coarse: np.ndarray,
    first: int,
    smoothing: np.ndarray,
    right: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write what `prolong_rows` does, and a share of the right side beside it.

    Parameters
    ----------
    labels, scale, coarse, first, out : as of `prolong_rows`; `out` may be those rows of `right`.
    smoothing : (N,) float64, the share.
    right : (N, m).
    """
    for row in range(out.shape[0]):
        node = labels[first + row]
        factor, share = scale[first + row], smoothing[first + row]
        for column in range(out.shape[1]):
            out[row, column] = factor * coarse[node, column] + share * right[first + row, column]


class Transfer:
    """P between a graph of N nodes and the next coarser one of C.

    Parameters
    ----------
    labels : (N,) int32, the coarse node of each node.
    degrees : (N,) float64, of the finer graph.
    coarse_degrees : (C,) float64, of the coarser one.
    """

    def __init__(
        self, labels: np.ndarray, degrees: np.ndarray, coarse_degrees: np.ndarray, workspace: Workspace = IN_MEMORY
    ) -> None:
        self._labels, self.workspace = labels, workspace
        self._scale = workspace.as_large(np.sqrt(degrees / coarse_degrees[labels]))
        self._n_coarse = len(coarse_degrees)

    @functools.cached_property  # sorting takes longer than a prolongation, which can do without
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the members of each coarse node begin (C + 1,), and their numbers (N,) int32."""
        members = self.workspace.as_large(np.argsort(self._labels, kind="stable").astype(np.int32))
        return np.concatenate([[0], np.cumsum(np.bincount(self._labels, minlength=self._n_coarse))]), members

    def restricted(self, vectors: np.ndarray) -> np.ndarray:
        """Return P^T times vectors (N, m): (C, m) float32."""
        out, (indptr, members) = self.workspace.empty((self._n_coarse, vectors.shape[1]), np.float32), self._members

        def part(panel: slice) -> None:
            restrict_rows(indptr, members, self._scale, vectors, panel.start, out[panel])

        run(self.workspace.over(part, panels(len(out))))
        return out

    def prolong(self, coarse: np.ndarray, out: np.ndarray) -> None:
        """Write P times coarse (C, m) into `out` (N, m)."""

        def part(panel: slice) -> None:
            prolong_rows(self._labels, self._scale, coarse, panel.start, out[panel])

        run(self.workspace.over(part, panels(len(out))))

    def prolong_beside(self, coarse: np.ndarray, smoothing: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
        """Write diag(smoothing) right + P times coarse (C, m) into `out` (N, m), which may be `right`.

        Parameters
        ----------
        coarse : (C, m) float32.
        smoothing : (N,), the share of the right side that is added to each row.
        right : (N, m), the right side.
        out : (N, m), written; it may be `right`.
        """

        def part(panel: slice) -> None:
            prolong_rows_beside(self._labels, self._scale, coarse, panel.start, smoothing, right, out[panel])

        run(self.workspace.over(part, panels(len(out))))


class LevelGraph:
    """A graph in memory as an operator."""

    def __init__(self, level: Level, workspace: Workspace = IN_MEMORY) -> None:
        self.workspace, self._level = workspace, level
        self._inverse_roots = workspace.as_large(1 / np.sqrt(level.degrees))
        self.smoothing = jacobi_shares(loops_of(level.rows) / level.degrees)

    @property
    def n_nodes(self) -> int:
        """The nodes of the graph."""
        return len(self._level.degrees)

    @property
    def trivial(self) -> np.ndarray:
        """The unit eigenvector (n,) of S whose eigenvalue is one."""
        return unit_roots(self._level.degrees)

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Return S times vectors (n, m)."""
        out = self.workspace.empty(vectors.shape, vectors.dtype)

        def part(panel: slice) -> None:
            normalized_product(self._rows(panel), self._inverse_roots, panel.start, vectors, out[panel])

        run(self.workspace.over(part, panels(len(out))))
        return out

    def smoothed(self, right: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Return a Jacobi step from `found` (n, m)."""
        out = self.workspace.empty(right.shape, right.dtype)

        def part(panel: slice) -> None:
            rows, roots = self._rows(panel), self._inverse_roots
            smoothed(rows, roots, self.smoothing, panel.start, right, found, out[panel])

        run(self.workspace.over(part, panels(len(out))))
        return out

    def _rows(self, panel: slice) -> Rows:
        return row_slice(self._level.rows, panel.start, panel.stop)


def loops_of(rows: Rows) -> np.ndarray:
    """Return the diagonal (n,) float64 of a graph: weight inside aggregates."""
    indptr, indices, values = rows
    loops = np.zeros(len(indptr) - 1)
    for tile in slices(len(loops), TILE_ROWS):  # row numbers of a whole graph take twice what the graph does
        entries = slice(indptr[tile.start], indptr[tile.stop])
        of_rows = np.repeat(np.arange(tile.start, tile.stop), np.diff(indptr[tile.start : tile.stop + 1]))
        on_diagonal = indices[entries] == of_rows
        loops[of_rows[on_diagonal]] = values[entries][on_diagonal]
    return loops


def jacobi_shares(loops: np.ndarray) -> np.ndarray:
    """Return the share (n,) of a residual that a damped Jacobi step adds, from the diagonal (n,) of S."""
    return np.asarray(DAMPING / np.maximum(1 - loops, LEAST_DIAGONAL))


class Multilevel:
    """A hierarchy of graphs at work: V-cycles, and leading eigenvectors of the finest."""

    def __init__(self, levels: Sequence[Level], workspace: Workspace = IN_MEMORY) -> None:
        self._graphs = [LevelGraph(level, workspace) for level in levels]
        self._transfers = [
            Transfer(fine.labels, fine.degrees, coarse.degrees, workspace)
            for fine, coarse in itertools.pairwise(levels)
        ]
        self._coarsest = self._graphs[-1]
        self._dense = self._eigendecomposition() if len(levels[-1].degrees) <= DENSE_NODES else None

    def product(self, level: int, vectors: np.ndarray) -> np.ndarray:
        """Return S times vectors (n, m) on a level."""
        return self._graphs[level].product(vectors)

    def corrected(self, right: np.ndarray, level: int = 0) -> np.ndarray:
        """Return an approximate solution (n, m) of (I - S) x = right on a level: one V-cycle."""
        graph = self._graphs[level]
        if graph is self._coarsest:
            if self._dense is None:
                return np.asarray(np.asarray(graph.smoothing)[:, np.newaxis] * right, right.dtype)
            return np.asarray(self._dense.inverse @ right)
        transfer, found = self._transfers[level], graph.workspace.empty(right.shape, right.dtype)
        coarse = self.corrected(transfer.restricted(right), level + 1)
        transfer.prolong_beside(coarse, graph.smoothing, right, found)
        return graph.smoothed(right, found)

    def correct_below(self, transfer: Transfer, level: int, smoothing: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return a solution of right (N, m) that is smoothed and corrected from `level` side by side.

        It spares the finer graph both products of a V-cycle.

        Parameters
        ----------
        transfer : from the finer graph to `level`.
        smoothing : (N,), of the Jacobi step of the finer graph.
        right : (N, m), the right side, given away: in memory the solution is in its place.
        """
        coarse, out = self.corrected(transfer.restricted(right), level), right
        transfer.prolong_beside(coarse, smoothing, right, out)
        return out

    def eigenvectors(self, n_vectors: int, seed: int = 0) -> np.ndarray:
        """Return approximate leading eigenvectors u of the finest graph, the trivial one left out: (n, n_vectors).

        From the coarsest graph up, each level refines what the one below found for a number of steps.
        """
        vectors: np.ndarray
        if self._dense is not None:
            vectors, steps = np.ascontiguousarray(self._dense.vectors[:, :n_vectors]), 0
        else:
            vectors, steps = random_columns(self._coarsest.n_nodes, n_vectors, seed), STEPS_FROM_RANDOM
        for level in reversed(range(len(self._graphs))):
            graph = self._graphs[level]
            if graph is not self._coarsest:
                coarse, vectors = vectors, graph.workspace.empty((graph.n_nodes, vectors.shape[1]), np.float32)
                self._transfers[level].prolong(coarse, vectors)
                steps = _steps(len(vectors))
            if steps:
                vectors = self._refined(vectors, level, steps)
        return vectors

    def _refined(self, vectors: np.ndarray, level: int, steps: int) -> np.ndarray:
        graph = self._graphs[level]

        def correct(residuals: np.ndarray) -> np.ndarray:
            if graph is self._coarsest:
                residuals *= DAMPING
                return residuals
            return self.correct_below(self._transfers[level], level + 1, graph.smoothing, residuals)

        problem = RefinementProblem(graph.product, correct, graph.trivial, graph.workspace)
        state = initial_state(vectors, problem, vectors.shape[1])
        for _ in range(steps):
            if state.residuals.max() <= LEAST_RESIDUAL:
                break
            state = step(state, problem, LEAST_RESIDUAL)
        return graph.workspace.concatenate([state.vectors])

    def _eigendecomposition(self) -> "Eigendecomposition":
        matrix = np.asarray(self._coarsest.product(np.eye(self._coarsest.n_nodes)))
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        values, vectors = values[-2::-1], vectors[:, -2::-1]
        inverse = (vectors / np.maximum(1 - values, LEAST_GAP)) @ vectors.T
        return Eigendecomposition(vectors.astype(np.float32), inverse.astype(np.float32))


class Eigendecomposition(NamedTuple):
    """Of the coarsest graph, trivial vector left out, float32: `vectors` of S, descending; `inverse` of I - S."""

    vectors: np.ndarray
    inverse: np.ndarray


def _steps(n_nodes: int) -> int:
    return int(np.clip(STEPS_PER_LEVEL * np.sqrt(STEPS_NODES / n_nodes), STEPS_PER_LEVEL, MOST_STEPS))
