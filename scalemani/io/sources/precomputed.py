"""Neighbour lists and all distances, of every kind that is read, in the place of points."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from scalemani.config.limits import check_limit
from scalemani.config.validation import check_finite_block
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources.base import PointsSource, Source, first_few
from scalemani.io.sources.opening import open_points
from scalemani.io.sources.sliced import SparseRows
from scalemani.io.sources.stores import is_anndata
from scalemani.kernels.graph.components import Bridges, boruvka_round

LIST_KINDS = (
    "a matrix of distances (N, N), sparse with the k nearest of each point or dense with all, a KnnGraph, an AnnData "
    "with obsp['distances'], arrays (indices, distances) of shape (N, k) in any order, or the path of such a matrix "
    "(.npz, .npy, .zarr, .h5ad::obsp/distances) or of a zarr group or .npz with indices and distances"
)
LIST_REMEDY = (
    "Give distances as they were computed, and lists as the search returned them, each neighbour once with its distance"
)
DISTANCES = "distances"  # scanpy's, in `obsp`
LIST_ARRAYS = ("indices", "distances")
SYMMETRIC = 1e-2  # relative: libraries that expand squares in float32 lose so many digits of small distances
NEGLIGIBLE = 1e-4  # of the largest distance: below, no digit of these is left
# How far 1 - S of equal rows lies below zero, of the largest distance or of the 1, and in units of the precision; and
# what no rounding exceeds, of the largest distance.
ROUNDED_BELOW_ZERO, UNITS_BELOW_ZERO, MOST_BELOW_ZERO = 1e-6, 4, 0.1
QUANTISED = 0.25  # of the larger: what codes in the place of points typically change of a distance, at most
TYPICAL_DIFFERENCES = 10  # by directions: one so many times as large is an error and no rounding of points to codes
FEWEST_FOUND = 0.5  # of the longest list: lists are not shortened further for those that miss entries
NOT_FOUND = -1
# Of points.distances: what the values of lists are.
AUTO, AS_GIVEN, SQUARED, INNER_PRODUCT = "auto", "distances", "squared", "inner-product"
UNIT = 1e-2  # of rows that are to be at unit length: how far the square of that may be from one
# Triangles of neighbours whose longest side exceeds the sum of the others by more than codes of points explain, of the
# triangles in some lists: distances have none, squares many, unless points fill more than ten dimensions.
TRIED_LISTS, FEWEST_TRIANGLES, TOO_LONG, BROKEN = 300, 30, 1.1, 0.01
DISTANCE_BYTES = 2**24  # of the distances that are searched at once


class GivenTables(NamedTuple):
    """Indices (N, k) and distances (N, k) as they were given, and where they come from."""

    indices: np.ndarray
    distances: np.ndarray
    description: str


def open_lists(given: Any, form: str = AUTO) -> "NeighborLists | DistanceMatrix":
    """Return neighbour lists, or distances between all points, of any of `LIST_KINDS`; refuse unusable ones.

    `form` says what the values are: distances, squared, inner-product of rows at unit length, or auto.
    """
    found = read_lists(given, form)
    if not isinstance(found, GivenTables):
        return found
    check_tables(*found)
    form, remark = recognized(found) if form == AUTO else (form, "")
    return NeighborLists(*found, remark, form)


def recognized(given: GivenTables) -> tuple[str, str]:
    """Return the form of what lists hold, by the order of their values, and a remark; refuse what may be either."""
    indices, values, description = given
    known = ~is_not_found(indices)
    ordered = np.where(known, values, -np.inf)
    if (
        not (ordered[:, 1:] <= ordered[:, :-1]).all()
        or (ordered[:, :1] == np.where(known, values, ordered[:, :1])).all()
    ):
        return AUTO, ""
    own = values[known & (indices == np.arange(len(indices))[:, np.newaxis])]
    if 2 * len(own) > len(indices) and (np.abs(own - 1) <= UNIT).all() and ordered.max() <= 1 + UNIT:
        return INNER_PRODUCT, (
            f"values in {description} descend from one: they are used as inner products of rows at unit length; "
            "points.distances=inner-product says so, and points.distances=distances that they are none"
        )
    raise DataError(
        f"values in {description} descend along each list, as similarities do: set points.distances=inner-product "
        "where they are inner products of rows at unit length, points.distances=distances where the farthest is first"
    )


def open_graph(given: Any, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists (N, k) that accompany N points: indices int32, NOT_FOUND at the end, and distances of any form.

    A point itself, repeated neighbours and those that were not found are NOT_FOUND.

    Raises
    ------
    DataError
        For distances between all points, other numbers of points, and rows out of range.
    """
    found = read_lists(given)
    if isinstance(found, DistanceMatrix):
        raise DataError(
            f"graph takes the lists of the nearest neighbours of each point, got the distances between all points in "
            f"{found.description}: leave out the points, and give these with metric='precomputed'"
        )
    indices, distances, description = found.indices, found.distances, found.description
    check_tables(indices, distances, description)
    if len(indices) != n_points:
        raise DataError(
            f"graph must have a list for each of the {n_points} points, in their order, got those of {len(indices)} in "
            f"{description}"
        )
    known = ~is_not_found(indices)
    outside = np.any(known & ((indices < 0) | (indices >= n_points)), axis=1)
    refuse_rows({f"list rows outside [0, {n_points})": outside}, f"the neighbour lists in {description}", LIST_REMEDY)
    listed = np.where(known, indices.astype(np.int64), NOT_FOUND).astype(np.int32)
    themselves = listed == np.arange(n_points)[:, np.newaxis]
    listed[themselves] = NOT_FOUND
    places = np.argsort(listed, axis=1, kind="stable")
    ordered = np.take_along_axis(listed, places, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = NOT_FOUND
    np.put_along_axis(listed, places, ordered, axis=1)
    listed, distances = found_first(listed, distances.astype(np.float32))
    # Where most points list themselves, those that do not have one neighbour more, which the others would miss.
    width = indices.shape[1] - bool(np.count_nonzero(themselves) * 2 > n_points)
    if not (listed[:, :width] >= 0).any():
        raise DataError(f"the neighbour lists in {description} name no neighbour: search anew, or leave out graph")
    return listed[:, :width], distances[:, :width]


def found_first(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lists (N, k) with the entries that are NOT_FOUND behind the others."""
    order = np.argsort(indices < 0, axis=1, kind="stable")
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)


def read_lists(given: Any, form: str = AUTO) -> "NeighborLists | DistanceMatrix | GivenTables":
    """Return neighbour lists, or distances between all points, of any of `LIST_KINDS`; tables are not looked at yet."""
    if isinstance(given, NeighborLists | DistanceMatrix):
        return given
    given = take_pairwise(given, DISTANCES)
    if isinstance(given, str | Path):
        return open_stored_lists(str(given), form)
    if sparse.issparse(given) or hasattr(given, "__array__"):
        return lists_of(open_points(given), form)
    parts = given if isinstance(given, tuple | list) else [getattr(given, name, None) for name in LIST_ARRAYS]
    if len(parts) not in (2, 3) or any(part is None for part in parts[:2]):  # umap's third is its index for searches
        raise DataError(f"metric='precomputed' takes {LIST_KINDS}; got {type(given).__name__}")
    return GivenTables(*told_apart(*map(table_of_rows, parts[:2])), f"{type(given).__name__} in memory")


def table_of_rows(part: Any) -> np.ndarray:
    """Return an array, or a table of rows of different lengths, the shorter ones filled with NOT_FOUND."""
    try:
        return np.asarray(part)
    except ValueError:
        rows = [np.asarray(row) for row in part]
    if any(row.ndim != 1 for row in rows):
        raise DataError(f"metric='precomputed' takes {LIST_KINDS}; got a {type(part).__name__} of no rows of numbers")
    table = np.full((len(rows), max(map(len, rows))), NOT_FOUND, np.result_type(*rows))
    for filled, row in zip(table, rows, strict=True):
        filled[: len(row)] = row
    return table


def told_apart(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices, distances) of two tables (N, k) in either order, told apart by their values.

    Of two tables that both could be indices, those are that hold integers; of two such, what ascends is distances.
    """
    tests = (could_be_indices, lambda table: table.dtype.kind in "iu", lambda table: not ascends(table))
    answers = ((test(one), test(other)) for test in tests)
    indices, distances = (
        (one, other) if next((first for first, last in answers if first != last), True) else (other, one)
    )
    whole = indices.dtype.kind == "f" and could_be_indices(indices)
    return (indices.astype(np.int64) if whole else indices), distances


def could_be_indices(table: np.ndarray) -> bool:
    """Return whether a table (N, k) holds whole numbers of rows, none twice in a row but NOT_FOUND."""
    if table.ndim != 2 or table.dtype.kind not in "iuf" or not table.size:
        return False
    found = ~is_not_found(table)
    listed = table[found]
    if not ((listed >= 0) & (listed < len(table)) & (listed == np.rint(listed))).all():
        return False
    return not has_repeats(np.where(found, table.astype(np.int64), NOT_FOUND)).any()


def ascends(table: np.ndarray) -> bool:
    """Return whether the values of each row of a table (N, k) ascend."""
    return table.ndim == 2 and bool((table[:, 1:] >= table[:, :-1]).all())


def is_not_found(indices: np.ndarray) -> np.ndarray:
    """Return where indices are NOT_FOUND, or the largest number of their dtype, which cuVS writes for it."""
    largest = np.iinfo(indices.dtype).max if indices.dtype.kind in "iu" else NOT_FOUND
    return (indices == NOT_FOUND) | (indices == largest)


def has_repeats(indices: np.ndarray) -> np.ndarray:
    """Return which rows of indices (N, k) hold one twice, (N,) bool; NOT_FOUND may be."""
    ordered = np.sort(indices, axis=1)
    return ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOT_FOUND)).any(axis=1)


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


