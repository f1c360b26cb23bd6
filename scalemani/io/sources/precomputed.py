"""Precomputed neighbour lists and distances between all points, of every kind that is read.

Each input becomes a table of neighbours (N, k) with the values that came with them, or a matrix of all distances,
which gives such tables. `NeighborLists` makes lists of distances of a table, and refuses what are none.
"""

import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from scalemani.config.limits import check_limit
from scalemani.config.validation import check_finite_block, check_squares
from scalemani.errors import ConfigError, DataError, DimensionsError, StoreError, warn
from scalemani.io.sources.base import PointsSource, Source
from scalemani.io.sources.neighbor_tables import (
    AS_DISTANCES,
    AUTO,
    INNER_PRODUCT,
    LIST_KINDS,
    LIST_REMEDY,
    NO_NEIGHBOR,
    SQUARED,
    NeighborTable,
    check_square,
    has_repeats,
    indices_first,
    refuse_rows,
    rows_of_one_length,
    table_of_matrix,
)
from scalemani.io.sources.opening import open_points
from scalemani.io.sources.sliced import SparseRows
from scalemani.io.sources.stores import is_anndata
from scalemani.kernels.graph.components import Bridges, Ends, boruvka_round

MATRIX_REMEDY = (
    "Give distances as they were computed; similarities are affinities (affinities.kind=precomputed), or inner "
    "products of rows at unit length (points.distances=inner-product)"
)
KEYS_REMEDY = (
    "If these are keys that vectors were added with (ids of hnswlib, keys of usearch, IndexIDMap of FAISS), map them "
    "to rows: order = numpy.argsort(keys); indices = order[numpy.searchsorted(keys, indices, sorter=order)]"
)
DISTANCES = "distances"  # scanpy's, in `obsp`
LIST_ARRAYS = ("indices", "distances")
SYMMETRIC = 1e-2  # relative: libraries that expand squares in float32 lose so many digits of small distances
NEGLIGIBLE = 1e-4  # of the largest distance: below, no digit of these is left
# How far 1 - S of equal rows lies below zero, of the largest distance or of the 1, and in units of the precision; and
# what no rounding exceeds, of the largest distance.
ROUNDED_BELOW_ZERO, UNITS_BELOW_ZERO, MOST_BELOW_ZERO = 1e-6, 4, 0.1
QUANTISED = 0.25  # of the larger: how much codes instead of points typically change a distance, at most
TYPICAL_DIFFERENCES = 10  # by directions: one so many times as large is an error and no rounding of points to codes
FEWEST_LISTED = 0.5  # of the longest list: lists are not shortened further for those that miss entries
ROOTED = (SQUARED, INNER_PRODUCT)  # compared as squares, whose roots have fewer digits near zero
UNIT = 1e-2  # of rows that are to be at unit length: how far the square of that may be from one
# Triangles of neighbours whose longest side exceeds the sum of the others by more than codes of points explain, of the
# triangles in some lists: distances have none, squares many, unless points fill more than ten dimensions.
TRIED_LISTS, FEWEST_TRIANGLES, TOO_LONG, BROKEN = 300, 30, 1.1, 0.01
DISTANCE_BYTES = 2**24  # of the distances that are searched at once


def open_lists(neighbors: Any, form: str = AUTO) -> "NeighborLists | DistanceMatrix":
    """Return neighbour lists, or distances between all points, of any of `LIST_KINDS`; refuse unusable ones.

    `form` says what the values are: distances, squared, inner-product of rows at unit length, or auto.
    """
    lists = read_lists(neighbors, form)
    if not isinstance(lists, NeighborTable):
        return lists
    form, remark = recognized(lists) if form == AUTO else (form, "")
    return NeighborLists(lists, form, remark)


