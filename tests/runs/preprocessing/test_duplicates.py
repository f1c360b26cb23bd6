"""Equal rows that are one point: the run of the distinct points with weights, its results by the rows given."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, MemoryBudgetError
from scalemani.interfaces.functions.run_measures import measure_run
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_weights
from scalemani.kernels.rows.equal_rows import GROUPING_BYTES
from scalemani.runs.aligning import align
from scalemani.runs.appending import append_points
from scalemani.runs.exporting import annotations_of
from scalemani.runs.opened import open_run
from scalemani.runs.stored_results import remove_unused
from scalemani.runs.walk import plan_run, run

RANDOM = np.random.default_rng(0)
N_POINTS, N_ROWS = 400, 1500
DISTINCT = (RANDOM.normal(size=(N_POINTS, 4)) * [4.0, 2.0, 1.0, 0.5]).astype(np.float32)
_PICKED = np.concatenate([RANDOM.permutation(N_POINTS), RANDOM.integers(0, N_POINTS, N_ROWS - N_POINTS)])
RANDOM.shuffle(_PICKED)
_FIRST = np.sort(np.unique(_PICKED, return_index=True)[1])
POINTS = DISTINCT[_PICKED[_FIRST]]  # in the order in which they are first met
ROWS = np.argsort(_PICKED[_FIRST])[_PICKED]  # the point of each row
GIVEN = POINTS[ROWS]
COUNTS = np.bincount(ROWS)
VALUES = {
    "affinities": {"perplexity": 10.0},
    "neighbors": {"n_neighbors": 30},
    "landmarks": {"n_landmarks": 100},
    "layout": {"max_iterations": 20, "snapshots": 10},
}
MERGED = {**VALUES, "duplicates": {"tolerance": 0.0}}


def computed(points, folder, values, method="t-sne", block_rows=None):
    params = Parameters().with_values(values)
    return run(points, folder, method, params, Executor(workers=2), block_rows)


def planned(points, values, method="t-sne", **resources):
    executor = Executor(workers=1, progress=Progress(), **resources)
    return plan_run(open_points(points), "unused", method, Parameters().with_values(values), executor)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("duplicates")


@pytest.fixture(scope="module")
def merged(folder):
    return computed(open_points(GIVEN), folder / "merged", MERGED)


@pytest.fixture(scope="module")
def weighted(folder):
    return computed(with_weights(open_points(POINTS), COUNTS), folder / "weighted", VALUES)


def test_what_is_stored_is_the_run_of_the_distinct_points_with_weights(merged, weighted):
    assert {stage: key for stage, key in merged.keys.items() if stage != "duplicates"} == weighted.keys
    for stage in weighted.keys:
        assert merged.group(stage).content_digest == weighted.group(stage).content_digest, stage


def test_every_row_is_where_its_point_is(merged, weighted):
    assert (merged.n_input_points, len(merged.rows), merged.dimensions.n_points) == (N_ROWS, N_ROWS, N_POINTS)
    expected = np.asarray(weighted.embedding[...])[ROWS]
    np.testing.assert_array_equal(merged.embedding[...], expected)
    np.testing.assert_array_equal(merged.embedding[700:900:3], expected[700:900:3])
    np.testing.assert_array_equal(merged.snapshots.positions[...], weighted.snapshots.positions[...][:, ROWS])
    assert merged.embedding.shape == expected.shape


def test_graph_affinities_and_landmarks_name_points_by_their_first_rows(merged, weighted):
    first = np.array([np.flatnonzero(point == ROWS)[0] for point in range(N_POINTS)])
    np.testing.assert_array_equal(merged.graph.indices[...], first[weighted.graph.indices[...]][ROWS])
    np.testing.assert_array_equal(merged.graph.distances[100:300], weighted.graph.distances[...][ROWS[100:300]])
    found, expected = merged.affinities.tocsr(), weighted.affinities.tocsr()
    assert found.shape == (N_ROWS, N_ROWS)
    np.testing.assert_array_equal(found[first][:, first].toarray(), expected.toarray())
    assert found.nnz == expected.nnz == merged.affinities.nnz
    np.testing.assert_array_equal(merged.affinities.rows(37, 411).toarray(), found[37:411].toarray())
    np.testing.assert_array_equal(merged.landmarks.rows, first[weighted.landmarks.rows])


def test_a_certificate_counts_rows_and_the_plan_says_how_many_points_they_are(merged):
    assert merged.certificates["duplicates"] == {
        "rows": N_ROWS,
        "duplicate_rows": N_ROWS - N_POINTS,
        "most_rows_a_point": COUNTS.max(),
    }
    plan = planned(GIVEN, MERGED)
    assert str(plan.outline.survey.side.duplicates).startswith("1500 rows are 400 distinct points")
    assert plan.planned("duplicates").held.process["points of the rows given"] == 16 * N_ROWS
    for stage in plan.stages:  # the points of rows, and first rows and weights of points, are there all the time
        merged = stage.held.process["points of the rows, their first rows and weights"]
        assert merged == 8 * N_ROWS + 16 * N_POINTS
    assert [stage.stage.name for stage in plan.stages][:2] == ["duplicates", "points"]


def test_weights_of_rows_are_added_up(folder):
    of_rows = RANDOM.integers(1, 4, N_ROWS)
    sums = np.bincount(ROWS, of_rows)
    found = computed(with_weights(open_points(GIVEN), of_rows), folder / "merged", MERGED, "laplacian-eigenmaps")
    expected = computed(with_weights(open_points(POINTS), sums), folder / "weighted", VALUES, "laplacian-eigenmaps")
    np.testing.assert_array_equal(found.embedding[...], np.asarray(expected.embedding[...])[ROWS])
    assert found.certificates["weights"]["total_weight"] == of_rows.sum()


@pytest.mark.parametrize("metric", ["cosine", "correlation", "hellinger"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_rows_are_equal_as_the_metric_maps_them_dense_or_sparse_and_in_any_blocks(metric, sparse):
    points = np.rint(np.abs(GIVEN) * 4)
    points[:, 0] += 1
    scaled = points * 2.0 ** RANDOM.integers(-3, 4, (N_ROWS, 1))  # exact: mapped rows stay equal
    values = {**MERGED, "points": {"metric": metric}, "embedding": {"solver": "refine"}}
    params = Parameters().with_values(values)
    counted = {row.tobytes() for row in points / np.linalg.norm(points, axis=1, keepdims=True)}
    keys = set()
    for block_rows in (1024, 2048):
        given = open_points(sp.csr_matrix(scaled) if sparse else scaled)
        plan = plan_run(given, "unused", "t-sne", params, Executor(workers=1, progress=Progress()), block_rows)
        keys.add(tuple(planned.key for planned in plan.stages))
    assert len(keys) == 1
    if metric == "cosine":
        assert plan.dimensions.n_points == len(counted)
    assert plan.dimensions.n_points < N_ROWS / 2


def test_rows_in_one_cell_of_a_tolerance_are_the_first_of_them(folder):
    moved = (GIVEN + RANDOM.uniform(-1e-4, 1e-4, GIVEN.shape)).astype(np.float64)
    plan = planned(moved, MERGED)
    assert plan.dimensions.n_points == N_ROWS
    near = planned(moved, {**VALUES, "duplicates": {"tolerance": 0.05}})
    assert N_POINTS * 0.9 < near.dimensions.n_points < N_POINTS * 1.2
    assert near.planned("duplicates").key != plan.planned("duplicates").key


def test_a_run_without_it_has_the_keys_it_had():
    plain = {planned.stage.name: planned.key for planned in planned(GIVEN, VALUES).stages}
    assert "duplicates" not in plain
    assert "weights" not in plain
    assert Parameters().with_values(VALUES).duplicates.tolerance is None
    for off in (None, False):
        values = {**VALUES, "duplicates": {"tolerance": off}}
        assert {planned.stage.name: planned.key for planned in planned(GIVEN, values).stages} == plain


def test_new_points_measures_and_alignment_are_those_of_the_distinct_points(merged, weighted, tmp_path):
    new = POINTS[:50] + np.float32(0.01)
    for found in (merged, weighted):
        sm.transform(found.store.root, new, tmp_path / f"{found.store.root.name}.npy")
    np.testing.assert_array_equal(*(np.load(tmp_path / f"{name}.npy") for name in ("merged", "weighted")))
    classes = (POINTS[:, 0] > 0).astype(int)
    assert measure_run(merged, classes[ROWS]) == measure_run(weighted, classes)
    assert align(merged, np.asarray(weighted.embedding[...])[ROWS]).relative_residual < 1e-12


def test_an_anndata_has_all_rows(merged):
    found = annotations_of(merged)
    assert found.n_obs == N_ROWS
    np.testing.assert_array_equal(found.elements["obsm/X_tsne"].read(0, N_ROWS), merged.embedding[...])


def test_eigenvectors_of_an_anndata_are_those_of_the_transition_matrix_of_all_rows(folder):
    values = {**MERGED, "landmark_embedding": {"n_components": 3}}
    found = annotations_of(computed(open_points(GIVEN), folder / "merged", values, "diffusion-maps"))
    basis = found.elements["obsm/X_diffmap"].read(0, N_ROWS)
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-6)
    np.testing.assert_array_equal(basis, basis[_FIRST][ROWS])


def test_commands_take_and_give_all_rows(folder, merged, scalemani, tmp_path):
    np.save(tmp_path / "points.npy", GIVEN)
    np.save(tmp_path / "labels.npy", ROWS % 3)
    sets = ["--set=affinities.perplexity=10", "--set=neighbors.n_neighbors=30", "--set=landmarks.n_landmarks=100"]
    sets += ["--set=layout.max_iterations=20", "--set=layout.snapshots=10"]
    given = (tmp_path / "points.npy", folder / "merged", "--method=t-sne", "--deduplicate", *sets)
    status, output, _ = scalemani("embed", *given, "--labels", tmp_path / "labels.npy")
    assert status == 0
    assert "400 points have the label of their nearest neighbour" in output
    status, output, errors = scalemani("plan", *given)
    assert (status, errors) == (0, "")
    assert "1500 rows are 400 distinct points" in output
    assert [line.split()[2] for line in output.splitlines() if line.startswith(("duplicates", "layout"))] == [
        "complete",
        "complete",
    ]
    shown = scalemani("info", folder / "merged")[1]
    assert "duplicate_rows 1100, most_rows_a_point 10, rows 1500" in shown
    assert json.loads(scalemani("info", folder / "merged", "--json")[1])["input_points"] == N_ROWS
    expected = np.asarray(merged.embedding[...])
    for suffix in ("npy", "parquet"):
        assert scalemani("export", folder / "merged", tmp_path / f"out.{suffix}")[0] == 0
        found = open_points(tmp_path / f"out.{suffix}")
        np.testing.assert_array_equal(found.read(0, N_ROWS), expected)
    assert scalemani("export", folder / "merged", tmp_path / "graph.npz", "--what=graph")[0] == 0
    assert sp.load_npz(tmp_path / "graph.npz").shape == (N_ROWS, N_ROWS)
    page = tmp_path / "page.html"
    assert scalemani("report", folder / "merged", page, "--labels", tmp_path / "labels.npy")[0] == 0
    assert "--set duplicates.tolerance=0.0" in page.read_text()
    assert "--weights" not in page.read_text()
    pytest.importorskip("PIL")
    assert scalemani("plot", folder / "merged", tmp_path / "map.png", "--labels", tmp_path / "labels.npy")[0] == 0


def test_one_stage_at_a_time_ends_in_the_same(merged, scalemani, tmp_path):
    np.save(tmp_path / "points.npy", GIVEN)
    sets = ["--set=affinities.perplexity=10", "--set=neighbors.n_neighbors=30", "--set=landmarks.n_landmarks=100"]
    given = (tmp_path / "points.npy", tmp_path / "run", "--deduplicate", *sets)
    for stage in ("duplicates", "points", "partition", "work_points", "neighbors", "weights"):
        assert scalemani("stage", stage, *given)[0] == 0
    found = open_run(tmp_path / "run")
    for stage in ("duplicates", "weights"):
        assert found.group(stage).content_digest == merged.group(stage).content_digest
    np.testing.assert_array_equal(found.graph.indices[...], merged.graph.indices[...])
    output = scalemani("stage", "duplicates", *given[:2], *sets)[1]
    assert "duplicates: nothing to do, a run with these parameters does not need it" in output


def test_estimators_give_all_rows(merged):
    model = sm.TSNE(
        max_iter=20, perplexity=10, n_neighbors=30, n_landmarks=100, settings={"layout.snapshots": 10}, deduplicate=True
    )
    np.testing.assert_array_equal(model.fit_transform(GIVEN), merged.embedding[...])
    assert model.transform(GIVEN[:5]).shape == (5, 2)
    with pytest.raises(ConfigError, match=r"deduplicate must be >= 0, got -1.0"):
        sm.TSNE(deduplicate=-1.0).fit(GIVEN)


def test_the_largest_component_of_distinct_points_has_all_rows_of_these(folder):
    far = np.concatenate([GIVEN, GIVEN[:200] + np.float32(1000.0)])
    order = RANDOM.permutation(len(far))
    values = {**MERGED, "components": {"disconnected": "largest"}}
    found = computed(open_points(far[order]), folder / "largest", values, "laplacian-eigenmaps")
    kept = np.flatnonzero(order < N_ROWS)
    np.testing.assert_array_equal(found.input_rows, kept)
    assert (found.n_input_points, len(found.rows), found.dimensions.n_points) == (N_ROWS + 200, N_ROWS, N_POINTS)
    alone = computed(open_points(GIVEN[order[kept]]), folder / "alone", values, "laplacian-eigenmaps")
    np.testing.assert_array_equal(found.embedding[...], alone.embedding[...])
    spread = found.of_input(np.asarray(found.embedding[...]), np.nan)
    assert np.isnan(spread[order >= N_ROWS]).all()
    assert np.isfinite(spread[order < N_ROWS]).all()
    with pytest.raises(ConfigError, match="holds a run of the largest component"):
        remove_unused(found)


def test_a_grid_may_differ_in_it(tmp_path):
    maps = sm.LaplacianEigenmaps(perplexity=10, n_neighbors=30, store=tmp_path / "run")
    found = sm.tune(maps, {"deduplicate": [True, 0.5]}, GIVEN, ROWS % 2, scoring="label-accuracy")
    assert sorted(found.results_["rank"]) == [1, 2]
    assert found.best_estimator_.embedding_.shape == (N_ROWS, 2)


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        ("spectral-clustering", {}, "spectral-clustering takes no weights"),
        ("knn-graph", {}, "knn-graph takes no weights, which .* leave out --deduplicate"),
        ("laplacian-eigenmaps", {"embedding": {"solver": "nystrom"}}, "embedding.solver=nystrom knows no weights"),
        ("t-sne", {"affinities": {"kind": "gaussian"}}, "kind must be entropic for points with weights"),
    ],
)  # fmt: skip
def test_what_cannot_have_it_is_refused_before_work(method, values, message):
    with pytest.raises(ConfigError, match=message):
        planned(GIVEN, {**MERGED, **values}, method)


def test_neighbours_that_are_given_are_no_rows_that_could_be_equal():
    values = {"points": {"metric": "precomputed"}, "duplicates": {"tolerance": 0.0}}
    with pytest.raises(ConfigError, match="gives neighbours: leave out --deduplicate"):
        Parameters().with_values(values).route("t-sne")


def test_workers_that_read_points_themselves_find_the_same(merged, tmp_path):
    zarr.save_array(tmp_path / "points.zarr", GIVEN)
    given = open_points(f"file://{tmp_path}/points.zarr")
    assert given.remote
    executor = Executor("processes", workers=2)
    params = Parameters().with_values(MERGED)
    found = run(given, tmp_path / "run", "t-sne", params, executor, only="duplicates")
    assert found.keys == merged.keys
    assert found.group("duplicates").content_digest == merged.group("duplicates").content_digest


def test_appending_to_it_and_too_little_memory_are_refused(merged):
    with pytest.raises(ConfigError, match="cannot be appended to a run in which equal rows are one point"):
        append_points(merged, GIVEN[:10], Executor(workers=1))
    with pytest.raises(MemoryBudgetError, match=f"{GROUPING_BYTES} bytes a row, and a process may take"):
        planned(np.broadcast_to(np.zeros((1, 1), np.float32), (2**20, 1)), MERGED, memory=2**25)


def test_rows_that_cannot_be_used_are_named_as_they_were_given():
    broken = GIVEN.copy()
    broken[1234, 2] = np.nan
    with pytest.raises(DataError, match="1234"):
        planned(broken, MERGED)


def test_too_few_distinct_points_are_refused(tmp_path, scalemani):
    np.save(tmp_path / "points.npy", np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0))
    status, _, error = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", "--deduplicate")
    assert status == 2
    assert "10 rows are 2 distinct points" in error
    assert "with 2 sample(s) (shape=(2, 2)) while a minimum of 3 is required" in error
