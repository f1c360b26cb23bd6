"""Which rows lists hold, and where each stands among them: by an open hash table, whatever the number of all rows."""

import numpy as np

from scalemani.kernels.machine.compile import compiled

EMPTY = np.int32(-1)
HASH_MULTIPLIER = np.uint32(2654435769)  # 2**32 / golden ratio: Knuth, The Art of Computer Programming 3, 6.4


@compiled
def _first_seen(seen: np.ndarray, bits: int, row: int) -> bool:
    """Put `row` into the open hash table `seen` of 2**bits places; tell whether it was new."""
    place = _place_of(seen, bits, row)
    if seen[place] == row:
        return False
    seen[place] = row
    return True


@compiled
def _place_of(seen: np.ndarray, bits: int, row: int) -> np.uint32:
    """Return where `row` stands in the hash table `seen`, or the empty place that it would take."""
    mask = np.uint32(seen.size - 1)
    place = np.uint32(np.uint32(row) * HASH_MULTIPLIER) >> np.uint32(32 - bits)
    while seen[place] != EMPTY and seen[place] != row:
        place = np.uint32(place + np.uint32(1)) & mask
    return place


@compiled
def compact_rows(candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows among `candidates` and where each candidate stands among them.

    candidates: (n, c) rows, -1 for none. Returns (u,) int64, ascending, and (n, c) int32, -1 for none.
    """
    bits = 4
    while (1 << bits) < 2 * candidates.size:
        bits += 1
    seen = np.full(1 << bits, EMPTY, dtype=np.int32)
    distinct = np.empty(candidates.size, dtype=np.int64)
    n_distinct = 0
    for i in range(candidates.shape[0]):
        for j in range(candidates.shape[1]):
            row = candidates[i, j]
            if row >= 0 and _first_seen(seen, bits, row):
                distinct[n_distinct] = row
                n_distinct += 1
    distinct = np.sort(distinct[:n_distinct])
    places = np.empty(seen.size, dtype=np.int32)
    for place in range(n_distinct):
        places[_place_of(seen, bits, distinct[place])] = place
    positions = np.full(candidates.shape, EMPTY, dtype=np.int32)
    for i in range(candidates.shape[0]):
        for j in range(candidates.shape[1]):
            if candidates[i, j] >= 0:
                positions[i, j] = places[_place_of(seen, bits, candidates[i, j])]
    return distinct, positions
