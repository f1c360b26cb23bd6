"""The row that lies far out, and no row where all are as they are drawn."""

import numpy as np
import pytest

from scalemani.runs.survey import outlying_row


def outlier_of(rows):
    return outlying_row(rows, rows.min(axis=0), rows.max(axis=0))


@pytest.mark.parametrize("value", [1e6, -1e12, 1e200])
@pytest.mark.parametrize("n_rows", [3, 10, 1024])
def test_a_row_far_out_is_named_with_its_column_and_value(n_rows, value):
    rows = np.random.default_rng(0).normal(size=(n_rows, 4))
    rows[n_rows // 2, 2] = value
    found = outlier_of(rows)
    assert (found.row, found.column, found.value) == (n_rows // 2, 2, value)
    assert found.times > 1000


@pytest.mark.parametrize("draw", ["normal", "exponential", "lognormal", "uniform"])
def test_no_row_of_a_distribution_is_far_out(draw):
    assert outlier_of(getattr(np.random.default_rng(0), draw)(size=(5000, 20))) is None


def test_a_column_that_is_mostly_one_value_has_no_scale():
    rows = np.zeros((100, 2), np.int32)
    rows[::20, 0] = 10**6
    assert outlier_of(rows) is None
    assert outlier_of(rows.astype(np.uint8)) is None
