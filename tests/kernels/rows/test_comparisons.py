"""Functions of two rows: the distances of SciPy, symmetric to the bit, and in the table of metrics."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial import distance
from scipy.stats import wasserstein_distance
from sklearn.metrics.pairwise import haversine_distances

from scalemani.config.judged import distances_between
from scalemani.config.metrics import METRICS, ComparedMetric, MappedMetric, has_coordinates
from scalemani.config.params.fields import known_metric
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.comparisons import COMPARISONS
from scalemani.kernels.rows.metrics import METRICS as KERNELS
from scalemani.kernels.rows.metrics import map_rows
from scalemani.kernels.rows.reduced import reduced_distance

values = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
rows_of = arrays.arrays(np.float64, st.tuples(st.just(2), st.integers(1, 70)), elements=values)


@compiled
def between(compared_as, rows, others):
    return reduced_distance(compared_as, rows, 0, others, 0, np.inf)


def test_the_table_has_the_functions_and_type_checkers_its_names():
    names = {*get_args(ComparedMetric)}
    assert names == {*COMPARISONS, "wasserstein"}  # Manhattan's distance of rows that are mapped
    assert {*get_args(MappedMetric)} == {*METRICS} - names == {*filter(has_coordinates, METRICS)}


@pytest.mark.parametrize("metric", [*sorted(COMPARISONS.keys() - {"haversine"}), "minkowski:3", "minkowski:1.5"])
@given(rows=rows_of)
def test_a_distance_is_scipys_and_symmetric(metric, rows):
    one, other = rows[:1], rows[1:]
    compared_as = KERNELS[metric].distance
    for refusal in KERNELS[metric].refusals:
        if refusal.concerns(rows).any():
            return
    found, (_, _, power) = between(compared_as, one, other), metric.partition(":")
    expected = distance.cdist(one, other, METRICS[metric].scipy, **({"p": float(power)} if power else {}))[0, 0]
    assert found == pytest.approx(expected, rel=1e-13, abs=0)
    assert found == between(compared_as, other, one)
    assert between(compared_as, one, one) == 0


@given(arrays.arrays(np.float64, st.tuples(st.just(2), st.integers(1, 70)), elements=st.floats(allow_nan=False)))
def test_the_largest_difference_is_that_of_numpy_to_the_bit(rows):
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.abs(rows[0] - rows[1])
    if not np.isnan(apart).any():
        assert between(KERNELS["chebyshev"].distance, rows[:1], rows[1:]) == apart.max()


places = st.tuples(st.floats(-np.pi / 2, np.pi / 2), st.floats(-np.pi, np.pi))


@given(st.tuples(places, places))
def test_angles_between_places_are_those_of_scikit_learn(both):
    one, other = (np.array([place]) for place in both)
    compared_as = COMPARISONS["haversine"].distance
    found = between(compared_as, one, other)
    assert found == pytest.approx(haversine_distances(one, other)[0, 0], rel=1e-9, abs=1e-12)
    assert found == between(compared_as, other, one)
    np.testing.assert_allclose(found, distances_between("haversine", one, other)[0, 0], rtol=1e-9, atol=1e-12)


def test_rows_that_are_no_places_are_refused():
    (refusal,) = COMPARISONS["haversine"].refusals
    assert refusal.concerns(np.array([[1.5, 3.1], [1.6, 0.0], [48.1, 11.6], [0.0, -6.0]])).tolist() == [0, 1, 1, 0]
    assert refusal.concerns(np.zeros((2, 3))).all()


@given(arrays.arrays(np.float64, st.tuples(st.just(2), st.integers(2, 30)), elements=st.floats(0.01, 9)))
def test_shares_move_as_far_as_scipy_says(rows):
    one, other = (map_rows(row[np.newaxis], "wasserstein") for row in rows)
    bins = np.arange(rows.shape[1])
    expected = wasserstein_distance(bins, bins, *rows)
    assert between(KERNELS["wasserstein"].distance, one, other) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "known"),
    [("minkowski:3.0", "minkowski:3"), ("minkowski:1", "manhattan"), ("minkowski:2", "euclidean"),
     ("minkowski:inf", "chebyshev"), ("minkowski:2.5", "minkowski:2.5")],
)  # fmt: skip
def test_a_power_of_minkowski_is_one_metric_by_any_of_its_names(name, known):
    assert known_metric(name) == known


@pytest.mark.parametrize("name", ["minkowski", "minkowski:", "minkowski:x", "minkowski:0.5", "minkowski:nan"])
def test_what_is_no_power_is_refused(name):
    with pytest.raises(ValueError, match="minkowski takes its power, 1 or more: minkowski:3"):
        known_metric(name)
