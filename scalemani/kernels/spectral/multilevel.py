"""A hierarchy of coarse graphs at work: approximate solutions of (I - S) x = r, and approximate eigenvectors.

In the coordinates u = D^1/2 v the prolongation P = D^1/2 Q D_c^-1/2 has orthonormal columns and S_c = P^T S P: the
coarse problem is the Galerkin one. A V-cycle damps what is rough by a Jacobi step before and after the coarse
correction. Sources: aggregation multigrid [Vanek, Mandel and Brezina 1996]; multilevel eigensolvers for graphs
[Barnard and Simon 1994].
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.columns import panels, unit_roots
from scalemani.kernels.arrays.tiles import run
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.graph.product import normalized_product, smoothed, smoothed_residual
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
def _restrict(
    indptr: np.ndarray, members: np.ndarray, scale: np.ndarray, vectors: np.ndarray, first: int, out: np.ndarray
) -> None:
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
def _prolong(labels: np.ndarray, scale: np.ndarray, coarse: np.ndarray, first: int, out: np.ndarray) -> None:
    for row in range(out.shape[0]):
        node = labels[first + row]
        factor = scale[first + row]
        for column in range(out.shape[1]):
            out[row, column] = factor * coarse[node, column]


@compiled
def _prolong_beside(
    labels: np.ndarray,
    scale: np.ndarray,
    coarse: np.ndarray,
    first: int,
    smoothing: np.ndarray,
    right: np.ndarray,
    out: np.ndarray,
) -> None:
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
    workspace : makes large arrays.
    """

    def __init__(
        self, labels: np.ndarray, degrees: np.ndarray, coarse_degrees: np.ndarray, workspace: Workspace = IN_MEMORY
    ) -> None:
        self._labels, self._workspace = labels, workspace
        self._scale = workspace.as_large(np.sqrt(degrees / coarse_degrees[labels]))
        self._members = workspace.as_large(np.argsort(labels, kind="stable").astype(np.int32))
        self._indptr = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=len(coarse_degrees)))])

    def restricted(self, vectors: np.ndarray) -> np.ndarray:
        """Return P^T times vectors (N, m): (C, m) float32."""
        out = self._workspace.empty((len(self._indptr) - 1, vectors.shape[1]), np.float32)

        def part(panel: slice) -> None:
            _restrict(self._indptr, self._members, self._scale, vectors, panel.start, out[panel])

        run(self._workspace.over(part, panels(len(out))))
        return out

    def prolong(self, coarse: np.ndarray, out: np.ndarray) -> None:
        """Write P times coarse (C, m) into `out` (N, m)."""

        def part(panel: slice) -> None:
            _prolong(self._labels, self._scale, coarse, panel.start, out[panel])

        run(self._workspace.over(part, panels(len(out))))

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
            _prolong_beside(self._labels, self._scale, coarse, panel.start, smoothing, right, out[panel])

        run(self._workspace.over(part, panels(len(out))))


