"""The reduced problem of a run, by a tree of sparse sums or a dense one, and what its solution certifies."""

import shutil

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.engine.context import StageContext
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions, StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages import reduced
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding, StoredLandmarkWeights, StoredReduced

VALUES = {
    "neighbors": {"n_neighbors": 12, "method": "exact"},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 150},
    "landmark_embedding": {"n_components": 3},
    "embedding": {"solver": "lll"},
}


def embedded(points, folder):
    params = Parameters().with_values(VALUES)
    return run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(workers=1), block_rows=1024)


def matrices(found):
    """Return Z' (D - W) Z and Z' D Z, as they are stored."""
    stored = StoredReduced(found.group("reduced"))
    return [stored.read_matrix(one).toarray() for one in (StoredReduced.LAPLACIAN, StoredReduced.MASS)]


def whole(found, matrix_of_block):
    return sp.vstack([matrix_of_block(block) for block in range(found.dimensions.n_blocks)]).toarray().astype(float)


@pytest.fixture(scope="module")
def found(roll, tmp_path_factory):
    return embedded(roll[:3000], tmp_path_factory.mktemp("reduced") / "run")


def test_the_sums_are_those_of_the_whole_graph(found):
    graph = affinity_graph({stage: found.group(stage) for stage in found.keys})
    affinities = whole(found, lambda block: graph.read_matrix(block, 3000))
    weights = whole(found, lambda block: StoredLandmarkWeights(found.group("landmark_weights")).read_matrix(block, 150))
    degrees = np.diag(affinities.sum(axis=1))
    laplacian, mass = matrices(found)
    np.testing.assert_allclose(mass, weights.T @ degrees @ weights, rtol=0, atol=1e-12 * np.abs(mass).max())
    expected = weights.T @ (degrees - affinities) @ weights
    np.testing.assert_allclose(laplacian, expected, rtol=0, atol=1e-12 * np.abs(mass).max())


@pytest.mark.parametrize(("densely", "together"), [(False, 2), (True, 2), (True, 64)])
def test_sums_are_the_same_however_they_are_added(found, tmp_path, densely, together):
    """Tree sums have the same bits; dense ones round in another order."""
    assert found.dimensions.n_blocks == 3
    shutil.copytree(found.store.root, tmp_path / "run")
    copied = open_run(tmp_path / "run")
    inputs, output = (
        {stage: copied.group(stage) for stage in copied.keys if stage != "reduced"},
        copied.group("reduced"),
    )
    output.forget(["whole"])
    task = StageTask("reduced", found.dimensions, found.params, inputs, output, 0)
    sums = reduced.sums_of_blocks(StageContext(task, Executor(workers=1), 1), densely, together)
    steps = {unit.partition("-")[0] for unit in output.units}
    assert steps == {"block"} | ({"sum_1"} if together == 2 else set())
    for one, expected in zip(sums, matrices(found), strict=True):
        off = 1e-14 * np.abs(expected).max() if densely else 0
        np.testing.assert_allclose(one.toarray(), np.tril(expected), rtol=0, atol=off)


@pytest.mark.parametrize(
    ("n_points", "n_features", "n_landmarks", "densely"),
    [(1_020_000, 784, 1000, False), (10_200_000, 784, 10_000, True), (10_000_000, 3, 10_000, False)],
)
def test_large_sums_are_dense_where_landmarks_meet_most_others(n_points, n_features, n_landmarks, densely):
    dimensions = Dimensions(n_points, n_features, "float32", 65_536)
    params = (
        Parameters().with_values({**VALUES, "landmarks": {"n_landmarks": n_landmarks}}).resolved("laplacian-eigenmaps")
    )
    assert reduced.adds_densely(Sizes(dimensions, params)) == densely


def test_the_certified_residual_is_that_of_what_is_stored(found):
    laplacian, mass = matrices(found)
    solved = StoredLandmarkEmbedding(found.group("landmark_embedding"))
    values, vectors = solved.eigenvalues.read(), solved.vectors.read()
    errors = laplacian @ vectors - mass @ vectors * values
    scales = np.linalg.norm(laplacian) * np.linalg.norm(vectors, axis=0)
    expected = (np.linalg.norm(errors, axis=0) / scales).max()
    certified = found.records()["landmark_embedding"]["certificates"]["largest_residual"]
    assert 0 < certified < 1e-9
    assert expected / 10 < certified < 10 * expected