def recognized(table: NeighborTable) -> tuple[str, str]:
    """Return the form of the values of a table, by their order, and a remark; refuse what may be either."""
    known = table.indices != NO_NEIGHBOR
    ordered = np.where(known, table.values, -np.inf)
    value, before = ordered[:, 1:], ordered[:, :-1]
    if not (value <= before).all() or not (value < before)[known[:, 1:]].any():
        return AUTO, ""
    to_itself = table.values[table.themselves]
    if 2 * len(to_itself) > len(ordered) and (np.abs(to_itself - 1) <= UNIT).all() and ordered.max() <= 1 + UNIT:
        return INNER_PRODUCT, (
            f"values in {table.description} descend from one: they are used as inner products of rows at unit length; "
            "points.distances=inner-product says so, and points.distances=distances that they are none"
        )
    raise DataError(
        f"values in {table.description} descend along each list, as similarities do: set points.distances="
        "inner-product where they are inner products of rows at unit length, points.distances=distances where the "
        "farthest is first"
    )


def open_graph(neighbors: Any, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists (N, k) that accompany N points: indices int32, NO_NEIGHBOR at the end, and distances of any form.

    A point itself, repeated and missing neighbours are NO_NEIGHBOR.

    Raises
    ------
    DataError
        For distances between all points, other numbers of points, and rows out of range.
    """
    table = read_lists(neighbors)
    if isinstance(table, DistanceMatrix):
        raise DataError(
            f"graph takes the lists of the nearest neighbours of each point, got the distances between all points in "
            f"{table.description}: leave out the points, and give these with metric='precomputed'"
        )
    if isinstance(table, NeighborLists):
        if table.shortened:
            warn(table.shortened)
        table = NeighborTable(table.indices, table.distances, table.description)
    if len(table.indices) != n_points:
        raise DataError(
            f"graph must have a list for each of the {n_points} points, in their order, got those of "
            f"{len(table.indices)} in {table.description}"
        )
    where = f"the neighbour lists in {table.description}"
    refuse_rows({f"list rows outside [0, {n_points})": table.outside}, where, KEYS_REMEDY)
    indices = np.where(table.themselves, NO_NEIGHBOR, table.indices).astype(np.int32)
    places = np.argsort(indices, axis=1, kind="stable")
    ordered = np.take_along_axis(indices, places, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = NO_NEIGHBOR
    np.put_along_axis(indices, places, ordered, axis=1)
    indices, distances = missing_last(indices, table.values.astype(np.float32))
    # Where most points list themselves, those that do not have one neighbour more, which the others would miss.
    width = indices.shape[1] - bool(np.count_nonzero(table.themselves) * 2 > n_points)
    if not (indices[:, :width] >= 0).any():
        raise DataError(f"{where} name no neighbour: search anew, or leave out graph")
    return indices[:, :width], distances[:, :width]


def missing_last(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lists (N, k) with the entries that are NO_NEIGHBOR behind the others."""
    order = np.argsort(indices < 0, axis=1, kind="stable")
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)


def read_lists(lists: Any, form: str = AUTO) -> "NeighborLists | DistanceMatrix | NeighborTable":
    """Return neighbour lists, or distances between all points, of any of `LIST_KINDS`; values of tables as they are."""
    if isinstance(lists, NeighborLists | DistanceMatrix):
        return lists
    lists = take_pairwise(lists, DISTANCES)
    if isinstance(lists, str | Path):
        with as_pairwise_errors("distances", lists):
            source = open_stored_lists(str(lists))
    elif sparse.issparse(lists) or hasattr(lists, "__array__"):
        with as_pairwise_errors("distances", lists):
            source = open_points(lists)
    else:
        parts = lists if isinstance(lists, tuple | list) else [getattr(lists, name, None) for name in LIST_ARRAYS]
        if len(parts) not in (2, 3) or any(part is None for part in parts[:2]):  # umap's third is its search index
            raise DataError(f"metric='precomputed' takes {LIST_KINDS}; got {type(lists).__name__}")
        pair = indices_first(*map(rows_of_one_length, parts[:2]))
        source = NeighborTable.of(*pair, f"{type(lists).__name__} in memory")
    if isinstance(source, SparseRows):
        return NeighborLists(table_of_matrix(source, form), form)
    return DistanceMatrix(source, form) if isinstance(source, PointsSource) else source


