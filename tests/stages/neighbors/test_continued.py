"""A graph that points were appended to: the truth of its sample and its second round cost what these points do."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.appending import append_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages import neighbors
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.neighbors import continued, recall
from tests.spies import watch

BOUNDS, K, SAMPLED = (1500, 1560, 1650), 8, 400


def executor(workers):
    return Executor(workers=workers, keep=True, progress=Progress())


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(BOUNDS[-1], 6)).astype(np.float32)


@pytest.fixture(scope="module")
def goes(points, tmp_path_factory):
    """The run after each of two goes, the pairs that it compared for the recall, and the points that looked further."""
    folder = tmp_path_factory.mktemp("goes") / "run"
    asked = {"n_neighbors": K, "method": "partition", "n_probes": 3, "sampled_queries": SAMPLED, "recall": 0.9}
    values = {"neighbors": asked, "partition": {"cell_points": 50}}
    run(open_points(points[: BOUNDS[0]]), folder, "knn-graph", Parameters().with_values(values), executor(1), 1024)
    found, compared, looking = [], [], []
    for start, stop in itertools.pairwise(BOUNDS):
        with pytest.MonkeyPatch.context() as patch:
            pairs = watch(
                patch, recall, "nearest_among", lambda _, labels, others, *rest: len(labels) * len(others.sketches)
            )
            visits = watch(patch, neighbors, "propose_by_tiles", n_looking)
            found.append(append_points(open_run(folder), points[start:stop], executor(len(found) + 1)).run)
        compared.append(sum(pairs))
        looking.append(sum(visits))
    return found, compared, looking


def n_looking(table, start, known, visited, *rest):
    """Return how many points of a block look at lists of others."""
    return np.count_nonzero((visited.indices >= 0).any(axis=1))


def queries_of(grown):
    """Return the input rows of the queries of a run, and the distances of their true neighbours that it stores."""
    stored = StoredNeighbors(grown.group("neighbors"))
    order = StoredWorkPoints(grown.group("work_points")).input_rows.read()
    return order[stored.query_rows.read()], stored.true_distances.read()


@pytest.mark.parametrize("go", [0, 1])
def test_queries_have_their_true_neighbours_among_all_points_after_each_go(goes, points, go):
    queries, distances = queries_of(goes[0][go])
    so_far = points[: BOUNDS[go + 1]].astype(np.float64)
    expected = np.sort(cdist(so_far[queries], so_far), axis=1)[:, 1 : K + 1]
    np.testing.assert_allclose(distances, expected, rtol=1e-6)
    assert len(np.unique(queries)) == SAMPLED


@pytest.mark.parametrize("go", [0, 1])
def test_queries_are_the_earlier_ones_but_for_a_share_of_the_appended_points(goes, go):
    queries, _ = queries_of(goes[0][go])
    n_before, n_points = BOUNDS[go : go + 2]
    n_new, expected = np.count_nonzero(queries >= n_before), SAMPLED * (1 - n_before / n_points)
    assert 0 < n_new < expected + 4 * np.sqrt(expected)
    if go:
        earlier, _ = queries_of(goes[0][0])
        assert set(queries[queries < n_before].tolist()) <= set(earlier.tolist())


@pytest.mark.parametrize("go", [0, 1])
def test_a_go_compares_its_own_queries_with_points_in_their_reach_and_the_others_with_its_points(goes, go):
    n_before, n_points = BOUNDS[go : go + 2]
    n_new = np.count_nonzero(queries_of(goes[0][go])[0] >= n_before)
    of_earlier = (SAMPLED - n_new) * (n_points - n_before)
    assert of_earlier < goes[1][go] < of_earlier + n_new * n_points / 2
    assert goes[1][go] < 2 * SAMPLED * (n_points - n_before)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_rows_in_reach_are_all_that_lie_within_the_limit_of_a_query(scale):
    draws = np.random.default_rng(1)
    sketches, queries = (scale * draws.normal(size=(n, 20)).astype(np.float32) + 3 * scale for n in (3000, 6))
    away = cdist(sketches.astype(float), queries.astype(float))
    limits = np.quantile(away, 0.02, axis=0)
    limits[0] = away[0, 0]  # to the bit
    inside = (away <= limits).any(axis=1)
    found = recall.is_in_reach(sketches, queries, limits)
    assert found[inside].all()
    assert found.sum() <= 1.05 * inside.sum()
    assert recall.is_in_reach(sketches, queries, np.full(6, np.inf)).all()


def test_positions_in_ascending_numbers_are_minus_one_for_others():
    numbers = np.array([2, 5, 9])
    np.testing.assert_array_equal(recall.positions_in(numbers, np.array([5, 2, 4, 10, -1, 9])), [1, 0, -1, -1, -1, 2])
    np.testing.assert_array_equal(recall.positions_in(numbers[:0], np.array([5, -1])), [-1, -1])


def test_the_recall_that_is_certified_is_that_of_the_graph(goes, points):
    certificates, graph = goes[0][1].certificates["neighbors"], np.asarray(goes[0][1].graph.distances[...])
    reached = np.sort(cdist(points.astype(np.float64), points), axis=1)[:, K] * (1 + 1e-6)
    assert abs(certificates["recall"] - (graph <= reached[:, np.newaxis]).mean()) < 4 * certificates["recall_error"]
    assert certificates["sampled_queries"] == SAMPLED


def test_lists_that_the_first_round_has_left_stay_and_what_is_fresh_stays_fresh(goes):
    group = goes[0][1].group("neighbors")
    (before, flags), (after, kept) = (
        [group.read(f"round_{number}/{name}") for name in ("indices", "fresh")] for number in (0, 1)
    )
    changed = flags.any(axis=1)
    assert BOUNDS[2] - BOUNDS[1] <= np.count_nonzero(changed) == goes[2][1] < BOUNDS[2] / 2
    np.testing.assert_array_equal(after[~changed], before[~changed])
    assert (after[changed] != before[changed]).any()
    for row in range(BOUNDS[2]):
        known = np.isin(after[row], before[row][flags[row] == 0])
        np.testing.assert_array_equal(kept[row].astype(bool), ~known)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    """A run of far clusters, as large as blocks, points appended to one of them, and the blocks that were looked at."""
    draws, folder = np.random.default_rng(3), tmp_path_factory.mktemp("clusters") / "run"
    before = 100.0 * np.repeat(np.eye(5, 6), 1000, axis=0) + draws.normal(size=(5000, 6))
    appended = 100.0 * np.eye(5, 6)[2] + draws.normal(size=(40, 6))
    asked = {"neighbors": {"n_neighbors": K, "method": "partition"}, "partition": {"cell_points": 50}}
    rough = {"affinities": {"perplexity": 3.0}, "embedding": {"residual": 0.5, "max_passes": 2}}
    params = Parameters().with_values({**asked, **rough})
    earlier = run(open_points(before), folder, "laplacian-eigenmaps", params, executor(1), 1024)
    with pytest.MonkeyPatch.context() as patch:
        settled = watch(patch, continued, "settled", lambda task, start, *rest: start)
        visits = watch(patch, neighbors, "propose_by_tiles", lambda table, start, *rest: start)
        grown = append_points(open_run(folder), appended, executor(2)).run
    return earlier, grown, np.concatenate([before, appended]), settled, visits


def blocks_of_graph(finished):
    group = finished.group("neighbors")
    step = StoredNeighbors(group).final_step
    return [group.content_of_block("indices", block, step) for block in range(5)]


@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_lists_and_affinities_of_blocks_that_no_appended_point_enters_are_taken_undecoded(clusters):
    earlier, grown, points, settled, visits = clusters
    same = np.array(blocks_of_graph(earlier)) == np.array(blocks_of_graph(grown))
    assert 2 <= same.sum() < 5
    changed = {1024 * block for block in range(5) if block == 4 or not same[block]}
    assert set(settled) <= changed
    assert set(visits) <= changed
    order = StoredWorkPoints(grown.group("work_points")).input_rows.read()
    away = cdist(points[order], points)
    rows = np.flatnonzero(np.repeat(same, 1024)[: len(order)])
    within = grown.group("neighbors").read(f"{StoredNeighbors(grown.group('neighbors')).final_step}/distances")
    assert (away[rows, 5000:].min(axis=1) >= within[rows, -1]).all()
    reached = np.sort(away, axis=1)[:, K, np.newaxis] * (1 + 1e-9)
    assert (within <= reached).mean() > 0.95
    for name in ("values", "beta", "iterations"):
        now, before = (one.group("affinities") for one in (grown, earlier))
        kept = np.array([now.content_of_block(name, i) == before.content_of_block(name, i) for i in range(4)])
        np.testing.assert_array_equal(kept, same[:4])
        assert all(chunk_of(now, name, i).samefile(chunk_of(before, name, i)) for i in np.flatnonzero(kept))


def chunk_of(group, name, block):
    return group.objects.root / "arrays" / name / "c" / str(block) / ("0" if name == "values" else "")
