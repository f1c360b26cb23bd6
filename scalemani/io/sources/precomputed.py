"""Precomputed input in the place of points: neighbour lists, all distances, affinities, of every kind that is read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from scalemani.config.limits import check_limit
from scalemani.config.validation import N_REPORTED_ROWS, check_finite_block
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources.base import PointsSource, Source, read_rows
from scalemani.io.sources.opening import open_points
from scalemani.io.sources.sliced import SparseRows
from scalemani.io.sources.stores import is_anndata
from scalemani.kernels.graph.components import LEAST_ENTRY, Bridges, boruvka_round
from scalemani.kernels.rows.metrics import PRECOMPUTED

LIST_KINDS = (
    "a matrix of distances (N, N), sparse with the k nearest of each point or dense with all, a KnnGraph, an AnnData "
    "with obsp['distances'], arrays (indices, distances) of shape (N, k) in any order, or the path of such a matrix "
    "(.npz, .npy, .zarr, .h5ad::obsp/distances) or of a zarr group or .npz with indices and distances"
)
AFFINITY_KINDS = (
    "a matrix of affinities (N, N), sparse with those above zero or dense with all, whatever has `tocsr()`, an AnnData "
    "with obsp['connectivities'], or the path of one of these (.npz, .npy, .zarr, .h5ad, .h5ad::obsp/connectivities)"
)
LIST_REMEDY = (
    "Give distances as they were computed, and lists as the search returned them, each neighbour once with its distance"
)
AFFINITY_REMEDY = (
    "Affinities are above zero between near points and not stored between others; correct these rows, or leave them "
    "out with their columns"
)
DISTANCES, CONNECTIVITIES = "distances", "connectivities"  # scanpy's graphs in `obsp`
LIST_ARRAYS = ("indices", "distances")
SYMMETRIC = 1e-2  # relative: libraries that expand squares in float32 lose so many digits of small distances
NEGLIGIBLE = 1e-4  # of the largest distance: below, no digit of these is left
DISTANCE_BYTES = 2**24  # of the distances that are searched at once
AFFINITY_DTYPE = np.dtype(np.float32)  # of stored affinities
ROUNDING = 1e-5  # of the largest affinity: sums in float32 make a symmetric matrix differ by less
AFFINITY_BYTES = 2**26  # of dense rows that become sparse at once


def open_lists(given: Any) -> "NeighborLists | DistanceMatrix":
    """Return neighbour lists, or distances between all points, of any of `LIST_KINDS`; refuse unusable ones."""
    if isinstance(given, NeighborLists | DistanceMatrix):
        return given
    given = take_pairwise(given, DISTANCES)
    if isinstance(given, str | Path):
        return open_stored_lists(str(given))
    if sparse.issparse(given) or hasattr(given, "__array__"):
        return lists_of(open_points(given))
    parts = given if isinstance(given, tuple | list) else [getattr(given, name, None) for name in LIST_ARRAYS]
    if len(parts) not in (2, 3) or any(part is None for part in parts[:2]):  # umap's third is its index for searches
        raise DataError(f"metric='precomputed' takes {LIST_KINDS}; got {type(given).__name__}")
    indices, distances = (np.asarray(part) for part in parts[:2])
    if indices.dtype.kind == "f" and distances.dtype.kind in "iu":
        indices, distances = distances, indices
    return NeighborLists(indices, distances, f"{type(given).__name__} in memory")


def open_affinities(given: Any) -> "GivenAffinities":
    """Return affinities of any of `AFFINITY_KINDS`; refuse unusable ones."""
    if isinstance(given, GivenAffinities):
        return given
    matrix = take_pairwise(given, CONNECTIVITIES)
    if hasattr(matrix, "tocsr"):
        matrix = matrix.tocsr()
    elif not (isinstance(matrix, str | Path | PointsSource) or hasattr(matrix, "__array__")):
        raise DataError(f"affinity='precomputed' takes {AFFINITY_KINDS}; got {type(given).__name__}")
    return GivenAffinities(open_points(matrix))


def opener_instead(metric: str | None, affinity: str | None) -> Callable[[Any], PointsSource] | None:
    """Return the opener of precomputed affinities or neighbours; None where points are given."""
    if affinity == PRECOMPUTED:
        return open_affinities
    return open_lists if metric == PRECOMPUTED else None


def take_pairwise(given: Any, name: str) -> Any:
    """Return the matrix `obsp[name]` of an AnnData, or its location; anything else as it is."""
    if isinstance(given, str | Path):
        location = str(given)
        annotated = "::" not in location and (location.lower().endswith(".h5ad") or is_anndata(location))
        return f"{location}::obsp/{name}" if annotated else given
    if not (hasattr(given, "obsp") and hasattr(given, "obs_names")):
        return given
    if name not in given.obsp:
        raise DataError(
            f"{type(given).__name__} has no obsp[{name!r}], got {', '.join(given.obsp) or 'nothing'}: find the "
            "neighbours first, or give points, with neither metric nor affinity precomputed"
        )
    return given.obsp[name]


def lists_of(matrix: PointsSource) -> "NeighborLists | DistanceMatrix":
    """Return the lists in a sparse matrix of distances; a dense one holds all distances."""
    return lists_of_matrix(matrix) if isinstance(matrix, SparseRows) else DistanceMatrix(matrix)


def open_stored_lists(location: str) -> "NeighborLists | DistanceMatrix":
    """Return the lists at a path: those of a matrix, or arrays `indices` and `distances` of a zarr group or an .npz."""
    try:
        return lists_of(open_points(location))
    except (StoreError, ConfigError) as error:
        if "::" in location or not ("is a zarr group" in str(error) or location.endswith(".npz")):
            raise
    indices, distances = (open_points(f"{location}::{name}") for name in LIST_ARRAYS)
    table = indices.read(0, indices.shape[0])
    return NeighborLists(table.astype(np.int64), distances.read(0, distances.shape[0]), location)


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
    """Return the lists in compressed sparse rows of distances, whose stored zeros are entries."""
    description = rows.description
    check_square(rows, "distances to neighbours", "give the distances of each point to its neighbours")
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
    """Refuse lists (N, k) that no search returns."""
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
    listed = f"the neighbour lists in {description}"
    faults = {
        f"list rows outside [0, {n_points})": (indices < 0) | (indices >= n_points),
        "have distances that are negative or not finite": ~(np.isfinite(distances) & (distances >= 0)),
        "list themselves at a distance above zero": (indices == rows) & (distances > 0),
        "list a neighbour twice": ordered[:, 1:] == ordered[:, :-1],
    }
    refuse_rows({fault: entries.any(axis=1) for fault, entries in faults.items()}, listed, LIST_REMEDY)


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
    faults = {"are at another distance from a neighbour than it is from them": differing}
    refuse_rows(faults, f"the neighbour lists in {description}", LIST_REMEDY)


class DistanceMatrix(Source):
    """The distances (N, N) between N points, zero between a point and itself.

    Parameters
    ----------
    distances : (N, N), read by rows

    Raises
    ------
    DataError
        For what is not square, and for rows that are too long.
    """

    def __init__(self, distances: PointsSource) -> None:
        check_square(distances, "distances between all points", "give points with another metric than precomputed")
        super().__init__(distances.shape, distances.dtype, distances.description)
        check_limit("dense row", self.shape[1] * self.dtype.itemsize, f"a row of {self.description}")
        self.distances = distances

    @property
    def n_neighbors(self) -> int:
        """The neighbours a point: all others."""
        return self.shape[0] - 1

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the distances."""
        return self.distances.read(start, stop)

    def nearest(self, n_neighbors: int) -> NeighborLists:
        """Return the lists of the nearest neighbours of every point, ties by index; refuse distances that are none."""
        n_points = self.shape[0]
        indices, distances = np.empty((n_points, n_neighbors), np.int64), np.empty((n_points, n_neighbors))
        step = max(1, DISTANCE_BYTES // (n_points * self.dtype.itemsize))
        for start in range(0, n_points, step):
            block = self._checked(start, min(start + step, n_points))
            for row, away in enumerate(block, start):
                listed = smallest(away, row, n_neighbors)
                indices[row], distances[row] = listed, away[listed]
        return NeighborLists(indices, distances, self.description)

    def closest_pairs(self, lists: NeighborLists) -> Bridges | None:
        """Return the closest pairs that join the pieces of neighbour lists; None where these are connected.

        Each round reads the rows of all pieces but the largest, and leaves half as many pieces.
        """
        rows, columns = np.repeat(np.arange(len(lists.indices)), lists.n_neighbors), lists.indices.ravel()
        edges = sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=self.shape)
        n_pieces, labels = connected_components(edges, directed=False)
        found, step = [], max(1, DISTANCE_BYTES // (self.shape[0] * self.dtype.itemsize))
        while n_pieces > 1:
            queries = np.flatnonzero(labels != np.argmax(np.bincount(labels)))
            nearest, away = np.empty(len(queries), np.int64), np.empty(len(queries))
            for start in range(0, len(labels), step):
                few = slice(*np.searchsorted(queries, (start, start + step)))
                if few.start == few.stop:
                    continue
                block = self.read(start, min(start + step, len(labels)))[queries[few] - start]
                block = np.where(labels[queries[few], np.newaxis] == labels, np.inf, block)
                nearest[few], away[few] = block.argmin(axis=1), block.min(axis=1)
            bridges, joined = boruvka_round(labels, queries, nearest, away)
            found.append(bridges)
            n_pieces, labels = len(joined.sizes), joined.labels
        return Bridges(*map(np.concatenate, zip(*found, strict=True))) if found else None

    def _checked(self, start: int, stop: int) -> np.ndarray:
        block, listed = self.read(start, stop), f"the neighbour lists in {self.description}"
        check_finite_block(block, start, f"distances in {self.description}")
        faults = {
            "have negative distances": block.min(axis=1) < 0,
            "have a distance from the point to itself that is not zero": np.diagonal(block, start) != 0,
        }
        refuse_rows(faults, listed, LIST_REMEDY, start)
        return block


def smallest(away: np.ndarray, row: int, n_smallest: int) -> np.ndarray:
    """Return the indices of the smallest distances (N,) of one row, ascending, ties by index, without its own."""
    bound = np.partition(away, n_smallest)[n_smallest]  # one more: its own is among the smallest, being zero
    near = np.flatnonzero(away <= bound)
    near = near[near != row]
    return near[np.argsort(away[near], kind="stable")][:n_smallest]


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
        remedy = "give the affinities of each point to all, or points with another affinity than precomputed"
        check_square(matrix, "affinities between points", remedy)
        super().__init__(matrix.shape, AFFINITY_DTYPE, description)
        given = checked_affinities(whole_matrix(matrix), description)
        self.matrix, self.remark = symmetric_mean(given, description)
        isolated = {"have no affinity to another point": np.diff(self.matrix.indptr) == 0}
        refuse_rows(isolated, f"the affinities in {description}", AFFINITY_REMEDY)
        _, labels = connected_components(joining(self.matrix), directed=False)
        self.component_sizes = np.sort(np.bincount(labels))[::-1]

    @property
    def nonzeros(self) -> int:
        """The nonzeros of W."""
        return int(self.matrix.nnz)

    def rows(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop): columns ascend, none comes twice, and no zero is stored."""
        return self.matrix[start:stop]

    read_sparse = rows


def joining(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the edges of W (N, N) that join their ends: those that count in D^-1/2 W D^-1/2."""
    roots = np.sqrt(np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel())
    rows = np.repeat(roots, np.diff(matrix.indptr))
    kept = matrix.data >= LEAST_ENTRY * rows * roots[matrix.indices]
    joined = sparse.csr_matrix((kept, matrix.indices, matrix.indptr), matrix.shape, copy=True)
    joined.eliminate_zeros()  # what is stored is an edge, whatever its value
    return joined


def whole_matrix(matrix: PointsSource) -> sparse.csr_matrix:
    """Return all rows of a matrix (N, N) as sparse ones; dense ones are read some at a time."""
    n_points = matrix.shape[0]
    if isinstance(matrix, SparseRows):
        return matrix.read_sparse(0, n_points)
    step = max(1, AFFINITY_BYTES // (n_points * np.dtype(matrix.dtype).itemsize))
    parts = [read_rows(matrix, start, min(start + step, n_points), sparse=True) for start in range(0, n_points, step)]
    return sparse.csr_matrix(sparse.vstack(parts, format="csr"))


def checked_affinities(matrix: sparse.csr_matrix, description: str) -> sparse.csr_matrix:
    """Return affinities (N, N) in float64 without their diagonal; refuse those that are none."""
    check_finite_block(matrix, 0, f"affinities in {description}")
    row_of = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    faults = {
        "hold affinities that are negative": matrix.data < 0,
        "hold affinities that are too large for float32": matrix.data > np.finfo(AFFINITY_DTYPE).max,
    }
    rows = {fault: np.bincount(row_of[entries]) > 0 for fault, entries in faults.items()}
    refuse_rows(rows, f"the affinities in {description}", AFFINITY_REMEDY)
    kept = row_of != matrix.indices
    parts = (matrix.data[kept].astype(np.float64), (row_of[kept], matrix.indices[kept]))
    return sparse.csr_matrix(parts, shape=matrix.shape)


def symmetric_mean(given: sparse.csr_matrix, description: str) -> tuple[sparse.csr_matrix, str]:
    """Return the mean (N, N) float32 of affinities and their transpose, and a warning where they differ.

    Symmetric affinities are their own mean, to the last bit. Those that vanish in float32 are zeros.
    """
    transposed = given.T.tocsr()
    difference = float(abs(given - transposed).max())
    mean = ((given + transposed) * 0.5).astype(AFFINITY_DTYPE)
    mean.eliminate_zeros()
    mean.sort_indices()
    if difference <= ROUNDING * given.max():
        return mean, ""
    return mean, (
        f"{description} is not symmetric, affinities of the same two points differ by up to {difference:.3g}: the mean "
        "of it and its transpose is taken"
    )


def check_square(matrix: PointsSource, what: str, remedy: str) -> None:
    """Refuse a matrix between points that is not (N, N)."""
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{what} must be a square matrix (N, N), got {matrix.shape} in {matrix.description}: {remedy}")


def refuse_rows(faults: Mapping[str, np.ndarray], what: str, remedy: str, first_row: int = 0) -> None:
    """Refuse precomputed input of which some rows, (n,) bool, have one of these faults."""
    for fault, faulty in faults.items():
        rows = first_row + np.flatnonzero(faulty)
        if len(rows):
            listed = ", ".join(map(str, rows[:N_REPORTED_ROWS]))
            raise DataError(f"{len(rows)} rows of {what} {fault}: first rows {listed}. {remedy}")