def open_stored_lists(location: str) -> PointsSource | NeighborTable:
    """Return the matrix at a path, or the table of the arrays `indices` and `distances` of a zarr group or an .npz."""
    try:
        return open_points(location)
    except (StoreError, ConfigError):
        if "::" in location:
            raise
    sources = [open_points(f"{location}::{name}") for name in LIST_ARRAYS]
    indices, distances = (source.read(0, source.shape[0]) for source in sources)
    return NeighborTable.of(indices.astype(np.int64), distances, location)  # readers of points make floats of them


@contextlib.contextmanager
def as_pairwise_errors(what: str, pairwise: Any) -> Iterator[None]:
    """Say of an array that is no table, passed for values between points, how to pass these."""
    try:
        yield
    except DimensionsError as error:
        where = pairwise if isinstance(pairwise, str | Path) else f"of shape {np.shape(pairwise)}"
        raise DataError(
            f"{what} between points must be a matrix (N, N), got an array {where} that is no table: those of pairs one "
            "after another, as SciPy's pdist gives them, become one by scipy.spatial.distance.squareform, and stacked "
            "arrays are passed as a tuple (indices, distances)"
        ) from error


def take_pairwise(container: Any, name: str) -> Any:
    """Return the matrix `obsp[name]` of an AnnData, or its location; anything else as it is."""
    if isinstance(container, str | Path):
        location = str(container)
        annotated = "::" not in location and (location.lower().endswith(".h5ad") or is_anndata(location))
        return f"{location}::obsp/{name}" if annotated else container
    if not (hasattr(container, "obsp") and hasattr(container, "obs_names")):
        return container
    if name not in container.obsp:
        raise DataError(
            f"{type(container).__name__} has no obsp[{name!r}], got {', '.join(container.obsp) or 'nothing'}: find the "
            "neighbours first, or give points, with neither metric nor affinity precomputed"
        )
    return container.obsp[name]


