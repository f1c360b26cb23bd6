"""Rows of W made of pixels equal those of a loop over all pairs of pixels."""

import numpy as np
import pytest

from scalemani.kernels.affinities.bandwidths import LEAST_WEIGHT
from scalemani.kernels.affinities.window import window_affinities, window_bandwidths, window_bounds

SIGMA = 2.0


def features(image, seed=0):
    frame, row, column = np.unravel_index(np.arange(np.prod(image)), image)
    grey = np.random.default_rng(seed).normal(size=len(frame), scale=3)
    return np.stack([row, column, frame, grey], axis=1).astype(np.float32)


def distances_in_window(points, image, reach):
    """Squared distances (N, N) of all pairs, infinite outside of windows and of a pixel to itself."""
    frame, row, column = np.unravel_index(np.arange(np.prod(image)), image)
    apart = [abs(axis[:, None] - axis[None, :]) for axis in (frame, row, column)]
    same = apart[0] == 0
    within = same & (apart[1] <= reach[0]) & (apart[2] <= reach[0])
    across = ~same & (apart[0] <= reach[1]) & (apart[1] == 0) & (apart[2] == 0)
    np.fill_diagonal(within, False)
    squared = ((points[:, None].astype(float) - points[None]) ** 2).sum(axis=2)
    return np.where(within | across, squared, np.inf)


def dense(rows, n_pixels):
    indptr, columns, values = rows
    found = np.zeros((len(indptr) - 1, n_pixels), np.float32)
    found[np.repeat(np.arange(len(found)), np.diff(indptr)), columns] = values
    return found


@pytest.mark.parametrize(
    ("image", "reach"),
    [((1, 7, 9), (1, 1)), ((1, 7, 9), (3, 0)), ((4, 5, 6), (2, 1)), ((4, 5, 6), (1, 2)), ((3, 3, 3), (1, 0))],
)
def test_every_pixel_of_the_window_is_a_neighbour_and_no_other(image, reach):
    points, n_pixels = features(image), int(np.prod(image))
    squared = distances_in_window(points, image, reach)
    expected = np.where(np.isfinite(squared), np.maximum(np.exp(-squared / (2 * SIGMA**2)), LEAST_WEIGHT), 0)
    rows = window_affinities(points, image, reach, SIGMA, (0, n_pixels))
    found = dense(rows, n_pixels)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(found, found.T)  # to the bit
    np.testing.assert_array_equal(np.diff(rows[0]), np.isfinite(squared).sum(axis=1))
    assert all((np.diff(rows[1][a:b]) > 0).all() for a, b in zip(rows[0], rows[0][1:], strict=False))


def test_rows_are_the_same_in_any_cut():
    image, reach = (3, 6, 5), (2, 1)
    points = features(image)
    whole = dense(window_affinities(points, image, reach, SIGMA, (0, 90)), 90)
    parts = [dense(window_affinities(points, image, reach, SIGMA, cut), 90) for cut in ((0, 31), (31, 32), (32, 90))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert window_bounds(image, reach, 31, 31).tolist() == [0]


def test_pixels_far_apart_keep_the_least_weight():
    points = features((1, 4, 4)) * np.array([1, 1, 1, 1e6], np.float32)
    _, _, values = window_affinities(points, (1, 4, 4), (1, 1), 1e-3, (0, 16))
    assert (values == np.float32(LEAST_WEIGHT)).all()


def test_a_bandwidth_is_the_distance_to_the_nth_nearest_that_is_not_zero():
    image, reach = (2, 5, 6), (1, 1)
    points = features(image)
    points[:12] = points[0]  # two rows of equal pixels
    ordered = np.sort(np.sqrt(distances_in_window(points, image, reach)), axis=1)
    for nth in (1, 3, 7):
        expected = []
        for row in ordered:
            there = row[np.isfinite(row)]
            beyond = there[min(nth, len(there)) - 1 :]
            expected.append(beyond[beyond > 0][0] if (beyond > 0).any() else 0.0)
        np.testing.assert_allclose(window_bandwidths(points, image, reach, np.arange(60), nth), expected)
