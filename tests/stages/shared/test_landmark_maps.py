"""Landmarks that miss a component of the graph: every method that makes points of landmarks says so."""

import warnings

import numpy as np
import pytest

import scalemani as sm
from scalemani.errors import ScalemaniWarning

SIZES = (700, 40, 30)
GRAPH = {"n_neighbors": 8, "perplexity": 3}
KERNEL = {"settings": {"neighbors.n_neighbors": 8, "affinities.perplexity": 3}}
METHODS = {
    "eigenmaps": lambda **asked: sm.LaplacianEigenmaps(solver="lll", **GRAPH, **asked),
    "kernel-pca": lambda **asked: sm.LandmarkKernelPCA(**KERNEL, **asked),
    "kernel-lda": lambda **asked: sm.LandmarkKernelLDA(**KERNEL, **asked),
    "locally-linear-embedding": lambda **asked: sm.LandmarkLLE(n_neighbors=8, **asked),
}
ON_DATA = {
    "isomap": lambda **asked: sm.LandmarkIsomap(n_neighbors=8, **asked),
    "variational-nystrom": lambda **asked: sm.LaplacianEigenmaps(solver="variational-nystrom", **GRAPH, **asked),
}


@pytest.fixture(scope="module")
def pieces():
    """Three clusters far apart, mixed in their order, and the cluster of each point."""
    draws = np.random.default_rng(0)
    clusters = draws.permutation(np.repeat([0, 1, 2], SIZES))
    return 60.0 * clusters[:, np.newaxis] + draws.normal(size=(sum(SIZES), 3)), clusters


def told(model, points, clusters):
    """Return what a fit warns of landmarks."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ScalemaniWarning)
        model.fit(points, clusters)
    return [str(one.message) for one in seen if "landmark; their points" in str(one.message)]


@pytest.mark.parametrize("method", METHODS)
def test_components_without_a_landmark_are_told_of_with_their_points_and_what_to_do(pieces, method):
    points, clusters = pieces
    landmarks = np.concatenate([points[clusters == 0][:60], points[clusters == 1][:9]]) + 0.01  # beside the points
    (message,) = told(METHODS[method](landmarks=landmarks), points, clusters)
    assert "1 of 3 components of the neighbour graph have no landmark; their points, 30 of 770, are" in message
    assert "disconnected='largest'" in message


@pytest.mark.parametrize("method", ON_DATA)
def test_so_are_components_that_drawn_landmarks_miss(pieces, method):
    points, clusters = pieces
    asked = {"n_landmarks": 12, "landmarks": "random"}
    drawn = [clusters[sm.select_landmarks(points, 12, "random", random_state=seed).indices] for seed in range(20)]
    seed = next(seed for seed, found in enumerate(drawn) if len(np.unique(found)) < 3)
    n_missed = sum(size for cluster, size in enumerate(SIZES) if cluster not in drawn[seed])
    (message,) = told(ON_DATA[method](**asked, random_state=seed), points, clusters)
    assert f"{3 - len(np.unique(drawn[seed]))} of 3 components" in message
    assert f"{n_missed} of 770" in message


def test_landmarks_in_every_component_are_nothing_to_tell_of(pieces):
    points, clusters = pieces
    landmarks = np.concatenate([points[clusters == cluster][:20] for cluster in range(3)]) + 0.01
    assert told(METHODS["eigenmaps"](landmarks=landmarks), points, clusters) == []
