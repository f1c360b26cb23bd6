"""Union-find: which items are joined, directly or through others.

The state is an array of parents, one for each item; the root of a set is its smallest item, so that the state after
all unions depends neither on their order nor on how they are cut into blocks, once every parent is its root.
"""

import numpy as np

from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.machine.compile import compiled


def separate_items(n_items: int, empty: Empty = np.empty) -> np.ndarray:
    """Return the state before any union: each item its own root, (n_items,) int32, int64 from 2^31 items on."""
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
