"""Tables of neighbours, from lists, arrays and sparse distances: which part is which, and how long rows are."""

import contextlib
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from scalemani.errors import DataError
from scalemani.io.sources.base import PointsSource, first_few
from scalemani.io.sources.sliced import SparseRows

LIST_KINDS = (
    "a matrix of distances (N, N), sparse with the k nearest of each point or dense with all, a KnnGraph, an AnnData "
    "with obsp['distances'], arrays (indices, distances) of shape (N, k) in any order, or the path of such a matrix "
    "(.npz, .npy, .zarr, .h5ad::obsp/distances) or of a zarr group or .npz with indices and distances"
)
LIST_REMEDY = (
    "Give distances as they were computed, and lists as the search returned them, each neighbour once with its distance"
)
NO_NEIGHBOR = -1
# Of points.distances: what the values of lists are.
AUTO, AS_DISTANCES, SQUARED, INNER_PRODUCT = "auto", "distances", "squared", "inner-product"


class NeighborTable(NamedTuple):
    """Neighbours (N, k), NO_NEIGHBOR where the search returned none, the value of each, and where from.

    `shortened` is a remark on lists of which some were longer.
    """

    indices: np.ndarray
    values: np.ndarray
    description: str
    shortened: str = ""

    @classmethod
    def of(cls, indices: np.ndarray, values: np.ndarray, description: str) -> "NeighborTable":
        """Return two tables of one shape as one, values as floats; refuse others, and what are no numbers."""
        if indices.ndim != 2 or indices.shape != values.shape or not indices.size:
            raise DataError(
                f"indices and distances of neighbours must be two tables (N, k) of one shape, got {indices.shape} and "
                f"{values.shape} in {description}"
            )
        if indices.dtype.kind not in "iu" or values.dtype.kind not in "biuf":
            raise DataError(
                f"indices of neighbours must be integers and their distances numbers, got {indices.dtype} and "
                f"{values.dtype} in {description}"
            )
        floats = values if values.dtype.kind == "f" else values.astype(np.float64)
        return cls(with_no_neighbor(indices), floats, description)

    @property
    def themselves(self) -> np.ndarray:
        """Which entries are the point whose list it is, (N, k) bool."""
        return self.indices == np.arange(len(self.indices))[:, np.newaxis]

    @property
    def outside(self) -> np.ndarray:
        """Which lists have entries that are no points, (N,) bool."""
        return np.any((self.indices < NO_NEIGHBOR) | (self.indices >= len(self.indices)), axis=1)


def rows_of_one_length(part: Any) -> np.ndarray:
    """Return an array, or a table of rows of different lengths, the shorter ones filled with NO_NEIGHBOR."""
    with contextlib.suppress(ValueError):
        return np.asarray(part)
    try:
        return np.array([*itertools.zip_longest(*part, fillvalue=NO_NEIGHBOR)]).T
    except (TypeError, ValueError) as error:
        raise DataError(
            f"metric='precomputed' takes {LIST_KINDS}; got a {type(part).__name__} of no rows of numbers"
        ) from error


