"""Rounds over leaves: the same bits whatever the blocks, memory and workers, exact distances, and a true recall."""

import shutil

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.config.params.by_stage import NeighborsParams
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.task import StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.kernels.neighbors.leaves import LARGE
from scalemani.kernels.neighbors.rounds import FIRST_DRAWS, Round
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.neighbors import counts
from scalemani.stages.neighbors.leaves import joined_part, merged_blocks
from scalemani.stages.neighbors.tables import list_tables

K, N_POINTS = 9, 2500
ASKED = {"n_neighbors": K, "method": "leaves", "leaf_points": 90, "sampled_queries": 400, "recall": 0.93}


def params_of(**asked):
    return Parameters().with_values({"neighbors": {**ASKED, **asked}, "partition": {"sketch_dimensions": 4}})


@pytest.fixture(scope="module")
def points():
    """Points without leading axes, some of them equal, about a mean far away."""
    points = 50 + np.random.default_rng(7).normal(size=(N_POINTS, 24)).astype(np.float32)
    points[1000:1200] = points[1000]
    return points


@pytest.fixture(scope="module")
def finished(points, tmp_path_factory):
    """A run on threads, which hold what leaves find."""
    folder = tmp_path_factory.mktemp("runs") / "graph"
    return run(open_points(points), folder, "knn-graph", params_of(), Executor(workers=2, keep=True), 1024)


@pytest.fixture(scope="module")
def stored(points, tmp_path_factory):
    """A run on processes, which store leaves and what these find."""
    folder, executor = tmp_path_factory.mktemp("runs") / "stored", Executor("processes", workers=2, keep=True)
    return run(open_points(points), folder, "knn-graph", params_of(), executor, 1024)


def distances_of(points):
    away = cdist(points.astype(np.float64), points.astype(np.float64))
    np.fill_diagonal(away, np.inf)
    return away


def test_the_recall_is_reached_and_true_and_distances_are_exact(points, finished):
    away, certificate = distances_of(points), finished.certificates["neighbors"]
    graph = finished.group("graph")
    indices, distances = graph.read("indices"), graph.read("distances")
    np.testing.assert_allclose(distances, np.take_along_axis(away, indices, axis=1), rtol=1e-6)
    assert all(len(np.unique(row)) == K for row in indices)
    reached = np.sort(away, axis=1)[:, K - 1 : K] * (1 + 1e-6)
    true = np.mean(distances <= reached)
    assert certificate["recall"] >= 0.93
    assert abs(true - certificate["recall"]) < 5 * certificate["recall_error"] + 1e-3
    assert certificate["method"] == "leaves"
    assert certificate["draws"] >= 2


@pytest.mark.parametrize(
    "executor", [Executor(workers=2), Executor("processes", workers=2)], ids=["threads", "processes"]
)
def test_no_neighbour_comes_twice_and_the_certificate_counts_rows(tmp_path, executor):
    """Lists are longer than their heads, which alone say through whom a point looks further."""
    points = np.random.default_rng(3).normal(size=(4000, 40)).astype(np.float32)
    asked = {"n_neighbors": 50, "max_rounds": 4, "leaf_points": 200, "recall": 0.97, "sampled_queries": 1000}
    found = run(open_points(points), tmp_path / "run", "knn-graph", params_of(**asked), executor, 1024)
    indices, certificate = found.group("graph").read("indices"), found.certificates["neighbors"]
    assert certificate["rounds"] >= 1
    assert all(len(set(row) - {i}) == 50 for i, row in enumerate(indices.tolist()))
    true = np.argsort(distances_of(points), axis=1)[:, :50]
    share = np.mean([len({*one} & {*other}) / 50 for one, other in zip(indices, true, strict=True)])
    assert abs(share - certificate["recall"]) < 3 * certificate["recall_error"] + 1e-3


def test_each_round_over_leaves_keeps_what_was_found_and_tells_what_is_new(finished):
    group = finished.group("neighbors")
    before, after = (group.read(f"round_{number}/indices") for number in (0, 1))
    held = np.array([np.isin(row, known) for row, known in zip(after, before, strict=True)])
    np.testing.assert_array_equal(group.read("round_1/fresh").astype(bool), ~held)
    farther = group.read("round_0/distances")[:, -1] - group.read("round_1/distances")[:, -1]
    assert farther.min() >= 0
    assert farther.mean() > 0


