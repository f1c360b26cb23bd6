"""Values of rows, and the rows that a metric cannot take."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.rows.compressed import Points

ROUNDING = 1e-6  # of an angle in float32


class RowValues(NamedTuple):
    """Values by row: `values` (n, D) of dense rows; of sparse ones their nonzeros, `ends` is then `indptr` (n + 1,)."""

    values: np.ndarray
    ends: np.ndarray | None
    width: int  # D

    def reduced(self, ufunc: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Return what a ufunc makes of the values of each row, which lie as these do: (n,), 0 of a sparse row of none.

        Rows are taken one by one: what becomes of one does not depend on the others.
        """
        if self.ends is None:
            return np.asarray(ufunc.reduce(values, axis=1))
        filled = np.flatnonzero(np.diff(self.ends))
        of_filled = ufunc.reduceat(values, self.ends[filled])
        reduced = np.zeros(len(self.ends) - 1, of_filled.dtype)
        reduced[filled] = of_filled
        return reduced

    def by_value(self, of_rows: np.ndarray) -> np.ndarray:
        """Return numbers (n,) of the rows, to be computed with the values of each."""
        return of_rows[:, np.newaxis] if self.ends is None else np.repeat(of_rows, np.diff(self.ends))


def values_of(rows: Points) -> RowValues:
    """Return the values of rows (n, D)."""
    return (
        RowValues(rows.data, rows.indptr, rows.shape[1]) if sp.issparse(rows) else RowValues(rows, None, rows.shape[1])
    )


class Refusal(NamedTuple):
    """Rows that a metric cannot take: which (n,) of rows these are, and what is wrong with them.

    `empty` says that such rows hold nothing that the metric compares, as rows with gaps.
    """

    among: Callable[[RowValues], np.ndarray]
    why: str
    empty: bool = False

    def concerns(self, rows: Points) -> np.ndarray:
        """Return which rows (n, D) it concerns: (n,) bool."""
        return self.among(values_of(rows))


def find_zero_rows(rows: RowValues) -> np.ndarray:
    """Return which rows (n,) hold nothing but zeros."""
    return ~rows.reduced(np.logical_or, rows.values)


def find_constant_rows(rows: RowValues) -> np.ndarray:
    """Return which dense rows (n,) hold one value only."""
    return rows.values.min(axis=1) == rows.values.max(axis=1)


def find_negative_rows(rows: RowValues) -> np.ndarray:
    """Return which rows (n,) hold a negative value."""
    return rows.reduced(np.minimum, rows.values) < 0


def find_rows_of_no_bits(rows: RowValues) -> np.ndarray:
    """Return which rows (n,) hold other values than 0 and 1."""
    return rows.reduced(np.logical_or, (rows.values != 0) & (rows.values != 1))


ONLY_BITS = (Refusal(find_rows_of_no_bits, "hold other values than 0 and 1, which are no bits"),)


def find_no_places(rows: RowValues) -> np.ndarray:
    """Return which dense rows (n,) are no latitude and longitude in radians."""
    if rows.width != 2:
        return np.ones(len(rows.values), bool)
    return np.asarray((np.abs(rows.values) > np.array([np.pi / 2, 2 * np.pi]) * (1 + ROUNDING)).any(axis=1))
