"""Shaded pixels: every point counts, regions are even, lone points are seen; and what of the plane is shown."""

import numpy as np
import pytest

from scalemani.io.figures.look import class_colours
from scalemani.io.figures.panels import Canvas, panel_limits, point_radius, robust_limits, shade, weighted_colours

RNG = np.random.default_rng(0)


def test_bins_are_those_of_a_histogram():
    points = RNG.normal(size=(5000, 2))
    limits = np.array([[-2.0, 2.0], [-1.0, 3.0]])
    index = RNG.integers(0, 4, 5000).astype(np.int32)
    colours = weighted_colours(class_colours(4), 2)
    canvas = Canvas(40, 30, limits)
    for part in np.array_split(np.arange(5000), 3):
        canvas.add(points[part, 0], points[part, 1], index[part], colours)
    expected, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=(30, 40), range=limits[::-1])
    assert np.array_equal(canvas.counts, expected[::-1])
    assert canvas.n_outside == 5000 - expected.sum()
    inside = (points >= limits[:, 0]).all(axis=1) & (points <= limits[:, 1]).all(axis=1)
    assert np.allclose(canvas.sums.sum(axis=(0, 1)), colours[index[inside]].sum(axis=0, dtype=float))


def test_points_that_are_not_numbers_fall_outside():
    points = np.array([[np.nan, 0], [0, np.inf], [0, 0], [1, 1], [-1, -1]])
    canvas = Canvas(5, 5, np.array([[-1.0, 1.0], [-1.0, 1.0]]))
    canvas.add(*points.T, np.zeros(5, np.int32), None)
    assert canvas.n_outside == 2
    assert canvas.counts[2, 2] == canvas.counts[0, 4] == canvas.counts[4, 0] == 1


def test_view_holds_everything_but_far_outliers():
    bulk = RNG.normal(size=(10_000, 2))
    assert np.array_equal(
        robust_limits(bulk, bulk.min(axis=0), bulk.max(axis=0)).T, [bulk.min(axis=0), bulk.max(axis=0)]
    )
    far = np.concatenate([bulk, [[1e9, 0]]])
    limits = robust_limits(far, far.min(axis=0), far.max(axis=0))
    assert np.array_equal(limits[0], [bulk[:, 0].min(), bulk[:, 0].max()])
    assert np.array_equal(limits[1], [bulk[:, 1].min(), bulk[:, 1].max()])


@pytest.mark.parametrize("value", [0.0, 3.0, -1e8])
def test_constant_columns_have_an_extent(value):
    rows = np.full((10, 1), value)
    low, high = robust_limits(rows, rows.min(axis=0), rows.max(axis=0))[0]
    assert low < value < high


def test_one_unit_for_both_axes_unless_nearly_empty():
    square = panel_limits(np.array([[0.0, 2.0], [0.0, 1.0]]), 100, 100)
    assert np.allclose(np.diff(square, axis=1), 2 * 1.04)
    assert np.allclose(square.mean(axis=1), [1, 0.5])
    stretched = panel_limits(np.array([[0.0, 100.0], [0.0, 1.0]]), 100, 100)
    assert np.allclose(np.diff(stretched, axis=1)[:, 0], [104, 1.04])


def test_shades_are_colours_and_darken_with_density():
    canvas = Canvas(50, 50, np.array([[0.0, 1.0], [0.0, 1.0]]))
    for n_points, at in ((2_000_000, 0.25), (2, 0.75)):
        place = np.full(n_points, at)
        canvas.add(place, place, np.zeros(n_points, dtype=np.int32), weighted_colours(class_colours(1), None))
    for density_only in (True, False):
        shades = shade(canvas, density_only)
        assert shades.min() >= 0
        assert shades.max() <= 1
        dense, thin, empty = shades[37, 12], shades[12, 37], shades[0, 0]
        assert np.array_equal(empty, [1, 1, 1])
        assert dense.sum() < thin.sum() < 3


def test_points_are_larger_where_they_are_few():
    assert point_radius(100, 10**6) == 4
    assert 1 < point_radius(30_000, 10**6) < 4
    assert point_radius(10**7, 10**6) == 1


@pytest.mark.parametrize("n_points", [70_000, 300_000, 1_000_000])
def test_regions_of_one_density_are_even_and_not_like_sand(n_points):
    side = 600
    canvas = Canvas(side, side, np.array([[0.0, 1.0], [0.0, 1.0]]))
    index = np.zeros(n_points, np.int32)
    canvas.add(RNG.random(n_points), RNG.random(n_points), index, weighted_colours(class_colours(1), None))
    for density_only in (True, False):
        inner = shade(canvas, density_only)[50:-50, 50:-50].mean(axis=2)
        grain = canvas.counts[50:-50, 50:-50].std() / canvas.counts.mean()
        assert inner.std() < 0.05 < grain


def test_lone_points_beside_many_can_be_seen():
    canvas = Canvas(600, 600, np.array([[0.0, 1.0], [0.0, 1.0]]))
    colours = weighted_colours(class_colours(1), None)
    canvas.add(RNG.random(10**6) / 2, RNG.random(10**6), np.zeros(10**6, np.int32), colours)
    canvas.add(np.array([0.9]), np.array([0.5]), np.zeros(1, np.int32), colours)
    assert shade(canvas, density_only=False)[299:301, 539:541].min() < 0.9
    assert (shade(canvas, density_only=False)[:200, 400:] == 1).all()


def test_points_without_a_label_lie_below_the_others():
    canvas = Canvas(100, 100, np.array([[0.0, 1.0], [0.0, 1.0]]))
    table = np.array([[0.0, 0.0, 1.0], [0.8, 0.8, 0.8]], np.float32)
    place = np.full(2000, 0.5)
    canvas.add(place, place, (np.arange(2000) > 99).astype(np.int32), weighted_colours(table, 1))
    drawn = shade(canvas, density_only=False)[50, 50]
    assert drawn[2] - drawn[0] > 0.3
