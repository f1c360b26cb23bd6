"""Metrics as geometry: rows are mapped so that a metric is a function of the Euclidean distance of mapped rows.

Each row is mapped on its own, in float64, so that its bits do not depend on what else is mapped with it.

A new metric is a row of `METRICS` and its name in `METRIC_NAMES` of `scalemani.config.stages`, in the same place. It
must be such a function: Canberra and Bray-Curtis distances are not, and users give their neighbour lists with
metric=precomputed. `of_sets` is for Jaccard alone, whose distances `squared_row_distance` computes from packed bits.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.rows.compressed import Points

MAPPED_BYTES = 2**24  # of the rows that are mapped at once
COPIES_OF_MAPPED = 3  # scaled, shifted and mapped
COPIES_OF_NONZEROS = 6  # as given, in float64, scaled, their squares and rows, and mapped
LARGEST_EXPONENT = 1000  # of a factor: beyond, it overflows itself; squares of what is left over do not
SET_WORDS = np.dtype(np.uint64)


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
        found = np.zeros(len(self.ends) - 1, of_filled.dtype)
        found[filled] = of_filled
        return found

    def beside(self, of_rows: np.ndarray) -> np.ndarray:
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


class Metric(NamedTuple):
    """A metric: the rows it refuses, its map of values in float64, and what a distance of mapped rows means in it.

    `geometry` says in words where mapped rows lie. A distance of the metric is that of mapped rows to a `power`, over a
    `unit`. `keeps_zeros` says that zeros stay zeros: the map then takes nonzeros too, else dense rows alone. `of_sets`
    says that distances to neighbours are those of sets instead, see `compared_rows`, of which Euclidean distances of
    mapped rows are lower bounds.
    """

    refusals: tuple[Refusal, ...]
    mapped: Callable[[RowValues], np.ndarray]
    geometry: str
    power: int = 1
    unit: float = 1.0
    keeps_zeros: bool = True
    of_sets: bool = False


def find_zero_rows(rows: RowValues) -> np.ndarray:
    """Return which rows (n,) hold nothing but zeros."""
    return ~rows.reduced(np.logical_or, rows.values)


def find_constant_rows(rows: RowValues) -> np.ndarray:
    """Return which dense rows (n,) hold one value only."""
    return rows.values.min(axis=1) == rows.values.max(axis=1)


def find_negative_rows(rows: RowValues) -> np.ndarray:
    """Return which rows (n,) hold a negative value."""
    return rows.reduced(np.minimum, rows.values) < 0


def find_rows_beside_bits(rows: RowValues) -> np.ndarray:
    """Return which rows (n,) hold other values than 0 and 1."""
    return rows.reduced(np.logical_or, (rows.values != 0) & (rows.values != 1))


def as_given(rows: RowValues) -> np.ndarray:
    """Return the values that are given."""
    return rows.values


def scale_rows(rows: RowValues) -> np.ndarray:
    """Return values times powers of two, exactly, by which no square overflows; the largest of a row is then normal."""
    exponents = np.frexp(rows.reduced(np.maximum, np.abs(rows.values)))[1]
    return rows.values * rows.beside(np.ldexp(1.0, -np.clip(exponents, -LARGEST_EXPONENT, LARGEST_EXPONENT)))


def normalize_rows(rows: RowValues) -> np.ndarray:
    """Return values of rows at unit length; none is zero."""
    scaled = scale_rows(rows)
    return scaled / rows.beside(np.sqrt(rows.reduced(np.add, np.square(scaled))))


def standardize_rows(rows: RowValues) -> np.ndarray:
    """Return dense rows (n, D) less their mean, at unit length; none is constant."""
    shifted = scale_rows(rows)
    shifted = shifted - shifted[:, :1]  # what all values of a row share would take digits from the mean
    return normalize_rows(rows._replace(values=shifted - shifted.mean(axis=1)[:, np.newaxis]))


def take_root_shares(rows: RowValues) -> np.ndarray:
    """Return the square roots of values of rows that are divided by their sum: unit rows; none is zero."""
    scaled = scale_rows(rows)
    return np.sqrt(scaled / rows.beside(rows.reduced(np.add, scaled)))


def divide_by_root_width(rows: RowValues) -> np.ndarray:
    """Return bits over the square root of D: squares of distances of rows are shares of differing bits."""
    return np.asarray(rows.values / np.sqrt(rows.width))


def halve_normalized_bits(rows: RowValues) -> np.ndarray:
    """Return bits of rows at length sqrt(1 / 2); zeros stay.

    Of two sets a and b, i the number of what both have, squares of their distances are 1 - i / sqrt(|a| |b|), at most
    the Jaccard distance 1 - i / (|a| + |b| - i), since the geometric mean of |a| and |b| is at most their mean.
    """
    sizes = rows.reduced(np.add, rows.values)
    return np.asarray(rows.values / rows.beside(np.sqrt(2.0 * np.maximum(sizes, 1.0))))


ONLY_BITS = (Refusal(find_rows_beside_bits, "hold other values than 0 and 1, which are no bits"),)

EUCLIDEAN = "euclidean"
PRECOMPUTED = "precomputed"
METRICS = {
    EUCLIDEAN: Metric((), as_given, "the points as given"),
    # Half the square between unit rows is one less the cosine of their angle, without a difference.
    "cosine": Metric(
        (Refusal(find_zero_rows, "hold nothing but zeros, which have no direction", True),),
        normalize_rows,
        "rows at unit length",
        power=2,
        unit=2.0,
    ),
    "correlation": Metric(
        (Refusal(find_constant_rows, "hold one value only, which correlates with nothing", True),),
        standardize_rows,
        "rows less their mean, at unit length",
        power=2,
        unit=2.0,
        keeps_zeros=False,
    ),
    "hellinger": Metric(
        (
            Refusal(find_negative_rows, "hold negative values, which are no frequencies"),
            Refusal(find_zero_rows, "hold nothing but zeros, which are no frequencies", True),
        ),
        take_root_shares,
        "square roots of rows that are divided by their sum",
        unit=np.sqrt(2.0),  # unit vectors of square roots are at most so far apart
    ),
    "hamming": Metric(ONLY_BITS, divide_by_root_width, "rows of bits, over the square root of their width", power=2),
    "jaccard": Metric(ONLY_BITS, halve_normalized_bits, "rows of bits at length sqrt(1 / 2)", power=2, of_sets=True),
    PRECOMPUTED: Metric((), as_given, "nowhere: neighbours were given, without points", keeps_zeros=False),
}


def mapped_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of mapped rows: float64 for float64, float32 for all others, whose own rounding is no finer."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def rows_at_once(n_features: int) -> int:
    """Return how many rows are mapped at once."""
    return max(1, MAPPED_BYTES // (8 * n_features))


def map_rows(rows: Points, metric: str) -> Points:
    """Return rows (n, D) mapped for a metric, none of which it refuses, in `mapped_dtype`; Euclidean ones as given.

    Parameters
    ----------
    rows : (n, D) finite, of a real dtype; sparse ones stay so where the metric keeps zeros, else they become dense
    metric : a name of `METRICS`
    """
    if metric == EUCLIDEAN:
        return rows
    to_values, dtype = METRICS[metric].mapped, mapped_dtype(rows.dtype)
    if sp.issparse(rows):
        if not METRICS[metric].keeps_zeros:
            return map_rows(rows.toarray(), metric)
        values = to_values(values_of(rows.astype(np.float64)))
        return sp.csr_matrix((values.astype(dtype), rows.indices, rows.indptr), shape=rows.shape)
    mapped = np.empty(rows.shape, dtype)
    for part in slices(len(rows), rows_at_once(rows.shape[1])):
        mapped[part] = to_values(values_of(np.ascontiguousarray(rows[part], dtype=np.float64)))
    return mapped


def convert_distances(metric: str, distances: np.ndarray) -> np.ndarray:
    """Return Euclidean distances of mapped rows as distances of a metric, in the dtype that they have."""
    power, unit = METRICS[metric].power, METRICS[metric].unit
    if power == unit == 1:
        return distances
    return (distances.astype(np.float64) ** power / unit).astype(distances.dtype)


def compared_rows(rows: Points, metric: str) -> Points:
    """Return mapped rows (n, D) as neighbours are compared in a metric: as they are, or sets.

    Dense sets are (n, W) uint64, 64 bits a word; sparse ones have True for their nonzeros. `squared_row_distance` of
    either is the Jaccard distance.
    """
    if not METRICS[metric].of_sets or rows.dtype in (SET_WORDS, np.bool_):
        return rows
    if sp.issparse(rows):
        return sp.csr_matrix((np.ones(rows.nnz, np.bool_), rows.indices, rows.indptr), shape=rows.shape)
    packed = np.zeros((len(rows), n_words(rows.shape[1]) * SET_WORDS.itemsize), np.uint8)
    found = np.packbits(rows > 0, axis=1)
    packed[:, : found.shape[1]] = found
    return packed.view(SET_WORDS)


def n_words(n_features: int) -> int:
    """Return in how many words a dense set of so many features is."""
    return -(-n_features // (8 * SET_WORDS.itemsize))