class NeighborLists(Source):
    """The k nearest neighbours of N points as rows (N, 2k) float64: their rows, then their ascending distances.

    Parameters
    ----------
    table : the neighbours of each point in any order, with their distances, or with what `form` says
    form : what the values are: distances, also where it is auto, their squares, or inner products of unit rows
    remark : a warning for users of the lists

    Raises
    ------
    DataError
        For rows out of range, repeated neighbours, points that list themselves at a distance, distances that are
        negative, not finite or differ by direction, and lists half of which is missing.

    A point that lists itself first, or at a distance of nearly zero, is taken out. Where some points list themselves
    and others do not, or neighbours are missing, the farthest neighbours of longer lists are left out. Distances
    that lie below zero by rounding are zeros. Those from points to codes of others, which differ by direction
    throughout, are averaged over both. Squares are compared as such: their roots have fewer digits near zero.
    """

    def __init__(self, table: NeighborTable, form: str = AUTO, remark: str = "") -> None:
        indices, distances, description, self.shortened = table
        missing, themselves = indices == NO_NEIGHBOR, table.themselves
        if form == INNER_PRODUCT:
            distances = squares_of_cosines(distances, ~missing, themselves, description)
        rounding = rounding_of(distances, distances.dtype, ~missing)
        distances = np.where(themselves & (distances <= rounding), 0, without_rounding(distances, rounding))
        others = np.where(themselves | missing, np.inf, distances)
        negligible = SYMMETRIC * np.max(distances, initial=0, where=~missing)
        small = np.maximum(others.min(axis=1, keepdims=True), negligible)
        wrong = ~((distances >= 0) & (distances < np.inf) | missing)
        where, listed = f"the neighbour lists in {description}", np.isfinite(others).sum(axis=1)
        refuse_rows({f"list rows outside [0, {len(indices)})": table.outside}, where, KEYS_REMEDY)
        faults = {
            "have distances that are negative or not finite": wrong.any(axis=1),
            "list themselves at a distance above zero": (themselves & (distances > small)).any(axis=1),
            "list a neighbour twice": has_repeats(indices),
        }
        refuse_rows(faults, where, LIST_REMEDY)
        missing_remark = check_missing(listed, missing, description)
        refuse_rows({"list no other point": listed == 0}, where, LIST_REMEDY)
        order = np.lexsort((indices, others), axis=1)[:, : int(listed.min())]
        self.indices, self.distances, differing = agreed(
            np.take_along_axis(indices, order, axis=1),
            np.take_along_axis(others, order, axis=1).astype(np.float64),
            description,
        )
        if form in ROOTED:
            self.distances = np.sqrt(self.distances)
        check_squares(float(self.distances.max(initial=0)), f"distances in {description}")
        squared = remark_on_squares(self.indices, self.distances, description) if form == AUTO else ""
        self.remark = "; ".join(filter(None, (remark, self.shortened, missing_remark, differing, squared)))
        super().__init__((len(indices), 2 * self.n_neighbors), np.float64, description)

    @property
    def n_neighbors(self) -> int:
        """How many neighbours each list has, k, without the point itself."""
        return int(self.indices.shape[1])

    def nearest(self, n_neighbors: int) -> "NeighborLists":
        """Return the lists of the nearest `n_neighbors` of each point, views of these."""
        fewer = copy.copy(self)
        fewer.indices, fewer.distances = (part[:, :n_neighbors] for part in (self.indices, self.distances))
        fewer.shape = (len(self.indices), 2 * fewer.n_neighbors)
        return fewer

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop): neighbours, then distances."""
        return np.concatenate([self.indices[start:stop], self.distances[start:stop]], axis=1)


def squares_of_cosines(cosines: np.ndarray, known: Any, themselves: np.ndarray, description: str) -> np.ndarray:
    """Return the squared distances (n, m) of unit rows of such inner products; refuse those of other rows.

    `known` (n, m) bool are the entries that there are, `themselves` (n, m) those of a row with itself.
    """
    largest = float(np.max(cosines, initial=-np.inf, where=known))
    lengths = float(np.max(np.abs(cosines - 1), initial=0, where=themselves))
    if largest > 1 + UNIT or lengths > UNIT:
        raise DataError(
            f"inner products must be those of rows at unit length, at most 1 and of a row with itself 1: in "
            f"{description} they reach {largest:.3g}, and those of rows with themselves differ from 1 by up to "
            f"{lengths:.3g}. Divide rows by their lengths before the search, or pass lists with the points (graph=, "
            "--graph)"
        )
    return 2 - 2 * cosines


def remark_on_squares(indices: np.ndarray, distances: np.ndarray, description: str) -> str:
    """Return a remark on lists (N, k) that hold squares, by triangles of neighbours that no distances have; else ""."""
    places, n_triangles, n_broken = np.full(len(indices), -1), 0, 0
    tried = slice(None, None, -(-len(indices) // TRIED_LISTS))
    for listed, away in zip(indices[tried], distances[tried], strict=True):
        places[listed] = np.arange(len(listed))
        place = places[indices[listed]]  # of the neighbours of neighbours, in the same list
        places[listed] = -1
        sides = np.stack(np.broadcast_arrays(away[:, np.newaxis], distances[listed], away[place]))[:, place >= 0]
        n_triangles += sides.shape[1]
        n_broken += int(np.count_nonzero(sides.max(axis=0) * (1 + 1 / TOO_LONG) > sides.sum(axis=0)))
    if n_triangles < FEWEST_TRIANGLES or n_broken <= BROKEN * n_triangles:
        return ""
    return (
        f"{n_broken / n_triangles:.0%} of the triangles of neighbours in {description} have a side longer than the "
        "other two, as squared distances (of FAISS, hnswlib, usearch) and 1 - cosines have: points.distances=squared "
        "takes their roots, points.distances=distances takes them as they are, without this warning"
    )


def rounding_of(distances: np.ndarray, computed_in: np.dtype, known: Any = True) -> float:
    """Return by how much distances (n, m) of zero are rounded at most, where they are `known`, in a dtype."""
    largest = np.max(distances, initial=0, where=known & np.isfinite(distances))
    precision = np.finfo(computed_in).eps if computed_in.kind == "f" else 0.0
    rounding = max(ROUNDED_BELOW_ZERO, UNITS_BELOW_ZERO * precision) * max(largest, 1.0)
    return float(min(rounding, MOST_BELOW_ZERO * largest))


def without_rounding(distances: np.ndarray, slack: Any) -> np.ndarray:
    """Return distances with zeros for those below zero by no more than rounding; the others as they are."""
    below = (distances < 0) & (distances >= -slack)
    return np.where(below, distances.dtype.type(0), distances) if below.any() else distances


def check_missing(listed: np.ndarray, missing: np.ndarray, description: str) -> str:
    """Return a remark on neighbours that a search did not find; refuse lists of which too few are left.

    Parameters
    ----------
    listed : (N,) the neighbours that each list has
    missing : (N, k) bool
    """
    counts = missing.sum(axis=1)
    if not counts.any():
        return ""
    least, most = int(listed.min()), int(listed.max())
    fault = f"have neighbours that the search did not find (-1), up to {counts.max()} in a row"
    remedy = "search more cells (nprobe), or pass these lists with the points (graph=, --graph), which completes them"
    too_few = {f"{fault}, so that lists of {most} would have {least}": listed < max(FEWEST_LISTED * most, 1)}
    refuse_rows(too_few, description, f"Ask for fewer neighbours, {remedy}")
    n_rows = np.count_nonzero(counts)
    return f"{n_rows} rows of {description} {fault}: of every list the nearest {least} are used; {remedy}"


def agreed(indices: np.ndarray, distances: np.ndarray, description: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Return lists (N, k) whose distances do not differ by direction, and a remark where they did.

    Distances from points to codes of others differ for most pairs, by a share of them: their means are taken. Rows of
    which single distances differ are refused.
    """
    back = of_other_direction(indices, distances)
    difference, larger = np.abs(distances - back), np.maximum(distances, back)
    apart = difference > SYMMETRIC * larger + NEGLIGIBLE * distances.max()
    if not apart.any():
        return indices, distances, ""
    typical = np.nanmedian(difference)
    if typical <= QUANTISED * np.nanmedian(larger):
        apart &= difference > TYPICAL_DIFFERENCES * typical
    faults = {"are at another distance from a neighbour than it is from them": apart.any(axis=1)}
    refuse_rows(faults, f"the neighbour lists in {description}", LIST_REMEDY)
    means = np.where(np.isnan(back), distances, (distances + back) / 2)
    order = np.lexsort((indices, means), axis=1)
    remark = (
        f"distances in {description} differ by direction, as those to quantised points do, by up to "
        f"{np.nanmax(difference):.3g}: the means of both directions are used"
    )
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(means, order, axis=1), remark


