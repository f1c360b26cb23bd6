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
UNITS_PER_DISTANCE = np.sqrt(2.0)  # of unit vectors of square roots, which are at most so far apart


class Refusal(NamedTuple):
    """Rows that a metric cannot take: which (n,) of the rows (n, D) these are, and what is wrong with them.

    `empty` says that such rows hold nothing that the metric compares, as rows with gaps.
    """

    concerns: Callable[[Points], np.ndarray]
    why: str
    empty: bool = False


class Metric(NamedTuple):
    """A metric: the rows it refuses, its map of rows (n, D) float64, and what a distance of mapped rows means in it.

    `geometry` says in words where mapped rows lie. `nonzeros` is the map of sparse rows float64 to the nonzeros of the
    mapped ones; None where zeros do not stay zeros. `of_sets` says that distances to neighbours are those of sets
    instead, see `compared_rows`, of which Euclidean distances of mapped rows are lower bounds.
    """

    refusals: tuple[Refusal, ...]
    mapped: Callable[[np.ndarray], np.ndarray]
    distances: Callable[[np.ndarray], np.ndarray]
    geometry: str
    nonzeros: Callable[[sp.csr_matrix], np.ndarray] | None = None
    of_sets: bool = False


def as_given(values: np.ndarray) -> np.ndarray:
    """Return what is given."""
    return values


def find_zero_rows(rows: Points) -> np.ndarray:
    """Return which rows (n, D) hold nothing but zeros."""
    return np.diff(rows.indptr) == 0 if sp.issparse(rows) else ~rows.any(axis=1)


def find_constant_rows(rows: np.ndarray) -> np.ndarray:
    """Return which rows (n, D) hold one value only."""
    return rows.min(axis=1) == rows.max(axis=1)


def find_negative_rows(rows: Points) -> np.ndarray:
    """Return which rows (n, D) hold a negative value."""
    least = rows.min(axis=1)
    return (least.toarray().ravel() if sp.issparse(rows) else least) < 0


def find_rows_beside_bits(rows: Points) -> np.ndarray:
    """Return which rows (n, D) hold other values than 0 and 1."""
    if not sp.issparse(rows):
        return ((rows != 0) & (rows != 1)).any(axis=1)
    found = np.zeros(rows.shape[0], bool)
    found[np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[rows.data != 1]] = True
    return found


def scale_factors(largest: np.ndarray) -> np.ndarray:
    """Return powers of two (n,), by which rows of such largest magnitudes have no square that overflows.

    That of the largest value is then normal.
    """
    return np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -LARGEST_EXPONENT, LARGEST_EXPONENT))


def scale_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows times powers of two, exactly: see `scale_factors`."""
    return rows * scale_factors(np.abs(rows).max(axis=1))[:, np.newaxis]


def scale_nonzeros(rows: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nonzeros of sparse rows as `scale_rows` scales them, where each row begins, and the row of each."""
    starts = rows.indptr[:-1]
    row_of = np.repeat(np.arange(len(starts)), np.diff(rows.indptr))
    return rows.data * scale_factors(np.maximum.reduceat(np.abs(rows.data), starts))[row_of], starts, row_of


def normalize_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, D) float64 at unit length; none is zero."""
    scaled = scale_rows(rows)
    return scaled / np.sqrt(np.square(scaled).sum(axis=1))[:, np.newaxis]


def normalize_nonzeros(rows: sp.csr_matrix) -> np.ndarray:
    """Return the nonzeros (m,) float64 of sparse rows at unit length; none is empty."""
    scaled, starts, row_of = scale_nonzeros(rows)
    return scaled / np.sqrt(np.add.reduceat(np.square(scaled), starts))[row_of]


def standardize_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, D) float64 less their mean, at unit length; none is constant."""
    shifted = scale_rows(rows)
    shifted = shifted - shifted[:, :1]  # what all values of a row share would take digits from the mean
    return normalize_rows(shifted - shifted.mean(axis=1)[:, np.newaxis])


def take_root_shares(rows: np.ndarray) -> np.ndarray:
    """Return the square roots of rows (n, D) float64 that are divided by their sum: unit rows; none is zero."""
    scaled = scale_rows(rows)
    return np.sqrt(scaled / scaled.sum(axis=1)[:, np.newaxis])


def take_root_shares_of_nonzeros(rows: sp.csr_matrix) -> np.ndarray:
    """Return the square roots of the nonzeros (m,) float64 of sparse rows that are divided by their sum."""
    scaled, starts, row_of = scale_nonzeros(rows)
    return np.sqrt(scaled / np.add.reduceat(scaled, starts)[row_of])


