"""Keep the smallest of a stream of values: in a short sorted list, or in a pool that is cut when it is full."""

import numpy as np

from scalemani.kernels.machine.compile import compiled, compiled_sums
from scalemani.kernels.machine.lane_instructions import ITEM_BYTES, LANES_AT_ONCE, compress_lanes

MOST_HALVINGS = 24  # as many as float32 has digits: values that are still together then are ties
SMALLEST, LARGEST = np.finfo(np.float32).tiny, np.finfo(np.float32).max  # what is missing is infinitely far
POOL_MARGIN = LANES_AT_ONCE  # room that a pool needs behind what it holds
_1 = np.uint64(1)


@compiled
def insert_neighbor(indices: np.ndarray, distances: np.ndarray, query: int, index: int, distance: float) -> None:
    """Insert into the lists of a query, ascending by (distance, index), dropping the last."""
    i, place = np.uint64(query), np.uint64(distances.shape[1] - 1)
    if distance > distances[i, place] or (distance == distances[i, place] and index >= indices[i, place]):
        return
    while place > np.uint64(0) and (
        distances[i, place - _1] > distance or (distances[i, place - _1] == distance and indices[i, place - _1] > index)
    ):
        distances[i, place] = distances[i, place - _1]
        indices[i, place] = indices[i, place - _1]
        place -= _1
    distances[i, place] = distance
    indices[i, place] = index


@compiled
def keep_smallest(
    values: np.ndarray, labels: np.ndarray, query: int, n_values: int, highest: float, most: int
) -> tuple[int, float]:
    """Move the smallest of the first `n_values` >= `most` of a query's pool to its front: four fifths to all of `most`.

    values: (n, capacity >= n_values + POOL_MARGIN) float32, none above `highest`, which may be infinite; labels
    likewise int32; both C-contiguous. Returns
    how many are kept, and a bound: nothing kept is above it, nothing dropped below it. Bisection by counting, since
    counts vectorise and a quickselect mispredicts half of its branches; ties that cannot be parted are cut in order.
    """
    least = most - most // 5
    low, high = np.float32(0.0), np.float32(highest)
    if not np.isfinite(high):
        high = max(_mean(values, query, n_values), SMALLEST)
        while _count_within(values, query, n_values, high) < least:
            low, high = high, np.float32(2.0) * high
    for _ in range(MOST_HALVINGS):
        middle = np.float32(0.5) * (low + high)
        count = _count_within(values, query, n_values, middle)
        if count < least:
            low = middle
        else:
            high = middle
            if count <= most:
                break
    values[query, n_values : n_values + POOL_MARGIN] = np.inf
    kept, place = 0, query * values.shape[1]
    values_at, labels_at = values.ctypes.data + ITEM_BYTES * place, labels.ctypes.data + ITEM_BYTES * place
    for j in range(0, n_values, LANES_AT_ONCE):
        kept += compress_lanes(
            values_at + ITEM_BYTES * j,
            labels_at + ITEM_BYTES * j,
            min(high, LARGEST),
            values_at + ITEM_BYTES * kept,
            labels_at + ITEM_BYTES * kept,
        )
    return min(kept, most), high


@compiled
def append_within(
    found: np.ndarray, query: int, bound: float, numbers: np.ndarray, values: np.ndarray, labels: np.ndarray, place: int
) -> int:
    """Append the values of a query that are not above `bound`, and their numbers, to a pool; return how many.

    found: (n, m) float32 and numbers: (m,) int32, m a multiple of 16. values, labels: float32 and int32, of one shape;
    place: where in them, counted over all rows, to go on. POOL_MARGIN places behind what is appended may be
    overwritten. All are C-contiguous.
    """
    limit = min(np.float32(bound), LARGEST)
    if _count_within(found, query, found.shape[1], limit) == 0:
        return 0
    found_at, appended = found.ctypes.data + query * found.strides[0], 0
    values_at, labels_at = values.ctypes.data + ITEM_BYTES * place, labels.ctypes.data + ITEM_BYTES * place
    for j in range(0, found.shape[1], LANES_AT_ONCE):
        appended += compress_lanes(
            found_at + ITEM_BYTES * j,
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


@compiled_sums
def _mean(values: np.ndarray, query: int, n_values: int) -> np.float32:
    i, total = np.uint64(query), np.float32(0.0)
    for j in range(np.uint64(n_values)):
        total += values[i, j]
    return total / np.float32(n_values)
