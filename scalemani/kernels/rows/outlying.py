"""A row that lies so far from the others of its block that it alone decides the scale of their distances."""

from typing import NamedTuple

import numpy as np

FAR = 1000.0  # times as far from the median as most rows: beyond what heavy tails do in a block
MOST = 0.9  # of the rows


class Outlier(NamedTuple):
    """A row, the column in which it lies far out, its value there, and how many times as far out as most rows."""

    row: int
    column: int
    value: float
    times: float


def outlying_row(rows: np.ndarray, minima: np.ndarray, maxima: np.ndarray) -> Outlier | None:
    """Return the row that lies farthest from the median of the widest column, None where it is not far out.

    Parameters
    ----------
    rows : (n, D) real, finite
    minima, maxima : (D,) of the columns
    """
    with np.errstate(over="ignore"):
        column = int(np.argmax(np.asarray(maxima, np.float64) - np.asarray(minima, np.float64)))
        values = rows[:, column].astype(np.float64)
        away = np.abs(values - np.median(values))
        usual, row = float(np.quantile(away, MOST, method="lower")), int(np.argmax(away))
        times = float(away[row]) / usual if usual else 0.0
    return Outlier(row, column, float(values[row]), times) if times > FAR else None
