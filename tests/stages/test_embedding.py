"""The stage `embedding`: what refinement starts from, and certificates that hold against dense eigenproblems."""

import numpy as np
import pytest

from scalemani.params import Parameters
from scalemani.records.affinities import StoredSymmetricAffinities
from scalemani.runs.walk import run
from scalemani.sources import open_points
from scalemani.stages import embedding
from scalemani.workers.executor import Executor


def embedded(points, folder, solver, **values):
    """Return a run of Laplacian eigenmaps with these parameters of the embedding."""
    asked = {"affinities": {"perplexity": 8}, "landmarks": {"n_landmarks": 150}}
    params = Parameters().with_values({**asked, "embedding": {"solver": solver, **values}})
    return run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(), 1024)


@pytest.fixture
def starts(monkeypatch):
    """Return a list that the start vectors of every refinement are added to."""
    seen, initial_state = [], embedding.initial_state

    def seeing(vectors, problem, width):
        seen.append(np.array(vectors, np.float64))
        return initial_state(vectors, problem, width)

    monkeypatch.setattr(embedding, "initial_state", seeing)
    return seen


def landmark_start(finished):
    """Return D^1/2 Z X at unit length: what the landmarks say of all points, from what is stored."""
    weights, solved = finished.group("landmark_weights"), finished.group("landmark_embedding")
    n_points, coordinates = finished.dimensions.n_points, solved.read("vectors")
    dense = np.zeros((n_points, len(coordinates)))
    np.put_along_axis(dense, weights.read("indices").astype(np.int64), weights.read("values"), axis=1)
    degrees = StoredSymmetricAffinities(finished.group("symmetric_affinities")).read_degrees(n_points, np.empty)
    vectors = np.sqrt(degrees)[:, np.newaxis] * (dense @ coordinates)
    return vectors / np.linalg.norm(vectors, axis=0)


def test_refinement_of_landmark_vectors_starts_from_them_beside_the_coarse_graphs(roll, tmp_path, starts):
    points = roll[:2000]
    finished = embedded(points, tmp_path / "run", "lll+refine")
    embedded(points, tmp_path / "run", "refine")
    with_landmarks, without = starts
    n_coarse = without.shape[1]
    np.testing.assert_array_equal(with_landmarks[:, :n_coarse], without)
    added = with_landmarks[:, n_coarse:]
    expected = landmark_start(finished)
    assert added.shape == expected.shape
    np.testing.assert_allclose(added / np.linalg.norm(added, axis=0), expected, atol=1e-6)
