"""The spectral route against exact Laplacian eigenmaps computed another way."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.measures import subspace_angle
from scalemani.runs.walk import run
from scalemani.stages.arrays.affinities import affinity_graph

N_POINTS = 2000


def embedded(points, folder, **values):
    params = Parameters().with_values({"affinities": {"perplexity": 8}, **values})
    return run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(), 1024)


def dense_eigenmaps(finished, n_components):
    """Solve L v = lambda D v with LAPACK on the W of a run."""
    dimensions, stored = finished.dimensions, affinity_graph({one: finished.group(one) for one in finished.keys})
    blocks = [stored.read_matrix(block, dimensions.n_points) for block in range(dimensions.n_blocks)]
    weights = sp.vstack(blocks).toarray().astype(np.float64)
    np.testing.assert_array_equal(weights, weights.T)
    degrees = np.diag(weights.sum(axis=1))
    values, vectors = scipy.linalg.eigh(degrees - weights, degrees, subset_by_index=[0, n_components])
    assert abs(values[0]) < 1e-12
    in_input_order = np.empty((dimensions.n_points, n_components))
    in_input_order[finished.group("work_points").read("input_rows")] = vectors[:, 1:]
    return values[1:], in_input_order


@pytest.mark.parametrize("n_components", [2, 5])
def test_with_every_point_a_landmark_the_answer_is_exact(roll, tmp_path, n_components):
    setting = {"landmarks": {"n_landmarks": N_POINTS}, "landmark_embedding": {"n_components": n_components}}
    finished = embedded(roll[:N_POINTS], tmp_path / "run", embedding={"solver": "lll"}, **setting)
    values, vectors = dense_eigenmaps(finished, n_components)
    assert subspace_angle(finished.embedding[...], vectors) < 1e-8
    np.testing.assert_allclose(finished.eigenvalues, values, rtol=1e-8)
    assert finished.certificates["embedding"]["residual"] < 1e-8


@pytest.mark.parametrize(
    ("solver", "residual", "angle"), [("refine", 1e-5, 2e-3), ("lll+refine", 1e-5, 2e-3), ("exact", 1e-3, 1e-7)]
)
def test_other_solvers_reach_the_same_subspace(roll, tmp_path, solver, residual, angle):
    finished = embedded(roll[:N_POINTS], tmp_path / "run", embedding={"solver": solver, "residual": residual})
    values, vectors = dense_eigenmaps(finished, 2)
    assert subspace_angle(finished.embedding[...], vectors) < angle
    np.testing.assert_allclose(finished.eigenvalues, values, rtol=max(residual, 1e-7))
    assert finished.certificates["embedding"]["residual"] <= residual


def test_landmarks_never_give_smaller_eigenvalues_than_the_exact_ones(roll, tmp_path):
    finished = embedded(roll[:N_POINTS], tmp_path / "run", landmarks={"n_landmarks": 150}, embedding={"solver": "lll"})
    values, _ = dense_eigenmaps(finished, 2)
    assert (finished.eigenvalues >= values - 1e-10).all()


def test_a_residual_that_is_not_reached_is_said(roll, tmp_path):
    finished = embedded(roll[:N_POINTS], tmp_path / "run", embedding={"residual": 1e-9, "max_passes": 3})
    assert finished.certificates["embedding"]["residual"] > 1e-9
    assert np.isfinite(finished.embedding[...]).all()


@pytest.mark.parametrize("kind", ["gaussian", "self-tuning"])
def test_other_affinities_embed_too(roll, tmp_path, kind):
    setting = {"affinities": {"kind": kind, "sigma": 1.6, "perplexity": 8}}
    finished = embedded(roll[:N_POINTS], tmp_path / "run", **setting)
    assert finished.certificates["embedding"]["residual"] <= 1e-4


@pytest.mark.parametrize("method", ["random", "spread", "kmeans", "kmeans++", "kmeans++ seeding", "minmax", "dpp"])
def test_every_way_to_choose_landmarks_gives_distinct_points_of_the_data(roll, tmp_path, method):
    chosen = {"landmarks": {"n_landmarks": 100, "method": method, "sample_points": 1500}}
    finished = embedded(roll[:N_POINTS], tmp_path / "run", **chosen)
    rows = finished.group("landmarks").read("rows")
    assert len(np.unique(rows)) == 100
    np.testing.assert_array_equal(finished.group("landmarks").read("points"), roll[rows])


def test_a_refined_embedding_is_the_same_for_any_blocks(roll, tmp_path):
    params = Parameters().with_values({"affinities": {"perplexity": 8}})
    one, other = (
        run(open_points(roll), tmp_path / str(rows), "laplacian-eigenmaps", params, Executor(workers=workers), rows)
        for rows, workers in ((1024, 1), (4096, 2))
    )
    np.testing.assert_allclose(one.embedding[...], other.embedding[...], rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_points", [3, 4, 7, 12, 60])
def test_refinement_from_coarse_graphs_alone_finds_few_points_too(roll, tmp_path, n_points):
    """The coarse graphs of few points have fewer nodes than vectors are asked for: random ones take their place."""
    setting = {"affinities": {"perplexity": 1.5}, "neighbors": {"n_neighbors": 2}}
    found = embedded(roll[:n_points], tmp_path / "run", embedding={"residual": 1e-5}, **setting)
    values, _ = dense_eigenmaps(found, 2)
    np.testing.assert_allclose(found.eigenvalues, values, atol=1e-5)
    assert found.embedding.shape == (n_points, 2)


def test_the_default_does_not_look_at_landmarks_for_the_training_points(roll, tmp_path):
    finished = embedded(roll[:N_POINTS], tmp_path / "run")
    assert not {"landmark_weights", "reduced", "landmark_embedding"} & set(finished.keys)
    other = embedded(roll[:N_POINTS], tmp_path / "run", landmarks={"n_landmarks": 77, "method": "minmax"})
    assert other.keys["embedding"] == finished.keys["embedding"]
    assert other.keys["landmarks"] != finished.keys["landmarks"]
