"""One grid of a run each for the Python face and the command line, and what is promised of both."""

import csv
import json

import numpy as np
import pytest
from sklearn.base import clone

import scalemani as sm
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.tuning.tune import tune
from scalemani.runs.opened import open_run

GRID = {"perplexity": [4.0, 8.0], "n_neighbors": [12, 6, 30]}  # the entropy of 8 neighbours is out of reach of 6
MAPS = sm.LaplacianEigenmaps(n_landmarks=80, solver="lll", n_components=3)


def clusters(n_points=900):
    rng = np.random.default_rng(5)
    classes = rng.integers(0, 4, n_points)
    return rng.normal(size=(n_points, 8)) + 3.0 * np.eye(4, 8)[classes], classes


@pytest.fixture(scope="module")
def points():
    return clusters()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("tune") / "run"


@pytest.fixture(scope="module")
def found(points, store):
    table, classes = points
    with pytest.warns(UserWarning, match="cell 5 of 6 failed"):  # one cell fails
        return tune(clone(MAPS).set_params(store=store), GRID, table, classes, scoring=["label-accuracy", "eigengap"])


def test_every_cell_is_the_run_of_its_own_parameters(found, points, tmp_path):
    """Scored by the same measure, and so the best of them by hand; the search of so few points is exact."""
    table, classes = points
    values = []
    for cell in found.cells:
        if cell.failure is None:
            own = clone(MAPS).set_params(**cell.values).fit(table)
            value = sm.measures.knn_accuracy(own.embedding_, classes).value
            assert cell.scores["label-accuracy"].value == pytest.approx(value, abs=1e-12)
            assert cell.scores["eigengap"].value == pytest.approx(own.certificates_["embedding"]["eigengap"])
            values.append(value)
    assert found.best_score_ == max(values)


def test_a_cell_that_cannot_be_run_is_reported_and_the_others_are_there(found):
    failures = {tuple(cell.values.values()): cell.failure for cell in found.cells}
    assert [values for values, failure in failures.items() if failure] == [(8.0, 6)]
    assert "perplexity must be < " in failures[8.0, 6]
    assert found.n_failed == 1
    assert np.isnan(found.results_["label-accuracy"][4])
    assert found.results_["rank"][4] is None


def test_graph_and_landmark_weights_are_computed_once(found, store):
    assert {"points", "neighbors", "landmarks", "landmark_weights"} <= set(found.shared_seconds)
    assert [len(list((store / "stages" / name).iterdir())) for name in ("neighbors", "landmark_weights")] == [1, 1]
    assert len(list((store / "stages" / "affinities").iterdir())) == 5


def test_two_graphs_of_a_grid_are_one_as_well(points, tmp_path):
    tune(clone(MAPS).set_params(store=tmp_path / "run", perplexity=3.0), {"n_neighbors": [12, 14]}, points[0])
    assert len(list((tmp_path / "run" / "stages" / "neighbors").iterdir())) == 1


def test_the_table_has_the_columns_that_users_of_grid_searches_know(found):
    table = found.results_
    assert [dict(cell) for cell in table["params"]] == [
        {"perplexity": one, "n_neighbors": other} for one in GRID["perplexity"] for other in GRID["n_neighbors"]
    ]
    assert list(table["param_n_neighbors"]) == GRID["n_neighbors"] * 2
    assert {len(column) for column in table.values()} == {6}
    best = int(np.nanargmax(table["label-accuracy"]))
    assert (found.best_index_, table["rank"][best], found.best_params_) == (best, 1, table["params"][best])


def test_the_best_estimator_is_fitted_and_the_store_opens_as_its_run(found, store):
    model = found.best_estimator_
    assert model.get_params()["perplexity"] == found.best_params_["perplexity"]
    np.testing.assert_array_equal(model.embedding_, np.asarray(open_run(store).embedding[...]))
    np.testing.assert_array_equal(model.embedding_, np.asarray(sm.open_run(store).embedding[...]))


def test_again_it_computes_nothing_and_finds_the_same(found, points, store):
    table, classes = points
    before = sorted(path for path in (store / "stages").rglob("marks/*"))
    with pytest.warns(UserWarning, match="cell 5 of 6 failed"):
        again = tune(clone(MAPS).set_params(store=store), GRID, table, classes, scoring=["label-accuracy", "eigengap"])
    assert sorted(path for path in (store / "stages").rglob("marks/*")) == before
    assert [cell.scores for cell in again.cells] == [cell.scores for cell in found.cells]
    np.testing.assert_array_equal(again.results_["seconds"], found.results_["seconds"])


