"""Which rows of a table are equal, or lie in one cell of a grid: by a digest of each row, the same in any block."""

import hashlib
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.errors import DataError
from scalemani.kernels.rows.compressed import Points, PointsByRow, tiles

DIGEST_WORDS = 2  # of 64 bits: of 1e9 rows, two that differ have the same digest with probability 1e-21
# Of a row while rows are grouped: its digest, its place in the order of these, its first equal row by both orders, and
# whether it is the first. Sorting takes less than the two of these that come after it.
GROUPING_BYTES = 8 * (DIGEST_WORDS + 3) + 1


class EqualRows(NamedTuple):
    """The groups of equal rows, numbered by their first rows.

    Attributes
    ----------
    groups : (n,) int64, the group of each row
    first_rows : (m,) int64, the first row of each group, ascending
    """

    groups: np.ndarray
    first_rows: np.ndarray


def contents_of_rows(points: Points) -> Iterator[bytes]:
    """Yield bytes for each row of points (n, D), the same for equal rows alone; -0.0 is 0.0.

    Sparse rows hold no zeros, and their columns ascend.
    """
    if sp.issparse(points):
        columns = points.indices.astype(np.int64)  # whichever integers the rows that were read together have
        for start, stop in itertools.pairwise(points.indptr):
            yield columns[start:stop].tobytes() + points.data[start:stop].tobytes()
        return
    for row in points:
        yield (row + row.dtype.type(0)).tobytes()  # adding zero turns -0.0 into 0.0, which has other bytes


def digests_of_rows(points: Points) -> np.ndarray:
    """Return a digest (n, 2) uint64 of each row of points (n, D), the same for equal rows alone."""
    size = 8 * DIGEST_WORDS
    digests = b"".join(hashlib.blake2b(content, digest_size=size).digest() for content in contents_of_rows(points))
    return np.frombuffer(digests, np.uint64).reshape(-1, DIGEST_WORDS)


def group_digests(digests: np.ndarray) -> EqualRows:
    """Return the groups of rows of equal digests (n, 2), in GROUPING_BYTES a row with these."""
    first = first_of_equal_digests(digests)
    is_first = first == np.arange(len(first))
    numbers = np.cumsum(is_first)
    numbers -= 1
    groups = numbers[first]
    del numbers, first
    return EqualRows(groups, np.flatnonzero(is_first))


def first_of_equal_digests(digests: np.ndarray) -> np.ndarray:
    """Return the first row (n,) int64 with the digest of each row, of digests (n, 2)."""
    order = np.lexsort(digests.T)  # stable: equal digests stay in the order of their rows
    begins = np.ones(len(order), bool)
    begins[1:] = False
    for word in digests.T:
        ordered = word[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
        del ordered
    places = np.where(begins, np.arange(len(order)), 0)
    np.maximum.accumulate(places, out=places)  # where the group of each row begins in the order
    ordered_first = order[places]
    del places
    first = np.empty(len(order), np.int64)
    first[order] = ordered_first
    return first


def first_of_equal_rows(points: Points) -> np.ndarray:
    """Return the rows of `points` (n, D) whose coordinates no earlier row has, ascending: (m,) int64."""
    return group_digests(digests_of_rows(points)).first_rows


def equal_rows_among(points: PointsByRow, wanted: np.ndarray) -> np.ndarray:
    """Return the first of N points that equals each of wanted ones (L, D) float64, (L,) int64; -1 where none does."""
    numbers: dict[bytes, list[int]] = {}
    for number, content in enumerate(contents_of_rows(wanted)):
        numbers.setdefault(content, []).append(number)
    rows = np.full(len(wanted), -1)
    for start, tile in tiles(points):
        for row, content in enumerate(contents_of_rows(tile.astype(np.float64)), start):
            for number in numbers.pop(content, ()):
                rows[number] = row
        if not numbers:
            break
    return rows


def cells_of_rows(points: Points, tolerance: float) -> Points:
    """Return the cell of each of points (n, D) in a grid, in float64: rows in one cell are within a distance.

    Cells are cubes of side tolerance / sqrt(D), whose diagonal is the tolerance, and the origin is in the middle of
    one: cells of sparse rows are sparse. Of near rows, those to both sides of a border are in two cells.

    Raises
    ------
    DataError
        Where the coordinates of a cell are beyond float64.
    """
    side = tolerance / math.sqrt(points.shape[1])
    cells = points.astype(np.float64)
    values = cells.data if sp.issparse(cells) else cells
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        np.rint(np.divide(values, side, out=values), out=values)
    if not np.isfinite(values).all():
        raise DataError(
            f"duplicates.tolerance={tolerance:g} is too small for coordinates up to {abs(points).max():g}: raise it"
        )
    if sp.issparse(cells):
        cells.eliminate_zeros()
    return cells