def indices_first(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices, distances) of two tables (N, k) in either order, by their values.

    Of two tables that both could be indices, those are that hold integers; of two such, what ascends is distances.
    """

    def likeness(table: np.ndarray) -> tuple[bool, ...]:
        ascends = table.ndim == 2 and bool((table[:, 1:] >= table[:, :-1]).all())
        return could_be_indices(table), table.dtype.kind in "iu", not ascends

    indices, distances = sorted((one, other), key=likeness, reverse=True)
    whole = indices.dtype.kind == "f" and could_be_indices(indices)
    return (indices.astype(np.int64) if whole else indices), distances


def could_be_indices(table: np.ndarray) -> bool:
    """Return whether a table (N, k) holds whole numbers of rows, none twice in a row but NO_NEIGHBOR."""
    if table.ndim != 2 or table.dtype.kind not in "iuf" or not table.size:
        return False
    indices = with_no_neighbor(table)
    listed = indices[indices != NO_NEIGHBOR]
    rows = (listed >= 0) & (listed < len(table)) & (listed == np.rint(listed))
    return bool(rows.all()) and not has_repeats(indices).any()


def with_no_neighbor(indices: np.ndarray) -> np.ndarray:
    """Return indices with NO_NEIGHBOR for the largest number of their dtype, which cuVS writes for it."""
    unknown = indices == np.iinfo(indices.dtype).max if indices.dtype.kind in "iu" else np.zeros(1, bool)
    return np.where(unknown, NO_NEIGHBOR, indices.astype(np.int64)) if unknown.any() else indices


def has_repeats(indices: np.ndarray) -> np.ndarray:
    """Return which rows of indices (N, k) hold one twice, (N,) bool; NO_NEIGHBOR may be."""
    ordered = np.sort(indices, axis=1)
    return ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_NEIGHBOR)).any(axis=1)


def table_of_matrix(rows: SparseRows, form: str) -> NeighborTable:
    """Return the table of compressed sparse rows, whose stored zeros are entries; of longer rows the nearest ones."""
    check_square(rows, "distances to neighbours", "give the distances of each point to its neighbours")
    columns, values = np.asarray(rows.indices[...]).astype(np.int64), np.asarray(rows.data[...], np.float64)
    counts, n_points, remark = np.diff(rows.indptr), rows.shape[0], ""
    owners = np.repeat(np.arange(n_points), counts)
    lengths = counts - np.bincount(owners[columns == owners], minlength=n_points).astype(bool)
    if np.ptp(lengths) and np.ptp(counts):
        least = int(lengths.min())
        refuse_rows({"list no other point": lengths == 0}, f"the neighbour lists in {rows.description}", LIST_REMEDY)
        remark = (
            f"rows of {rows.description} list from {least} (row {lengths.argmin()}) to {lengths.max()} neighbours (row "
            f"{lengths.argmax()}): of every row the nearest {least} are used; give the k nearest of each for more"
        )
        nearest = nearest_entries(owners, columns, -values if form == INNER_PRODUCT else values, least)
        owners, columns, values = owners[nearest], columns[nearest], values[nearest]
        counts = np.bincount(owners, minlength=n_points)
    # Where some rows list themselves and are one longer for it, the others then do so too, at distance zero.
    shorter = np.flatnonzero(counts < counts.max())
    ends = np.cumsum(counts)[shorter]
    indices = np.insert(columns, ends, shorter).reshape(n_points, -1)
    values = np.insert(values, ends, float(form == INNER_PRODUCT)).reshape(indices.shape)
    return NeighborTable.of(indices, values, rows.description)._replace(shortened=remark)


def nearest_entries(owners: np.ndarray, columns: np.ndarray, values: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Return which entries (n,) of sparse rows are the point itself or among its nearest, in the order of the rows.

    What is not finite is retained, as nearest, so that it is refused later.
    """
    themselves = columns == owners
    order = np.lexsort((columns, np.where(np.isfinite(values), values, -np.inf), ~themselves, owners))
    owners, themselves = owners[order], themselves[order]
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    places = np.arange(len(owners)) - np.repeat(firsts, np.diff(firsts, append=len(owners)))
    return order[places < n_neighbors + np.repeat(themselves[firsts], np.diff(firsts, append=len(owners)))]


def check_square(matrix: PointsSource, what: str, remedy: str) -> None:
    """Refuse a matrix between points that is not (N, N)."""
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{what} must be a square matrix (N, N), got {matrix.shape} in {matrix.description}: {remedy}")


def refuse_rows(faults: Mapping[str, np.ndarray], what: str, remedy: str, first_row: int = 0) -> None:
    """Refuse precomputed input of which some rows, (n,) bool, have one of these faults."""
    for fault, faulty in faults.items():
        rows = first_row + np.flatnonzero(faulty)
        if len(rows):
            raise DataError(f"{len(rows)} rows of {what} {fault}: first rows {first_few(rows)}. {remedy}")
