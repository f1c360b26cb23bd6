"""Metrics as geometry: rows are mapped so that a metric is a function of the Euclidean distance of mapped rows.

Each row is mapped on its own, in float64, so that its bits do not depend on what else is mapped with it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MAPPED_BYTES = 2**24  # of the rows that are mapped at once
COPIES_OF_MAPPED = 3  # scaled, shifted and mapped
LARGEST_EXPONENT = 1000  # of a factor: beyond, it overflows itself; squares of what is left over do not
UNITS_PER_DISTANCE = np.sqrt(2.0)  # of unit vectors of square roots, which are at most so far apart


class Refusal(NamedTuple):
    """Rows that a metric cannot take: which (n,) of the rows (n, D) these are, and what is wrong with them."""

    concerns: Callable[[np.ndarray], np.ndarray]
    why: str


class Metric(NamedTuple):
    """A metric: the rows it refuses, its map of rows (n, D) float64, and what a distance of mapped rows means in it.

    `geometry` says in words where mapped rows lie.
    """

    refusals: tuple[Refusal, ...]
    mapped: Callable[[np.ndarray], np.ndarray]
    distances: Callable[[np.ndarray], np.ndarray]
    geometry: str


def as_given(values: np.ndarray) -> np.ndarray:
    """Return what is given."""
    return values


def find_zero_rows(rows: np.ndarray) -> np.ndarray:
    """Return which rows (n, D) hold nothing but zeros."""
    return ~rows.any(axis=1)


def find_constant_rows(rows: np.ndarray) -> np.ndarray:
    """Return which rows (n, D) hold one value only."""
    return rows.min(axis=1) == rows.max(axis=1)


def find_negative_rows(rows: np.ndarray) -> np.ndarray:
    """Return which rows (n, D) hold a negative value."""
    return rows.min(axis=1) < 0


def scale_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows times powers of two, exactly, so that no square overflows and that of the largest value is normal."""
    exponents = np.frexp(np.abs(rows).max(axis=1))[1]
    factors = np.ldexp(1.0, -np.clip(exponents, -LARGEST_EXPONENT, LARGEST_EXPONENT))
    return rows * factors[:, np.newaxis]


def normalize_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, D) float64 at unit length; none is zero."""
    scaled = scale_rows(rows)
    return scaled / np.sqrt(np.square(scaled).sum(axis=1))[:, np.newaxis]


def standardize_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, D) float64 less their mean, at unit length; none is constant."""
    shifted = scale_rows(rows)
    shifted = shifted - shifted[:, :1]  # what all values of a row share would take digits from the mean
    return normalize_rows(shifted - shifted.mean(axis=1)[:, np.newaxis])


def take_root_shares(rows: np.ndarray) -> np.ndarray:
    """Return the square roots of rows (n, D) float64 that are divided by their sum: unit rows; none is zero."""
    scaled = scale_rows(rows)
    return np.sqrt(scaled / scaled.sum(axis=1)[:, np.newaxis])


def halve_squares(distances: np.ndarray) -> np.ndarray:
    """Return one less the cosine of the angle between unit rows at Euclidean distances, without a difference."""
    return (np.square(distances.astype(np.float64)) / 2).astype(distances.dtype)


def shrink_distances(distances: np.ndarray) -> np.ndarray:
    """Return distances of square roots of frequencies, in [0, 1], at Euclidean distances."""
    return (distances / UNITS_PER_DISTANCE).astype(distances.dtype)


EUCLIDEAN = "euclidean"
PRECOMPUTED = "precomputed"
METRICS = {
    EUCLIDEAN: Metric((), as_given, as_given, "the points as given"),
    "cosine": Metric(
        (Refusal(find_zero_rows, "hold nothing but zeros, which have no direction"),),
        normalize_rows,
        halve_squares,
        "rows at unit length",
    ),
    "correlation": Metric(
        (Refusal(find_constant_rows, "hold one value only, which correlates with nothing"),),
        standardize_rows,
        halve_squares,
        "rows less their mean, at unit length",
    ),
    "hellinger": Metric(
        (
            Refusal(find_negative_rows, "hold negative values, which are no frequencies"),
            Refusal(find_zero_rows, "hold nothing but zeros, which are no frequencies"),
        ),
        take_root_shares,
        shrink_distances,
        "square roots of rows that are divided by their sum",
    ),
    PRECOMPUTED: Metric((), as_given, as_given, "nowhere: neighbours were given, without points"),
}


def mapped_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of mapped rows: float64 for float64, float32 for all others, whose own rounding is no finer."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def rows_at_once(n_features: int) -> int:
    """Return how many rows are mapped at once."""
    return max(1, MAPPED_BYTES // (8 * n_features))


def map_rows(rows: np.ndarray, metric: str) -> np.ndarray:
    """Return rows (n, D) mapped for a metric, none of which it refuses, in `mapped_dtype`; Euclidean ones as given.

    Parameters
    ----------
    rows : (n, D) finite, of a real dtype
    metric : a name of `METRICS`
    """
    if metric == EUCLIDEAN:
        return rows
    mapped = np.empty(rows.shape, mapped_dtype(rows.dtype))
    step = rows_at_once(rows.shape[1])
    for start in range(0, len(rows), step):
        part = np.ascontiguousarray(rows[start : start + step], dtype=np.float64)
        mapped[start : start + step] = METRICS[metric].mapped(part)
    return mapped


def convert_distances(metric: str, distances: np.ndarray) -> np.ndarray:
    """Return Euclidean distances of mapped rows as distances of a metric, in the dtype that they have."""
    return METRICS[metric].distances(distances)
