"""Stores of format version 2 that earlier code wrote: they open, say the same, and are gone on from."""

import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.config.routes import ROUTES
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.new_points import NewPoints, read_placement
from scalemani.runs.opened import open_run
from scalemani.runs.walk import plan_run, run
from scalemani.stages.arrays.embeddings import StoredCoarseGraphs
from scalemani.stages.arrays.graph import StoredGraph, StoredNeighbors
from scalemani.stages.arrays.points import StoredPoints, StoredWorkPoints
from scalemani.store.run_store import RunStore

GOLDEN = Path(__file__).parent / "golden"
BLOCK_ROWS = 1024


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("old") / "run"
    with tarfile.open(GOLDEN / "version_2.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def old(unpacked, tmp_path):
    return Path(shutil.copytree(unpacked, tmp_path / "run"))


def group(folder, stage):
    """Return the only group of a stage, whatever today's code would name its key."""
    (key,) = (path.name for path in (folder / "stages" / stage).iterdir())
    return RunStore.open(folder).group(stage, key, BLOCK_ROWS)


def test_it_opens_whole_and_every_array_is_read_and_described(old, description_of):
    opened = open_run(old)
    assert opened.method == "t-sne"
    assert set(opened.records()) == set(opened.keys)
    for path in sorted((old / "stages").iterdir()):
        stored = group(old, path.name)
        assert stored.complete
        assert stored.damaged_units() == []
        names = {key.removesuffix("/zarr.json") for unit in stored.units for key in unit_keys(stored, unit)}
        for name in names:
            described, values = description_of(path.name, name), stored.read(name)
            assert values.dtype.name in described.dtypes, (path.name, name)
            assert values.ndim == len(described.dims), (path.name, name)


def unit_keys(stored, unit):
    """Return the descriptions of arrays that a unit wrote."""
    return [key for key in stored.objects.get_json("complete.json")["units"][unit] if key.endswith("zarr.json")]


def test_parameters_that_there_are_none_of_any_more_are_passed_over(old):
    known = open_run(old).params
    plan = RunStore.open(old).load_plan()
    plan["params"]["neighbors"]["few_probes"] = 3
    plan["params"]["a_stage_of_the_past"] = {"a_number": 1}
    RunStore.open(old).save_plan(plan)
    assert open_run(old).params == known


def test_numbers_that_it_holds_as_certificates_alone_are_found(old):
    neighbors, graph = StoredNeighbors(group(old, "neighbors")), StoredGraph(group(old, "graph"))
    assert neighbors.final_step == "round_1"
    assert len(StoredCoarseGraphs(group(old, "coarse_graphs")).read_levels()) == 1
    input_rows = StoredWorkPoints(group(old, "work_points")).input_rows.read()
    indices = np.concatenate([neighbors.read_graph_block(block)[0] for block in range(2)])
    np.testing.assert_array_equal(input_rows[indices], graph.indices.read()[input_rows])


def test_new_points_are_placed_where_they_were(old):
    points = StoredPoints(group(old, "points")).points.read()[:5] + 1
    with np.load(GOLDEN / "version_2_placed.npz") as expected:
        placed = NewPoints(read_placement(open_run(old)), open_points(points)).read_all()
        np.testing.assert_allclose(placed, expected["transformed"], rtol=0, atol=1e-6)


def unchanged_stages(folder, method):
    """Return the stages of a method whose versions, and those of all that they read, are still those of the store."""
    unchanged = []
    for stage in ROUTES[method]:
        there = (folder / "stages" / stage.name).is_dir()
        same = there and group(folder, stage.name).record["version"] == stage.key.version
        if same and set(stage.inputs) <= set(unchanged):
            unchanged.append(stage.name)
    return unchanged


def test_what_it_holds_is_not_computed_again(old):
    opened = open_run(old)
    points, params = StoredPoints(group(old, "points")).points.read(), Parameters.of(opened.params)
    reused = unchanged_stages(old, "t-sne")
    plan = plan_run(open_points(points), old, "t-sne", params, Executor(workers=1), BLOCK_ROWS)
    assert "points" in reused
    for planned in plan.stages:
        if planned.stage.name in reused:
            assert planned.key == opened.keys[planned.stage.name], planned.stage.name
            assert planned.group.complete, planned.stage.name


def test_it_is_gone_on_from(old):
    points = StoredPoints(group(old, "points")).points.read()
    before = {path: path.read_bytes() for path in old.glob("stages/*/*/complete.json")}
    values = {**open_run(old).params.as_dict(), "landmark_embedding": {"n_components": 3}}
    finished = run(
        open_points(points), old, "laplacian-eigenmaps", Parameters().with_values(values), Executor(workers=1)
    )
    assert finished.embedding.shape == (1030, 3)
    assert np.isfinite(finished.embedding[...]).all()
    assert {path: path.read_bytes() for path in before} == before