def test_a_round_over_leaves_is_all_pairs_that_share_a_leaf(points, stored):
    """Of leaves that are not split: what SciPy finds among the points that share one, from the leaves as stored."""
    group = stored.group("neighbors")
    leaves, rows = group.read("leaves_0/leaves"), stored.group("work_points").read("input_rows")
    sizes = np.bincount(leaves.ravel())  # of all draws, whose leaders are numbered on
    away = distances_of(points[rows])
    whole = np.flatnonzero((sizes <= LARGE * 90)[leaves].all(axis=1))
    assert len(whole) > 150
    listed = group.read("round_0/distances")
    for row in whole[::3]:
        met = np.flatnonzero((leaves == leaves[row, :, None, None]).any(axis=(0, 2)))
        expected = np.sort(away[row, met])[:K]
        np.testing.assert_allclose(listed[row], expected, rtol=1e-5)


def test_each_draw_has_leaders_of_its_own(stored):
    leaves, width = stored.group("neighbors").read("leaves_0/leaves"), NeighborsParams.leaf_overlap
    first, second = (np.bincount(leaves[:, some].ravel() % 84) for some in (slice(width), slice(width, 2 * width)))
    assert leaves.shape[1] == FIRST_DRAWS * width
    assert leaves[:, width].min() >= 84  # as many leaders has a draw
    assert not np.array_equal(np.sort(first), np.sort(second))


@pytest.mark.parametrize(("block_rows", "workers"), [(2048, 1), (4096, 3)])
def test_blocks_and_threads_do_not_change_a_bit(points, finished, tmp_path, block_rows, workers):
    again = run(open_points(points), tmp_path / "run", "knn-graph", params_of(), Executor(workers=workers), block_rows)
    for name in ("indices", "distances"):
        np.testing.assert_array_equal(again.group("graph").read(name), finished.group("graph").read(name))
    assert again.certificates["neighbors"] == finished.certificates["neighbors"]


def test_processes_which_store_leaves_give_the_same_bits_as_threads_which_hold_them(finished, stored):
    for name in ("indices", "distances"):
        np.testing.assert_array_equal(stored.group("graph").read(name), finished.group("graph").read(name))
    assert stored.certificates["neighbors"] == finished.certificates["neighbors"]


def task_with(finished, cache_bytes, in_memory):
    groups = {name: finished.group(name) for name in ("work_points", "partition")}
    output = finished.group("neighbors")
    return StageTask("neighbors", finished.dimensions, finished.params, groups, output, cache_bytes, in_memory)


@pytest.mark.parametrize(("cache_bytes", "in_memory"), [(0, False), (10**6, True), (10**9, True)])
def test_points_in_files_and_in_memory_give_the_same_lists(stored, cache_bytes, in_memory):
    task, first = task_with(stored, cache_bytes, in_memory), Round(0, 0, draws=FIRST_DRAWS)
    n_parts = FIRST_DRAWS * counts.leaf_sizes(task).groups
    assert n_parts > FIRST_DRAWS
    with Executor(workers=1).started():  # BLAS at one thread, as in a run
        part = joined_part(first, 0, task, n_parts - 1)
        for described, values in part.items():
            path = f"joined_0-block-{n_parts - 1:06d}/{described.name}"
            np.testing.assert_array_equal(values, task.output.read_rows(path), err_msg=path)
        for block, arrays in merged_blocks(n_parts, 0, task, [1, 2]):
            for described, values in arrays.items():
                np.testing.assert_array_equal(values, task.output.read_block(f"round_0/{described.name}", block))
    PROCESS.free()


def test_later_rounds_rank_candidates_by_all_coordinates(points, finished):
    task = task_with(finished, 0, True)
    try:
        vectors, unit, _ = list_tables(task, "round_1", True)
        rows = finished.group("work_points").read("input_rows")
        assert vectors.shape == points.shape
        away = unit * np.linalg.norm(vectors[:50, None].astype(float) - vectors[100:150].astype(float), axis=2)
        np.testing.assert_allclose(away, cdist(points[rows[:50]], points[rows[100:150]]), rtol=0.05, atol=0.2)
    finally:
        PROCESS.free()


@pytest.fixture(scope="module")
def bare(points, tmp_path_factory):
    """A run of which only what is needed is kept."""
    folder = tmp_path_factory.mktemp("runs") / "bare"
    return run(open_points(points), folder, "knn-graph", params_of(), Executor(workers=2), 1024)


def test_leaves_and_their_lists_are_removed_with_their_round(finished, bare):
    left = bare.group("neighbors")
    last = bare.certificates["neighbors"]["rounds"]
    folders = {name for name in left.objects.names("arrays") if name.startswith(("round_", "leaves_", "joined_"))}
    assert folders == {f"round_{last}"}
    assert not [unit for unit in left.units if unit.startswith(("leaves_", "joined_"))]
    np.testing.assert_array_equal(bare.group("graph").read("indices"), finished.group("graph").read("indices"))


