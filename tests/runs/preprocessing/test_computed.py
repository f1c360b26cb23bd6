"""Points that Dask computes: each chunk once, where tasks run, and nothing of them stays but the run."""

import collections
import contextlib

import dask.array as da
import numpy as np
import pytest
from distributed import Client, get_worker
from hypothesis import given, settings
from hypothesis import strategies as st

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DataError, DiskSpaceError
from scalemani.interfaces.tuning.scores import make_judge
from scalemani.interfaces.tuning.search import Candidate, SurveyedPoints, search
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_weights
from scalemani.runs.preprocessing.computed import COPY, computed_once
from scalemani.runs.preprocessing.following import follow_source
from scalemani.runs.walk import plan_run, run

LOADED: collections.Counter = collections.Counter()
WORKERS: set[str] = set()
ROWS = np.random.default_rng(0).normal(size=(1500, 6))


@pytest.fixture
def client():
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as found:
        yield found


def load(rows, block_info=None):
    with contextlib.suppress(ValueError):  # on no worker
        WORKERS.add(get_worker().address)
    LOADED[block_info[0]["chunk-location"]] += 1
    return rows + 0.0


@pytest.fixture
def lazy():
    """An array that notes in LOADED how often each of its 8 chunks is loaded, and in WORKERS by whom."""
    LOADED.clear()
    WORKERS.clear()
    # Pieces of 130 rows stand on the same loaded chunks, and fit neither these nor the blocks of a run.
    return da.from_array(ROWS, chunks=(400, 3)).map_blocks(load, dtype=ROWS.dtype).rechunk((130, 6))


def copies(folder):
    return [] if not folder.exists() else [path.name for path in folder.iterdir() if path.name.startswith(COPY)]


def graph_of(points, root, **resources):
    params = Parameters().with_values({"neighbors": {"n_neighbors": 5}})
    return run(open_points(points), root, "knn-graph", params, Executor(**resources))


def test_every_chunk_is_computed_once_and_the_run_is_that_of_the_rows(lazy, tmp_path):
    found, expected = graph_of(lazy, tmp_path / "run"), graph_of(ROWS, tmp_path / "other")
    assert set(LOADED.values()) == {1}
    assert len(LOADED) == 8
    assert found.keys == expected.keys
    np.testing.assert_array_equal(found.group("graph").read("indices"), expected.group("graph").read("indices"))
    assert copies(tmp_path / "run") == []


def test_the_workers_of_a_cluster_compute_chunks(client, lazy, tmp_path):
    graph_of(lazy, tmp_path / "run", scheduler=client)
    assert set(LOADED.values()) == {1}
    assert set(client.scheduler_info()["workers"]) == WORKERS
    LOADED.clear()
    kept = lazy.persist()
    graph_of(kept, tmp_path / "other", scheduler=client)
    assert set(LOADED.values()) == {1}


@pytest.mark.parametrize("values", [{}, {"duplicates": {"tolerance": 0.0}}])
def test_a_plan_computes_chunks_once_on_workers_and_leaves_nothing(client, lazy, tmp_path, values):
    params = Parameters().with_values(values)
    planned = [
        plan_run(open_points(points), tmp_path / "run", "laplacian-eigenmaps", params, Executor(scheduler=client))
        for points in (lazy, ROWS)
    ]
    assert set(LOADED.values()) == {1}
    assert len(WORKERS) == 1
    assert planned[0].stages[0].key == planned[1].stages[0].key
    assert list(tmp_path.iterdir()) == []


def test_a_plan_of_a_finished_run_leaves_it_as_it_is(lazy, tmp_path):
    done = graph_of(ROWS, tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    params = Parameters().with_values({"neighbors": {"n_neighbors": 5}})
    found = plan_run(open_points(lazy), tmp_path / "run", "knn-graph", params, Executor())
    assert all(stage.group.complete for stage in found.stages)
    assert sorted(tmp_path.rglob("*")) == before
    assert done.group("graph").complete


def test_what_another_cluster_holds_is_read_through_its_client(client, lazy, tmp_path):
    kept = lazy.persist()
    found = graph_of(kept, tmp_path / "run", scheduler="threads")
    assert set(LOADED.values()) == {1}
    assert found.keys == graph_of(ROWS, tmp_path / "other").keys


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 1500), max_size=6),
    wide=st.booleans(),
    bounds=st.tuples(st.integers(0, 1500), st.integers(0, 1500)),
)
def test_rows_are_those_of_the_array_for_any_chunks(cuts, wide, bounds, tmp_path_factory):
    chunks = tuple(np.diff([0, *sorted(cuts), 1500]).tolist())
    start, stop = sorted(bounds)
    array = da.from_array(ROWS, chunks=(chunks, 6 if wide else 2))
    with computed_once(open_points(array), tmp_path_factory.mktemp("runs") / "run", Executor(workers=1)) as points:
        np.testing.assert_array_equal(points.read(start, stop), ROWS[start:stop])


