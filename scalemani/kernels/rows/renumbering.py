"""The distinct rows that lists name, and the lists in numbers of these: by a hash table of the lists' own size."""

import numpy as np

from scalemani.kernels.machine.compile import compiled

EMPTY = np.int32(-1)
HASH_MULTIPLIER = np.uint32(2654435769)  # 2**32 / golden ratio: Knuth, The Art of Computer Programming 3, 6.4


@compiled
def _insert_row(table: np.ndarray, bits: int, row: int) -> bool:
    """Put `row` into the open hash table of 2**bits slots; return whether it was new."""
    slot = _slot_of(table, bits, row)
    if table[slot] == row:
        return False
    table[slot] = row
    return True


@compiled
def _slot_of(table: np.ndarray, bits: int, row: int) -> np.uint32:
    """Return the slot of the hash table that holds `row`, or the empty one that it would take."""
    mask = np.uint32(table.size - 1)
    slot = np.uint32(np.uint32(row) * HASH_MULTIPLIER) >> np.uint32(32 - bits)
    while table[slot] != EMPTY and table[slot] != row:
        slot = np.uint32(slot + np.uint32(1)) & mask
    return slot


@compiled
def compact_rows(lists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows in lists, and the lists in numbers of these.

    Parameters
    ----------
    lists : (n, c) int, rows, -1 for none

    Returns
    -------
    distinct : (u,) int64, ascending
    numbers : (n, c) int32, so that distinct[numbers] is `lists`; -1 for none
    """
    bits = 4
    while (1 << bits) < 2 * lists.size:
        bits += 1
    table = np.full(1 << bits, EMPTY, dtype=np.int32)
    distinct = np.empty(lists.size, dtype=np.int64)
    n_distinct = 0
    for i in range(lists.shape[0]):
        for j in range(lists.shape[1]):
            row = lists[i, j]
            if row >= 0 and _insert_row(table, bits, row):
                distinct[n_distinct] = row
                n_distinct += 1
    distinct = np.sort(distinct[:n_distinct])
    number_in_slot = np.empty(table.size, dtype=np.int32)
    for number in range(n_distinct):
        number_in_slot[_slot_of(table, bits, distinct[number])] = number
    numbers = np.full(lists.shape, EMPTY, dtype=np.int32)
    for i in range(lists.shape[0]):
        for j in range(lists.shape[1]):
            if lists[i, j] >= 0:
                numbers[i, j] = number_in_slot[_slot_of(table, bits, lists[i, j])]
    return distinct, numbers
