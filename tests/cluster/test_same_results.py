"""One answer wherever it is computed and stored, by tasks that are small."""

import functools
import os

import cloudpickle
import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import ANY_BATCH, Executor
from scalemani.io.sources import open_points
from scalemani.io.sources.array_files import NpyPoints
from scalemani.io.sources.stores import UrlStore
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run

MOST_TASK_BYTES = 10_000  # most of it the parameters of all stages; arrays travel through the store
BIT_EQUAL = {
    "points": ("points",),
    "work_points": ("input_rows", "points", "sketch"),
    "affinities": ("values", "beta"),
    "landmarks": ("rows", "points"),
    "landmark_weights": ("indices", "values"),
    "graph": ("indices", "distances"),
}


def embed(points, root, values, method="laplacian-eigenmaps", block_rows=1024, **resources):
    params = Parameters().with_values(values)
    return run(open_points(points), root, method, params, Executor(**resources), block_rows)


@pytest.fixture(scope="module")
def reference(roll, tmp_path_factory, request):
    from_here = tmp_path_factory.mktemp("runs")

    @functools.cache
    def computed(method):
        return embed(roll, from_here / method, request.getfixturevalue("module_values"), method)

    return computed


@pytest.fixture(scope="module")
def module_values():
    return {
        "neighbors": {"n_neighbors": 12, "method": "partition"},
        "affinities": {"perplexity": 4},
        "landmarks": {"n_landmarks": 200},
        "partition": {"cell_points": 200, "sample_points": 2000},
    }


def assert_same(one, other):
    for stage in one.keys.keys() & BIT_EQUAL.keys():
        for name in BIT_EQUAL[stage]:
            np.testing.assert_array_equal(one.group(stage).read(name), other.group(stage).read(name), err_msg=name)
    if "reduced" in one.keys:
        for name in ("laplacian_triangle_values", "mass_triangle_values"):
            first, second = one.group("reduced").read(name), other.group("reduced").read(name)
            np.testing.assert_allclose(first, second, rtol=1e-12, atol=1e-12 * np.abs(first).max())
        np.testing.assert_allclose(one.embedding[...], other.embedding[...], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("workers", "block_rows"), [(1, 1024), (2, 2048)])
def test_clusters_give_the_answer_of_threads(
    roll, reference, module_values, start_cluster, tmp_path, workers, block_rows
):
    cluster = start_cluster(workers)
    found = embed(roll, tmp_path / "run", module_values, block_rows=block_rows, scheduler=cluster.address)
    assert_same(reference("laplacian-eigenmaps"), found)
    graph = embed(roll, tmp_path / "run", module_values, "knn-graph", block_rows, scheduler=cluster.address)
    assert_same(reference("knn-graph"), graph)


def test_workers_read_a_file_that_they_see(roll, reference, module_values, start_cluster, tmp_path, spy):
    np.save(tmp_path / "roll.npy", roll)
    cluster = start_cluster(2)
    read_by_driver = spy(NpyPoints, "rows")
    found = embed(str(tmp_path / "roll.npy"), tmp_path / "run", module_values, scheduler=cluster.address)
    assert not read_by_driver
    assert_same(reference("laplacian-eigenmaps"), found)


def test_a_bucket_that_workers_and_driver_reach_is_all_they_share(
    roll, reference, module_values, start_cluster, bucket, spy
):
    import zarr

    stored = UrlStore(f"{bucket}/points.zarr", read_only=False)
    points = zarr.create_array(stored, shape=roll.shape, chunks=(1000, 3), dtype=roll.dtype)
    points[...] = roll
    source = open_points(f"{bucket}/points.zarr")
    assert os.environ["AWS_SECRET_ACCESS_KEY"].encode() not in cloudpickle.dumps(source)
    read_by_driver = spy(type(source), "rows")
    cluster = start_cluster(2)
    found = embed(f"{bucket}/points.zarr", f"{bucket}/run", module_values, block_rows=3072, scheduler=cluster.address)
    assert not read_by_driver  # workers read the points themselves
    assert_same(reference("laplacian-eigenmaps"), found)
    assert_same(found, open_run(f"{bucket}/run"))


@pytest.mark.parametrize("method", ["laplacian-eigenmaps", "spectral-clustering", "knn-graph"])
def test_tasks_are_small_and_one_a_block_and_stage(roll, module_values, tmp_path, method):
    sizes: dict[str, list[int]] = {}

    class Weighing(Executor):
        """Looks at the tasks that it runs."""

        def compute(self, graph, targets, at_once=None, batch=ANY_BATCH):
            for layer in graph.layers.values():
                if not layer.combines:
                    sizes.setdefault(batch.stage, []).append(len(layer.tasks))
                assert len(cloudpickle.dumps(layer.function)) < MOST_TASK_BYTES, batch.stage
            return super().compute(graph, targets, at_once, batch)

    params = Parameters().with_values(module_values)
    found = run(open_points(roll), tmp_path / "run", method, params, Weighing("threads"), 1024)
    for stage, counts in sizes.items():
        assert max(counts) <= found.dimensions.n_blocks, stage
    assert sizes.keys() >= {"work_points", "neighbors"}


def test_estimators_take_a_client_and_leave_it_open(roll, start_cluster):
    from distributed import Client

    from scalemani import LaplacianEigenmaps

    asked = {"n_landmarks": 100, "perplexity": 4.0, "n_neighbors": 12, "random_state": 0}
    alone = LaplacianEigenmaps(**asked).fit_transform(roll[:2000])
    with Client(start_cluster(1).address) as client:
        together = LaplacianEigenmaps(**asked, scheduler=client).fit_transform(roll[:2000])
        assert client.status == "running"
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)
