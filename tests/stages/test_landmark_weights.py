"""The stage `landmark_weights`: certificates of the reconstruction, computed anew from what is stored."""

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

N_LANDMARKS = 60


@pytest.fixture(scope="module", params=[2, 5])
def finished(request, roll, tmp_path_factory):
    """A run whose landmarks are few: two neighbours of them reconstruct badly, five better."""
    values = {
        "affinities": {"perplexity": 8},
        "landmarks": {"n_landmarks": N_LANDMARKS},
        "landmark_weights": {"n_neighbors": request.param},
        "embedding": {"solver": "lll"},
    }
    folder = tmp_path_factory.mktemp("weights") / "run"
    return run(open_points(roll), folder, "laplacian-eigenmaps", Parameters().with_values(values), Executor(), 1024)


def distances(points, landmarks):
    return np.sqrt(((points[:, np.newaxis] - landmarks) ** 2).sum(axis=2))


def width_of(finished):
    """Return of how many landmarks a point is made."""
    return finished.group("landmark_weights").read("indices").shape[1]


def test_reconstruction_errors_are_those_of_the_stored_weights(roll, finished):
    group = finished.group("landmark_weights")
    points = roll.astype(np.float64)[finished.group("work_points").read("input_rows")]
    landmarks = finished.group("landmarks").read("points").astype(np.float64)
    weights = np.zeros((len(points), N_LANDMARKS))
    np.put_along_axis(weights, group.read("indices").astype(np.int64), group.read("values"), axis=1)
    alone = distances(points, landmarks).min(axis=1)
    missed = np.linalg.norm(points - weights @ landmarks, axis=1)
    errors = np.divide(missed, alone, out=np.zeros(len(points)), where=alone > 0)
    certificates = finished.certificates["landmark_weights"]
    assert np.sum(alone == 0) == N_LANDMARKS
    assert certificates["mean_reconstruction_error"] == pytest.approx(errors[alone > 0].mean(), rel=1e-5)
    assert certificates["largest_reconstruction_error"] == pytest.approx(errors.max(), rel=1e-5)
    assert errors.mean() > (0.3 if width_of(finished) == 2 else 0.01)


def test_landmarks_that_no_point_uses_are_counted(roll, finished):
    points, landmarks = roll.astype(np.float64), finished.group("landmarks").read("points").astype(np.float64)
    nearest = np.argsort(distances(points, landmarks), axis=1, kind="stable")[:, : width_of(finished)]
    unused = N_LANDMARKS - len(np.unique(nearest))
    assert finished.certificates["landmark_weights"]["unused_landmarks"] == unused


def test_where_every_point_is_a_landmark_no_mean_error_is_certified(roll, tmp_path):
    params = Parameters().with_values({"landmarks": {"n_landmarks": 200}, "embedding": {"solver": "lll"}})
    found = run(open_points(roll[:200]), tmp_path, "laplacian-eigenmaps", params, Executor(), 1024).certificates
    assert found["landmark_weights"] == {"largest_reconstruction_error": 0.0, "unused_landmarks": 0}
