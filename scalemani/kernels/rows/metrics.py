"""Metrics as geometry: rows are mapped so that a metric is a function of the Euclidean distance of mapped rows.

Each row is mapped separately, in float64, so that its bits do not depend on what else is mapped with it. The function
is any that ascends. Mapped rows of Jaccard bound distances that are computed from packed bits.

Metrics that are no such function, as Canberra's, compare rows as they are: `scalemani.kernels.rows.comparisons`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.rows.comparisons import COMPARISONS, Comparison, comparison_of
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.reduced import COORDINATES, SETS, Distance
from scalemani.kernels.rows.refusals import (
    ONLY_BITS,
    Refusal,
    RowValues,
    find_constant_rows,
    find_negative_rows,
    find_zero_rows,
    values_of,
)

MAPPED_BYTES = 2**24  # of the rows that are mapped at once
COPIES_OF_MAPPED = 3  # scaled, shifted and mapped
COPIES_OF_NONZEROS = 6  # as read, in float64, scaled, their squares and rows, and mapped
LARGEST_EXPONENT = 1000  # of a factor: beyond, it overflows itself; squares of what is left over do not
SET_WORDS = np.dtype(np.uint64)


class Metric(NamedTuple):
    """A metric: the rows it refuses, its map of values in float64, and what a distance of mapped rows means in it.

    `geometry` says in words where mapped rows lie. `converted` makes distances of the metric of those (n, k) float64 of
    mapped rows; it ascends. `keeps_zeros` says that zeros stay zeros: the map then takes nonzeros too, else dense rows
    alone. `distance` is how searches compare rows, see `compared_rows`: mapped rows, sets of which Euclidean distances
    of mapped rows are lower bounds, or rows of which such distances say nothing.
    """

    refusals: tuple[Refusal, ...]
    mapped: Callable[[RowValues], np.ndarray]
    geometry: str
    converted: Callable[[np.ndarray], np.ndarray] | None = None
    keeps_zeros: bool = True
    distance: Distance = COORDINATES

    @property
    def of_sets(self) -> bool:
        """Whether searches compare sets of bits."""
        return self.distance == SETS


def unchanged_values(rows: RowValues) -> np.ndarray:
    """Return the values as they are."""
    return rows.values


def scale_rows(rows: RowValues) -> np.ndarray:
    """Return values times powers of two, exactly, by which no square overflows; the largest of a row is then normal."""
    exponents = np.frexp(rows.reduced(np.maximum, np.abs(rows.values)))[1]
    return rows.values * rows.by_value(np.ldexp(1.0, -np.clip(exponents, -LARGEST_EXPONENT, LARGEST_EXPONENT)))


def normalize_rows(rows: RowValues) -> np.ndarray:
    """Return values of rows at unit length; none is zero."""
    scaled = scale_rows(rows)
    return scaled / rows.by_value(np.sqrt(rows.reduced(np.add, np.square(scaled))))


def standardize_rows(rows: RowValues) -> np.ndarray:
    """Return dense rows (n, D) less their mean, at unit length; none is constant."""
    shifted = scale_rows(rows)
    shifted = shifted - shifted[:, :1]  # what all values of a row share would take digits from the mean
    return normalize_rows(rows._replace(values=shifted - shifted.mean(axis=1)[:, np.newaxis]))


def take_root_shares(rows: RowValues) -> np.ndarray:
    """Return the square roots of values of rows that are divided by their sum: unit rows; none is zero."""
    scaled = scale_rows(rows)
    return np.sqrt(scaled / rows.by_value(rows.reduced(np.add, scaled)))


def cumulate_shares(rows: RowValues) -> np.ndarray:
    """Return cumulative sums of dense rows (n, D) that are divided by their sum; none is zero.

    The last, which is 1, is left out of the sums: it is 0.
    """
    scaled = scale_rows(rows)
    sums = np.cumsum(scaled / rows.by_value(rows.reduced(np.add, scaled)), axis=1)
    sums[:, -1] = 0.0
    return sums


def divide_by_root_width(rows: RowValues) -> np.ndarray:
    """Return bits over the square root of D: squares of distances of rows are shares of differing bits."""
    return np.asarray(rows.values / np.sqrt(rows.width))


def halve_normalized_bits(rows: RowValues) -> np.ndarray:
    """Return bits of rows at length sqrt(1 / 2); zeros stay.

    Of two sets a and b, i the number of what both have, squares of their distances are 1 - i / sqrt(|a| |b|), at most
    the Jaccard distance 1 - i / (|a| + |b| - i), since the geometric mean of |a| and |b| is at most their mean.
    """
    sizes = rows.reduced(np.add, rows.values)
    return np.asarray(rows.values / rows.by_value(np.sqrt(2.0 * np.maximum(sizes, 1.0))))


def squared(distances: np.ndarray) -> np.ndarray:
    """Return squares of distances."""
    return distances**2


def halved_squares(distances: np.ndarray) -> np.ndarray:
    """Return what unit rows so far apart have for one less the cosine of their angle, without a difference."""
    return np.asarray(distances**2 / 2.0)


def over_longest(distances: np.ndarray) -> np.ndarray:
    """Return distances of unit rows of square roots over the most that these are apart."""
    return np.asarray(distances / np.sqrt(2.0))


class Metrics(dict[str, Metric]):
    """Metrics by name: those that a table lists, and any that `comparison_of` knows."""

    def __missing__(self, name: str) -> Metric:
        return compared_metric(comparison_of(name))


def compared_metric(comparison: Comparison) -> Metric:
    """Return a metric that compares rows as they are."""
    distance, refusals = comparison
    return Metric(refusals, unchanged_values, "the points as given", None, keeps_zeros=False, distance=distance)


NO_FREQUENCIES = (
    Refusal(find_negative_rows, "hold negative values, which are no frequencies"),
    Refusal(find_zero_rows, "hold nothing but zeros, which are no frequencies", True),
)
EUCLIDEAN = "euclidean"
PRECOMPUTED = "precomputed"
METRICS = Metrics(
    {
        EUCLIDEAN: Metric((), unchanged_values, "the points as given"),
        "cosine": Metric(
            (Refusal(find_zero_rows, "hold nothing but zeros, which have no direction", True),),
            normalize_rows,
            "rows at unit length",
            halved_squares,
        ),
        "correlation": Metric(
            (Refusal(find_constant_rows, "hold one value only, which correlates with nothing", True),),
            standardize_rows,
            "rows less their mean, at unit length",
            halved_squares,
            keeps_zeros=False,
        ),
        "hellinger": Metric(
            NO_FREQUENCIES,
            take_root_shares,
            "square roots of rows that are divided by their sum",
            over_longest,
        ),
        "hamming": Metric(
            ONLY_BITS, divide_by_root_width, "rows of bits, over the square root of their width", squared
        ),
        "jaccard": Metric(
            ONLY_BITS, halve_normalized_bits, "rows of bits at length sqrt(1 / 2)", squared, distance=SETS
        ),
        **{name: compared_metric(comparison) for name, comparison in COMPARISONS.items()},
        "wasserstein": Metric(
            NO_FREQUENCIES,
            cumulate_shares,
            "cumulative sums of rows that are divided by their sum",
            keeps_zeros=False,
            distance=COMPARISONS["manhattan"].distance,
        ),
        PRECOMPUTED: Metric((), unchanged_values, "nowhere: neighbours were given, without points", keeps_zeros=False),
    }
)


def mapped_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of mapped rows: float64 for float64, float32 for all others, whose rounding is no finer."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def rows_at_once(n_features: int) -> int:
    """Return how many rows are mapped at once."""
    return max(1, MAPPED_BYTES // (8 * n_features))


def map_rows(rows: Points, metric: str) -> Points:
    """Return rows (n, D) mapped for a metric, none of which it refuses, in `mapped_dtype`; Euclidean ones unchanged.

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
    converted = METRICS[metric].converted
    return distances if converted is None else converted(distances.astype(np.float64)).astype(distances.dtype)


def compared_rows(rows: Points, metric: str) -> Points:
    """Return mapped rows (n, D) as neighbours are compared in a metric: as they are, in float64 by a function, or sets.

    Dense sets are (n, W) uint64, 64 bits a word; sparse ones have True for their nonzeros.
    """
    if METRICS[metric].distance.by_function:
        return np.ascontiguousarray(rows, np.float64)
    if not METRICS[metric].of_sets or rows.dtype in (SET_WORDS, np.bool_):
        return rows
    if sp.issparse(rows):
        return sp.csr_matrix((np.ones(rows.nnz, np.bool_), rows.indices, rows.indptr), shape=rows.shape)
    packed = np.zeros((len(rows), n_words(rows.shape[1]) * SET_WORDS.itemsize), np.uint8)
    bits = np.packbits(rows > 0, axis=1)
    packed[:, : bits.shape[1]] = bits
    return packed.view(SET_WORDS)


def n_words(n_features: int) -> int:
    """Return in how many words a dense set of so many features is."""
    return -(-n_features // (8 * SET_WORDS.itemsize))