def lists_of(matrix: PointsSource, form: str) -> "NeighborLists | DistanceMatrix":
    """Return the lists in a sparse matrix of distances; a dense one holds all distances."""
    return lists_of_matrix(matrix, form) if isinstance(matrix, SparseRows) else DistanceMatrix(matrix, form)


def open_stored_lists(location: str, form: str) -> "NeighborLists | DistanceMatrix | GivenTables":
    """Return the lists at a path: those of a matrix, or arrays `indices` and `distances` of a zarr group or an .npz."""
    try:
        return lists_of(open_points(location), form)
    except (StoreError, ConfigError) as error:
        if "::" in location or not ("is a zarr group" in str(error) or location.endswith(".npz")):
            raise
    indices, distances = (open_points(f"{location}::{name}") for name in LIST_ARRAYS)
    table = indices.read(0, indices.shape[0])
    return GivenTables(table.astype(np.int64), distances.read(0, distances.shape[0]), location)


class NeighborLists(Source):
    """The k nearest neighbours of N points as rows (N, 2k) float64: their rows, then their ascending distances.

    Parameters
    ----------
    indices : (N, k) integers; -1, or the largest number of their dtype, for neighbours that a search did not find
    distances : (N, k)
    remark : a warning for users of the lists
    form : what `distances` are: distances, also where it is auto, their squares, or inner products of unit rows

    Raises
    ------
    DataError
        For rows out of range, repeated neighbours, points that are their own neighbours at a distance, distances that
        are negative, not finite or differ by direction, rows of different lengths, and lists half of which was not
        found.

    A point that lists itself first, or at a distance of nearly zero, is taken out. Where some points list themselves
    and others do not, or neighbours were not found, the farthest neighbours of longer lists are left out. Distances
    that lie below zero by rounding are zeros. Those from points to codes of others, which differ by direction
    throughout, are averaged over both. Squares are compared as such: their roots have fewer digits near zero.
    """

    def __init__(
        self, indices: np.ndarray, distances: np.ndarray, description: str, remark: str = "", form: str = AUTO
    ) -> None:
        check_tables(indices, distances, description)
        not_found = is_not_found(indices)
        if not_found.any():
            indices = np.where(not_found, NOT_FOUND, indices.astype(np.int64))
        themselves = indices == np.arange(len(indices))[:, np.newaxis]
        if form == INNER_PRODUCT:
            distances = squares_of_cosines(distances, ~not_found, themselves, description)
        rounding = rounding_of(distances, ~not_found, distances.dtype)
        distances = np.where(themselves & (distances <= rounding), 0, without_rounding(distances, rounding))
        check_lists(indices, distances, themselves, not_found, description)
        left_out = themselves | not_found
        listed = indices.shape[1] - left_out.sum(axis=1)
        told = check_found(listed, not_found, description)
        order = np.lexsort((indices, np.where(left_out, np.inf, distances)), axis=1)[:, : int(listed.min())]
        self.indices, self.distances, differing = agreed(
            np.take_along_axis(indices, order, axis=1),
            np.take_along_axis(distances, order, axis=1).astype(np.float64),
            description,
        )
        if form in (SQUARED, INNER_PRODUCT):
            self.distances = np.sqrt(self.distances)
        squared = remark_on_squares(self.indices, self.distances, description) if form == AUTO else ""
        self.remark = "; ".join(filter(None, (remark, told, differing, squared)))
        super().__init__((len(indices), 2 * self.n_neighbors), np.float64, description)

    @property
    def n_neighbors(self) -> int:
        """The neighbours a point, k."""
        return int(self.indices.shape[1])

    def nearest(self, n_neighbors: int) -> "NeighborLists":
        """Return the lists of fewer neighbours a point."""
        fewer = copy.copy(self)
        fewer.indices, fewer.distances = self.indices[:, :n_neighbors], self.distances[:, :n_neighbors]
        fewer.shape = (len(self.indices), 2 * fewer.n_neighbors)
        return fewer

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop): neighbours, then distances."""
        return np.concatenate([self.indices[start:stop], self.distances[start:stop]], axis=1)


def squares_of_cosines(cosines: np.ndarray, known: np.ndarray, themselves: np.ndarray, description: str) -> np.ndarray:
    """Return the squared distances (n, m) of unit rows of such inner products; refuse those of other rows.

    `known` (n, m) bool are entries that are looked at, `themselves` (n, m) those of a row with itself.
    """
    largest = float(np.max(cosines, initial=-np.inf, where=known))
    lengths = float(np.max(np.abs(cosines - 1), initial=0, where=themselves & known))
    if largest > 1 + UNIT or lengths > UNIT:
        raise DataError(
            f"inner products must be those of rows at unit length, at most 1 and of a row with itself 1: in "
            f"{description} they reach {largest:.3g}, and those of rows with themselves differ from 1 by up to "
            f"{lengths:.3g}. Divide rows by their lengths before the search, or give lists beside the points (graph=, "
            "--graph)"
        )
    return 2 - 2 * cosines


def remark_on_squares(indices: np.ndarray, distances: np.ndarray, description: str) -> str:
    """Return a remark on lists (N, k) that hold squares, by triangles of neighbours that no distances have; else ""."""
    places, n_triangles, n_broken = np.full(len(indices), -1), 0, 0
    for row in range(0, len(indices), -(-len(indices) // TRIED_LISTS)):
        listed = indices[row]
        places[listed] = np.arange(len(listed))
        found = places[indices[listed]]  # of the neighbours of neighbours, in the list of the row itself
        places[listed] = -1
        sides = np.stack(np.broadcast_arrays(distances[row][:, np.newaxis], distances[listed], distances[row][found]))
        sides = sides[:, found >= 0]
        n_triangles += sides.shape[1]
        n_broken += int(np.count_nonzero(sides.max(axis=0) * (1 + 1 / TOO_LONG) > sides.sum(axis=0)))
    if n_triangles < FEWEST_TRIANGLES or n_broken <= BROKEN * n_triangles:
        return ""
    return (
        f"{n_broken / n_triangles:.0%} of the triangles of neighbours in {description} have a side longer than the "
        "other two, as squared distances (of FAISS, hnswlib, usearch) and 1 - cosines have: points.distances=squared "
        "takes their roots, points.distances=distances takes them as they are, without this warning"
    )


def lists_of_matrix(rows: SparseRows, form: str = AUTO) -> NeighborLists:
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
    indices = np.full((len(counts), width), -1, np.int64)
    distances = np.full((len(counts), width), float(form == INNER_PRODUCT))
    indices[owners, places], distances[owners, places] = columns, values
    # Rows that list themselves are one longer than the others, whose last place then repeats them at distance zero.
    indices = np.where(indices < 0, np.arange(len(counts))[:, np.newaxis], indices)
    return NeighborLists(indices, distances, description, form=form)


def check_tables(indices: np.ndarray, distances: np.ndarray, description: str) -> None:
    """Refuse what are no two tables (N, k), of integers the first."""
    if indices.ndim != 2 or indices.shape != distances.shape or not indices.size:
        raise DataError(
            f"indices and distances of neighbours must be two tables (N, k) of one shape, got {indices.shape} and "
            f"{distances.shape} in {description}"
        )
    if indices.dtype.kind not in "iu":
        raise DataError(f"indices of neighbours must be integers, got {indices.dtype} in {description}")


def rounding_of(distances: np.ndarray, known: Any, computed_in: np.dtype) -> float:
    """Return by how much distances (n, m) of zero are rounded at most, where they are `known`, in a dtype."""
    with np.errstate(invalid="ignore"):
        largest = np.max(distances, initial=0, where=known & np.isfinite(distances))
    precision = np.finfo(computed_in).eps if computed_in.kind == "f" else 0.0
    rounding = max(ROUNDED_BELOW_ZERO, UNITS_BELOW_ZERO * precision) * max(largest, 1.0)
    return float(min(rounding, MOST_BELOW_ZERO * largest))


def without_rounding(distances: np.ndarray, slack: float) -> np.ndarray:
    """Return distances with zeros for those below zero by no more than rounding; the others as they are."""
    below = (distances < 0) & (distances >= -slack)
    return np.where(below, distances.dtype.type(0), distances) if below.any() else distances


def check_lists(
    indices: np.ndarray, distances: np.ndarray, themselves: np.ndarray, not_found: np.ndarray, description: str
) -> None:
    """Refuse lists (N, k) that no search returns; `themselves` and `not_found` (N, k) bool are entries that go."""
    n_points = len(indices)
    nearest = np.min(np.where(themselves | not_found, np.inf, distances), axis=1, keepdims=True)
    small = np.maximum(nearest, SYMMETRIC * np.max(distances, initial=0, where=~not_found))
    outside = ((indices < 0) & ~not_found) | (indices >= n_points)
    faults = {
        f"list rows outside [0, {n_points})": outside.any(axis=1),
        "have distances that are negative or not finite": (
            ~(np.isfinite(distances) & (distances >= 0)) & ~not_found
        ).any(axis=1),
        "list themselves at a distance above zero": (themselves & (distances > small)).any(axis=1),
        "list a neighbour twice": has_repeats(indices),
    }
    refuse_rows(faults, f"the neighbour lists in {description}", LIST_REMEDY)


def check_found(listed: np.ndarray, not_found: np.ndarray, description: str) -> str:
    """Return a remark on neighbours that a search did not find; refuse lists of which too few are left.

    Parameters
    ----------
    listed : (N,) the neighbours that each list has
    not_found : (N, k) bool
    """
    missed = not_found.sum(axis=1)
    if not missed.any():
        return ""
    least, most = int(listed.min()), int(listed.max())
    remedy = "search more cells (nprobe), or give these lists beside the points (graph=, --graph), which completes them"
    told = (
        f"{np.count_nonzero(missed)} rows of {description} have neighbours that the search did not find (-1), up to "
        f"{missed.max()} in a row"
    )
    if least < FEWEST_FOUND * most or least == 0:
        few = f"first rows {first_few(np.flatnonzero(listed < FEWEST_FOUND * most))}"
        raise DataError(
            f"{told}, so that lists of {most} would have {least}: {few}. Ask for fewer neighbours, {remedy}"
        )
    return f"{told}: of every list the nearest {least} are used; {remedy}"


def agreed(indices: np.ndarray, distances: np.ndarray, description: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Return lists (N, k) whose distances do not differ by direction, and a remark where they did.

    Distances from points to codes of others differ for most pairs, by a share of them: their means are taken. Rows of
    which single distances differ are refused.
    """
    there = graph_of(indices, distances + 1)  # so that a zero is an entry
    both = there.multiply(there.T > 0).tocsr()
    back = there.T.tocsr().multiply(there > 0).tocsr()
    both.sort_indices()
    back.sort_indices()
    larger = np.maximum(both.data, back.data)
    difference = np.abs(both.data - back.data)
    slack = SYMMETRIC * larger - SYMMETRIC + NEGLIGIBLE * distances.max()
    apart = difference > slack
    if not apart.any():
        return indices, distances, ""
    typical = float(np.median(difference))
    if typical <= QUANTISED * float(np.median(larger) - 1):
        apart &= difference > TYPICAL_DIFFERENCES * typical
    differing = np.bincount(np.repeat(np.arange(len(indices)), np.diff(both.indptr))[apart], minlength=len(indices)) > 0
    faults = {"are at another distance from a neighbour than it is from them": differing}
    refuse_rows(faults, f"the neighbour lists in {description}", LIST_REMEDY)
    there.sort_indices()
    means = (there + (back - both) * 0.5).tocsr()  # of all entries, in the order of their columns
    means.sort_indices()
    columns, values = means.indices.reshape(indices.shape).astype(indices.dtype), means.data.reshape(indices.shape) - 1
    order = np.lexsort((columns, values), axis=1)
    told = (
        f"distances in {description} differ by direction, as those to quantised points do, by up to "
        f"{difference.max():.3g}: the means of both directions are used"
    )
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1), told


