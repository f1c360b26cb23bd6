"""Axes and charts: values lie where they should, and marks are round and inside."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.interfaces.report.charts import (
    HEIGHT,
    MARKS,
    WIDTH,
    Axis,
    curve,
    heat,
    histogram,
    round_values,
    spectrum,
)

NUMBERS = st.floats(-1e9, 1e9)


@given(NUMBERS, st.floats(1e-6, 1e6))
def test_marks_are_few_and_between_the_ends(low, extent):
    axis = Axis(low, low + extent * max(1.0, abs(low)))  # numbers that differ in more than their last digits
    values = round_values(axis.low, axis.high)
    assert len(values) <= MARKS + 2
    slack = 1e-9 * (abs(axis.low) + abs(axis.high))
    assert all(axis.low - slack <= value <= axis.high + slack for value in values)
    assert all(place >= -1e-3 and place <= 1 + 1e-3 for place, _ in axis.marks())


def test_a_logarithmic_axis_is_even_in_powers():
    axis = Axis(1e-3, 1e3, log=True)
    np.testing.assert_allclose(axis.place(np.array([1e-3, 1.0, 1e3])), [0, 0.5, 1])
    assert [text for _, text in axis.marks()] == ["0.001", "0.1", "10", "1000"]


@pytest.mark.parametrize(
    ("values", "heights"),
    [([1.0], [1]), ([0.0, 0.0], [1]), ([1e-9, 1e9, 1.0], [1, 1, 1]), ([0.0, 0.0, 0.0, 1.0], [1, 1 / 3])],
)
def test_the_bars_of_a_histogram_are_as_tall_as_values_are_many(values, heights):
    chart = histogram("t", "c", "x", {"one": np.array(values)})
    assert [height / HEIGHT for _, _, _, height, _, _ in chart.bars] == pytest.approx(heights, abs=1e-3)
    assert all(x >= -0.1 and x + width <= WIDTH + 0.2 for x, _, width, _, _, _ in chart.bars)


def test_the_ends_of_a_curve_are_the_ends_of_its_frame():
    chart = curve("t", "c", "x", "y", np.arange(1000), np.arange(1000)[::-1] + 5000.0)
    first, *_, last = chart.line.split()
    assert (first, last) == ("0.0,0.0", f"{WIDTH:.1f},{HEIGHT:.1f}")


def test_the_following_eigenvalue_is_a_dot_of_its_own():
    chart = spectrum(np.array([0.1, 0.2]), 0.4, "t", "c")
    assert [series for _, _, series in chart.dots] == [0, 0, 1]
    assert [y for _, y, _ in chart.dots] == pytest.approx([HEIGHT * 0.75, HEIGHT * 0.5, 0.0])


def test_pairs_that_fall_together_are_darkest():
    x, y = np.array([0.1] * 9 + [1.0]), np.array([0.1] * 9 + [1.0])
    bars = heat("t", "c", ("x", x), ("y", y)).bars
    assert len(bars) == 2
    assert bars[0][5] == 1.0
    assert bars[1][5] < 0.5
