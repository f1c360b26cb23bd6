"""Functions of two rows: the distances of SciPy, symmetric to the bit, and in the table of metrics."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial import distance

from scalemani.config.metrics import METRICS, ComparedMetric, MappedMetric, has_coordinates
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.comparisons import COMPARISONS
from scalemani.kernels.rows.reduced import reduced_distance

values = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
rows_of = arrays.arrays(np.float64, st.tuples(st.just(2), st.integers(1, 70)), elements=values)


@compiled
def between(compared_as, rows, others):
    return reduced_distance(compared_as, rows, 0, others, 0, np.inf)


def test_the_table_has_the_functions_and_type_checkers_its_names():
    names = {*get_args(ComparedMetric)}
    assert names == {*COMPARISONS} == {name for name, row in METRICS.items() if row.scipy}
    assert {*get_args(MappedMetric)} == {*METRICS} - names == {*filter(has_coordinates, METRICS)}


@pytest.mark.parametrize("metric", sorted(COMPARISONS))
@given(rows=rows_of)
def test_a_distance_is_scipys_and_symmetric(metric, rows):
    one, other = rows[:1], rows[1:]
    for refusal in COMPARISONS[metric].refusals:
        if refusal.concerns(rows).any():
            return
    found = between(COMPARISONS[metric].distance, one, other)
    expected = distance.cdist(one, other, METRICS[metric].scipy)[0, 0]
    assert found == pytest.approx(expected, rel=1e-13, abs=0)
    assert found == between(COMPARISONS[metric].distance, other, one)
    assert between(COMPARISONS[metric].distance, one, one) == 0
