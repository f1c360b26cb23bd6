"""The stage `partition`: its models, and what its certificates say of the cells."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.config.params import Parameters
from scalemani.engine.context import StageContext
from scalemani.engine.task import Dimensions, StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.rows.sketches import sketch_points
from scalemani.runs.walk import run
from scalemani.stages import partition
from scalemani.stages.arrays.points import StoredPartition
from scalemani.stages.partition import points_of_cells
from scalemani.store.groups import StageGroup


@pytest.mark.parametrize("at_once", [700, 4000])
def test_points_of_each_cell_are_counted_a_part_at_a_time(tmp_path, at_once):
    cells = np.random.default_rng(0).integers(0, 40, 2500).astype(np.int32)
    group = StageGroup(tmp_path, "stages/partition/key", 1024)
    group.create(len(cells), [StoredPartition.cells.sized()])
    for block in range(3):
        group.write_block(block, {StoredPartition.cells: cells[1024 * block : 1024 * (block + 1)]})
    group.write_whole({StoredPartition.centroids: np.zeros((50, 3), np.float32)})
    task = StageTask(
        "partition", Dimensions(2500, 3, "float32", 1024), Parameters().resolved("knn-graph"), {}, group, 0
    )
    found = points_of_cells(task, range(2), at_once) + points_of_cells(task, range(2, 3), at_once)
    np.testing.assert_array_equal(found, np.bincount(cells, minlength=50))


def test_models_are_those_of_the_whole_sample_where_it_is_read_in_parts(tmp_path):
    points = np.random.default_rng(1).normal(size=(12_000, 6)).astype(np.float32)  # more than the axes are fitted to
    requested, executor = Parameters().with_values({"neighbors": {"method": "partition"}}), Executor(workers=2)
    ended = run(open_points(points), tmp_path / "run", "knn-graph", requested, executor, 1024)
    inputs = {"points": ended.group("points")}
    task = StageTask("partition", ended.dimensions, ended.params, inputs, ended.group("partition"), 0)
    basis, centroids = partition.trained_models(StageContext(task, executor, 2), 1024)
    stored = StoredPartition(task.output)
    np.testing.assert_array_equal(centroids, stored.centroids.read())
    for one, other in zip(basis, stored.basis, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_sample_is_read_together_where_the_cache_has_room_for_it():
    dimensions, tiles = Dimensions(10**6, 6000, "float32", 1024), 49 * 1024
    for cache_bytes, fits in ((0, False), (tiles * 24_000 - 1, False), (tiles * 24_000, True)):
        together = partition.sketched_together(dimensions, cache_bytes)
        assert (together >= 50_000) == fits
        assert together % 1024 == 0
        assert together >= 1024


def test_cells_have_as_many_points_as_asked_where_there_are_more_of_them_than_points_to_sample(tmp_path):
    points = np.random.default_rng(2).normal(size=(20_000, 3))
    params = Parameters().with_values({"partition": {"sample_points": 1000, "cell_points": 16}})
    for stage in ("points", "partition"):
        found = run(open_points(points), tmp_path / "run", "knn-graph", params, Executor(workers=2), 4096, only=stage)
    assert found.certificates["partition"]["cells"] == 1250


@pytest.mark.parametrize("n_features", [3, 9])
@pytest.mark.parametrize("far", [1e7, 1e25, 1e45])
@pytest.mark.parametrize("in_sample", [False, True])
def test_a_far_point_leaves_the_graph_of_the_others_alone(tmp_path, n_features, far, in_sample):
    points = np.random.default_rng(2).normal(size=(6000, n_features))
    asked = {"neighbors": {"method": "partition", "n_neighbors": 10}, "partition": {"sample_points": 1500}}
    params = Parameters().with_values(asked)
    sampled = sample_rows(params.seed, "partition/sample", len(points), 1500)
    points[sampled[7] if in_sample else np.setdiff1d(np.arange(len(points)), sampled)[7]] = far
    found = run(open_points(points), tmp_path / "run", "knn-graph", params, Executor(workers=2), 1024)
    assert found.certificates["neighbors"]["recall"] > 0.95
    assert found.certificates["partition"]["largest_cell"] < 3000


@pytest.mark.parametrize("far", [1e6, 1e20])
def test_far_points_in_a_cell_leave_the_neighbours_of_the_others_there_alone(tmp_path, far):
    """Both cells are looked through, so that all neighbours are found but those that a pool of candidates loses."""
    points = np.random.default_rng(2).normal(size=(1201, 9))
    points[5:8] *= far
    params = Parameters().with_values({"neighbors": {"method": "partition", "n_neighbors": 10, "max_rounds": 0}})
    found = run(open_points(points), tmp_path / "run", "knn-graph", params, Executor(workers=2), 1024)
    assert found.certificates["partition"]["cells"] == 2
    assert found.certificates["neighbors"]["recall"] > 0.99


@pytest.mark.parametrize("n_features", [4, 9])
@pytest.mark.parametrize("n_far", [1, 3])
def test_points_are_in_their_nearest_cell_where_a_far_point_is_a_centroid(tmp_path, n_features, n_far):
    points = np.random.default_rng(2).normal(size=(2201, n_features))
    points[5 : 5 + n_far] *= 1e20
    params = Parameters().with_values({"neighbors": {"method": "partition"}})
    found = run(open_points(points), tmp_path / "run", "knn-graph", params, Executor(workers=2), 1024)
    stored = found.stored(StoredPartition)
    sketches, centroids = sketch_points(points, stored.basis), stored.centroids.read()
    assert np.abs(centroids).max() > 1e10
    assert len(centroids) == 4
    distances = cdist(sketches.astype(np.float64), centroids.astype(np.float64))
    chosen = distances[np.arange(len(points)), stored.cells.read_rows(slice(0, len(points)))]
    np.testing.assert_allclose(chosen, distances.min(axis=1), rtol=1e-6)