def of_other_direction(indices: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Return the distances (N, k) that neighbours list of the points which list them, NaN for those that do not."""
    entries = graph_of(indices, np.arange(1, indices.size + 1))  # by numbers from one on: zeros are no entries
    mutual = entries.multiply(entries.T > 0).tocsr()
    mutual.sort_indices()
    back = np.full(indices.size, np.nan)
    back[mutual.data - 1] = distances.ravel()[mutual.T.tocsr().data - 1]
    return back.reshape(indices.shape)


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
        whole = form in ROOTED and distances.dtype.kind != "f"  # NumPy takes the roots of short integers in float16
        super().__init__(distances.shape, np.float64 if whole else distances.dtype, distances.description)
        check_limit("dense row", self.shape[1] * self.dtype.itemsize, f"a row of {self.description}")
        self.distances, self.form, self.block_bytes = distances, form, DISTANCE_BYTES
        self.input_dtype = getattr(distances, "input_dtype", self.dtype)

    @property
    def n_neighbors(self) -> int:
        """How many neighbours each point has: all others, N - 1."""
        return self.shape[0] - 1

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the matrix that was passed."""
        return self.distances.read(start, stop)

    def nearest(self, n_neighbors: int) -> NeighborLists:
        """Return the lists of the nearest neighbours of every point, ties by index; refuse distances that are none."""
        points, lists = np.arange(self.shape[0]), []
        for _, block in self._apart(points, points):
            for away in block:
                near = np.flatnonzero(away <= np.partition(away, n_neighbors - 1)[n_neighbors - 1])
                listed = near[np.argsort(away[near], kind="stable")][:n_neighbors]
                lists.append((listed, away[listed]))
        indices, distances = map(np.array, zip(*lists, strict=True))
        table = NeighborTable(indices, distances, self.description)
        return NeighborLists(table, AUTO if self.form == AUTO else AS_DISTANCES)

    def closest_pairs(self, lists: NeighborLists) -> Bridges | None:
        """Return the closest pairs that join the pieces of neighbour lists; None where these are connected.

        Each round reads the rows of all pieces but the largest, and leaves half as many pieces.
        """
        edges = graph_of(lists.indices, np.ones(lists.indices.shape, bool))
        (_, labels), rounds = connected_components(edges, directed=False), []
        while labels.any():
            queries = np.flatnonzero(labels != np.argmax(np.bincount(labels)))
            nearest, away = np.empty(len(labels), np.int64), np.empty(len(labels))
            for rows, block in self._apart(queries, labels):
                nearest[rows], away[rows] = block.argmin(axis=1), block.min(axis=1)
            ends = Ends(queries, labels[queries]), Ends(nearest[queries], labels[nearest[queries]])
            bridges, numbers = boruvka_round(int(labels.max()) + 1, *ends, away[queries])
            labels = numbers[labels]
            rounds.append(bridges)
        return Bridges(*map(np.concatenate, zip(*rounds, strict=True))) if rounds else None

    def _apart(self, rows: np.ndarray, labels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield some rows, ascending, and their distances (n, N), infinite to points of one label.

        Values of a block that are no distances are refused, for any requested rows of it.
        """
        n_points = self.shape[0]
        step = max(1, self.block_bytes // (n_points * self.dtype.itemsize))
        for start in range(0, n_points, step):
            some = rows[slice(*np.searchsorted(rows, (start, start + step)))]
            if not len(some):
                continue
            block = self.read(start, min(start + step, n_points))
            check_finite_block(block, start, f"distances in {self.description}")
            if self.form == INNER_PRODUCT:
                block = squares_of_cosines(
                    block, True, np.eye(len(block), n_points, start, dtype=bool), self.description
                )
            if block.min() < 0:
                block = np.array([without_rounding(row, rounding_of(row, self.input_dtype)) for row in block])
            slack = SYMMETRIC**2 if self.form in ROOTED else SYMMETRIC
            faults = {
                "have a distance from the point to itself that is not zero": (
                    np.diagonal(block, start) > slack * block.max(axis=1)
                ),
                "have negative distances": block.min(axis=1) < 0,
            }
            refuse_rows(faults, f"the distances in {self.description}", MATRIX_REMEDY, start)
            if self.form in ROOTED:
                block = np.sqrt(block)
            yield some, np.where(labels[some, np.newaxis] == labels, np.inf, block[some - start])
