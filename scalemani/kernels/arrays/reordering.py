"""Rows brought to their places in a large array, a few places at a time.

Rows whose places lie all over an array in a mapped file touch a page each. So they first go to the part of the array
that they belong to, a stream for each part, and then to their places within it, in memory.
"""

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.arrays.workspace import Empty

PART_BYTES = 2**24  # of rows that are brought to their places in memory
LEAST_PART = 4096  # rows


def reordered(values: np.ndarray, places: np.ndarray, dtype: DTypeLike, empty: Empty = np.empty) -> np.ndarray:
    """Return an array (N, d) whose row `places[i]` is row i of the values.

    Parameters
    ----------
    values : (N, d) real, in memory or mapped.
    places : (N,) int, each of 0 to N - 1 once, in memory or mapped.
    dtype : of the array returned.
    empty : makes that array, and one of N row numbers; default `numpy.empty`, arrays of which are written in any order.
    """
    ordered = empty(values.shape, dtype)
    if empty is np.empty:
        for panel in panels(len(ordered)):
            ordered[places[panel]] = values[panel]
        return ordered
    size = max(LEAST_PART, PART_BYTES // max(1, ordered.itemsize * ordered.shape[1]))
    within = empty(places.shape, np.int32)
    _bring_to_parts(values, places, size, ordered, within)
    for part in slices(len(ordered), size):
        rows = np.empty_like(ordered[part])
        rows[within[part]] = ordered[part]
        ordered[part] = rows
    return ordered


def _bring_to_parts(values: np.ndarray, places: np.ndarray, size: int, ordered: np.ndarray, within: np.ndarray) -> None:
    """Write every row somewhere in the part of `size` rows that its place is in, and its place within that part.

    Parameters
    ----------
    values, places : those of `reordered`.
    size : rows of a part.
    ordered, within : (N, d) and (N,) int32, written.
    """
    n_parts = -(-len(ordered) // size)
    ends = size * np.arange(n_parts)  # of what each part has so far
    for panel in panels(len(ordered)):
        parts, inside = np.divmod(places[panel], size)
        rows = values[panel]
        order, offsets = group_by(parts, n_parts)
        for part in np.flatnonzero(np.diff(offsets)):
            chosen = order[offsets[part] : offsets[part + 1]]
            target = slice(ends[part], ends[part] + len(chosen))
            ordered[target], within[target] = rows[chosen], inside[chosen]
            ends[part] = target.stop