@pytest.mark.parametrize("lost", [["last_round"], ["recall_1"], ["queries"]], ids=" ".join)
def test_what_is_lost_is_computed_again_to_the_same_bits(bare, points, tmp_path, lost):
    again = run(open_points(points), tmp_path / "run", "knn-graph", params_of(), Executor(workers=2), 1024)
    last = again.certificates["neighbors"]["rounds"]
    open_run(tmp_path / "run").group("neighbors").forget([*lost, f"round_{last}-block-000001"])
    again = run(open_points(points), tmp_path / "run", "knn-graph", params_of(), Executor(workers=2), 1024)
    assert again.group("neighbors").content_digest == bare.group("neighbors").content_digest
    assert not again.group("neighbors").damaged_units()


@pytest.mark.parametrize("lost", ["leaves_0-block-000001", "joined_0-block-000001", "round_0-block-000001"])
def test_a_round_that_was_stopped_goes_on_to_the_same_bits(points, stored, tmp_path, lost):
    folder = tmp_path / "run"
    shutil.copytree(stored.store.root, folder)
    group, later = open_run(folder).group("neighbors"), ("recall_", "round_1", "round_2", "round_3")
    group.forget([lost, "round_0-block-000001", *(unit for unit in group.units if unit.startswith(later))])
    executor = Executor("processes", workers=1, keep=True)
    again = run(open_points(points), folder, "knn-graph", params_of(), executor, 1024)
    for name in ("indices", "distances"):
        np.testing.assert_array_equal(again.group("graph").read(name), stored.group("graph").read(name))
    assert not again.group("neighbors").damaged_units()


def test_points_of_small_leaves_have_full_lists(tmp_path):
    """Groups of five points far from all others: their leaves alone do not fill a list."""
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(100, 1, 8)) * 1000 + rng.normal(size=(100, 5, 8))
    points = np.concatenate([rng.normal(size=(1500, 8)), groups.reshape(-1, 8)]).astype(np.float32)
    asked = params_of(leaf_points=40, max_rounds=0, recall=0.1)
    graph = run(open_points(points), tmp_path / "graph", "knn-graph", asked, Executor(workers=2), 1024).group("graph")
    indices, away = graph.read("indices"), distances_of(points)
    assert all(len(np.unique(row)) == K for row in indices)
    np.testing.assert_allclose(graph.read("distances"), np.take_along_axis(away, indices, axis=1), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_any_type_of_dense_points_is_searched(points, tmp_path, dtype):
    given = (20 * (points - 50) + 100).clip(0, 255).astype(dtype)
    found = run(open_points(given), tmp_path / "run", "knn-graph", params_of(), Executor(workers=2), 1024)
    assert found.certificates["neighbors"]["recall"] >= 0.93
    away, graph = distances_of(given), found.group("graph")
    np.testing.assert_allclose(graph.read("distances"), np.take_along_axis(away, graph.read("indices"), 1), rtol=1e-6)


def test_sparse_points_are_refused():
    with pytest.raises(ConfigError, match=r"method='leaves' takes dense points"):
        sm.knn_graph(sparse.random(300, 400, 0.05, format="csr", random_state=0), 5, method="leaves")


def test_points_can_be_appended(points, tmp_path):
    folder, settings = tmp_path / "run", {"neighbors.leaf_points": 60, "neighbors.sampled_queries": 300}
    sm.knn_graph(points[:2000], K, "leaves", 0.9, settings=settings, store=folder)
    grown = sm.append(folder, points[2000:]).run
    assert grown.certificates["neighbors"]["method"] == "leaves"
    assert grown.certificates["neighbors"]["recall"] >= 0.9


def test_a_draw_and_the_round_behind_it_count_once(points, tmp_path):
    found = run(
        open_points(points), tmp_path / "run", "knn-graph", params_of(max_rounds=1, recall=1.0), Executor(), 1024
    )
    assert found.certificates["neighbors"]["rounds"] == 2


def test_what_would_help_is_said_where_the_recall_is_not_reached(points, tmp_path, listening):
    executor = Executor(workers=2, progress=listening)
    run(open_points(points), tmp_path / "run", "knn-graph", params_of(max_rounds=0, recall=1.0), executor, 1024)
    assert any("raise neighbors.max_rounds or neighbors.leaf_points" in told for told in listening.warned)
    assert "neighbors.n_probes" not in "".join(listening.warned)


def test_dense_points_whose_cells_miss_too_much_are_told_of_leaves(points, tmp_path, listening):
    asked = Parameters().with_values(
        {"neighbors": {"method": "partition", "max_rounds": 0, "recall": 1.0, "n_probes": 1}}
    )
    executor = Executor(workers=2, progress=listening)
    run(open_points(points), tmp_path / "run", "knn-graph", asked, executor, 1024)
    assert any("take neighbors.method=leaves, or neighbors.method=exact, some" in told for told in listening.warned)
