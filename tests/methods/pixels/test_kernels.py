"""Rows of W made of pixels equal those of a loop over all pairs of pixels."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from scalemani.kernels.affinities.bandwidths import LEAST_WEIGHT
from scalemani.methods.pixels.kernels import (
    ensemble_affinities,
    jittered,
    mean_distances,
    window_affinities,
    window_bandwidths,
)
from scalemani.methods.pixels.kernels import minimum_spanning_tree as tree_of_pixels

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
    assert window_affinities(points, image, reach, SIGMA, (31, 31))[0].tolist() == [0]


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


def pixels(image, seed=0):
    frame, row, column = np.unravel_index(np.arange(np.prod(image)), image)
    grey = np.random.default_rng(seed).normal(size=len(frame), scale=3)
    return np.stack([row, column, frame, grey], axis=1)


def window_graph(points, image, reach):
    """The distances (N, N) of pixels within each other's windows."""
    indptr, columns, _ = window_affinities(points, image, reach, 1.0, (0, len(points)))
    owners = np.repeat(np.arange(len(points)), np.diff(indptr))
    return csr_matrix((np.linalg.norm(points[owners] - points[columns], axis=1), columns, indptr))


@pytest.mark.parametrize(("image", "reach"), [((1, 9, 11), (1, 0)), ((1, 9, 11), (3, 1)), ((4, 6, 7), (2, 1))])
def test_a_tree_is_the_one_of_scipy(image, reach):
    points = pixels(image)
    expected = minimum_spanning_tree(window_graph(points, image, reach)).tocoo()
    found = tree_of_pixels(points, image, reach)
    edges = {tuple(sorted(edge)) for edge in zip(expected.row.tolist(), expected.col.tolist(), strict=True)}
    assert {tuple(sorted(edge)) for edge in found.tolist()} == edges


def test_equal_distances_make_no_cycle():
    image = (1, 12, 13)
    points = np.zeros((156, 1), np.float32)
    found = tree_of_pixels(points, image, (2, 0))
    joined = csr_matrix((np.ones(155), found.T), shape=(156, 156))
    assert connected_components(joined)[0] == 1


def test_jitter_has_the_deviation_asked_for_and_follows_the_seed():
    points, deviations = np.zeros((50_000, 2)), np.repeat([0.5, 2.0], 25_000)
    noise = jittered(points, deviations, seed=1, copy=0)
    for part, deviation in ((noise[:25_000], 0.5), (noise[25_000:], 2.0)):
        np.testing.assert_allclose(part.std(axis=0), deviation, rtol=0.01)
        assert np.abs(part).max() <= np.sqrt(3) * deviation  # uniform
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=0.03 * deviation)
    np.testing.assert_array_equal(noise, jittered(points, deviations, seed=1, copy=0))
    assert (noise != jittered(points, deviations, seed=1, copy=1)).all()
    assert (noise != jittered(points, deviations, seed=2, copy=0)).all()


def test_mean_distances_are_those_of_the_window():
    image, reach = (3, 5, 6), (1, 1)
    points = pixels(image)
    graph = window_graph(points, image, reach)
    expected = np.asarray(graph.sum(axis=1)).ravel() / np.diff(graph.indptr)
    np.testing.assert_allclose(mean_distances(points, image, reach), expected)


def test_an_edge_weighs_the_share_of_trees_that_it_is_in():
    trees = [
        np.array([[0, 1], [1, 2]]),
        np.array([[0, 1], [0, 2]]),
        np.array([[0, 1], [1, 2]]),
        np.array([[0, 2], [1, 2]]),
    ]
    found = ensemble_affinities(trees, 3)
    expected = [[0, 0.75, 0.5], [0.75, 0, 0.75], [0.5, 0.75, 0]]
    np.testing.assert_array_equal(found.toarray(), np.array(expected, np.float32))
