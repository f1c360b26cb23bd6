"""Items grouped by a label, a stable counting sort, the way back from any order, and rows put in their places."""

import numpy as np

from scalemani.kernels.machine.compile import compiled


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


def inverse_order(order: np.ndarray) -> np.ndarray:
    """Return the place (n,) of each item in an order (n,) int of all of them, in its dtype."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


def place_rows(rows: np.ndarray, chosen: np.ndarray, target: np.ndarray, places: np.ndarray) -> None:
    """Write rows `chosen` (m,) of a table to `places` (m,) in another one of its dtype, without a copy between.

    Both tables are C-contiguous, (n, columns...) and (N, columns...).
    """
    _place_bytes(_bytes_of_rows(rows), chosen, _bytes_of_rows(target), places)


def _bytes_of_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, columns...) as bytes (n, b), a view."""
    return rows.reshape(len(rows), -1).view(np.uint8) if rows.size else np.empty((len(rows), 0), np.uint8)


@compiled
def _place_bytes(rows: np.ndarray, chosen: np.ndarray, target: np.ndarray, places: np.ndarray) -> None:
    for i in range(chosen.size):
        target[places[i]] = rows[chosen[i]]