def test_files_hold_the_table(found, tmp_path):
    found.write(tmp_path)
    with (tmp_path / "tuning.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["param_n_neighbors"] for row in rows] == ["12", "6", "30"] * 2
    assert float(rows[found.best_index_]["label-accuracy"]) == found.best_score_
    assert rows[4]["label-accuracy"] == ""
    kept = json.loads((tmp_path / "tuning.json").read_text())
    assert kept["best_index"] == found.best_index_
    assert kept["cells"][0]["computed_as"] == {"neighbors.n_neighbors": 30, "affinities.n_neighbors": 12}


def test_several_methods_are_compared_without_a_store(points):
    table, _ = points
    reference = table[:, :2]
    kinds = [sm.LandmarkPCA(n_components=2, n_landmarks=60), clone(MAPS).set_params(n_components=2)]
    found = tune(kinds, {"n_landmarks": [40, 60]}, table, reference=reference)
    assert [cell.values["method"] for cell in found.cells] == ["pca", "pca", *["laplacian-eigenmaps"] * 2]
    errors = [sm.measures.procrustes_error(clone(one).set_params(n_landmarks=n).fit(table).embedding_, reference)
              for one in kinds for n in (40, 60)]  # fmt: skip
    np.testing.assert_allclose([cell.scores["procrustes-error"].value for cell in found.cells], errors, atol=1e-9)
    assert found.best_index_ == int(np.argmin(errors))
    assert found.best_estimator_.transform(table[:3]).shape == (3, 2)


def test_estimators_of_different_points_are_not_compared(points):
    kinds = [sm.LandmarkPCA(), sm.LaplacianEigenmaps(use_rep="X")]
    with pytest.raises(ConfigError, match="tuned on the same points, got use_rep None, 'X'"):
        tune(kinds, {"n_landmarks": [40]}, points[0])


@pytest.mark.parametrize(
    ("grid", "asked", "error", "message"),
    [
        ({"perplexty": [5]}, {}, ConfigError, "did you mean 'perplexity'"),
        ({"workers": [1, 2]}, {}, ConfigError, "no parameter 'workers'"),
        ({"perplexity": 5}, {}, ConfigError, "takes a list of values"),
        ({"perplexity": [5]}, {"scoring": "accuracy"}, ConfigError, "unknown score"),
        ({"perplexity": [5]}, {"scoring": "label-accuracy"}, ConfigError, "give labels as well"),
        ({"perplexity": [5]}, {"y": np.zeros(7)}, DataError, "7"),
        ({"perplexity": [5]}, {"reference": np.zeros((7, 2))}, DataError, "reference has 7 rows"),
        ({"perplexity": [-1.0, 0.5]}, {}, ConfigError, "perplexity must be > 1"),
        ({"perplexity": [5], "n_neighbors": [1000]}, {}, DataError, "need more than n_neighbors"),
    ],
)
def test_what_no_cell_can_use_is_refused_before_work(points, tmp_path, grid, asked, error, message):
    with pytest.raises(error, match=message):
        tune(clone(MAPS).set_params(store=tmp_path / "run"), grid, points[0], **asked)
    assert not (tmp_path / "run").exists()


def test_descents_start_from_coordinates_that_are_given(points):
    table, start = points[0][:300], points[0][:300, :2]
    sne = sm.TSNE(init=start, max_iter=4, n_landmarks=40)
    found = tune(sne, {"perplexity": [3.0, 5.0]}, table, reference=start)
    own = clone(sne).set_params(perplexity=3.0).fit(table)
    assert found.cells[0].scores["procrustes-error"].value == pytest.approx(
        sm.measures.procrustes_error(own.embedding_, start)
    )


def test_where_every_cell_fails_on_its_way_the_first_failure_is_raised(points):
    """Not one by one at the end of the table: nothing was found."""
    apart = np.concatenate([points[0][:200], 1e3 + points[0][:200]])
    maps = clone(MAPS).set_params(disconnected="error")
    with pytest.warns(UserWarning, match="cell 1 of 2 failed"), pytest.raises(DataError, match="2 components"):
        tune(maps, {"perplexity": [3.0, 4.0]}, apart)


def test_perplexity_is_chosen_by_doubt_which_is_that_of_the_same_map_by_hand(points, tmp_path):
    """The best run has its doubt, in the store and in the estimator; error bars are those of a share of N points."""
    table, _ = points
    maps = sm.TSNE(max_iter=60, settings={"doubt.null_points": 300}, store=tmp_path / "run")
    with pytest.warns(UserWarning, match="not converged"):
        found = tune(maps, {"perplexity": [5, 20]}, table, scoring=["doubt", "believable"])
    for cell in found.cells:
        own = sm.TSNE(max_iter=60, settings={"doubt.null_points": 300, "doubt.measured": True}, **cell.values)
        with pytest.warns(UserWarning, match="not converged"):
            doubt = own.fit(table).doubt_
        for name, verdicts in (("doubt", doubt.doubtful), ("believable", doubt.believable)):
            value, error, n_points = cell.scores[name]
            assert value == np.mean(verdicts)
            either = [*verdicts, False, True]  # one more of each: a share of none has an error too
            assert error == pytest.approx(np.std(either) / np.sqrt(len(either)))
            assert n_points == len(table)
    values = [cell.scores["doubt"].value for cell in found.cells]
    assert found.best_score_ == min(values) < max(values)
    assert np.array_equal(found.best_estimator_.doubt_.doubtful, open_run(tmp_path / "run").doubt.doubtful)


def test_doubt_is_refused_of_methods_that_place_no_single_points(points):
    with pytest.raises(ConfigError, match=r"score doubt is of maps .* diffusion-maps has none: take another"):
        tune(sm.DiffusionMaps(n_landmarks=80), {"perplexity": [4.0]}, points[0], scoring="doubt")
