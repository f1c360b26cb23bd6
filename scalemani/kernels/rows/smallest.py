"""The smallest of a stream of values: held in a short sorted list, or in a pool that is cut when it is full."""

import numpy as np

from scalemani.kernels.machine.compile import compiled, inlined_sums
from scalemani.kernels.machine.instructions import ITEM_BYTES, LANES_AT_ONCE, by_one_instruction, compress_lanes

MOST_HALVINGS = 24  # as many as float32 has digits: values that are still together then are ties
BY_ONE_INSTRUCTION = by_one_instruction()
SMALLEST, LARGEST = np.finfo(np.float32).tiny, np.finfo(np.float32).max  # what is missing is infinitely far
POOL_MARGIN = LANES_AT_ONCE  # room that a pool needs behind its values
_1 = np.uint64(1)


@compiled
def insert_neighbor(indices: np.ndarray, distances: np.ndarray, query: int, index: int, distance: float) -> None:
    """Insert an index into the list of a query, ascending by (distance, index), and drop the last.

    Parameters
    ----------
    indices, distances : (n, k) int and float, the lists; changed in place
    index, distance : what is inserted if it belongs to the k least, rounded to the dtypes of the lists
    """
    i, column = np.uint64(query), np.uint64(distances.shape[1] - 1)
    if distance > distances[i, column] or (distance == distances[i, column] and index >= indices[i, column]):
        return
    while column > np.uint64(0) and (
        distances[i, column - _1] > distance
        or (distances[i, column - _1] == distance and indices[i, column - _1] > index)
    ):
        distances[i, column] = distances[i, column - _1]
        indices[i, column] = indices[i, column - _1]
        column -= _1
    distances[i, column] = distance
    indices[i, column] = index


@compiled
def keep_smallest(
    values: np.ndarray, labels: np.ndarray, query: int, n_values: int, highest: float, most: int
) -> tuple[int, float]:
    """Move the smallest values of a query's pool to its front: four fifths to all of `most`.

    Bisection by counting, since counts vectorise and a quickselect mispredicts half of its branches. Ties that cannot
    be parted are cut in order.

    Parameters
    ----------
    values : (n, capacity) float32, C-contiguous, not negative; changed in place
    labels : (n, capacity) int32, C-contiguous, which move with the values
    n_values : in the pool, from `most` to capacity - POOL_MARGIN
    highest : no value is above it; it may be infinite

    Returns
    -------
    n_retained : int
    bound : float32; no value that is retained is above it, none that is dropped below it
    """
    least = most - most // 5
    low, high = np.float32(0.0), np.float32(highest)
    if not np.isfinite(high):
        high = max(_mean(values, query, n_values), SMALLEST)
        while _count_within(values, query, n_values, high) < least:
            low, high = high, np.float32(2.0) * high
    high = bound_within(values, query, n_values, low, high, least, most)
    values[query, n_values : n_values + POOL_MARGIN] = np.inf
    n_retained, first = 0, query * values.shape[1]
    values_at, labels_at = values.ctypes.data + ITEM_BYTES * first, labels.ctypes.data + ITEM_BYTES * first
    for j in range(0, n_values, LANES_AT_ONCE):
        n_retained += compress_lanes(
            values_at + ITEM_BYTES * j,
            labels_at + ITEM_BYTES * j,
            min(high, LARGEST),
            values_at + ITEM_BYTES * n_retained,
            labels_at + ITEM_BYTES * n_retained,
        )
    return min(n_retained, most), high


@compiled
def bound_within(
    values: np.ndarray, query: int, n_values: int, low: np.float32, high: np.float32, least: int, most: int
) -> np.float32:
    """Return a bound that `least` to `most` of a query's values are not above; more, where ties cannot be parted.

    Parameters
    ----------
    values : (n, capacity) float32, C-contiguous
    low, high : float32; fewer than `least` are within `low`, at least so many within `high`
    """
    halvings, nothing = 0, np.float32(0.0)
    # Where a few values are far above all others, the way down to these does not count, unless these are ties of zero.
    while halvings < MOST_HALVINGS or (
        low == nothing and high > SMALLEST and _count_within(values, query, n_values, nothing) < least
    ):
        middle = np.float32(0.5) * (low + high)
        count = _count_within(values, query, n_values, middle)
        halvings += 1
        if count < least:
            if halvings > MOST_HALVINGS and low == nothing:
                halvings = 0
            low = middle
        else:
            high = middle
            if count <= most:
                break
    return high


@compiled
def append_within(
    offered: np.ndarray, row: int, bound: float, numbers: np.ndarray, values: np.ndarray, labels: np.ndarray, first: int
) -> int:
    """Append the values of a row that are not above a bound, and their numbers, to a pool.

    Parameters
    ----------
    offered : (n, m) float32, C-contiguous, m a multiple of 16
    row : of `offered`
    bound : largest value to take; nothing infinite is taken
    numbers : (m,) int32, C-contiguous, of the offered values
    values, labels : the pools, float32 and int32 of one shape, C-contiguous; changed in place. POOL_MARGIN entries
        behind those that are appended may be overwritten
    first : entry of the pools, counted over all their rows, from which on values are appended

    Returns
    -------
    int, how many are appended
    """
    limit = min(np.float32(bound), LARGEST)
    # Lanes that are moved one by one cost less than counting them first.
    if BY_ONE_INSTRUCTION and _count_within(offered, row, offered.shape[1], limit) == 0:
        return 0
    offered_at, appended = offered.ctypes.data + row * offered.strides[0], 0
    values_at, labels_at = values.ctypes.data + ITEM_BYTES * first, labels.ctypes.data + ITEM_BYTES * first
    for j in range(0, offered.shape[1], LANES_AT_ONCE):
        appended += compress_lanes(
            offered_at + ITEM_BYTES * j,
            numbers.ctypes.data + ITEM_BYTES * j,
            limit,
            values_at + ITEM_BYTES * appended,
            labels_at + ITEM_BYTES * appended,
        )
    return appended


@compiled
def _count_within(values: np.ndarray, query: int, n_values: int, bound: float) -> int:
    i, count = np.uint64(query), np.int32(0)
    for j in range(np.uint64(n_values)):
        count += np.int32(values[i, j] <= bound)
    return np.int64(count)


@inlined_sums
def _mean(values: np.ndarray, query: int, n_values: int) -> np.float32:
    i, total = np.uint64(query), np.float32(0.0)
    for j in range(np.uint64(n_values)):
        total += values[i, j]
    return total / np.float32(n_values)