def divide_by_root_width(rows: Points) -> np.ndarray:
    """Return rows (n, D) of bits, or the nonzeros of sparse ones, over the square root of D.

    Squares of their distances are shares of differing bits.
    """
    return np.asarray((rows.data if sp.issparse(rows) else rows) / np.sqrt(rows.shape[1]))


def halve_normalized_bits(rows: Points) -> np.ndarray:
    """Return rows (n, D) of bits, or the nonzeros of sparse ones, at length sqrt(1 / 2); zeros stay.

    Of two sets a and b, i the number of what both have, squares of their distances are 1 - i / sqrt(|a| |b|), at most
    the Jaccard distance 1 - i / (|a| + |b| - i), since the geometric mean of |a| and |b| is at most their mean.
    """
    sizes = np.asarray(rows.sum(axis=1)).ravel()
    lengths = np.sqrt(2.0 * np.maximum(sizes, 1.0))
    if sp.issparse(rows):
        return np.asarray(rows.data / np.repeat(lengths, np.diff(rows.indptr)))
    return np.asarray(rows / lengths[:, np.newaxis])


def square_distances(distances: np.ndarray) -> np.ndarray:
    """Return the distances of which those given are the square roots."""
    return np.square(distances.astype(np.float64)).astype(distances.dtype)


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
        (Refusal(find_zero_rows, "hold nothing but zeros, which have no direction", True),),
        normalize_rows,
        halve_squares,
        "rows at unit length",
        normalize_nonzeros,
    ),
    "correlation": Metric(
        (Refusal(find_constant_rows, "hold one value only, which correlates with nothing", True),),
        standardize_rows,
        halve_squares,
        "rows less their mean, at unit length",
    ),
    "hellinger": Metric(
        (
            Refusal(find_negative_rows, "hold negative values, which are no frequencies"),
            Refusal(find_zero_rows, "hold nothing but zeros, which are no frequencies", True),
        ),
        take_root_shares,
        shrink_distances,
        "square roots of rows that are divided by their sum",
        take_root_shares_of_nonzeros,
    ),
    "hamming": Metric(
        (Refusal(find_rows_beside_bits, "hold other values than 0 and 1, which are no bits"),),
        divide_by_root_width,
        square_distances,
        "rows of bits, over the square root of their width",
        divide_by_root_width,
    ),
    "jaccard": Metric(
        (Refusal(find_rows_beside_bits, "hold other values than 0 and 1, which are no bits"),),
        halve_normalized_bits,
        square_distances,
        "rows of bits at length sqrt(1 / 2)",
        halve_normalized_bits,
        of_sets=True,
    ),
    PRECOMPUTED: Metric((), as_given, as_given, "nowhere: neighbours were given, without points"),
}


def mapped_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of mapped rows: float64 for float64, float32 for all others, whose own rounding is no finer."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def rows_at_once(n_features: int) -> int:
    """Return how many rows are mapped at once."""
    return max(1, MAPPED_BYTES // (8 * n_features))


def keeps_zeros(metric: str) -> bool:
    """Return whether sparse rows, mapped for a metric, are as sparse."""
    return metric == EUCLIDEAN or METRICS[metric].nonzeros is not None


def map_rows(rows: Points, metric: str) -> Points:
    """Return rows (n, D) mapped for a metric, none of which it refuses, in `mapped_dtype`; Euclidean ones as given.

    Parameters
    ----------
    rows : (n, D) finite, of a real dtype; sparse ones stay so where the metric keeps zeros, else they become dense
    metric : a name of `METRICS`
    """
    if metric == EUCLIDEAN:
        return rows
    of_nonzeros = METRICS[metric].nonzeros
    if sp.issparse(rows):
        if of_nonzeros is None:
            return map_rows(rows.toarray(), metric)
        values = of_nonzeros(rows.astype(np.float64)) if rows.nnz else rows.data
        return sp.csr_matrix((values.astype(mapped_dtype(rows.dtype)), rows.indices, rows.indptr), shape=rows.shape)
    mapped = np.empty(rows.shape, mapped_dtype(rows.dtype))
    for part in slices(len(rows), rows_at_once(rows.shape[1])):
        mapped[part] = METRICS[metric].mapped(np.ascontiguousarray(rows[part], dtype=np.float64))
    return mapped


def convert_distances(metric: str, distances: np.ndarray) -> np.ndarray:
    """Return Euclidean distances of mapped rows as distances of a metric, in the dtype that they have."""
    return METRICS[metric].distances(distances)


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
