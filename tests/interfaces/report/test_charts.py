"""Axes and charts: values lie where they should, and marks are round and inside."""

import re

import jinja2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.interfaces.report.charts import Axis, curve, histogram, sigmas, spectrum

NUMBERS = st.floats(-1e9, 1e9)


@given(NUMBERS, st.floats(1e-6, 1e6))
def test_marks_are_few_and_between_the_ends(low, extent):
    axis = Axis("x", low, low + extent * max(1.0, abs(low)))  # numbers that differ in more than their last digits
    values = [value for _, value in axis.marks()]
    assert 1 <= len(values) <= 6
    slack = 1e-5 * (abs(axis.low) + abs(axis.high))
    assert all(axis.low - slack <= value <= axis.high + slack for value in values)
    assert all(-1e-6 <= share <= 1 + 1e-6 for share, _ in axis.marks())


def test_a_logarithmic_axis_is_even_in_powers():
    axis = Axis("x", -3.0, 3.0, log=True)
    assert axis.shares(np.array([1e-3, 1.0, 1e3])).tolist() == [0, 0.5, 1]
    assert axis.marks() == [(pytest.approx(share), value) for share, value in ((1 / 6, 0.01), (0.5, 1), (5 / 6, 100))]


@pytest.mark.parametrize(
    ("values", "heights"),
    [([1.0], [1]), ([0.0, 0.0], [1]), ([1e-9, 1e9, 1.0], [1, 1, 1]), ([0.0, 0.0, 0.0, 1.0], [1, 1 / 3])],
)
def test_the_bars_of_a_histogram_are_as_tall_as_values_are_many(values, heights):
    chart = histogram("t", "c", "x", {"one": np.array(values)})
    assert [height for height in chart.bars[0] if height] == pytest.approx(heights, abs=1e-3)


def test_bars_stand_in_the_frame_where_their_values_lie():
    templates = jinja2.Environment(loader=jinja2.PackageLoader("scalemani.interfaces.report", "template"))
    drawn = templates.get_template("charts.html").module.drawn(
        histogram("t", "c", "x", {"": np.array([0.0, 0.0, 1.0])})
    )
    rectangle = r'class="series-0" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"'
    (first, last) = (tuple(map(float, found)) for found in re.findall(rectangle, drawn))
    assert first == pytest.approx((0, 0, 320 / 48, 150), abs=0.1)
    assert last == pytest.approx((320 - 320 / 48, 75, 320 / 48, 75), abs=0.1)


def test_the_ends_of_a_curve_are_the_ends_of_its_frame():
    chart = curve("t", "c", "x", "y", np.arange(1000), np.arange(1000)[::-1] + 5000.0)
    np.testing.assert_allclose(chart.line[[0, -1]], [[0, 1], [1, 0]])


def test_the_following_eigenvalue_is_a_bar_of_its_own():
    chart = spectrum(np.array([0.1, 0.2]), 0.4, "t", "c")
    np.testing.assert_allclose(chart.bars, [[0.25, 0.5, 0], [0, 0, 1]])


def test_bandwidths_of_points_among_copies_are_drawn_without_overflow():
    beta = np.array([0.0, 0.5, 1.7e308])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(sigmas(beta), [1.0, 5.423261445466405e-155], rtol=1e-12)
