"""The embedding by landmarks, by blocks: vectors and residuals of the whole problem, from memory and from a file."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.engine.task import StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding, StoredLandmarkWeights
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.embedding import by_blocks
from scalemani.stages.shared.tiles import added

VALUES = {
    "neighbors": {"n_neighbors": 12, "method": "exact"},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 200},
    "landmark_embedding": {"n_components": 3},
    "partition": {"cell_points": 200, "sample_points": 2000},
    "embedding": {"solver": "lll"},
}


@pytest.fixture(scope="module")
def finished(roll, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lll") / "run"
    params = Parameters().with_values(VALUES)
    return run(open_points(roll), folder, "laplacian-eigenmaps", params, Executor(workers=2), block_rows=1024)


@pytest.fixture(params=[True, False], ids=["in memory", "in a file"])
def task(finished, request):
    inputs = {stage: finished.group(stage) for stage in finished.keys if stage != "embedding"}
    group = finished.group("embedding")
    return StageTask("embedding", finished.dimensions, finished.params, inputs, group, 0, in_memory=request.param)


def whole(task):
    """W and the vectors Z Y of the whole problem, in work order."""
    graph, weights = affinity_graph(task.inputs), StoredLandmarkWeights(task.inputs["landmark_weights"])
    blocks = range(task.dimensions.n_blocks)
    matrix = sp.vstack([graph.read_matrix(block, task.dimensions.n_points) for block in blocks]).astype(float)
    landmarks = StoredLandmarkEmbedding(task.inputs["landmark_embedding"]).vectors.read()
    return matrix, sp.vstack([weights.read_matrix(block, len(landmarks)) for block in blocks]) @ landmarks


def test_residuals_are_those_of_the_whole_problem(task, finished):
    matrix, vectors = whole(task)
    sums = [by_blocks.block_sums(task, block) for block in range(task.dimensions.n_blocks)]
    total = sums[0]
    for other in sums[1:]:
        total = added(total, other)
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    unit = np.sqrt(degrees)[:, np.newaxis] * vectors
    unit /= np.linalg.norm(unit, axis=0)
    roots = sp.diags(1 / np.sqrt(degrees))
    image = roots @ (matrix @ (roots @ unit))
    expected = np.linalg.norm(image - unit * (unit * image).sum(axis=0), axis=0)
    np.testing.assert_allclose(total.residuals, expected, rtol=1e-7)
    assert finished.certificates["embedding"]["residual"] == pytest.approx(expected.max(), rel=1e-7)


@pytest.mark.parametrize("blocks", [[0], [1, 2], [0, 1, 2, 3, 4]])
def test_blocks_are_those_of_the_vectors_in_input_order(task, finished, blocks):
    vectors = whole(task)[1]
    order = StoredWorkPoints(task.inputs["work_points"]).input_rows.read()
    expected = np.empty_like(vectors)
    expected[order] = vectors
    np.testing.assert_array_equal(finished.stored_embedding.read(), expected)
    for block, arrays in by_blocks.written_blocks(task, blocks):
        (found,) = arrays.values()
        np.testing.assert_array_equal(found, expected[slice(*task.dimensions.rows(block))])


@pytest.mark.parametrize("at_once", [700, 10_000])
def test_work_rows_are_found_in_parts_of_the_order(task, at_once):
    places = np.argsort(StoredWorkPoints(task.inputs["work_points"]).input_rows.read())
    np.testing.assert_array_equal(by_blocks.work_rows(task, 1300, 4200, at_once), places[1300:4200])


def test_points_that_stay_in_their_order_have_the_places_of_their_rows(task):
    without = {name: group for name, group in task.inputs.items() if name != "work_points"}
    np.testing.assert_array_equal(by_blocks.work_rows(replace(task, inputs=without), 5, 9), [5, 6, 7, 8])
