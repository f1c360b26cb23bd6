"""Points sorted into the boxes of a regular grid, of which only the occupied ones are stored."""

from typing import NamedTuple

import numpy as np

from scalemani.errors import ConfigError
from scalemani.kernels.arrays.coordinates import extremes
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

    Returns
    -------
    (n, 2 reach + 1) int64, places among `others` of the keys moved by -reach, ..., reach boxes; -1 where there is none
    """
    positions = np.full((len(keys), 2 * reach + 1), -1)
    for step in range(2 * reach + 1):
        head = 0
        for i in range(len(keys)):
            wanted = keys[i] + (step - reach) * stride
            while head < len(others) and others[head] < wanted:
                head += 1
            if head < len(others) and others[head] == wanted:
                positions[i, step] = head
    return positions


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


KEY_BITS = 62
SPARSE_GRID = 4  # with more boxes than this many times the points, sorting the points beats counting them by box
AXES = 3  # points in the plane have a first coordinate of zero: one layer of boxes


class Grid(NamedTuple):
    """A grid of boxes. Every edge has `reaches` boxes to spare, so that no two boxes within reach share a key.

    Attributes
    ----------
    origin : (3,) its lowest corner.
    side : of a box.
    n_boxes : (3,) along each axis.
    reaches : (3,) how many boxes away a box is within reach, 0 along an axis that is not used.
    strides : (3,) of the key of box i, origin_key + sum_k strides_k i_k.
    origin_key : the key of the first box.
    """

    origin: np.ndarray
    side: float
    n_boxes: np.ndarray
    reaches: np.ndarray
    strides: np.ndarray
    origin_key: int


class Boxed(NamedTuple):
    """Points in the order of their boxes.

    Attributes
    ----------
    order : (N,) uint32, the row of the input that each point is.
    points : (N, d).
    keys : (n,) of the occupied boxes, ascending.
    starts : (n + 1,) box b holds points[starts[b]:starts[b + 1]].
    centers : (n, 3) of the boxes.
    """

    order: np.ndarray
    points: np.ndarray
    keys: np.ndarray
    starts: np.ndarray
    centers: np.ndarray


def grid_over(points: list[np.ndarray], side: float, reach: int) -> Grid:
    """Return the grid of boxes of a side over all the points (N, d), d <= 3; its middle is the middle of a box.

    A map smaller than a box then lies around the centre of its box, where expansions are at their best.

    Raises
    ------
    ConfigError
        More boxes than a key can number.
    """
    n_dims = points[0].shape[1]
    extents = [extremes(part) for part in points if len(part)]
    low, high = np.zeros(AXES), np.zeros(AXES)
    if extents:
        low[AXES - n_dims :] = np.min([extent[0] for extent in extents], axis=0)
        high[AXES - n_dims :] = np.max([extent[1] for extent in extents], axis=0)
    counts = 2.0 * np.ceil(np.maximum((high - low) / (2.0 * side) - 0.5, 0.0)) + 1.0
    reaches = np.where(np.arange(AXES) < AXES - n_dims, 0, reach)
    if not np.sum(np.log2(counts + 2.0 * reaches)) <= KEY_BITS:  # nor with coordinates that are not finite
        raise ConfigError(
            f"points that span {(high - low).max():.3g} make more than 2^{KEY_BITS} boxes of side {side:.3g}: "
            "take the method 'barnes-hut' or 'exact'"
        )
    n_boxes = counts.astype(np.int64)
    widths = n_boxes + 2 * reaches
    strides = np.array([widths[1] * widths[2], widths[2], 1])
    origin = 0.5 * (low + high) - 0.5 * side * counts
    return Grid(origin, side, n_boxes, reaches, strides, int((reaches * strides).sum()))


def sort_into_boxes(points: np.ndarray, grid: Grid) -> Boxed:
    """Return the points (N, d) in the order of their boxes; points of one box stay in the order of the input."""
    n_keys = int(((grid.n_boxes - 1) * grid.strides).sum()) + 1
    dense = n_keys <= SPARSE_GRID * len(points)
    box_of = np.empty(len(points), np.uint32 if dense else np.int64)
    _write_keys(points, grid, box_of)
    if dense:
        keys, starts, order, in_order = _count_sorted(points, box_of, n_keys)
    else:
        order = np.argsort(box_of, kind="stable").astype(np.uint32)
        keys, starts = np.unique(box_of[order], return_index=True)
        starts, in_order = np.append(starts, len(points)), points[order]
    layers, rest = np.divmod(keys + grid.origin_key, grid.strides[0])
    places = np.stack([layers, *np.divmod(rest, grid.strides[1])], axis=1) - grid.reaches
    return Boxed(order, in_order, keys + grid.origin_key, starts, grid.origin + grid.side * (places + 0.5))


@compiled
def _write_keys(points: np.ndarray, grid: Grid, keys: np.ndarray) -> None:
    """Write the keys counted from `grid.origin_key`."""
    n_dims = np.uint64(points.shape[1])
    keys[:] = 0
    for k in range(n_dims):
        axis = np.uint64(AXES) - n_dims + k
        origin, scale, last = grid.origin[axis], 1.0 / grid.side, float(grid.n_boxes[axis] - 1)
        stride = grid.strides[axis]
        for i in range(np.uint64(len(points))):
            place = max((points[i, k] - origin) * scale, 0.0)
            keys[i] += stride * np.int64(min(place, last))


@compiled
def _count_sorted(
    points: np.ndarray, box_of: np.ndarray, n_keys: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the occupied keys, where the points of each start, their order and they themselves: a counting sort."""
    n_points, n_dims = np.uint64(len(box_of)), np.uint64(points.shape[1])
    counts = np.zeros(n_keys, np.uint64)
    for i in range(n_points):
        counts[box_of[i]] += np.uint64(1)
    keys, starts, n_boxes, start = np.empty(n_keys, np.int64), np.empty(n_keys + 1, np.int64), 0, np.uint64(0)
    for key in range(n_keys):
        count = counts[key]
        counts[key] = start
        if count:
            keys[n_boxes], starts[n_boxes] = key, start
            n_boxes += 1
            start += count
    starts[n_boxes] = start
    order, in_order = np.empty(n_points, np.uint32), np.empty(points.shape)
    for i in range(n_points):
        place = counts[box_of[i]]
        counts[box_of[i]] = place + np.uint64(1)
        order[place] = i
        for k in range(n_dims):
            in_order[place, k] = points[i, k]
    return keys[:n_boxes].copy(), starts[: n_boxes + 1].copy(), order, in_order


@compiled
def largest_offset(boxed: Boxed) -> float:
    """Return the largest distance of a point to the centre of its box along an axis."""
    n_dims, largest = boxed.points.shape[1], 0.0
    for b in range(len(boxed.keys)):
        for i in range(boxed.starts[b], boxed.starts[b + 1]):
            for k in range(n_dims):
                largest = max(largest, abs(boxed.points[i, k] - boxed.centers[b, AXES - n_dims + k]))
    return largest
