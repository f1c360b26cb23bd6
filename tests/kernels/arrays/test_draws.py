import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from scalemani.kernels.arrays.draws import generator, philox_key, row_words, sample_rows


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


def test_every_row_is_sampled_equally_often():
    counts = np.zeros(12)
    for seed in range(1500):
        counts[sample_rows(seed, "sample", 12, 4)] += 1
    assert chisquare(counts).pvalue > 1e-3
