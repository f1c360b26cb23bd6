"""Minimum spanning trees of pixels are those of SciPy on the same graph; an ensemble counts their edges."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from scalemani.kernels.affinities.window import window_affinities
from scalemani.kernels.affinities.window_trees import ensemble_affinities, jittered, mean_distances
from scalemani.kernels.affinities.window_trees import minimum_spanning_tree as tree_of_pixels


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
