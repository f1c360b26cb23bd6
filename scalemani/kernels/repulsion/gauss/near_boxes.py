"""Which boxes of a grid lie near others: their keys are integers that differ by a stride along each axis."""

import numpy as np

from scalemani.kernels.machine.compile import compiled


@compiled
def spread(keys: np.ndarray, stride: int, reach: int) -> np.ndarray:
    """Return the keys of all boxes up to `reach` boxes away along the axis of a stride, ascending, each once."""
    heads = np.zeros(2 * reach + 1, np.int64)
    spread_keys, n_spread = np.empty(len(keys) * (2 * reach + 1), np.int64), 0
    end = np.int64(2**63 - 1)
    while True:
        least = end
        for i in range(len(heads)):
            if heads[i] < len(keys):
                least = min(least, keys[heads[i]] + (i - reach) * stride)
        if least == end:
            return spread_keys[:n_spread].copy()
        spread_keys[n_spread] = least
        n_spread += 1
        for i in range(len(heads)):
            if heads[i] < len(keys) and keys[heads[i]] + (i - reach) * stride == least:
                heads[i] += 1


@compiled
def neighbors_along(keys: np.ndarray, others: np.ndarray, stride: int, reach: int) -> np.ndarray:
    """Return which boxes lie up to `reach` boxes away along one axis.

    Parameters
    ----------
    keys : (n,) int64, of boxes, ascending
    others : (m,) int64, of the boxes that are looked for, ascending
    stride : between the keys of boxes next to each other along the axis
    reach : in boxes

    Returns
    -------
    (n, 2 reach + 1) int64, places among `others` of the keys moved by -reach, ..., reach boxes; -1 where there is none
    """
    found = np.full((len(keys), 2 * reach + 1), -1)
    for step in range(2 * reach + 1):
        head = 0
        for i in range(len(keys)):
            wanted = keys[i] + (step - reach) * stride
            while head < len(others) and others[head] < wanted:
                head += 1
            if head < len(others) and others[head] == wanted:
                found[i, step] = head
    return found


@compiled
def near_ranges(
    keys: np.ndarray, others: np.ndarray, starts: np.ndarray, strides: np.ndarray, reaches: np.ndarray
) -> np.ndarray:
    """Return the ranges of points in the boxes around each of some boxes.

    A row of boxes along the last axis is one range of points.

    Parameters
    ----------
    keys : (n,) int64, of boxes, ascending
    others : (m,) int64, of the boxes that hold the points, ascending
    starts : (m + 1,) int64, the first point of each of these
    strides : (3,) int64, between the keys of boxes next to each other along each axis
    reaches : (3,) int64, in boxes along each axis

    Returns
    -------
    (n, (2 reaches_0 + 1) (2 reaches_1 + 1), 2) int64, first point and the one behind the last
    """
    ranges, row = np.empty((len(keys), (2 * reaches[0] + 1) * (2 * reaches[1] + 1), 2), np.int64), 0
    for layer in range(-reaches[0], reaches[0] + 1):
        for line in range(-reaches[1], reaches[1] + 1):
            move = layer * strides[0] + line * strides[1]
            first = np.searchsorted(others, keys[0] + move - reaches[2]) if len(keys) else 0
            stop = first
            for i in range(len(keys)):
                while first < len(others) and others[first] < keys[i] + move - reaches[2]:
                    first += 1
                while stop < len(others) and others[stop] <= keys[i] + move + reaches[2]:
                    stop += 1
                ranges[i, row, 0], ranges[i, row, 1] = starts[first], starts[stop]
            row += 1
    return ranges
