"""Affinities that were computed elsewhere, in the place of points: checked whole, then read by sparse rows."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from scalemani.config.validation import N_REPORTED_ROWS, check_finite_block
from scalemani.errors import DataError
from scalemani.io.sources.base import PointsSource, Source, read_rows
from scalemani.io.sources.sparse_rows import SparseRows
from scalemani.kernels.graph.components import LEAST_ENTRY

KEPT_DTYPE = np.dtype(np.float32)  # of stored affinities
ROUNDING = 1e-5  # of the largest affinity: what sums in float32 leave of a symmetric matrix differs by less
BYTES_AT_ONCE = 2**26  # of dense rows that become sparse at once


class GivenAffinities(Source):
    """W, the affinities (N, N) between N points, by sparse rows: symmetric, without a diagonal, in float32.

    Parameters
    ----------
    matrix : (N, N) affinities, sparse or dense, read whole; where it is not symmetric, W is the mean of it and its
        transpose. The diagonal is left out: no affinity of a point to itself moves it.

    Attributes
    ----------
    component_sizes : (c,) int64, points in each connected component, the largest first

    Raises
    ------
    DataError
        For what is not square, for affinities that are negative, not finite or beyond float32, and for points without
        an affinity to another one.
    """

    def __init__(self, matrix: PointsSource) -> None:
        description = matrix.description
        if matrix.shape[0] != matrix.shape[1]:
            raise DataError(
                f"affinities between points must be a square matrix (N, N), got {matrix.shape} in {description}: give "
                "the affinities of each point to all, or points with another affinity than precomputed"
            )
        super().__init__(matrix.shape, KEPT_DTYPE, description)
        given = checked_affinities(whole_matrix(matrix), description)
        self.matrix, self.remark = symmetric_mean(given, description)
        refuse_affinities(np.diff(self.matrix.indptr) == 0, "have no affinity to another point", description)
        _, labels = connected_components(joining(self.matrix), directed=False)
        self.component_sizes = np.sort(np.bincount(labels))[::-1]

    @property
    def nonzeros(self) -> int:
        """The nonzeros of W."""
        return int(self.matrix.nnz)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), dense."""
        return self.matrix[start:stop].toarray()

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop): columns ascend, none comes twice, and no zero is stored."""
        return self.matrix[start:stop]


def joining(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Return the edges of W (N, N) that join their ends: those that count in D^-1/2 W D^-1/2."""
    roots = np.sqrt(np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel())
    rows = np.repeat(roots, np.diff(matrix.indptr))
    kept = matrix.data >= LEAST_ENTRY * rows * roots[matrix.indices]
    joined = sp.csr_matrix((kept, matrix.indices, matrix.indptr), matrix.shape, copy=True)
    joined.eliminate_zeros()  # what is stored is an edge, whatever its value
    return joined


def whole_matrix(matrix: PointsSource) -> sp.csr_matrix:
    """Return all rows of a matrix (N, N) as sparse ones; dense ones are read some at a time."""
    n_points = matrix.shape[0]
    if isinstance(matrix, SparseRows):
        return matrix.read_sparse(0, n_points)
    step = max(1, BYTES_AT_ONCE // (n_points * np.dtype(matrix.dtype).itemsize))
    parts = [read_rows(matrix, start, min(start + step, n_points), sparse=True) for start in range(0, n_points, step)]
    return sp.csr_matrix(sp.vstack(parts, format="csr"))


def checked_affinities(matrix: sp.csr_matrix, description: str) -> sp.csr_matrix:
    """Return affinities (N, N) in float64 without their diagonal; refuse those that are none."""
    check_finite_block(matrix, 0, f"affinities in {description}")
    row_of = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    refuse_entries(row_of, matrix.data < 0, "are negative", description)
    refuse_entries(row_of, matrix.data > np.finfo(KEPT_DTYPE).max, "are too large for float32", description)
    kept = row_of != matrix.indices
    parts = (matrix.data[kept].astype(np.float64), (row_of[kept], matrix.indices[kept]))
    return sp.csr_matrix(parts, shape=matrix.shape)


def symmetric_mean(given: sp.csr_matrix, description: str) -> tuple[sp.csr_matrix, str]:
    """Return the mean (N, N) float32 of affinities and their transpose, and words on what they differ by, if they do.

    Symmetric affinities are their own mean, to the last bit. Those that vanish in float32 are zeros.
    """
    transposed = given.T.tocsr()
    apart = float(abs(given - transposed).max())
    mean = ((given + transposed) * 0.5).astype(KEPT_DTYPE)
    mean.eliminate_zeros()
    mean.sort_indices()
    if apart <= ROUNDING * given.max():
        return mean, ""
    return mean, (
        f"{description} is not symmetric, affinities of the same two points differ by up to {apart:.3g}: the mean of "
        "it and its transpose is taken"
    )


def refuse_entries(row_of: np.ndarray, found: np.ndarray, fault: str, description: str) -> None:
    """Refuse affinities of which some entries have a fault.

    Parameters
    ----------
    row_of : (m,) the row of each entry
    found : (m,) whether an entry has it
    """
    refuse_affinities(np.bincount(row_of[found]) > 0, f"hold affinities that {fault}", description)


def refuse_affinities(found: np.ndarray, fault: str, description: str) -> None:
    """Refuse affinities of which some rows (n,) have a fault."""
    rows = np.flatnonzero(found)
    if len(rows):
        listed = ", ".join(map(str, rows[:N_REPORTED_ROWS]))
        raise DataError(
            f"{len(rows)} rows of the affinities in {description} {fault}: first rows {listed}. Affinities are above "
            "zero between near points and not stored between others; correct these rows, or leave them out with their "
            "columns"
        )
