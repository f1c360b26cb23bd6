"""The stage `neighbors`: rounds give the same lists however much memory there is, and each brings the graph nearer."""

import shutil
import weakref

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.config.params import Parameters
from scalemani.engine.context import LEDGER_VARIABLE, StageTask
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.neighbors.rerank import Neighbors, recall_by_row
from scalemani.kernels.neighbors.rounds import Round
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.neighbors import near_neighbors_block
from scalemani.stages.neighbors.cells import cells_block
from scalemani.stages.neighbors.counts import n_listed
from scalemani.stages.neighbors.memory_model import BYTES_OF_EDGE
from scalemani.stages.neighbors.tables import list_tables, short_sketches, sketch_tables

K = 35  # more than `few_neighbors`, and more than a neighbour's list is visited for
PARAMS = Parameters().with_values(
    {
        "neighbors": {"n_neighbors": K, "method": "partition", "n_probes": 2, "recall": 1.0, "max_rounds": 2},
        "affinities": {"perplexity": 4},
        "partition": {"cell_points": 60, "sketch_dimensions": 8, "sample_points": 2000},
    }
)
BLOCK_ROWS = 1024


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(4)
    return (rng.normal(size=(3500, 7)) @ rng.normal(size=(7, 40)) * 12 + 120).clip(0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def finished(points, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "graph"
    return run(open_points(points), folder, "knn-graph", PARAMS, Executor(workers=2, keep=True), BLOCK_ROWS)


def task_with(finished, cache_bytes, in_memory=True):
    groups = {name: finished.group(name) for name in ("work_points", "partition")}
    dimensions = Dimensions(3500, 40, "uint8", BLOCK_ROWS)
    return StageTask(
        "neighbors",
        dimensions,
        PARAMS.resolved("knn-graph"),
        groups,
        finished.group("neighbors"),
        cache_bytes,
        in_memory,
    )


@pytest.mark.parametrize(
    ("cache_bytes", "in_memory"), [(0, False), (3500 * 40, False), (0, True), (100_000, True), (3500 * 40, True)]
)
def test_points_gathered_mapped_and_in_memory_give_the_same_lists(finished, cache_bytes, in_memory):
    task = task_with(finished, cache_bytes, in_memory)
    try:
        for block in (0, 3):
            computed = [
                cells_block(Round(0, 2), 0, task, block),
                near_neighbors_block(Round(2, 2), 1, task, block),
            ]
            for number, arrays in enumerate(computed):
                for described, values in arrays.items():
                    stored = task.output.read_block(f"round_{number}/{described.name}", block)
                    np.testing.assert_array_equal(values, stored, err_msg=f"round {number}, {described.name}")
    finally:
        PROCESS.free()


def test_rounds_bring_the_graph_nearer_and_the_last_recall_is_true(finished, points):
    group, rows = finished.group("neighbors"), finished.group("work_points").read("input_rows")
    away = cdist(points[rows].astype(float), points[rows].astype(float))
    np.fill_diagonal(away, np.inf)
    reached = np.sort(away, axis=1)[:, K - 1 : K] * (1 + 1e-6)
    certificate = finished.certificates["neighbors"]
    recalls = []
    for number in range(certificate["rounds"] + 1):
        indices = group.read(f"round_{number}/indices")
        distances = np.take_along_axis(away, indices.astype(np.int64), axis=1)
        np.testing.assert_allclose(group.read(f"round_{number}/distances"), distances, rtol=1e-6)
        recalls.append(np.mean(distances <= reached))
        assert all(len(np.unique(row)) == K for row in indices)
    assert recalls == sorted(recalls)
    assert recalls[1] - recalls[0] > 0.02
    assert abs(recalls[-1] - certificate["recall"]) < 0.01


def test_fresh_entries_are_those_that_the_round_before_did_not_hold(finished):
    group = finished.group("neighbors")
    before, after = (group.read(f"round_{number}/indices") for number in (0, 1))
    held = np.array([np.isin(row, known) for row, known in zip(after, before, strict=True)])
    np.testing.assert_array_equal(group.read("round_1/fresh").astype(bool), ~held)


def test_listed_edges_are_the_heads_of_the_lists(finished):
    lists = list_tables(task_with(finished, 0), "round_0").lists
    PROCESS.free()
    np.testing.assert_array_equal(lists[0], finished.group("neighbors").read("round_0/indices")[:, :K])
    assert lists[0].nbytes + lists[1].nbytes == BYTES_OF_EDGE * n_listed(PARAMS.resolved("knn-graph")) * 3500


SKETCHES, LISTS = 3500 * 8 * 4, 3500 * (8 + n_listed(PARAMS.resolved("knn-graph")) * BYTES_OF_EDGE)


@pytest.mark.parametrize(
    ("cache_bytes", "in_memory"),
    [
        (SKETCHES - 1, (False, True, False)),
        (SKETCHES, (True, True, False)),
        (LISTS - 1, (True, True, False)),
        (LISTS, (True, True, True)),
    ],
)
def test_tables_are_in_memory_where_a_cache_has_room_for_them_and_one_kind_at_a_time(finished, cache_bytes, in_memory):
    task = task_with(finished, cache_bytes, in_memory=False)
    try:
        sketches = sketch_tables(task).by_row
        indices = finished.group("neighbors").read("round_0/indices")[:, : n_listed(PARAMS.resolved("knn-graph"))]
        np.testing.assert_array_equal(sketches[: len(indices)], task.inputs["work_points"].read("sketch"))
        gone, held = weakref.ref(sketches), [isinstance(sketches, np.ndarray)]
        assert sketch_tables(task).by_row is sketches
        del sketches
        short, _, lists = list_tables(task, "round_0")
        assert gone() is None
        np.testing.assert_array_equal(lists[0][: len(indices)], indices)
        held += [isinstance(short, np.ndarray), isinstance(lists[0], np.ndarray)]
        assert tuple(held) == in_memory
    finally:
        PROCESS.free()


def test_sketches_are_rounded_where_near_neighbours_stay_apart(finished, tmp_path):
    task = task_with(finished, 0)
    rng = np.random.default_rng(5)
    far_apart = rng.normal(size=(6, 1, 40)) * 1e4 + rng.normal(size=(6, 600, 40))
    params = PARAMS.with_values({"neighbors": {"n_probes": 4}})
    source = open_points(far_apart.reshape(-1, 40).astype(np.float32))
    apart = run(source, tmp_path / "apart", "knn-graph", params, Executor(workers=2, keep=True))
    groups = {name: apart.group(name) for name in ("work_points", "partition")}
    coarse = StageTask(
        "neighbors",
        Dimensions(3600, 40, "float32", 4096),
        params.resolved("knn-graph"),
        groups,
        apart.group("neighbors"),
        0,
    )
    try:
        rounded, unit = short_sketches(task, False)
        sketches = task.inputs["work_points"].read("sketch")
        scale = float(task.inputs["partition"].read("scale"))
        assert rounded.dtype == np.int8
        within = np.abs(sketches * scale) < 127 * unit
        np.testing.assert_allclose((rounded * unit)[within], (sketches * scale)[within], atol=0.501 * unit)
        as_they_are, unit = short_sketches(coarse, False)
        assert as_they_are.dtype == np.float32
        assert unit == float(groups["partition"].read("scale"))
    finally:
        PROCESS.free()
    recalls = [recall_by_row(*pair).mean() for pair in sampled_distances(apart)]
    assert recalls[-1] - recalls[0] > 0.02


def sampled_distances(finished):
    """What was found of the sampled points after each round, and their true distances."""
    group = finished.group("neighbors")
    queries, truth = group.read("query_rows"), group.read("true_distances")
    for number in range(finished.certificates["neighbors"]["rounds"] + 1):
        found = (group.read(f"round_{number}/{name}")[queries] for name in ("indices", "distances"))
        yield Neighbors(*found), truth


def test_the_search_goes_on_until_its_sample_leaves_little_doubt(points, tmp_path):
    def searched(name, **asked):
        values = {
            "neighbors": {"n_neighbors": 15, "method": "partition", "n_probes": 3, "sampled_queries": 300, **asked}
        }
        folder = tmp_path / name
        run(open_points(points), folder, "knn-graph", PARAMS.with_values(values), Executor(workers=2), BLOCK_ROWS)
        return open_run(folder)

    once = searched("once", max_rounds=0, recall=0.5)
    reached = once.certificates["neighbors"]
    found, truth = next(sampled_distances(once))
    near = found.distances <= truth[:, -1:] * (1 + 1e-6)
    shares = [len(np.unique(rows[row])) / 15 for rows, row in zip(found.indices, near, strict=True)]
    expected = np.std(shares, ddof=1) / np.sqrt(300) * np.sqrt(1 - 300 / 3500)
    assert reached["recall"] == pytest.approx(np.mean(shares))
    assert reached["recall_error"] == pytest.approx(expected)
    barely = searched("barely", max_rounds=6, recall=reached["recall"])
    assert barely.certificates["neighbors"]["rounds"] > 0
    surely = searched("surely", max_rounds=6, recall=reached["recall"] - 2.01 * reached["recall_error"])
    assert surely.certificates["neighbors"]["rounds"] == 0


def test_points_far_from_all_others_have_all_their_neighbours(tmp_path):
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(400, 1, 8)) * 1000 + rng.normal(size=(400, 5, 8))
    points = np.concatenate([rng.normal(size=(2000, 8)), groups.reshape(-1, 8)]).astype(np.float32)
    kept = Executor(workers=2, keep=True)
    graph = run(open_points(points), tmp_path / "graph", "knn-graph", PARAMS, kept, BLOCK_ROWS)
    assert (graph.group("neighbors").read("round_0/indices") >= 0).all()
    assert graph.certificates["neighbors"]["recall"] > 0.8  # two small cells a point are few


@pytest.mark.parametrize("asked", [0.9, 0.99])
def test_a_recall_that_is_asked_for_is_reached_on_points_of_many_dimensions(tmp_path, asked):
    """Neighbours of neighbours do not get there: the points fill all dimensions, and sketches see a quarter of them."""
    points = np.random.default_rng(5).standard_normal((4000, 32)).astype(np.float32)
    values = {"n_neighbors": 10, "method": "partition", "n_probes": 1, "recall": asked, "max_rounds": 20}
    partition = {"cell_points": 50, "sketch_dimensions": 8, "sample_points": 2000}
    params = Parameters().with_values({"neighbors": values, "partition": partition})
    found = run(open_points(points), tmp_path / "run", "knn-graph", params, Executor(workers=2), BLOCK_ROWS)
    measured = found.certificates["neighbors"]["recall"]
    assert measured >= asked
    squares = cdist(points, points)
    np.fill_diagonal(squares, np.inf)
    reached = np.sort(squares, axis=1)[:, 9:10] * (1 + 1e-6)
    true = np.mean(found.group("graph").read("distances") <= reached)
    assert abs(true - measured) < 0.02


@pytest.fixture(scope="module")
def bare(points, tmp_path_factory):
    """The run of `finished`, of which only what is needed is kept."""
    folder = tmp_path_factory.mktemp("runs") / "bare"
    return run(open_points(points), folder, "knn-graph", PARAMS, Executor(workers=2), BLOCK_ROWS)


def test_the_last_round_alone_stays_and_is_the_one_of_a_run_that_keeps_all(finished, bare):
    kept, left = finished.group("neighbors"), bare.group("neighbors")
    last = bare.certificates["neighbors"]["rounds"]
    assert last == 2
    folders = {name for name in left.objects.names("arrays") if name.startswith("round_")}
    assert folders == {f"round_{last}"}
    assert {f"round_{number}" for number in range(last + 1)} <= set(kept.objects.names("arrays"))
    assert not [unit for unit in left.units if unit.startswith(("round_0", "round_1"))]
    for name in ("indices", "distances"):
        np.testing.assert_array_equal(left.read(f"round_{last}/{name}"), kept.read(f"round_{last}/{name}"))
    assert bare.certificates["neighbors"] == finished.certificates["neighbors"]
    assert left.committed_bytes < 0.5 * kept.committed_bytes


@pytest.mark.parametrize(
    "lost",
    [
        ["round_2-block-000001"],
        ["round_2-block-000001", "recall_2"],
        ["recall_1"],
        ["queries", "truth"],
        ["recall_2", "last_round"],
    ],
    ids=" ".join,
)
def test_what_is_lost_of_the_search_is_computed_again_to_the_same_bits(bare, points, tmp_path, lost):
    folder = tmp_path / "run"
    shutil.copytree(bare.store.root, folder)
    open_run(folder).group("neighbors").forget(lost)
    again = run(open_points(points), folder, "knn-graph", PARAMS, Executor(workers=2), BLOCK_ROWS)
    assert again.group("neighbors").content_digest == bare.group("neighbors").content_digest
    assert again.group("graph").content_digest == bare.group("graph").content_digest
    assert not again.group("neighbors").damaged_units()


def test_a_search_that_was_stopped_between_rounds_computes_no_measured_round_again(
    finished, bare, points, tmp_path, monkeypatch
):
    """The state after `kill -9` in the last round: two of its blocks are there, and the rounds before it."""
    folder, ledger = tmp_path / "run", tmp_path / "ledger"
    shutil.copytree(finished.store.root, folder)
    group = open_run(folder).group("neighbors")
    group.forget(["round_2-block-000000", "round_2-block-000003", "recall_2", "last_round"])
    assert {"recall_0", "recall_1"} <= set(group.units)
    monkeypatch.setenv(LEDGER_VARIABLE, str(ledger))
    again = run(open_points(points), folder, "knn-graph", PARAMS, Executor(workers=2), BLOCK_ROWS)
    assert again.group("neighbors").content_digest == bare.group("neighbors").content_digest
    computed = [line.split()[1].rpartition("/")[2] for line in ledger.read_text().splitlines() if "round_" in line]
    assert sorted(computed) == ["round_2-block-000000", "round_2-block-000003"]
