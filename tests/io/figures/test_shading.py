"""Shaded pixels: every point counts, regions are even, lone points are seen; and what of the plane is shown."""

import numpy as np
import pytest

from scalemani.io.figures.look import LabelColours, class_colours
from scalemani.io.figures.panels import Mixed, cell_counts, layers_of, panel_limits, point_radius, robust_limits, shade

RNG = np.random.default_rng(0)
UNIT = np.array([[0.0, 1.0], [0.0, 1.0]])
ONE_COLOUR = np.array([[1.0, *class_colours(1)[0]]])  # of values that are all the same


def layers_at(places, index, limits, added, shape):
    """The layers (h, w, c) of points at places (2, n)."""
    return (cell_counts(places, index, limits, len(added), shape) @ added).reshape(*shape[::-1], -1)


def one_colour(places, side):
    """The layers of points at places (2, n) that all have one colour, on a square of pixels."""
    return layers_at(places, np.zeros(places.shape[1], np.int32), UNIT, ONE_COLOUR, (side, side))


def test_bins_are_those_of_a_histogram():
    points = RNG.normal(size=(5000, 2))
    limits = np.array([[-2.0, 2.0], [-1.0, 3.0]])
    index = RNG.integers(0, 4, 5000).astype(np.int32)
    added = layers_of(LabelColours(index, class_colours(4), limits=(0.0, 1.0), missing=3))
    parts = np.array_split(np.arange(5000), 3)
    layers = sum(layers_at(points[part].T, index[part], limits, added, (40, 30)) for part in parts)
    expected, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=(30, 40), range=limits[::-1])
    assert np.array_equal(layers[..., 0], expected[::-1])
    inside = (points >= limits[:, 0]).all(axis=1) & (points <= limits[:, 1]).all(axis=1)
    assert np.allclose(layers.sum(axis=(0, 1)), added[index[inside]].sum(axis=0))


def test_points_that_are_not_numbers_fall_outside():
    points = np.array([[np.nan, 0], [0, np.inf], [0, 0], [1, 1], [-1, -1]])
    limits = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    counts = cell_counts(points.T, np.zeros(5, np.int32), limits, 1, (5, 5)).toarray().reshape(5, 5)
    assert counts.sum() == 3
    assert counts[2, 2] == counts[0, 4] == counts[4, 0] == 1


def test_view_holds_everything_but_far_outliers():
    bulk = RNG.normal(size=(10_000, 2))
    assert np.array_equal(robust_limits(bulk, bulk[:2]).T, [bulk.min(axis=0), bulk.max(axis=0)])
    ends = np.array([[-5.0, -6.0], [6.0, 5.0]])
    assert np.array_equal(robust_limits(bulk, ends), ends.T)
    far = np.concatenate([bulk, [[1e9, 0]]])
    limits = robust_limits(far, far[-2:])
    assert np.array_equal(limits[0], [bulk[:, 0].min(), bulk[:, 0].max()])
    assert np.array_equal(limits[1], [bulk[:, 1].min(), bulk[:, 1].max()])


@pytest.mark.parametrize("value", [0.0, 3.0, -1e8])
def test_constant_columns_have_an_extent(value):
    rows = np.full((10, 1), value)
    low, high = robust_limits(rows, rows)[0]
    assert low < value < high


def test_one_unit_for_both_axes_unless_nearly_empty():
    square = panel_limits(np.array([[0.0, 2.0], [0.0, 1.0]]), 100, 100)
    assert np.allclose(np.diff(square, axis=1), 2 * 1.04)
    assert np.allclose(square.mean(axis=1), [1, 0.5])
    stretched = panel_limits(np.array([[0.0, 100.0], [0.0, 1.0]]), 100, 100)
    assert np.allclose(np.diff(stretched, axis=1)[:, 0], [104, 1.04])


def test_shades_are_colours_and_darken_with_density():
    layers = one_colour(np.repeat([[0.25, 0.75]] * 2, [2_000_000, 2], axis=1), 50)
    for shown in (layers, layers[..., :1]):
        shades = shade(shown)
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
    layers = one_colour(RNG.random((2, n_points)), 600)
    grain = layers[50:-50, 50:-50, 0].std() / layers[..., 0].mean()
    for shown in (layers, layers[..., :1]):
        inner = shade(shown)[50:-50, 50:-50].mean(axis=2)
        assert inner.std() < 0.05 < grain


def test_lone_points_beside_many_can_be_seen():
    places = np.append(RNG.random((2, 10**6)) * [[0.5], [1]], [[0.9], [0.5]], axis=1)
    drawn = shade(one_colour(places, 600))
    assert drawn[299:301, 539:541].min() < 0.9
    assert (drawn[:200, 400:] == 1).all()


def test_points_without_a_label_lie_below_the_others():
    index = (np.arange(2000) > 99).astype(np.int32)
    colours = LabelColours(index, np.array([[0.0, 0.0, 1.0], [0.8, 0.8, 0.8]]), ("a",), missing=1)
    places, mixed = np.full((2, 2000), 0.5), Mixed.of(colours, (100, 100))
    mixed.add(np.arange(2000), index, places, UNIT)
    drawn = shade(layers_at(places, index, UNIT, layers_of(colours), (100, 100)), mixed=mixed)[50, 50]
    assert drawn[2] - drawn[0] > 0.3
