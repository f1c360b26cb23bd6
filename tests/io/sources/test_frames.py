"""Columns of frames of pandas and Dask: nullable numbers are numbers, and what is none is named with its row."""

import datetime

import numpy as np
import pytest
from scipy import sparse

from scalemani.errors import DataError
from scalemani.io.sources import open_points, take_representation

pandas = pytest.importorskip("pandas")

VALUES = np.random.default_rng(0).integers(0, 50, (300, 3))
NULLABLE = ["Int64", "Float64", "UInt8"]


def whole(kind="Int64"):
    return pandas.DataFrame(VALUES, columns=["age", "height", "weight"]).astype(kind)


def with_column(values):
    return whole().assign(added=values)


@pytest.mark.parametrize("kind", NULLABLE)
def test_nullable_columns_without_a_gap_are_float64(kind):
    for frame in (whole(kind), whole(kind).assign(height=VALUES[:, 1] / 4)):
        source = open_points(frame)
        assert source.dtype == np.float64
        np.testing.assert_array_equal(source.read(0, 300), [[float(value) for value in row] for row in frame.values])
        assert str(frame.dtypes["age"]) == kind  # the user's own is as it was


def test_frames_of_numbers_stay_as_they_are():
    for kind in ("i8", "u1", "f4", "?"):
        frame = pandas.DataFrame(VALUES.astype(kind))
        assert take_representation(frame) is frame


def test_truth_values_next_to_numbers_are_zeros_and_ones():
    frame = pandas.DataFrame({"a": VALUES[:, 0] > 20, "b": VALUES[:, 1] / 4})
    expected = [[1.0 if row[0] > 20 else 0.0, row[1] / 4] for row in VALUES.tolist()]
    np.testing.assert_array_equal(open_points(frame).read(0, 300), expected)


@pytest.mark.parametrize("n_partitions", [None, 3])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([f"p{row}" for row in range(300)], "added"),
        (pandas.Categorical(["a", "b", "c"] * 100), "added"),
        (pandas.Timestamp("1970-01-01"), "added"),
        ([1] * 299 + [datetime.date(2026, 1, 1)], "added"),
        (pandas.array([1] * 299 + [None], dtype="Int64"), "added"),
        (pandas.array([1] * 299 + [2**53 + 1], dtype="Int64"), "beyond 2.*column added"),
    ],
    ids=["texts", "categories", "times", "a date", "a gap", "many digits"],
)
def test_the_first_column_that_does_not_convert_is_named(values, words, n_partitions):
    frame = with_column(values)
    if n_partitions:
        frame = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=n_partitions)
    with pytest.raises(DataError, match=words):
        open_points(frame).read(0, 300)


def test_the_first_row_of_a_column_that_does_not_convert_is_named():
    frame = whole()
    frame.iloc[7, 1] = pandas.NA
    frame.iloc[9, 2] = pandas.NA
    with pytest.raises(DataError, match="column height of DataFrame in memory has no value in 1 rows, the first row 7"):
        open_points(frame)


def test_nullable_columns_of_dask_are_those_of_pandas():
    frames = pytest.importorskip("dask.dataframe")
    source = open_points(frames.from_pandas(whole(), npartitions=3))
    np.testing.assert_array_equal(source.read(0, 300), VALUES)
    assert source.dtype == np.float64


def test_integers_keep_their_digits_up_to_the_largest_that_float64_has():
    frame = with_column(pandas.array([2**53] * 300, dtype="Int64"))
    assert set(open_points(frame).read(0, 300)[:, 3]) == {2.0**53}


def test_sparse_columns_stay_sparse_rows():
    counts = sparse.random(300, 60, density=0.05, format="csr", random_state=0)
    source = open_points(pandas.DataFrame.sparse.from_spmatrix(counts))
    assert source.nonzeros == counts.nnz
    assert (source.read_sparse(0, 300) != counts).nnz == 0


def test_sparse_columns_of_other_values_than_zero_are_read_dense():
    frame = pandas.DataFrame({"a": pandas.arrays.SparseArray([1.0, 1.0, 2.0], fill_value=1.0)})
    assert open_points(frame).read(0, 3).ravel().tolist() == [1.0, 1.0, 2.0]
