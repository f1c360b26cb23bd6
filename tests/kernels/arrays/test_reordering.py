import resource

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.engine.memory.files import MappedArrays
from scalemani.stages.shared.output import reordered


def zeros(shape, dtype):
    return np.zeros(shape, dtype)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(0, 30_000), st.integers(1, 3), st.sampled_from([np.float32, np.float64]))
def test_every_row_comes_to_its_place_whatever_makes_the_array(seed, n_rows, n_columns, dtype):
    draws = np.random.default_rng(seed)
    values, places = draws.normal(size=(n_rows, n_columns)).astype(dtype), draws.permutation(n_rows)
    expected = np.empty((n_rows, n_columns))
    expected[places] = values
    np.testing.assert_array_equal(reordered(values, places, zeros, part_bytes=1), expected)
    np.testing.assert_array_equal(reordered(values, places), expected)


def test_rows_of_several_panels_and_parts_come_to_their_places(tmp_path):
    draws, n_rows = np.random.default_rng(0), 2**17 + 4321
    values, places = draws.normal(size=(n_rows, 40)).astype(np.float32), draws.permutation(n_rows)
    found = reordered(values, places, MappedArrays(tmp_path).empty)
    np.testing.assert_array_equal(found[places], values.astype(np.float64))


def test_an_array_in_a_file_is_not_touched_page_by_page_for_each_row(tmp_path):
    n_rows = 2**22
    places = np.random.default_rng(0).permutation(n_rows)
    values = np.arange(2 * n_rows, dtype=np.float32).reshape(n_rows, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    found = reordered(values, places, MappedArrays(tmp_path).empty)
    touched = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert touched < n_rows / 8  # rows one after the other touch a page each, four million
    np.testing.assert_array_equal(found[places[:1000]], values[:1000])
