"""Mapped rows: their Euclidean distances are the metric, whatever else is mapped, however large or near they are."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from scipy.spatial import distance
from scipy.stats import ortho_group

from scalemani.config.metrics import METRIC_NAMES
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.compressed import compressed_rows
from scalemani.kernels.rows.metrics import (
    METRICS,
    compared_rows,
    convert_distances,
    map_rows,
    mapped_dtype,
    n_words,
)
from scalemani.kernels.rows.reduced import SETS, reduced_distance

ORACLES = {
    "cosine": distance.cosine,
    "correlation": distance.correlation,
    "hellinger": lambda a, b: np.linalg.norm(np.sqrt(a / a.sum()) - np.sqrt(b / b.sum())) / np.sqrt(2),
}
MAPPED = sorted(ORACLES)
# No row is nearly constant.
usable_rows = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 9), st.integers(2, 12)), elements=st.floats(0.5, 9)
).map(lambda rows: rows + 20 * (np.arange(rows.shape[1]) == 1))


def between(metric, rows):
    mapped = map_rows(rows, metric).astype(np.float64)
    return convert_distances(metric, np.linalg.norm(mapped[:, None] - mapped, axis=2))


def test_parameters_and_kernels_know_the_same_metrics():
    assert {*METRICS} == {*METRIC_NAMES}
    assert len(METRICS) == len(METRIC_NAMES)


@pytest.mark.parametrize("metric", MAPPED)
@given(rows=usable_rows)
def test_distances_of_mapped_rows_are_those_of_the_metric(metric, rows):
    expected = [[ORACLES[metric](a, b) for b in rows] for a in rows]
    np.testing.assert_allclose(between(metric, rows), expected, atol=3e-15 if metric != "hellinger" else 1e-14)


@pytest.mark.parametrize("metric", MAPPED)
@given(rows=usable_rows, start=st.integers(0, 8), dtype=st.sampled_from([np.float64, np.float32, np.uint8]))
def test_a_row_is_mapped_to_the_same_bits_whatever_comes_with_it(metric, rows, start, dtype):
    rows = rows.astype(dtype)
    whole, part = map_rows(rows, metric), map_rows(np.asfortranarray(rows[start:]), metric)
    assert whole.dtype == mapped_dtype(rows.dtype)
    np.testing.assert_array_equal(whole[start:], part)


@pytest.mark.parametrize("metric", MAPPED)
@given(rows=usable_rows, exponents=st.lists(st.integers(-1000, 1000), min_size=9, max_size=9))
def test_rows_are_compared_whatever_their_length(metric, rows, exponents):
    stretched = np.ldexp(rows, np.array(exponents[: len(rows)])[:, None])
    np.testing.assert_array_equal(map_rows(stretched, metric), map_rows(rows, metric))


@pytest.mark.parametrize("metric", MAPPED)
@given(rows=usable_rows, seed=st.integers(0, 99))
def test_sparse_rows_are_mapped_as_the_same_rows_with_their_zeros_are(metric, rows, seed):
    rows = np.where(np.random.default_rng(seed).random(rows.shape) < 0.5, 0.0, rows)
    rows[:, 1] = 20.0
    found, expected = map_rows(sparse.csr_matrix(rows), metric), map_rows(rows, metric)
    assert sparse.issparse(found) == METRICS[metric].keeps_zeros
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("euclidean", []), ("cosine", [1]), ("correlation", [1, 2]), ("hellinger", [0, 1])],
)
def test_the_rows_that_a_metric_cannot_take_are_named(metric, expected):
    rows = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [3.0, 3.0, 3.0], [0.0, 2.0, 0.0]])
    concerned = [np.flatnonzero(refusal.concerns(rows)) for refusal in METRICS[metric].refusals]
    assert sorted(np.concatenate([*concerned, np.empty(0, int)])) == expected


@given(rows=usable_rows, offset=st.integers(-(2**20), 2**20))
def test_correlation_does_not_see_what_is_added_to_a_row(rows, offset):
    whole = np.rint(rows * 2**10)  # sums are exact then
    np.testing.assert_array_equal(map_rows(whole + offset, "correlation"), map_rows(whole, "correlation"))


@given(rows=usable_rows, seed=st.integers(0, 99))
def test_the_order_of_the_columns_does_not_matter(rows, seed):
    order = np.random.default_rng(seed).permutation(rows.shape[1])
    for metric in MAPPED:
        np.testing.assert_allclose(between(metric, rows[:, order]), between(metric, rows), atol=1e-15)


@given(rows=usable_rows, seed=st.integers(0, 99))
def test_cosine_and_euclidean_distances_do_not_see_rotations_and_reflections(rows, seed):
    turn = ortho_group.rvs(rows.shape[1], random_state=seed)
    for metric in ("cosine", "euclidean"):
        np.testing.assert_allclose(between(metric, rows @ turn), between(metric, rows), atol=1e-6)


@given(rows=usable_rows, offset=st.integers(-(2**20), 2**20))
def test_euclidean_distances_do_not_see_what_is_added_to_all_rows(rows, offset):
    whole = np.rint(rows * 2**10)
    np.testing.assert_array_equal(between("euclidean", whole + offset), between("euclidean", whole))


@given(rows=usable_rows, share=st.floats(0.01, 0.99))
def test_hellinger_distances_do_not_see_that_a_count_is_divided_into_two_kinds(rows, share):
    divided = np.column_stack([share * rows[:, :1], (1 - share) * rows[:, :1], rows[:, 1:]])
    np.testing.assert_allclose(between("hellinger", divided), between("hellinger", rows), atol=3e-8)


def exact_cosine_distance(a, b) -> float:
    """1 - cos in integers of 200 bits: sin^2 / (1 + cos)."""
    a, b = ([Fraction(float(value)) for value in row] for row in (a, b))
    dot, left, right = sum(x * y for x, y in zip(a, b, strict=True)), sum(x * x for x in a), sum(y * y for y in b)
    square = dot * dot / (left * right)
    cosine = Fraction(isqrt(int(square * 4**200)), 2**200)
    return float((1 - square) / (1 + cosine))


@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-9])
def test_cosine_distances_of_near_duplicates_keep_their_digits(apart):
    rng = np.random.default_rng(0)
    row = rng.normal(size=20)
    other = row + apart * rng.normal(size=20)
    expected = exact_cosine_distance(row, other)
    found = between("cosine", np.stack([row, other]))[0, 1]
    assert found == pytest.approx(expected, rel=20 * np.finfo(float).eps / apart)
    # The usual formula has lost all digits of the last of these.
    assert abs(distance.cosine(row, other) - expected) > abs(found - expected)


bits = arrays.arrays(np.bool_, st.tuples(st.integers(2, 9), st.integers(1, 70)))


@given(rows=bits, dtype=st.sampled_from([np.bool_, np.uint8, np.float32, np.float64]))
def test_distances_of_mapped_bits_are_the_share_that_differs(rows, dtype):
    expected = [[distance.hamming(a, b) for b in rows] for a in rows]
    rounding = 1e-15 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(between("hamming", rows.astype(dtype)), expected, rtol=rounding, atol=0)
    sparse_rows = map_rows(sparse.csr_matrix(rows.astype(np.uint8)), "hamming")
    np.testing.assert_array_equal(sparse_rows.toarray(), map_rows(rows.astype(np.uint8), "hamming"))


@given(rows=bits, seed=st.integers(0, 99))
def test_hamming_distances_do_not_see_the_order_of_columns_nor_columns_that_are_inverted(rows, seed):
    draws = np.random.default_rng(seed)
    other = (rows ^ draws.integers(0, 2, rows.shape[1]).astype(bool))[:, draws.permutation(rows.shape[1])]
    np.testing.assert_allclose(between("hamming", other), between("hamming", rows), atol=1e-7)


@compiled
def distances_between(compared_as, rows, others, n_rows):
    found = np.empty((n_rows, n_rows))
    for i in range(n_rows):
        for j in range(n_rows):
            found[i, j] = reduced_distance(compared_as, rows, i, others, j, np.inf)
    return found


@given(rows=bits, dtype=st.sampled_from([np.bool_, np.uint8, np.float32, np.float64]))
def test_sets_are_compared_by_their_jaccard_distance_and_mapped_rows_are_never_farther_apart(rows, dtype):
    rows[0] = False
    expected = np.array([[distance.jaccard(a, b) for b in rows] for a in rows])
    dense, thin = map_rows(rows.astype(dtype), "jaccard"), map_rows(sparse.csr_matrix(rows.astype(np.uint8)), "jaccard")
    np.testing.assert_allclose(thin.toarray(), dense, rtol=1e-6)
    words, sets = compared_rows(dense, "jaccard"), compared_rows(thin, "jaccard")
    assert words.shape == (len(rows), n_words(rows.shape[1]))
    assert compared_rows(words, "jaccard") is words
    of_words = distances_between(SETS, words, words, len(rows))
    np.testing.assert_allclose(of_words, expected, rtol=1e-15, atol=0)
    np.testing.assert_array_equal(of_words, of_words.T)
    of_sets = distances_between(SETS, compressed_rows(sets), compressed_rows(sets), len(rows))
    np.testing.assert_array_equal(of_sets, of_words)
    assert (between("jaccard", rows.astype(dtype)) <= expected + (1e-15 if dtype == np.float64 else 1e-6)).all()


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
def test_rows_that_are_no_bits_are_named(metric):
    rows = np.array([[0, 1, 1], [0, 2, 1], [0, 0, 0], [1, 0, -1]])
    (refusal,) = METRICS[metric].refusals
    for given_rows in (rows, rows + 0.0, sparse.csr_matrix(rows)):
        assert refusal.concerns(given_rows).tolist() == [False, True, False, True]


def test_rows_as_large_and_as_small_as_floats_get_are_mapped():
    rows = np.array([[1.0, 2.0, 4.0], [1e308, 1.5e308, 0.0], [5e-324, 1e-323, 0.0]])
    for metric in MAPPED:
        mapped = map_rows(rows, metric)
        np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1, rtol=1e-14)


def test_a_metric_may_be_any_function_of_distances_of_mapped_rows(monkeypatch):
    angles = METRICS["cosine"]._replace(converted=lambda away: 2 * np.arcsin(away / 2) / np.pi)
    monkeypatch.setitem(METRICS, "angular", angles)
    rows = np.random.default_rng(2).normal(size=(20, 7))
    expected = [[np.arccos(np.clip(1 - distance.cosine(a, b), -1, 1)) / np.pi for b in rows] for a in rows]
    np.testing.assert_allclose(between("angular", rows), expected, atol=1e-7)


def test_euclidean_rows_and_distances_stay_what_they_are():
    rows = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert map_rows(rows, "euclidean") is rows
    assert convert_distances("euclidean", rows) is rows
