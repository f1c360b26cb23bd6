"""Axes and charts: values lie where they should, and marks are round and inside."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.interfaces.report.charts import (
    HEIGHT,
    WIDTH,
    Axis,
    curve,
    histogram,
    spectrum,
)

NUMBERS = st.floats(-1e9, 1e9)


@given(NUMBERS, st.floats(1e-6, 1e6))
def test_marks_are_few_and_between_the_ends(low, extent):
    axis = Axis("x", low, low + extent * max(1.0, abs(low)))  # numbers that differ in more than their last digits
    values = axis.marks()
    assert 1 <= len(values) <= 6
    slack = 1e-5 * (abs(axis.low) + abs(axis.high))
    assert all(axis.low - slack <= value <= axis.high + slack for value in values)


def test_a_logarithmic_axis_is_even_in_powers():
    axis = Axis("x", -3.0, 3.0, log=True)
    assert axis.places(np.array([1e-3, 1.0, 1e3]), 10) == [0, 5, 10]
    assert axis.marks() == [0.01, 1, 100]


@pytest.mark.parametrize(
    ("values", "heights"),
    [([1.0], [1]), ([0.0, 0.0], [1]), ([1e-9, 1e9, 1.0], [1, 1, 1]), ([0.0, 0.0, 0.0, 1.0], [1, 1 / 3])],
)
def test_the_bars_of_a_histogram_are_as_tall_as_values_are_many(values, heights):
    chart = histogram("t", "c", "x", {"one": np.array(values)})
    assert [height / HEIGHT for _, _, _, height, _ in chart.bars] == pytest.approx(heights, abs=1e-3)
    assert all(x >= -0.1 and x + width <= WIDTH + 0.2 for x, _, width, _, _ in chart.bars)


def test_the_ends_of_a_curve_are_the_ends_of_its_frame():
    chart = curve("t", "c", "x", "y", np.arange(1000), np.arange(1000)[::-1] + 5000.0)
    first, *_, last = chart.line.split()
    assert (first, last) == ("0.0,0.0", f"{WIDTH:.1f},{HEIGHT:.1f}")


def test_the_following_eigenvalue_is_a_bar_of_its_own():
    chart = spectrum(np.array([0.1, 0.2]), 0.4, "t", "c")
    assert [series for *_, series in chart.bars] == [0, 0, 1]
    assert [height for _, _, _, height, _ in chart.bars] == pytest.approx([HEIGHT * 0.25, HEIGHT * 0.5, HEIGHT])
