"""Keep the smallest of a stream of values: in a short sorted list, or in a pool that is cut when it is full."""

import numpy as np

from scalemani.kernels.compile import compiled, compiled_sums

MOST_HALVINGS = 24  # as many as float32 has digits: values that are still together then are ties
SMALLEST = np.finfo(np.float32).tiny
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

    values: (n, capacity) float32, none above `highest`, which may be infinite; labels likewise. Returns
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
    i, kept = np.uint64(query), np.uint64(0)
    for j in range(np.uint64(n_values)):
        value, label = values[i, j], labels[i, j]
        values[i, kept], labels[i, kept] = value, label
        kept += np.uint64(value <= high)
    return min(np.int64(kept), most), high


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
