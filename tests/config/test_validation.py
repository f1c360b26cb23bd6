from concurrent.futures import Future

import dask
import numpy as np
import pytest
import scipy.sparse

from scalemani.config.params import Parameters
from scalemani.config.validation import (
    check_count,
    check_dtype,
    check_finite_block,
    check_magnitude,
    check_points,
    check_seed,
)
from scalemani.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("bool", "uint8"),
        ("uint8", "uint8"),
        ("int8", "int8"),
        ("uint16", "uint16"),
        ("int16", "int16"),
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("int32", "float64"),
        ("uint64", "float64"),
        ("longdouble", "float64"),
        (">f4", "float32"),
        (">i2", "int16"),
    ],
)
def test_dtypes_kept_or_cast(given, kept):
    points = np.arange(6).reshape(3, 2).astype(given)
    checked = check_points(points)
    assert checked.dtype == np.dtype(kept)
    assert checked.dtype.isnative
    np.testing.assert_array_equal(checked, points.astype(kept))
    assert check_dtype(given) == np.dtype(kept)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.ones((3, 2), dtype=complex), "Complex data not supported"),
        (np.array([["a", "b"]], dtype=object), "numeric dtype, got object"),
        (np.ones((3, 2)).astype(object), "numeric dtype, got object"),
        (np.array([["a", "b"]]), "numeric dtype"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "numeric dtype"),
        (np.zeros(3, dtype=[("a", "f8")]), "numeric dtype"),
        (np.arange(5.0), "Expected 2D array, got 1D array.*Reshape your data"),
        (np.zeros((2, 2, 2)), "Expected 2D array, got 3D"),
        (np.float64(3), "Expected 2D array, got 0D"),
        (np.zeros((0, 3)), r"0 sample\(s\).*minimum of 1"),
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        ([[1, 2], [3]], "differ in length"),
        (scipy.sparse.eye(3, format="csr"), "sparse.*toarray"),
        (np.ma.masked_greater(np.arange(6.0).reshape(3, 2), 4), "1 masked values"),
        (np.full((3, 2), 7e4).astype(np.longdouble) * np.longdouble("1e400"), "inf"),
    ],
)
def test_refused_with_reason(points, message):
    with pytest.raises(DataError, match=message):
        check_points(points)


def test_non_finite_values_are_located():
    points = np.zeros((10, 3))
    points[4, 1] = np.nan
    points[6, 2] = -np.inf
    with pytest.raises(DataError, match=r"2 values .*\(1 NaN, 1 inf\).*row 4, column 1; 2 rows .* first 4, 6"):
        check_points(points)
    with pytest.raises(DataError, match="row 1004, column 1"):
        check_finite_block(points, 1000)
    points[:, 0] = np.nan
    with pytest.raises(DataError, match=r"nothing but NaN in column\(s\) 0"):
        check_points(points)


def test_float16_overflow_is_refused():
    with np.errstate(over="ignore"):
        points = np.array([[70000.0, 1.0]]).astype(np.float16)
    with pytest.raises(DataError, match="inf"):
        check_points(points)


def test_an_overflowing_sum_of_finite_values_passes():
    points = np.full((4, 4), np.finfo(np.float32).max, dtype=np.float32)
    assert check_points(points) is points


def test_layouts_give_equal_values():
    points = np.arange(24.0).reshape(6, 4)
    for view in (np.asfortranarray(points), points[::-1][::-1], points.astype(">f8"), points.tolist()):
        np.testing.assert_array_equal(check_points(view), points)
    unmasked = np.ma.masked_array(points, mask=np.zeros_like(points, dtype=bool))
    np.testing.assert_array_equal(check_points(unmasked), points)
    frozen = points.copy()
    frozen.setflags(write=False)
    assert check_points(frozen) is frozen


def test_objects_that_are_numbers_pass_on_request():
    points = np.ones((3, 2)).astype(object)
    assert check_points(points, convert_objects=True).dtype == np.float64
    with pytest.raises(DataError, match="numeric dtype"):
        check_points(np.array([["a"]], dtype=object), convert_objects=True)
    with pytest.raises(DataError, match="is a dict, which is no table with rows"):
        check_points({"x": 1}, convert_objects=True)


def test_magnitude():
    assert check_magnitude(np.array([0.0, 1.0]), np.array([2.0, 1.0]), np.float64) == 1
    with pytest.raises(DataError, match="zero variance"):
        check_magnitude(np.ones(3), np.ones(3), np.float32)
    with pytest.raises(DataError, match="overflow float64"):
        check_magnitude(np.array([0.0]), np.array([1e200]), np.float64)
    with pytest.raises(DataError, match="overflow float64"):
        check_magnitude(np.array([-1.7e308]), np.array([1.7e308]), np.float64)
    with pytest.raises(DataError, match=r"overflow float32.*pass float64"):
        check_magnitude(np.array([0.0]), np.array([1e25]), np.float32)
    with pytest.raises(DataError, match="underflow"):
        check_magnitude(np.array([0.0]), np.array([1e-310]), np.float64)
    assert check_magnitude(np.array([0.0]), np.array([255.0]), np.uint8) == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (15.5, r"integer >= 1, got 15.5 \(float\)"),
        (True, r"integer >= 1, got True \(bool\)"),
        (np.True_, "integer >= 1"),
        ("3", r"integer >= 1, got '3' \(str\)"),
        (None, "integer >= 1, got None"),
        (0, "must be >= 1, got 0"),
        (7, r"must be <= 6 \(the number of points\), got 7"),
    ],
)
def test_counts(value, message):
    with pytest.raises(ConfigError, match=message):
        check_count(value, "n", 1, 6, "the number of points")
    assert check_count(np.int32(6), "n", 1, 6) == 6


def test_seeds():
    assert check_seed(3) == 3
    assert check_seed(2**63 - 1) == 2**63 - 1 == Parameters().with_values({"seed": 2**63 - 1}).seed
    assert check_seed(None) != check_seed(None)
    assert check_seed(np.random.RandomState(0)) == check_seed(np.random.RandomState(0))
    assert check_seed(np.random.default_rng(0)) == check_seed(np.random.default_rng(0))
    for bad in (-1, 2**63, 2**70, 1.5, "0", True):
        with pytest.raises(ConfigError, match="random_state must be"):
            check_seed(bad)


def test_what_has_to_be_computed_first_is_told_how():
    frame = pytest.importorskip("polars").LazyFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})
    with pytest.raises(DataError, match=r"points is a LazyFrame, which holds no rows yet: pass points\.collect\(\)"):
        check_points(frame)


@pytest.mark.parametrize(("given", "call"), [(Future(), "result"), (dask.delayed(np.zeros((3, 2))), "compute")])
def test_futures_and_delayed_values_are_told_how_to_be_had(given, call):
    with pytest.raises(DataError, match=rf"points is a \w+, which holds no rows yet: pass points\.{call}\(\)"):
        check_points(given)
