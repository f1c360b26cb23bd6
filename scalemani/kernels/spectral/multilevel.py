"""A hierarchy of coarse graphs at work: approximate solutions of (I - S) x = r, and approximate eigenvectors.

In the coordinates u = D^1/2 v the prolongation P = D^1/2 Q D_c^-1/2 has orthonormal columns and S_c = P^T S P: the
coarse problem is the Galerkin one. A V-cycle damps what is rough by a Jacobi step after the coarse correction. None
comes before it: it would cost as much as all the rest, and a refinement, which finds the best vectors of a span and
needs no symmetric correction, makes as many steps without. Sources: aggregation multigrid [Vanek, Mandel and
Brezina 1996]; multilevel eigensolvers for graphs [Barnard and Simon 1994].
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scalemani.kernels.arrays.columns import panels, unit_roots
from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.arrays.tiles import run
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.graph.product import normalized_product, smoothed
from scalemani.kernels.machine.compile import compiled, compiled_sums
from scalemani.kernels.machine.forks import cached_property
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
    """Write the sums of scale (N,) float64 times vectors (N, m) over the members of each node from `first` on."""
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
def prolong_rows(
    labels: np.ndarray,
    scale: np.ndarray,
    coarse: np.ndarray,
    added: tuple[np.ndarray, np.ndarray] | None,
    first: int,
    out: np.ndarray,
) -> None:
    """Write scale times the vector of each row's node into `out` (n, m), whose first row is row `first`.

    Parameters
    ----------
    labels, scale : (N,) int32, the node of each row, and (N,) float64.
    coarse : (C, m), vectors of the nodes.
    added : a right side (N, m), of which `out` may be rows, and the share (N,) float64 of it to add; None: nothing.
    """
    for row in range(out.shape[0]):
        node = labels[first + row]
        factor = scale[first + row]
        if added is None:
            for column in range(out.shape[1]):
                out[row, column] = factor * coarse[node, column]
        else:
            right, share = added[0], added[1][first + row]
            for column in range(out.shape[1]):
                out[row, column] = factor * coarse[node, column] + share * right[first + row, column]


class Transfer:
    """P between a graph of N nodes and the next coarser one of C, by the coarse node `labels` (N,) of each node."""

    def __init__(
        self, labels: np.ndarray, degrees: np.ndarray, coarse_degrees: np.ndarray, workspace: Workspace = IN_MEMORY
    ) -> None:
        self._labels, self.workspace = labels, workspace
        self._scale = workspace.as_large(np.sqrt(degrees / coarse_degrees[labels]))
        self._n_coarse = len(coarse_degrees)

    @cached_property  # sorting takes longer than a prolongation, which can do without
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the members of each coarse node begin (C + 1,), and their numbers (N,) int32."""
        members, bounds = group_by(self._labels, self._n_coarse)
        return bounds, self.workspace.as_large(members.astype(np.int32))

    def restricted(self, vectors: np.ndarray) -> np.ndarray:
        """Return P^T times vectors (N, m): (C, m) float32."""
        out, (indptr, members) = self.workspace.empty((self._n_coarse, vectors.shape[1]), np.float32), self._members
        return self._filled(out, functools.partial(restrict_rows, indptr, members, self._scale, vectors))

    def prolong(self, coarse: np.ndarray, out: np.ndarray, added: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        """Write P times coarse (C, m), and what is `added` as in `prolong_rows`, into `out` (N, m)."""
        self._filled(out, functools.partial(prolong_rows, self._labels, self._scale, coarse, added))

    def _filled(self, out: np.ndarray, write: Callable[[int, np.ndarray], None]) -> np.ndarray:
        """Return `out`, whose panels write(first row, rows) has filled side by side."""
        run(self.workspace.over(lambda panel: write(panel.start, out[panel]), panels(len(out))))
        return out


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
        return self._over_rows(normalized_product, (), (vectors,))

    def smoothed(self, right: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """Return a Jacobi step from a guess (n, m) of the solution for a right side."""
        return self._over_rows(smoothed, (self.smoothing,), (right, guess))

    def _over_rows(
        self, kernel: Callable[..., None], shares: tuple[np.ndarray, ...], blocks: tuple[np.ndarray, ...]
    ) -> np.ndarray:
        """Return what a kernel of `graph.product` writes for all rows, panels side by side."""
        out, roots = self.workspace.empty(blocks[0].shape, blocks[0].dtype), self._inverse_roots

        def part(panel: slice) -> None:
            rows = row_slice(self._level.rows, panel.start, panel.stop)
            kernel(rows, roots, *shares, panel.start, *blocks, out[panel])

        run(self.workspace.over(part, panels(len(out))))
        return out


@compiled
def loops_of(rows: Rows) -> np.ndarray:
    """Return the diagonal (n,) float64 of a graph: weight inside aggregates."""
    indptr, indices, values = rows
    loops = np.zeros(indptr.size - 1, np.float64)
    for row in range(loops.size):
        for entry in range(indptr[row], indptr[row + 1]):
            if indices[entry] == row:
                loops[row] = values[entry]
    return loops


def jacobi_shares(loops: np.ndarray) -> np.ndarray:
    """Return the share (n,) of a residual that a damped Jacobi step adds, from the diagonal (n,) of S."""
    return DAMPING / np.maximum(1 - loops, LEAST_DIAGONAL)


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

    def corrected(self, right: np.ndarray, level: int = 0) -> np.ndarray:
        """Return an approximate solution (n, m) of (I - S) x = right on a level: one V-cycle."""
        graph = self._graphs[level]
        if graph is self._coarsest:
            if self._dense is None:
                return np.asarray(graph.smoothing[:, np.newaxis] * right, right.dtype)
            return self._dense.inverse @ right
        transfer, guess = self._transfers[level], graph.workspace.empty(right.shape, right.dtype)
        coarse = self.corrected(transfer.restricted(right), level + 1)
        transfer.prolong(coarse, guess, (right, graph.smoothing))
        return graph.smoothed(right, guess)

    def correct_below(self, transfer: Transfer, level: int, smoothing: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return a solution of right (N, m) that is smoothed and corrected from `level` side by side.

        It spares the finer graph both products of a V-cycle. `transfer` leads from the finer graph to `level`;
        `smoothing` (N,) are the shares of the finer graph's Jacobi step. The right side is overwritten: the solution is
        in its place.
        """
        transfer.prolong(self.corrected(transfer.restricted(right), level), right, (right, smoothing))
        return right

    def eigenvectors(self, n_vectors: int, seed: int = 0) -> np.ndarray:
        """Return approximate leading eigenvectors u of the finest graph, the trivial one left out: (n, n_vectors).

        From the coarsest graph up, each level refines the vectors of the one below for a number of steps.
        """
        vectors: np.ndarray
        if self._dense is not None:
            vectors, steps = np.ascontiguousarray(self._dense.vectors[:, :n_vectors], np.float32), 0
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

    def problem(self, level: int) -> RefinementProblem:
        """Return what refines vectors on a level, corrected from the coarser ones."""
        graph = self._graphs[level]

        def correct(residuals: np.ndarray) -> np.ndarray:
            if graph is self._coarsest:
                residuals *= DAMPING
                return residuals
            return self.correct_below(self._transfers[level], level + 1, graph.smoothing, residuals)

        return RefinementProblem(graph.product, correct, graph.trivial, graph.workspace)

    def _refined(self, vectors: np.ndarray, level: int, steps: int) -> np.ndarray:
        problem = self.problem(level)
        state = initial_state(vectors, problem, vectors.shape[1])
        for _ in range(steps):
            if state.residuals.max() <= LEAST_RESIDUAL:
                break
            state = step(state, problem, LEAST_RESIDUAL)
        return problem.workspace.concatenate([state.vectors])

    def _eigendecomposition(self) -> "Eigendecomposition":
        matrix = self._coarsest.product(np.eye(self._coarsest.n_nodes))
        return eigendecomposition(((matrix + matrix.T) / 2).tobytes(), len(matrix))


@dataclass(frozen=True, eq=False)
class Eigendecomposition:
    """Of the coarsest graph, trivial vector left out: values and vectors of S, descending."""

    values: np.ndarray
    vectors: np.ndarray

    @cached_property  # the vectors of one graph alone ask for no correction
    def inverse(self) -> np.ndarray:
        """The inverse of I - S, float32."""
        scaled = self.vectors / np.maximum(1 - self.values, LEAST_GAP)
        return np.asarray(scaled @ self.vectors.T, np.float32)


@functools.lru_cache(maxsize=1)  # the start of a refinement and its corrections have the same coarsest graph
def eigendecomposition(matrix: bytes, n_nodes: int) -> Eigendecomposition:
    """Return the eigendecomposition of a symmetric matrix (n, n) float64, without its largest eigenvalue."""
    values, vectors = np.linalg.eigh(np.frombuffer(matrix).reshape(n_nodes, n_nodes))
    return Eigendecomposition(values[-2::-1], vectors[:, -2::-1])


def _steps(n_nodes: int) -> int:
    return int(np.clip(STEPS_PER_LEVEL * np.sqrt(STEPS_NODES / n_nodes), STEPS_PER_LEVEL, MOST_STEPS))
