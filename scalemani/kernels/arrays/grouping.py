"""Items in groups: by a label, by what joins them, by equality; the way back from any order, and rows put in places."""

from collections.abc import Callable

import numpy as np

from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.machine.compile import compiled

PART_ITEMS = 2**22  # items whose labels are read together

EMPTY = np.int32(-1)
HASH_MULTIPLIER = np.uint32(2654435769)  # 2**32 / golden ratio: Knuth, The Art of Computer Programming 3, 6.4


@compiled
def group_by(labels: np.ndarray, n_groups: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sort n items by label, from `first` to `first` + `n_groups` - 1; items of one label keep their order.

    An item with a smaller label belongs to no group.

    Returns
    -------
    order : (m,) int64, the positions of the m items that belong to a group, group after group
    offsets : (G + 1,) int64, group g is order[offsets[g]:offsets[g + 1]]
    """
    offsets = np.zeros(n_groups + 1, dtype=np.int64)
    for i in range(labels.size):
        if labels[i] >= first:
            offsets[labels[i] - first + 1] += 1
    for group in range(n_groups):
        offsets[group + 1] += offsets[group]
    next_place = offsets[:-1].copy()
    order = np.empty(offsets[-1], dtype=np.int64)
    for i in range(labels.size):
        if labels[i] >= first:
            group = labels[i] - first
            order[next_place[group]] = i
            next_place[group] += 1
    return order, offsets


def group_large(
    read: Callable[[slice], np.ndarray],
    n_items: int,
    n_groups: int,
    empty: Empty = np.empty,
    part_items: int = PART_ITEMS,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `group_by` does of labels that are read some at a time, in an order (n,) that `empty` makes.

    Parameters
    ----------
    read : returns the labels of a slice of items, from 0 to `n_groups` - 1
    part_items : items whose labels are read together
    """
    parts, counts = slices(n_items, part_items), np.zeros(n_groups, np.int64)
    for part in parts:
        counts += np.bincount(read(part), minlength=n_groups)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    order, next_place = empty((n_items,), np.int64), offsets[:-1].copy()
    for part in parts:
        order[_take_places(read(part), next_place)] = np.arange(part.start, part.stop)
    return order, offsets


@compiled
def _take_places(labels: np.ndarray, next_place: np.ndarray) -> np.ndarray:
    places = np.empty(labels.size, np.int64)
    for i in range(labels.size):
        places[i] = next_place[labels[i]]
        next_place[labels[i]] += 1
    return places


def inverse_order(order: np.ndarray) -> np.ndarray:
    """Return the place (n,) of each item in an order (n,) int of all of them, in its dtype."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


def separate_items(n_items: int, empty: Empty = np.empty) -> np.ndarray:
    """Return the state before any union: each item is a root, (n_items,) int32, int64 from 2^31 items on."""
    state = empty((n_items,), np.int32 if n_items < 2**31 else np.int64)
    for items in panels(n_items):
        state[items] = np.arange(items.start, items.stop)
    return state


@compiled
def find_root(parents: np.ndarray, item: int) -> int:
    """Return the root of an item's set, and halve the path to it in place.

    References
    ----------
    Tarjan and van Leeuwen, Worst-case analysis of set union algorithms, 1984, section 2 (path halving).
    """
    while parents[item] != item:
        parents[item] = parents[parents[item]]
        item = parents[item]
    return item


@compiled
def unite(parents: np.ndarray, one: int, other: int) -> bool:
    """Join the sets of two items in place; return whether they were two sets."""
    one, other = find_root(parents, one), find_root(parents, other)
    if one < other:
        parents[other] = one
    else:
        parents[one] = other
    return one != other


@compiled
def _slot_of(table: np.ndarray, bits: int, row: int) -> np.uint32:
    """Return the slot of an open hash table of 2**bits slots that holds `row`, or the empty one that it would take."""
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
            if row >= 0 and table[_slot_of(table, bits, row)] != row:
                table[_slot_of(table, bits, row)] = distinct[n_distinct] = row
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


def repeated_in_rows(numbers: np.ndarray) -> np.ndarray:
    """Return which entries (n, k) bool of rows of integers stand in their row already, further to the left."""
    order = np.argsort(numbers, axis=1, kind="stable")
    ascending = np.take_along_axis(numbers, order, axis=1)
    repeated = np.zeros(numbers.shape, bool)
    np.put_along_axis(repeated, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
    return repeated