def graph_of(indices: np.ndarray, values: np.ndarray) -> sparse.csr_array:
    """Return lists (N, k) as sparse rows (N, N), which share nothing with them: SciPy sorts columns in place."""
    bounds = np.arange(0, indices.size + 1, indices.shape[1])
    return sparse.csr_array((values.ravel(), indices.ravel(), bounds), (len(indices), len(indices)), copy=True)


class DistanceMatrix(Source):
    """The distances (N, N) between N points, zero between a point and itself.

    Parameters
    ----------
    distances : (N, N), read by rows
    form : what these are, as of `NeighborLists`

    Raises
    ------
    DataError
        For what is not square, and for rows that are too long.
    """

    def __init__(self, distances: PointsSource, form: str = AUTO) -> None:
        check_square(distances, "distances between all points", "give points with another metric than precomputed")
        whole = form in (SQUARED, INNER_PRODUCT) and distances.dtype.kind != "f"
        super().__init__(distances.shape, np.dtype(np.float64) if whole else distances.dtype, distances.description)
        check_limit("dense row", self.shape[1] * self.dtype.itemsize, f"a row of {self.description}")
        self.distances, self.form = distances, form
        self.given_dtype = getattr(distances, "given_dtype", self.dtype)

    @property
    def n_neighbors(self) -> int:
        """The neighbours a point: all others."""
        return self.shape[0] - 1

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the distances."""
        values = self.distances.read(start, stop)
        if self.form not in (SQUARED, INNER_PRODUCT):
            return values
        if self.form == INNER_PRODUCT:
            own = np.arange(start, stop)[:, np.newaxis] == np.arange(self.shape[0])
            values = squares_of_cosines(values, np.ones_like(own), own, self.description)
        squares = without_rounding(values, rounding_of(values, True, self.given_dtype))
        return np.where(squares < 0, squares, np.sqrt(np.abs(squares)))

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
        return NeighborLists(indices, distances, self.description, form=AUTO if self.form == AUTO else AS_GIVEN)

    def closest_pairs(self, lists: NeighborLists) -> Bridges | None:
        """Return the closest pairs that join the pieces of neighbour lists; None where these are connected.

        Each round reads the rows of all pieces but the largest, and leaves half as many pieces.
        """
        edges = graph_of(lists.indices, np.ones(lists.indices.shape, bool))
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
        own, rows = np.diagonal(block, start), np.arange(stop - start)
        faults = {"have a distance from the point to itself that is not zero": own > SYMMETRIC * block.max(axis=1)}
        block = block.copy()  # rows may be the user's own array
        for row in np.flatnonzero((block < 0).any(axis=1)):
            block[row] = without_rounding(block[row], rounding_of(block[row], True, self.given_dtype))
        faults["have negative distances"] = block.min(axis=1) < 0
        refuse_rows(faults, listed, LIST_REMEDY, start)
        block[rows, start + rows] = 0
        return block


def smallest(away: np.ndarray, row: int, n_smallest: int) -> np.ndarray:
    """Return the indices of the smallest distances (N,) of one row, ascending, ties by index, without its own."""
    bound = np.partition(away, n_smallest)[n_smallest]  # one more: its own is among the smallest, being zero
    near = np.flatnonzero(away <= bound)
    near = near[near != row]
    return near[np.argsort(away[near], kind="stable")][:n_smallest]


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