class Multilevel:
    """Graphs in memory, finest first, as operators: products S x, V-cycles, and leading eigenvectors of the finest."""

    def __init__(self, levels: Sequence[Level], workspace: Workspace = IN_MEMORY) -> None:
        self._levels, self._workspace = levels, workspace
        self._inverse_roots = [workspace.as_large(1 / np.sqrt(level.degrees)) for level in levels]
        self._transfers = [
            Transfer(fine.labels, fine.degrees, coarse.degrees, workspace)
            for fine, coarse in itertools.pairwise(levels)
        ]
        self._smoothing = [DAMPING / np.maximum(1 - self._loops(level), LEAST_DIAGONAL) for level in range(len(levels))]
        self._dense = self._eigendecomposition() if len(levels[-1].degrees) <= DENSE_NODES else None

    def product(self, level: int, vectors: np.ndarray) -> np.ndarray:
        """Return S times vectors (n, m) on a level."""
        out, roots = self._workspace.empty(vectors.shape, vectors.dtype), self._inverse_roots[level]

        def part(panel: slice) -> None:
            normalized_product(self._rows(level, panel), roots, panel.start, vectors, out[panel])

        run(self._workspace.over(part, panels(len(out))))
        return out

    def corrected(self, right: np.ndarray, level: int = 0) -> np.ndarray:
        """Return an approximate solution (n, m) of (I - S) x = right on a level: one V-cycle."""
        smoothing, roots = self._smoothing[level], self._inverse_roots[level]
        if level == len(self._levels) - 1:
            if self._dense is None:
                return np.asarray(smoothing[:, np.newaxis] * right, right.dtype)
            return np.asarray(self._dense.inverse @ right)
        found, out = (self._workspace.empty(right.shape, right.dtype) for _ in range(2))

        def before(panel: slice) -> None:
            smoothed_residual(self._rows(level, panel), roots, smoothing, panel.start, right, out[panel])

        def after(panel: slice) -> None:
            smoothed(self._rows(level, panel), roots, smoothing, panel.start, right, found, out[panel])

        run(self._workspace.over(before, panels(len(right))))
        transfer = self._transfers[level]
        transfer.prolong_beside(self.corrected(transfer.restricted(out), level + 1), smoothing, right, found)
        run(self._workspace.over(after, panels(len(right))))
        return out

    def correct_below(self, transfer: Transfer, level: int, smoothing: np.ndarray, right: np.ndarray) -> None:
        """Turn right (N, m) in place into a solution that is smoothed and corrected from `level` side by side.

        It spares the finer graph both products of a V-cycle.

        Parameters
        ----------
        transfer : from the finer graph to `level`.
        level : number of the coarser graph.
        smoothing : (N,), of the Jacobi step of the finer graph.
        right : (N, m), the right side, overwritten by the solution.
        """
        transfer.prolong_beside(self.corrected(transfer.restricted(right), level), smoothing, right, right)

    def _rows(self, level: int, panel: slice) -> Rows:
        return row_slice(self._levels[level].rows, panel.start, panel.stop)

    def eigenvectors(self, n_vectors: int, seed: int = 0) -> np.ndarray:
        """Return approximate leading eigenvectors u of the finest graph, the trivial one left out: (n, n_vectors).

        From the coarsest graph up, each level refines what the one below found for a number of steps.
        """
        if self._dense is not None:
            vectors, steps = np.ascontiguousarray(self._dense.vectors[:, :n_vectors]), 0
        else:
            vectors, steps = random_columns(len(self._levels[-1].degrees), n_vectors, seed), STEPS_FROM_RANDOM
        for level in reversed(range(len(self._levels))):
            if level < len(self._levels) - 1:
                shape = len(self._levels[level].degrees), vectors.shape[1]
                coarse, vectors = vectors, self._workspace.empty(shape, np.float32)
                self._transfers[level].prolong(coarse, vectors)
                steps = _steps(len(vectors))
            if steps:
                vectors = self._refined(vectors, level, steps)
        return vectors

    def _refined(self, vectors: np.ndarray, level: int, steps: int) -> np.ndarray:
        def apply(block: np.ndarray) -> np.ndarray:
            return self.product(level, block)

        def correct(residuals: np.ndarray) -> None:
            if level == len(self._levels) - 1:
                residuals *= DAMPING
            else:
                self.correct_below(self._transfers[level], level + 1, self._smoothing[level], residuals)

        problem = RefinementProblem(apply, correct, unit_roots(self._levels[level].degrees), self._workspace)
        state = initial_state(vectors, problem, vectors.shape[1])
        for _ in range(steps):
            if state.residuals.max() <= LEAST_RESIDUAL:
                break
            state = step(state, problem, LEAST_RESIDUAL)
        return self._workspace.concatenate([state.vectors])

    def _loops(self, level: int) -> np.ndarray:
        """Return the diagonal of S: weight inside aggregates."""
        indptr, indices, values = self._levels[level].rows
        loops = np.zeros(len(indptr) - 1)
        for panel in panels(len(loops)):
            entries = slice(indptr[panel.start], indptr[panel.stop])
            of_rows = np.repeat(np.arange(panel.start, panel.stop), np.diff(indptr[panel.start : panel.stop + 1]))
            on_diagonal = indices[entries] == of_rows
            loops[of_rows[on_diagonal]] = values[entries][on_diagonal]
        return loops / self._levels[level].degrees

    def _eigendecomposition(self) -> "Eigendecomposition":
        matrix = self.product(len(self._levels) - 1, np.eye(len(self._levels[-1].degrees)))
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
