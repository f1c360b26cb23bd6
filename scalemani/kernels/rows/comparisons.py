"""Metrics that compare two rows by a function, and have no coordinates in whose geometry points lie.

A function takes two rows (D,) float64 and returns their distance, in compiled code: not negative, 0 of equal rows, and
the same bits with the rows swapped: sums are reassociated, so that only a term |x + y|, and no x + y, adds both rows in
one order. Its name is that of the metric, of which `scalemani.config.metrics` has a row.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from scalemani.kernels.rows.reduced import Distance, distance_by
from scalemani.kernels.rows.refusals import Refusal, find_negative_rows, find_zero_rows


class Comparison(NamedTuple):
    """A metric that compares rows: how, and which rows it refuses."""

    distance: Distance
    refusals: tuple[Refusal, ...]


COMPARISONS: dict[str, Comparison] = {}


def metric(*refusals: Refusal) -> Callable[[Callable[..., float]], Any]:
    """Return a decorator that adds a function of two rows (D,) float64 to the metrics, which refuses some rows."""

    def add(function: Callable[..., float]) -> Any:
        COMPARISONS[function.__name__] = Comparison(distance_by(function), refusals)
        return function

    return add


@metric(
    Refusal(find_negative_rows, "hold negative values, which are no amounts"),
    Refusal(find_zero_rows, "hold nothing but zeros, which share nothing with any row", True),
)
def braycurtis(one: np.ndarray, other: np.ndarray) -> float:
    """Return sum |x_d - y_d| / sum |x_d + y_d| [Bray and Curtis 1957]."""
    apart, together = 0.0, 0.0
    for d in range(one.size):
        apart += abs(one[d] - other[d])
        together += abs(one[d] + other[d])
    return apart / together


@metric()
def canberra(one: np.ndarray, other: np.ndarray) -> float:
    """Return sum |x_d - y_d| / (|x_d| + |y_d|) over columns in which one is not zero [Lance and Williams 1967]."""
    total = 0.0
    for d in range(one.size):
        size = abs(one[d]) + abs(other[d])
        total += abs(one[d] - other[d]) / size if size > 0.0 else 0.0
    return total


@metric()
def chebyshev(one: np.ndarray, other: np.ndarray) -> float:
    """Return max |x_d - y_d|."""
    largest = 0.0
    for d in range(one.size):
        largest = max(largest, abs(one[d] - other[d]))
    return largest


@metric()
def manhattan(one: np.ndarray, other: np.ndarray) -> float:
    """Return sum |x_d - y_d|."""
    total = 0.0
    for d in range(one.size):
        total += abs(one[d] - other[d])
    return total
