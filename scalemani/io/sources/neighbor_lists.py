"""Neighbour lists that were made elsewhere, in the place of points: checked whole, then read by rows."""

import numpy as np
from scipy import sparse

from scalemani.config.validation import N_REPORTED_ROWS
from scalemani.errors import DataError
from scalemani.io.sources.base import Source
from scalemani.io.sources.sparse_rows import SparseRows

SYMMETRIC = 1e-2  # relative: libraries that expand squares in float32 lose so many digits of small distances
NEGLIGIBLE = 1e-4  # of the largest distance: below, nothing is left of these


class NeighborLists(Source):
    """The k nearest neighbours of N points as rows (N, 2k) float64: their rows, then their ascending distances.

    Parameters
    ----------
    indices : (N, k) integers, -1 for none
    distances : (N, k)

    Raises
    ------
    DataError
        For rows out of range, repeated neighbours, points that are their own neighbours at a distance, distances that
        are negative, not finite or differ by direction, and rows of different lengths.

    A point that is listed at distance zero from itself is taken out; where some points list themselves and others do
    not, the farthest neighbour of the others is left out.
    """

    def __init__(self, indices: np.ndarray, distances: np.ndarray, description: str) -> None:
        check_lists(indices, distances, description)
        listed = np.full(len(indices), indices.shape[1])
        themselves = indices == np.arange(len(indices))[:, np.newaxis]
        listed -= themselves.sum(axis=1)
        order = np.lexsort((indices, np.where(themselves, np.inf, distances)), axis=1)[:, : int(listed.min())]
        self.indices = np.take_along_axis(indices, order, axis=1)
        self.distances = np.take_along_axis(distances, order, axis=1).astype(np.float64)
        check_symmetric(self.indices, self.distances, description)
        super().__init__((len(indices), 2 * self.n_neighbors), np.float64, description)

    @property
    def n_neighbors(self) -> int:
        """The neighbours a point, k."""
        return int(self.indices.shape[1])

    def nearest(self, n_neighbors: int) -> "NeighborLists":
        """Return the lists of fewer neighbours a point."""
        return NeighborLists(self.indices[:, :n_neighbors], self.distances[:, :n_neighbors], self.description)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop): neighbours, then distances."""
        return np.concatenate([self.indices[start:stop], self.distances[start:stop]], axis=1)


def lists_of_matrix(rows: SparseRows) -> NeighborLists:
    """Return the lists in compressed sparse rows of distances; zeros that are stored are entries."""
    description = rows.description
    if rows.shape[0] != rows.shape[1]:
        raise DataError(f"distances to neighbours must be a square matrix (N, N), got {rows.shape} in {description}")
    columns, values, counts = np.asarray(rows.indices[...]), np.asarray(rows.data[...]), np.diff(rows.indptr)
    owners = np.repeat(np.arange(len(counts)), counts)
    own = np.bincount(owners[columns == owners], minlength=len(counts)).astype(bool)
    lengths = counts - own
    if lengths.max() > lengths.min() + 1 or (lengths.max() > lengths.min() and len(np.unique(counts)) > 1):
        raise DataError(
            f"every row of {description} must list as many neighbours, got from {lengths.min()} (row "
            f"{lengths.argmin()}) to {lengths.max()} (row {lengths.argmax()}): give the k nearest of each"
        )
    width = int(counts.max())
    places = np.arange(len(columns)) - np.repeat(rows.indptr[:-1], counts)
    indices, distances = np.full((len(counts), width), -1, np.int64), np.zeros((len(counts), width))
    indices[owners, places], distances[owners, places] = columns, values
    # Rows that list themselves are one longer than the others, whose last place then repeats them at distance zero.
    indices = np.where(indices < 0, np.arange(len(counts))[:, np.newaxis], indices)
    return NeighborLists(indices, distances, description)


def check_lists(indices: np.ndarray, distances: np.ndarray, description: str) -> None:
    """Refuse lists (N, k) that no search gives, with the rows that are at fault."""
    if indices.ndim != 2 or indices.shape != distances.shape or not indices.size:
        raise DataError(
            f"indices and distances of neighbours must be two tables (N, k) of one shape, got {indices.shape} and "
            f"{distances.shape} in {description}"
        )
    if indices.dtype.kind not in "iu":
        raise DataError(f"indices of neighbours must be integers, got {indices.dtype} in {description}")
    n_points = len(indices)
    rows = np.arange(n_points)[:, np.newaxis]
    ordered = np.sort(indices, axis=1)
    faults = {
        f"list rows outside [0, {n_points})": (indices < 0) | (indices >= n_points),
        "have distances that are negative or not finite": ~(np.isfinite(distances) & (distances >= 0)),
        "list themselves at a distance above zero": (indices == rows) & (distances > 0),
        "list a neighbour twice": ordered[:, 1:] == ordered[:, :-1],
    }
    for fault, found in faults.items():
        refuse_rows(found.any(axis=1), fault, description)


def check_symmetric(indices: np.ndarray, distances: np.ndarray, description: str) -> None:
    """Refuse points that list each other at different distances."""
    n_points, k = indices.shape
    bounds = np.arange(0, indices.size + 1, k)
    # Distances are stored one higher, so that a zero is an entry; a copy, because SciPy sorts columns in place.
    there = sparse.csr_array((distances.ravel() + 1, indices.ravel(), bounds), (n_points, n_points), copy=True)
    both = there.multiply(there.T > 0).tocsr()
    back = there.T.tocsr().multiply(there > 0).tocsr()
    both.sort_indices()
    back.sort_indices()
    slack = SYMMETRIC * np.maximum(both.data, back.data) - SYMMETRIC + NEGLIGIBLE * distances.max()
    apart = np.abs(both.data - back.data) > slack
    differing = np.zeros(n_points, bool)
    differing[np.repeat(np.arange(n_points), np.diff(both.indptr))[apart]] = True
    refuse_rows(differing, "are at another distance from a neighbour than it is from them", description)


def refuse_rows(found: np.ndarray, fault: str, description: str, first_row: int = 0) -> None:
    """Refuse lists or distances of which some rows have a fault.

    Parameters
    ----------
    found : (n,) whether a row has it
    """
    rows = first_row + np.flatnonzero(found)
    if len(rows):
        listed = ", ".join(map(str, rows[:N_REPORTED_ROWS]))
        raise DataError(
            f"{len(rows)} rows of the neighbour lists in {description} {fault}: first rows {listed}. Give distances as "
            "they were computed, and lists as the search returned them, each neighbour once with its distance"
        )