def test_what_is_beside_points_and_their_metric_stay(tmp_path):
    given_weights = np.arange(1.0, 1501.0)
    weighted = with_weights(open_points(da.from_array(ROWS, chunks=(700, 6))), given_weights)
    _, source = follow_source(Parameters().with_values({"points": {"metric": "cosine"}}), weighted)
    with computed_once(source, tmp_path / "run", Executor()) as points:
        np.testing.assert_array_equal(points.side.weights.values, source.side.weights.values)
        np.testing.assert_array_equal(points.read(5, 900), source.read(5, 900))
        np.testing.assert_allclose(np.linalg.norm(points.read(0, 1500), axis=1), 1)
        assert len(copies(tmp_path / "run")) == 1


def test_copies_of_processes_that_were_killed_are_removed_and_those_of_others_stay(tmp_path):
    source = open_points(da.from_array(ROWS, chunks=(700, 6)))
    with computed_once(source, tmp_path / "run", Executor()) as points:
        (held,) = copies(tmp_path / "run")
        left = tmp_path / "run" / f"{COPY}left"
        left.mkdir()
        for name in ("lock", "0"):
            (left / name).write_bytes(b"rows")
        begun = tmp_path / "run" / f"{COPY}begun"  # its process has made its folder, and not yet locked it
        begun.mkdir()
        with computed_once(source, tmp_path / "run", Executor()):
            assert not left.exists()
            assert len(copies(tmp_path / "run")) == 3
        assert sorted(copies(tmp_path / "run")) == sorted([held, begun.name])
        np.testing.assert_array_equal(points.read(0, 1500), ROWS)


def test_points_are_appended_and_tuned_from_chunks_computed_once(lazy, tmp_path):
    graph_of(ROWS[:900], tmp_path / "run")
    assert sm.append(tmp_path / "run", lazy[800:]).appended == 700
    assert set(LOADED.values()) == {1}
    LOADED.clear()
    source = SurveyedPoints(open_points(lazy), Executor())
    small = {"affinities": {"perplexity": 4}, "landmarks": {"n_landmarks": 50}}
    candidates = [
        Candidate({}, "laplacian-eigenmaps", Parameters().with_values({"points": {"metric": metric}, **small}))
        for metric in ("euclidean", "cosine")
    ]
    found = search(source, tmp_path / "tuned", candidates, ("trustworthiness",), make_judge(1500))
    assert [cell.failure for cell in found.cells] == [None, None]
    assert set(LOADED.values()) == {1}


def test_new_points_are_placed_from_chunks_computed_once(lazy, tmp_path):
    sm.LaplacianEigenmaps(perplexity=5, n_landmarks=50, store=tmp_path / "run").fit(ROWS)
    sm.transform(tmp_path / "run", lazy, tmp_path / "lazy.npy")
    assert set(LOADED.values()) == {1}
    sm.transform(tmp_path / "run", ROWS, tmp_path / "rows.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "lazy.npy"), np.load(tmp_path / "rows.npy"))
    sm.transform(tmp_path / "run", lazy[:0], tmp_path / "none.npy")
    assert np.load(tmp_path / "none.npy").shape == (0, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lazy.npy", "none.npy", "rows.npy", "run"]


@pytest.mark.parametrize("scheduler", ["threads", "client"])
def test_what_a_chunk_raises_is_told_and_nothing_stays(client, scheduler, tmp_path):
    def fail(rows):
        raise KeyError("no such column")

    array = da.from_array(ROWS, chunks=(700, 6)).map_blocks(fail, dtype=ROWS.dtype, meta=np.empty((0, 0)))
    with pytest.raises(DataError, match="dask array cannot be computed: KeyError: 'no such column'"):
        graph_of(array, tmp_path / "run", scheduler=client if scheduler == "client" else None)
    assert copies(tmp_path / "run") == []
    assert graph_of(ROWS, tmp_path / "run").group("graph").complete


def test_an_array_larger_than_the_disk_is_refused_before_anything_is_computed(tmp_path):
    def fail(rows):
        raise AssertionError("computed")

    array = da.zeros((10**9, 10**3), chunks=(10**6, 10**3)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(DiskSpaceError, match=r"computing 8000.00 GB.*store the points and give their path"):
        graph_of(array, tmp_path / "run")
    assert not (tmp_path / "run").exists()
