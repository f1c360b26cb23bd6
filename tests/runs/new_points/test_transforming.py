"""New points from file to file: the same rows by any blocks and workers, resumed where it stopped, certified."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DataError, MemoryBudgetError, ScalemaniWarning, StoreError
from scalemani.io.sources import open_points
from scalemani.io.sources.lazy import LazyRows
from scalemani.io.sources.sliced import SlicedPoints
from scalemani.runs.new_points import NewPoints, read_placement
from scalemani.runs.new_points.neighbors import neighbor_index
from scalemani.runs.new_points.transforming import sampled_recall
from scalemani.runs.preprocessing.gaps import SelectedRows
from scalemani.runs.walk import run

VALUES = {
    "neighbors": {"n_neighbors": 10},
    "affinities": {"perplexity": 3},
    "landmarks": {"n_landmarks": 80},
    "clustering": {"n_clusters": 3},
    "layout": {"max_iterations": 15, "direction": "spectral", "converged": 0, "repulsion": "grid"},
}
METHODS = ("spectral-clustering", "t-sne", "pca")
TOLERANCE = {"spectral-clustering": 0.0, "t-sne": 1e-12, "pca": 0.0}


@pytest.fixture(scope="module")
def new(roll, tmp_path_factory):
    """A file of 3,000 new points: three blocks."""
    path = tmp_path_factory.mktemp("new") / "new.npy"
    np.save(path, roll[2000:] + np.float32(0.01))
    return str(path)


@pytest.fixture(scope="module")
def runs(roll, tmp_path_factory):
    folder, params = tmp_path_factory.mktemp("transforming"), Parameters().with_values(VALUES)
    return {m: run(open_points(roll[:2000]), folder / m, m, params, Executor(), 1024) for m in METHODS}


@pytest.fixture(scope="module")
def expected(runs, new):
    """Coordinates by method, of all points at once."""
    return {method: NewPoints(read_placement(one), open_points(new)).read(0, 3000) for method, one in runs.items()}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2, "memory": "1200MB"}, {"scheduler": "processes"}])
def test_rows_are_those_of_all_points_at_once_whatever_places_them(runs, expected, new, tmp_path, method, how):
    if "scheduler" in how:
        how = {**how, "workers": 1}
    found = sm.transform(runs[method], new, tmp_path / "out.npy", **how)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected[method], rtol=0, atol=TOLERANCE[method])
    names = ["out.npy"] if found.labels is None else ["out.labels.npy", "out.npy"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_points_that_have_no_coordinates_are_nan_in_the_file_as_in_memory(roll, tmp_path):
    values = {**VALUES, "embedding": {"solver": "nystrom"}}
    params, points = Parameters().with_values(values), roll[2000:2010].astype(np.float64)
    trained = run(open_points(roll[:2000]), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    points[3] = 1e160
    np.save(tmp_path / "new.npy", points)
    alone = NewPoints(read_placement(trained), open_points(points))
    expected = alone.read(0, 10)
    with pytest.warns(ScalemaniWarning, match="^1 new points have no coordinates, first rows 3: "):
        found = sm.transform(trained, tmp_path / "new.npy", tmp_path / "out.npy")
    np.testing.assert_array_equal(np.isnan(expected).any(axis=1), np.arange(10) == 3)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)
    assert found.certificates == alone.account.certificates


@pytest.mark.parametrize("method", METHODS)
def test_threads_that_place_points_side_by_side_give_the_bits_of_one(runs, new, method):
    placed, starts = NewPoints(read_placement(runs[method]), open_points(new)), range(0, 960, 60)
    alone = [placed.read(start, start + 60) for start in starts]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda start: placed.read(start, start + 60), starts))
    np.testing.assert_array_equal(together, alone)


def failing(points, after):
    """Return points that cannot be read any more after so many reads, and the list of reads."""
    reads = []

    def read(start, stop):
        if len(reads) == after:
            raise StoreError("the disk is gone")
        reads.append(start)
        return points[start:stop]

    return LazyRows(points.shape, points.dtype, read, "points on a bad disk"), reads


@pytest.mark.parametrize("method", METHODS)
def test_what_was_placed_is_not_placed_again(runs, expected, new, tmp_path, method):
    points = np.load(new)
    source, reads = failing(points, 4)  # all three blocks are looked at, the first one is placed
    with pytest.raises(StoreError, match="disk is gone"):
        sm.transform(runs[method], source, tmp_path / "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr.transform"]
    source, reads = failing(points, 1000)
    sm.transform(runs[method], source, tmp_path / "out.zarr")
    assert reads[:5] == [0, 1024, 2048, 1024, 2048]
    found = open_points(tmp_path / "out.zarr").read(0, 3000)
    np.testing.assert_allclose(found, expected[method], rtol=0, atol=TOLERANCE[method])
    assert not (tmp_path / "out.zarr.transform").exists()


def test_a_placed_block_that_was_damaged_is_placed_again(runs, expected, new, tmp_path):
    points, out = np.load(new), tmp_path / "out.npy"
    with pytest.raises(StoreError):
        sm.transform(runs["pca"], failing(points, 4)[0], out)
    (chunk,) = (tmp_path / "out.npy.transform").rglob("arrays/embedding/c/0/0")
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"x")
    sm.transform(runs["pca"], points, out)
    np.testing.assert_array_equal(np.load(out), expected["pca"])


def test_other_points_do_not_go_on_from_blocks_of_these(runs, new, tmp_path):
    points = np.load(new)
    with pytest.raises(StoreError):
        sm.transform(runs["spectral-clustering"], failing(points, 4)[0], tmp_path / "out.npy")
    moved = points + np.float32(1)
    sm.transform(runs["spectral-clustering"], moved, tmp_path / "out.npy")
    alone = NewPoints(read_placement(runs["spectral-clustering"]), open_points(moved)).read_all()
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), alone)


def test_clusters_of_new_points_go_beside_their_coordinates(runs, new, roll, tmp_path):
    one = runs["spectral-clustering"]
    landmarks = one.landmarks
    found = sm.transform(one, landmarks.points, tmp_path / "out.parquet")
    assert found.labels == str(tmp_path / "out.labels.npy")
    np.testing.assert_array_equal(np.load(found.labels), one.labels[...][landmarks.rows])
    assert sm.transform(runs["t-sne"], roll[:5], tmp_path / "t.npy").labels is None


def test_the_certificate_of_landmarks_is_what_they_miss(runs, roll, tmp_path):
    one, points = runs["spectral-clustering"], roll[2000:2400].astype(np.float64)
    away = np.linalg.norm(points[:, np.newaxis] - one.landmarks.points, axis=2)
    k, errors = one.params.landmark_neighbors, []
    for point, distances in zip(points, away, strict=True):
        near = one.landmarks.points[np.argsort(distances)[:k]].astype(np.float64) - point
        gram = near @ near.T
        weights = np.linalg.solve(gram + 1e-3 * np.trace(gram) / k * np.eye(k), np.ones(k))
        errors.append(np.linalg.norm(weights / weights.sum() @ near) / distances.min())
    found = sm.transform(one, points, tmp_path / "out.npy").certificates
    assert found["far"] == 0
    assert found["isolated"] < 0.05
    assert found["median_error"] == pytest.approx(np.median(errors), rel=1e-4)
    assert found["largest_error"] == pytest.approx(np.max(errors), rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_points_that_the_run_knows_nothing_of_are_counted(runs, roll, tmp_path, method):
    points = roll[:1000].copy()
    points[::10] += 15
    away = np.linalg.norm(points[::10, np.newaxis] - roll[np.newaxis, :2000], axis=2).min(axis=1)
    assert np.sum(away > 5) > 50  # some come to lie on another part of the roll
    with pytest.warns(UserWarning, match=r"\d+ of 1000 new points lie more than 2 times as far from the nearest"):
        found = sm.transform(runs[method], points, tmp_path / "out.npy").certificates
    # 80 landmarks are some 5 apart, and so are a few sheets of the roll.
    least = np.sum(away > 5) if method == "t-sne" else 25
    assert least <= 1000 * found["far"] <= 100
    assert found["far"] <= found["isolated"] < 0.13


def test_the_recall_is_that_of_brute_force(runs, new, roll, tmp_path):
    found = sm.transform(runs["t-sne"], new, tmp_path / "out.npy").certificates
    index, points = neighbor_index(runs["t-sne"], in_memory=False), np.load(new)[:200]
    neighbors = index.neighbors(points, 10)
    away = np.sort(np.linalg.norm(points[:, np.newaxis].astype(float) - roll[:2000], axis=2), axis=1)
    truth = np.mean(neighbors.distances <= away[:, 9:10] * (1 + 1e-6))
    assert index.recall(points, 10) == pytest.approx(truth, abs=1e-3)
    assert 0.8 < found["recall"] <= 1


def test_the_sample_of_the_recall_is_read_by_chunks_and_is_that_of_a_file_without_these(runs, new, tmp_path, spy):
    stored = zarr.create_array(str(tmp_path / "new.zarr"), shape=(3000, 3), dtype="f4", chunks=(500, 3))
    stored[:] = np.load(new)
    reads = spy(SlicedPoints, "rows", lambda _, *bounds: bounds)
    by_chunks = sampled_recall(runs["t-sne"], open_points(str(tmp_path / "new.zarr")), 1024)
    assert 6 <= len(reads) <= 7  # the first row of the sample need not begin a chunk
    assert max(stop - start for start, stop in reads) <= 500
    assert by_chunks == sampled_recall(runs["t-sne"], open_points(new), 1024)


def test_no_more_rows_are_read_at_once_than_may_be(tmp_path, spy):
    values = np.arange(120.0).reshape(60, 2)
    zarr.create_array(str(tmp_path / "x.zarr"), shape=(60, 2), dtype="f8", chunks=(20, 2))[:] = values
    reads, rows = spy(SlicedPoints, "rows", lambda _, *bounds: bounds), np.array([0, 19, 20, 39, 41, 59])
    found = SelectedRows(open_points(str(tmp_path / "x.zarr")), rows, 20).read(0, 6)
    np.testing.assert_array_equal(found, values[rows])
    assert reads == [(0, 20), (20, 40), (41, 60)]


def test_what_cannot_be_is_refused_before_anything_is_written(runs, new, tmp_path):
    bad = np.load(new)
    bad[1500, 1] = np.nan
    out = tmp_path / "out.npy"
    for points, how, kind, words in (
        (new, {"memory": "100MB"}, MemoryBudgetError, "stage placement needs"),
        (bad, {}, DataError, "NaN"),
        (np.zeros((5, 7)), {}, DataError, "7 features"),
    ):
        with pytest.raises(kind, match=words):
            sm.transform(runs["t-sne"], points, out, **how)
    with pytest.raises(StoreError, match="no folder"):
        sm.transform(runs["t-sne"], new, tmp_path / "missing" / "out.npy")
    (tmp_path / "out.zarr").mkdir()
    with pytest.raises(StoreError, match="already there"):
        sm.transform(runs["t-sne"], new, tmp_path / "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]


@pytest.mark.parametrize("method", ["pca", "spectral-clustering"])
def test_a_transform_into_zarr_that_is_given_again_is_done_and_one_of_other_points_is_refused(
    runs, new, tmp_path, method
):
    points, out = np.load(new), tmp_path / "out.zarr"
    first = sm.transform(runs[method], points, out)
    written = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    source, reads = failing(points, 3)  # each block is looked at, and none is placed
    with pytest.warns(ScalemaniWarning, match="out.zarr holds these points, placed in this run, already"):
        again = sm.transform(runs[method], source, out)
    assert len(reads) == 3
    assert (again.certificates, again.labels) == (first.certificates, first.labels)
    for other in (points + np.float32(1), points[:2000]):
        with pytest.raises(StoreError, match="already there and is not overwritten"):
            sm.transform(runs[method], other, out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == written
    assert not (tmp_path / "out.zarr.transform").exists()


def test_the_command_says_how_well_it_went(scalemani, runs, new, tmp_path):
    root = runs["spectral-clustering"].store.root
    moved = np.load(new)
    moved[::10] += 15
    np.save(tmp_path / "moved.npy", moved)
    status, output, errors = scalemani(
        "transform", root, tmp_path / "moved.npy", tmp_path / "out.npy", "--memory=2GB", "--workers=1"
    )
    assert status == 0
    assert re.search(r"\d+ of 3000 new points lie more than 2 times as far from the nearest landmark", errors)
    assert "median_error" in output
    assert "isolated" in output
    assert f"clusters: {tmp_path / 'out.labels.npy'}" in output
    np.save(tmp_path / "none.npy", np.empty((0, 3), np.float32))
    assert scalemani("transform", root, tmp_path / "none.npy", tmp_path / "empty.npy")[0] == 0
    assert np.load(tmp_path / "empty.npy").shape == (0, runs["spectral-clustering"].embedding.shape[1])
    json.dumps(sm.transform(root, new, tmp_path / "again.npy").certificates)


def test_new_points_of_another_metric_are_compared_as_those_of_the_run(roll, tmp_path):
    points, params = np.abs(roll[:1500]) + 1, Parameters().with_values({**VALUES, "points": {"metric": "cosine"}})
    one = run(open_points(points), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    np.save(tmp_path / "new.npy", 8 * points[:300])  # a power of two, so that nothing is rounded
    sm.transform(one, tmp_path / "new.npy", tmp_path / "far.npy")
    sm.transform(one, points[:300], tmp_path / "near.npy")
    np.testing.assert_allclose(np.load(tmp_path / "far.npy"), np.load(tmp_path / "near.npy"), atol=1e-12)


def test_linear_embeddings_place_new_points_too(roll, tmp_path):
    points, classes = roll[:1500], (roll[:1500, 1] > 10).astype(int)
    model = sm.LandmarkLDA(n_components=1, n_landmarks=60, store=tmp_path / "run").fit(points, classes)
    found = sm.transform(tmp_path / "run", points, tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.transform(points))
    assert found.certificates["far"] == 0
    assert 0.01 <= found.certificates["isolated"] <= 0.03  # by the rule itself one training point in fifty is
