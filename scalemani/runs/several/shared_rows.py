"""Which rows of two runs are the same points: those at one position, or those of one identifier."""

from typing import Any, NamedTuple

import numpy as np

from scalemani.errors import DataError
from scalemani.io.sources import open_labels

SHOWN_IDS = 5


class SharedRows(NamedTuple):
    """The rows (M,) of one and of another set of points that are the same points, ascending in the first."""

    own: np.ndarray
    others: np.ndarray


def shared_rows(n_own: int, n_others: int, ids: tuple[Any, Any] | None = None) -> SharedRows:
    """Return which rows are the same points.

    Parameters
    ----------
    n_own, n_others : how many rows there are
    ids : for each of the two one identifier a row, integers or strings, in an array or in a file that `open_labels`
        reads; None: rows at the same position are the same points, as far as both go

    Raises
    ------
    DataError
        For identifiers that repeat, of which there is not one a row, of two kinds, and where no row is shared.
    """
    if ids is None:
        common = np.arange(min(n_own, n_others))
        return SharedRows(common, common)
    own, others = (checked_ids(given, count) for given, count in zip(ids, (n_own, n_others), strict=True))
    if (own.dtype.kind == "U") != (others.dtype.kind == "U"):
        raise DataError("identifiers must be of one kind, got text for one set of rows and integers for the other")
    if np.result_type(own, others).kind == "f":  # int64 and uint64, which lose digits in one type
        own, others = own.astype(object), others.astype(object)
    _, mine, theirs = np.intersect1d(own, others, assume_unique=True, return_indices=True)
    if len(mine) == 0:
        raise DataError(
            f"no row is shared: identifiers such as {', '.join(map(str, own[:SHOWN_IDS]))} are not among the others, "
            f"such as {', '.join(map(str, others[:SHOWN_IDS]))}"
        )
    order = np.argsort(mine)
    return SharedRows(mine[order], theirs[order])


def checked_ids(given: Any, count: int) -> np.ndarray:
    """Return identifiers (count,), each of which names one row; raise DataError for others."""
    ids = open_labels(given, count)
    if ids.dtype.kind not in "iuU":
        raise DataError(f"identifiers must be integers or text, got {ids.dtype}")
    values, first, counts = np.unique(ids, return_index=True, return_counts=True)
    if len(values) < len(ids):
        twice = counts > 1
        shown = ", ".join(
            f"{value} (first in row {row})"
            for value, row in zip(values[twice][:SHOWN_IDS], first[twice][:SHOWN_IDS], strict=True)
        )
        raise DataError(f"identifiers must name one row each, and {int(twice.sum())} of them repeat: {shown}")
    return ids
