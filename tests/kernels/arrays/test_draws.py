import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from scalemani.kernels.arrays.draws import continue_sample, generator, philox_key, row_words, sample_rows


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**64), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_words_belong_to_rows_however_these_are_cut(seed, start, n_first, n_second):
    whole = row_words(seed, "stage", 0, start + n_first + n_second)
    assert whole.dtype == np.uint64
    middle = start + n_first
    parts = [row_words(seed, "stage", start, middle), row_words(seed, "stage", middle, middle + n_second)]
    np.testing.assert_array_equal(np.concatenate(parts), whole[start:])


def test_words_are_those_of_numpys_philox():
    expected = np.random.Philox(key=philox_key(3, "landmarks")).random_raw(11)
    np.testing.assert_array_equal(row_words(3, "landmarks", 0, 11), expected)


def test_seeds_stages_and_items_have_streams_of_their_own():
    streams = [
        tuple(generator(seed, stage, item).integers(0, 2**62, 3))
        for seed, stage, item in ((0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0))
    ]
    assert len(set(streams)) == 4
    assert tuple(generator(0, "a", 1).integers(0, 2**62, 3)) == streams[1]


@pytest.mark.parametrize(("n_rows", "n_sampled"), [(10, 0), (10, 1), (10, 9), (10, 10), (10, 11), (0, 0)])
def test_a_sample_is_distinct_ascending_and_as_large_as_there_are_rows(n_rows, n_sampled):
    if n_sampled == 0 and n_rows:
        pytest.skip("nothing asks for no rows of some")
    rows = sample_rows(0, "sample", n_rows, n_sampled)
    assert len(rows) == min(n_rows, n_sampled)
    assert np.all(np.diff(rows) > 0)
    assert set(rows.tolist()) <= set(range(n_rows))


@pytest.mark.parametrize(("n_rows", "n_sampled"), [(2_200_000, 1000), (2**20 + 1, 2**20), (1_500_000, 1_400_000)])
def test_a_sample_of_many_rows_has_the_least_words_of_all(n_rows, n_sampled):
    expected = np.argsort(row_words(3, "sample", 0, n_rows))[:n_sampled]
    np.testing.assert_array_equal(sample_rows(3, "sample", n_rows, n_sampled), np.sort(expected))


def test_every_row_is_sampled_equally_often():
    counts = np.zeros(12)
    for seed in range(1500):
        counts[sample_rows(seed, "sample", 12, 4)] += 1
    assert chisquare(counts).pvalue > 1e-3


def sample_that_went_on(seed, bounds, n_sampled):
    """Draw a sample of the first rows, and go on with it as rows follow, up to each of the other bounds."""
    sample = sample_rows(seed, "first", bounds[0], n_sampled)
    for n_before, n_rows in itertools.pairwise(bounds):
        kept, entering = continue_sample(seed, "following", len(sample), n_before, n_rows, n_sampled)
        assert np.all(np.diff(kept) > 0)
        assert np.all(entering >= n_before)
        sample = np.sort(np.concatenate([sample[kept], entering]))
    return sample


@pytest.mark.parametrize(("bounds", "n_sampled"), [((10, 12), 4), ((4, 7, 12), 6), ((9, 10, 11, 12), 5)])
def test_a_sample_that_goes_on_with_rows_that_follow_has_every_row_and_pair_equally_often(bounds, n_sampled):
    rows, pairs = np.zeros(12), np.zeros((12, 12))
    for seed in range(1500):
        sample = sample_that_went_on(seed, bounds, n_sampled)
        assert len(np.unique(sample)) == n_sampled
        rows[sample] += 1
        pairs[np.ix_(sample, sample)] += 1
    assert chisquare(rows).pvalue > 1e-3
    # The statistic of pairs is no chi-square, as they share rows; its mean says whether some pairs are rarer.
    found = pairs[np.triu_indices(12, 1)]
    expected = 1500 * n_sampled * (n_sampled - 1) / (12 * 11)
    assert np.abs(found - expected).max() < 4.5 * np.sqrt(expected)


def test_a_sample_of_all_rows_goes_on_as_one_of_all():
    np.testing.assert_array_equal(sample_that_went_on(0, (5, 8), 20), np.arange(8))
