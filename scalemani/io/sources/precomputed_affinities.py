"""Precomputed affinities, of every kind that is read, and the openers of precomputed input."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from scalemani.config.validation import check_finite_block
from scalemani.errors import DataError
from scalemani.io.sources.base import PointsSource, Source
from scalemani.io.sources.neighbor_tables import check_square, refuse_rows
from scalemani.io.sources.opening import open_points
from scalemani.io.sources.precomputed import as_pairwise_errors, open_lists, take_pairwise, without_rounding
from scalemani.io.sources.sliced import SparseRows
from scalemani.kernels.graph.components import LEAST_ENTRY
from scalemani.kernels.rows.metrics import PRECOMPUTED

AFFINITY_KINDS = (
    "a matrix of affinities (N, N), sparse with those above zero or dense with all, any object with `tocsr()`, an "
    "AnnData with obsp['connectivities'], or the path of one of these (.npz, .npy, .zarr, .h5ad, "
    ".h5ad::obsp/connectivities)"
)
AFFINITY_REMEDY = (
    "Affinities are above zero between near points and not stored between others; correct these rows, or leave them "
    "out with their columns"
)
CONNECTIVITIES = "connectivities"  # scanpy's, in `obsp`
AFFINITY_DTYPE = np.dtype(np.float32)  # of stored affinities
# Of the largest affinity: sums in float32 make a symmetric matrix differ by less, and lie less far below zero.
ROUNDING = 1e-5
AFFINITY_BYTES = 2**26  # of dense rows that become sparse at once


def opener_instead(metric: str, distances: str, affinity: str | None) -> Callable[[Any], PointsSource] | None:
    """Return the opener of precomputed affinities or neighbours; None where the input is points.

    `metric` and `distances` are parameters of `points`.
    """
    if affinity == PRECOMPUTED:
        return open_affinities
    return functools.partial(open_lists, form=distances) if metric == PRECOMPUTED else None


def open_affinities(affinities: Any) -> "PrecomputedAffinities":
    """Return affinities of any of `AFFINITY_KINDS`; refuse unusable ones."""
    if isinstance(affinities, PrecomputedAffinities):
        return affinities
    matrix = take_pairwise(affinities, CONNECTIVITIES)
    if hasattr(matrix, "tocsr"):
        matrix = matrix.tocsr()
    elif not (isinstance(matrix, str | Path | PointsSource) or hasattr(matrix, "__array__")):
        raise DataError(f"affinity='precomputed' takes {AFFINITY_KINDS}; got {type(affinities).__name__}")
    with as_pairwise_errors("affinities", matrix):
        return PrecomputedAffinities(open_points(matrix))


class PrecomputedAffinities(Source):
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
        remedy = "give the affinities of each point to all, or points with another affinity than precomputed"
        check_square(matrix, "affinities between points", remedy)
        super().__init__(matrix.shape, AFFINITY_DTYPE, description)
        entries = checked_affinities(whole_matrix(matrix), description)
        self.matrix, self.remark = symmetric_mean(entries, description)
        self.nonzeros = int(self.matrix.nnz)
        isolated = {"have no affinity to another point": np.diff(self.matrix.indptr) == 0}
        refuse_rows(isolated, f"the affinities in {description}", AFFINITY_REMEDY)
        _, labels = connected_components(joining(self.matrix), directed=False)
        self.component_sizes = np.sort(np.bincount(labels))[::-1]

    def rows(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop): columns ascend, none comes twice, and no zero is stored."""
        return self.matrix[start:stop]

    read_sparse = rows


def joining(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the edges of W (N, N) that join their ends: those that count in D^-1/2 W D^-1/2."""
    entries, roots = matrix.tocoo(copy=False), np.sqrt(matrix.sum(axis=1, dtype=np.float64)).A1
    joins = entries.data >= LEAST_ENTRY * roots[entries.row] * roots[entries.col]
    return sparse.csr_matrix((joins[joins], (entries.row[joins], entries.col[joins])), matrix.shape)


def whole_matrix(matrix: PointsSource) -> sparse.csr_matrix:
    """Return all rows of a matrix (N, N) as sparse ones; dense ones are read some at a time."""
    n_points = matrix.shape[0]
    if isinstance(matrix, SparseRows):
        return matrix.read_sparse(0, n_points)
    step = max(1, AFFINITY_BYTES // (n_points * np.dtype(matrix.dtype).itemsize))
    parts = [matrix.read_sparse(start, min(start + step, n_points)) for start in range(0, n_points, step)]
    return sparse.csr_matrix(sparse.vstack(parts, format="csr"))


def checked_affinities(matrix: sparse.csr_matrix, description: str) -> sparse.csr_matrix:
    """Return affinities (N, N) in float64 without their diagonal; refuse those that are none.

    Those that lie below zero by rounding are zeros.
    """
    check_finite_block(matrix, 0, f"affinities in {description}")
    entries = matrix.tocoo(copy=False)
    data = without_rounding(entries.data, ROUNDING * float(entries.data.max(initial=0)))
    faults = {
        "hold affinities that are negative": np.bincount(entries.row[data < 0]) > 0,
        "hold affinities that are too large for float32": (
            np.bincount(entries.row[data > np.finfo(AFFINITY_DTYPE).max]) > 0
        ),
    }
    refuse_rows(faults, f"the affinities in {description}", AFFINITY_REMEDY)
    off_diagonal = entries.row != entries.col
    parts = (data[off_diagonal].astype(np.float64), (entries.row[off_diagonal], entries.col[off_diagonal]))
    return sparse.csr_matrix(parts, matrix.shape)


def symmetric_mean(affinities: sparse.csr_matrix, description: str) -> tuple[sparse.csr_matrix, str]:
    """Return the mean (N, N) float32 of affinities and their transpose, and a warning where they differ.

    Symmetric affinities stay as they are, to the last bit. Those that vanish in float32 are zeros.
    """
    transposed = affinities.T.tocsr()
    difference = float(abs(affinities - transposed).max())
    mean = ((affinities + transposed) * 0.5).astype(AFFINITY_DTYPE)
    mean.eliminate_zeros()
    mean.sort_indices()
    if difference <= ROUNDING * affinities.max():
        return mean, ""
    return mean, (
        f"{description} is not symmetric, affinities of the same two points differ by up to {difference:.3g}: the mean "
        "of it and its transpose is taken"
    )
