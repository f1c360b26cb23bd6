"""The reduced problem A~ = Z^T A Z, B~ = Z^T B Z over the landmarks, summed over blocks of rows.

Each block contributes Z_b^T A_b Z and Z_b^T B_b Z; the parts are added as a fixed binary tree and made symmetric bit
for bit at the end. For the Laplacian, A~ = Z^T D Z - Z^T W Z with degrees summed from the very weights of W: because
rows of Z sum to one, rows of A~ sum to zero up to rounding. Source: [LLL] 4.3.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import slices

ROWS_PER_PRODUCT = 8192  # bounds the intermediate W_b Z: about 60 nonzeros a row
ROWS_UNPACKED = 64  # of a part whose places in a dense sum are looked up together


class ReducedLaplacian(NamedTuple):
    """The pair of A~ = Z^T (D - W) Z and B~ = Z^T D Z: (L, L) float64 CSR, symmetric bit for bit."""

    laplacian: sp.csr_matrix
    mass: sp.csr_matrix


def weighted_product(block: sp.csr_matrix, affinities: sp.csr_matrix, weights: sp.csr_matrix) -> sp.csr_matrix:
    """Return one block's part of Z^T A Z: Z_b^T (A_b Z), (L, L) float64.

    The block Z_b is (n, L), A_b (n, N) its rows of A, symmetric or not. Z is (N, L), or only the rows that A_b refers
    to, with the columns of A_b renumbered to match.
    """
    weights = weights.astype(np.float64, copy=False)
    total = TreeSum()
    for first in range(0, max(block.shape[0], 1), ROWS_PER_PRODUCT):
        rows = slice(first, first + ROWS_PER_PRODUCT)
        spread = affinities[rows].astype(np.float64) @ weights
        total.add(sp.csr_matrix(block[rows].astype(np.float64).T.tocsr() @ spread))
    return total.total()


def diagonal_product(block: sp.csr_matrix, diagonal: np.ndarray) -> sp.csr_matrix:
    """Return one block's part of Z^T diag(diagonal) Z, (L, L) float64; `diagonal` (n,) are the block's entries."""
    block = block.astype(np.float64, copy=False)
    scaled = sp.csr_matrix(sp.diags_array(np.asarray(diagonal, np.float64)) @ block)
    return sp.csr_matrix(block.T.tocsr() @ scaled)


class TreeSum:
    """The sum of parts added one by one, as a binary tree over neighbours: log2 of their number are held at once."""

    def __init__(self) -> None:
        self._levels: list[tuple[int, sp.csr_matrix]] = []

    def add(self, part: sp.csr_matrix) -> None:
        """Add the next part, in block order."""
        level = 0
        while self._levels and self._levels[-1][0] == level:
            part = sp.csr_matrix(self._levels.pop()[1] + part)
            level += 1
        self._levels.append((level, part))

    def total(self) -> sp.csr_matrix:
        """Return the sum of the parts added so far, of which there must be one."""
        _, total = self._levels[-1]
        for _, part in self._levels[-2::-1]:
            total = sp.csr_matrix(part + total)
        return total

    def subtracted_from(self, matrix: sp.csr_matrix) -> sp.csr_matrix:
        """Return a matrix less the sum of the parts."""
        return sp.csr_matrix(matrix - self.total())


class PackedSum:
    """The sum of lower triangles (L, L) added one by one, dense: 4 bytes a pair of landmarks, however many parts."""

    def __init__(self, n_landmarks: int) -> None:
        self._starts = np.arange(n_landmarks + 1) * np.arange(1, n_landmarks + 2) // 2
        self._packed = np.zeros(self._starts[-1])

    def add(self, part: sp.csr_matrix) -> None:
        """Add the next part, of which no entry is there twice."""
        for rows in slices(part.shape[0], ROWS_UNPACKED):
            some = part[rows]
            self._packed[np.repeat(self._starts[rows], np.diff(some.indptr)) + some.indices] += some.data

    def subtracted_from(self, matrix: sp.csr_matrix) -> sp.csr_matrix:
        """Return a matrix less the sum of the parts: the last that the sum is used for."""
        np.negative(self._packed, out=self._packed)
        self.add(matrix)
        return self.total()

    def total(self) -> sp.csr_matrix:
        """Return the sum of the parts added so far, with sorted columns; entries of zero are left out."""
        rows = [self._packed[first:last] for first, last in itertools.pairwise(self._starts)]
        indptr = np.cumsum([0, *map(np.count_nonzero, rows)])
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        for row, (first, last) in zip(rows, itertools.pairwise(indptr), strict=True):
            indices[first:last] = np.flatnonzero(row)
            values[first:last] = row[indices[first:last]]
        return sp.csr_matrix((values, indices, indptr), shape=(len(rows), len(rows)))


def tree_sum(parts: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
    """Return the sum of the parts, at least one, in their order (`TreeSum`)."""
    total = TreeSum()
    for part in parts:
        total.add(part)
    return total.total()


def symmetric_part(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Return (M + M^T) / 2, symmetric bit for bit, with sorted columns."""
    symmetric = sp.csr_matrix(matrix + matrix.T.tocsr())
    symmetric.data *= 0.5
    symmetric.sort_indices()
    return symmetric


def symmetric_triangle(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Return the lower triangle of (M + M^T) / 2, its columns in any order."""
    rows = np.repeat(np.arange(matrix.shape[0], dtype=matrix.indices.dtype), np.diff(matrix.indptr))
    columns, values = matrix.indices, np.where(matrix.indices == rows, matrix.data, 0.5 * matrix.data)
    below = columns <= rows
    above = ~below
    lower = sp.csr_matrix((values[below], (rows[below], columns[below])), shape=matrix.shape)
    return sp.csr_matrix(lower + sp.csr_matrix((values[above], (columns[above], rows[above])), shape=matrix.shape))


def lower_triangle(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Return the entries of a matrix up to its diagonal, with sorted columns: the matrix itself if it is that."""
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    filled = np.flatnonzero(np.diff(matrix.indptr))
    if (matrix.indices[matrix.indptr[filled + 1] - 1] <= filled).all():
        return matrix
    return sp.csr_matrix(sp.tril(matrix))


def whole_of_triangle(lower: sp.csr_matrix) -> sp.csr_matrix:
    """Return the symmetric matrix, with sorted columns, of a lower triangle with sorted columns."""
    whole = sp.csr_matrix(lower + sp.triu(lower.T, 1, format="csr"))
    whole.sort_indices()
    return whole


def reduced_laplacian(
    affinity_parts: Sequence[sp.csr_matrix], degree_parts: Sequence[sp.csr_matrix]
) -> ReducedLaplacian:
    """Return the reduced problem from Z_b^T W_b Z and Z_b^T D_b Z of all blocks, (L, L) each, in block order."""
    affinity, mass = (symmetric_part(tree_sum(parts)) for parts in (affinity_parts, degree_parts))
    return ReducedLaplacian(symmetric_part(sp.csr_matrix(mass - affinity)), mass)
