"""W of an image by spanning trees of jittered pixels."""

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

VALUES = {
    "neighbors": {"method": "window", "window": 3, "image_rows": 9, "image_columns": 11},
    "affinities": {"kind": "ensemble"},
    "landmarks": {"n_landmarks": 30},
    "embedding": {"solver": "exact"},
}


def test_the_unit_of_the_pixels_leaves_no_trace(tmp_path):
    """Noise is in proportion to the distances of pixels, and a power of two rounds nothing."""
    features, params, found = np.random.default_rng(5).normal(size=(99, 2)), Parameters().with_values(VALUES), []
    for unit in (1.0, 16.0):
        points = open_points(unit * features)
        one = run(points, tmp_path / str(unit), "laplacian-eigenmaps", params, Executor())
        found.append(one.affinities.tocsr().toarray())
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) > 3  # edges that some trees have and others have not


def test_trees_of_pixels_that_hardly_move_share_their_edges_and_the_more_they_move_the_fewer(tmp_path):
    points, shared = open_points(np.random.default_rng(5).normal(size=(99, 2))), []
    for jitter in (1e-9, 0.1, 3.0):
        values = {**VALUES, "affinities": {"kind": "ensemble", "jitter": jitter}}
        params = Parameters().with_values(values)
        one = run(points, tmp_path / str(jitter), "laplacian-eigenmaps", params, Executor())
        shared.append(one.certificates["symmetric_affinities"]["shared"])
    assert shared[0] == 1.0
    assert shared[0] > shared[1] > shared[2]
