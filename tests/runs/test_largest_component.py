"""The largest component alone: what it is embedded as, which rows those are, and what others are told."""

import json

import numpy as np
import pytest

from scalemani import LaplacianEigenmaps, SpectralClustering
from scalemani.config.params import Parameters
from scalemani.config.routing import route
from scalemani.engine.context import LEDGER_VARIABLE
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_labels
from scalemani.runs.largest_component import input_rows
from scalemani.runs.opened import open_run
from scalemani.runs.walk import plan_run, run

VALUES = {
    "neighbors": {"n_neighbors": 12},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 200},
    "components": {"disconnected": "largest"},
}
OPTIONS = [f"--set={stage}.{name}={value}" for stage, group in VALUES.items() for name, value in group.items()]


def embed(points, folder, method="laplacian-eigenmaps", values=VALUES, **how):
    return run(open_points(points), folder, method, Parameters().with_values(values), Executor(), 1024, **how)


@pytest.fixture(scope="module")
def pieces():
    """Three clusters far apart, mixed in their order, and the rows of the largest."""
    rng = np.random.default_rng(0)
    centers = np.repeat([[0.0], [100.0], [-90.0]], [1000, 1500, 500], axis=0)
    points, order = rng.normal(size=(3000, 3)) + centers, rng.permutation(3000)
    return points[order], np.flatnonzero(centers[order, 0] == 100)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, pieces):
    return embed(pieces[0], tmp_path_factory.mktemp("largest") / "run")


@pytest.mark.parametrize("method", ["spectral-clustering", "elastic-embedding"])
def test_the_largest_component_is_embedded_as_if_it_were_all_there_is(pieces, tmp_path, method):
    points, rows = pieces
    values = {**VALUES, "layout": {"max_iterations": 15}, "clustering": {"n_clusters": 3}}
    part, alone = (embed(given, tmp_path / str(len(given)), method, values) for given in (points, points[rows]))
    np.testing.assert_array_equal(part.input_rows, rows)
    assert (part.n_input_points, part.dimensions.n_points) == (3000, 1500)
    assert alone.input_rows is None
    assert part.keys == alone.keys
    for stage in part.keys:
        assert part.group(stage).content_digest == alone.group(stage).content_digest, stage


def test_what_is_told_written_and_drawn(scalemani, pieces, tmp_path):
    np.save(tmp_path / "points.npy", pieces[0])
    np.save(tmp_path / "labels.npy", np.arange(3000) % 2)
    given = (tmp_path / "points.npy", tmp_path / "run", *OPTIONS)
    status, output, errors = scalemani("embed", *given, "--labels", tmp_path / "labels.npy")
    assert status == 0
    assert "has 3 components (largest: [1500, 1000, 500]); the largest, 1500 of 3000 points, is embedded" in errors
    assert "1500 of 3000 points are in other components" in output
    assert "1500 points have the label" in output
    status, _, errors = scalemani("export", tmp_path / "run", tmp_path / "out.npy")
    assert status == 0
    assert "out.input_rows.npy" in errors
    np.testing.assert_array_equal(np.load(tmp_path / "out.input_rows.npy"), pieces[1])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), open_run(tmp_path / "run").embedding[...])
    pytest.importorskip("matplotlib")
    assert scalemani("plot", tmp_path / "run", tmp_path / "out.png", "--labels", tmp_path / "labels.npy")[0] == 0
    summary = json.loads(scalemani("info", tmp_path / "run", "--json")[1])
    assert (summary["input_points"], summary["dimensions"]["n_points"]) == (3000, 1500)
    assert "complete" in scalemani("plan", *given)[1].splitlines()[-2]


def test_the_same_command_again_runs_nothing(finished, pieces, tmp_path, monkeypatch):
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    again = embed(pieces[0], finished.store.root)
    assert not (tmp_path / "ledger").exists()
    np.testing.assert_array_equal(again.input_rows, pieces[1])
    plan = plan_run(
        open_points(pieces[0]), finished.store.root, finished.method, Parameters().with_values(VALUES), Executor(), 1024
    )
    assert {stage.stage.name: stage.key for stage in plan.stages} == finished.keys
    assert plan.disk == 0


def test_stages_one_by_one_give_the_same(finished, pieces, tmp_path):
    for stage in route(finished.method, finished.params.embedding.solver):
        embed(pieces[0], tmp_path / "run", only=stage.name)
    found = open_run(tmp_path / "run")
    assert found.keys == finished.keys
    np.testing.assert_array_equal(found.embedding[...], finished.embedding[...])
    np.testing.assert_array_equal(found.input_rows, pieces[1])


def test_a_graph_in_one_piece_keeps_every_row(roll, tmp_path):
    whole = embed(roll, tmp_path / "run")
    assert whole.input_rows is None
    connected = embed(roll, tmp_path / "run", values={**VALUES, "components": {"disconnected": "connect"}})
    np.testing.assert_array_equal(whole.embedding[...], connected.embedding[...])


def test_what_the_component_cannot_serve_is_said_of_it(pieces, tmp_path):
    with pytest.raises(ConfigError, match="largest component, 1500 of 3000 points: landmarks"):
        embed(pieces[0], tmp_path / "run", values={**VALUES, "landmarks": {"n_landmarks": 2000}})


def test_estimators_have_a_row_for_every_point(pieces):
    points, rows = pieces
    few = {"n_landmarks": 200, "n_neighbors": 12, "perplexity": 4, "disconnected": "largest"}
    model = LaplacianEigenmaps(**few).fit(points)
    assert model.embedding_.shape == (3000, 2)
    assert (np.flatnonzero(np.isfinite(model.embedding_).all(axis=1)) == rows).all()
    assert np.isfinite(model.transform(points[rows[:5]])).all()
    labels = SpectralClustering(3, **few).fit(points).labels_
    assert (np.flatnonzero(labels >= 0) == rows).all()
    assert (np.delete(labels, rows) == -1).all()


def test_labels_go_with_the_points_of_the_largest_component(pieces, tmp_path):
    points, rows = pieces
    labels = np.arange(3000) % 3
    params = Parameters().with_values({**VALUES, "components": {"disconnected": "largest"}})
    found = [
        run(
            with_labels(open_points(given), names),
            tmp_path / str(len(given)),
            "kernel-lda",
            params,
            Executor(),
            1024,
        )
        for given, names in ((points, labels), (points[rows], labels[rows]))
    ]
    assert found[0].keys == found[1].keys
    np.testing.assert_array_equal(found[0].embedding[...], found[1].embedding[...])


def test_rows_of_a_component_of_a_component_are_rows_of_the_input():
    class Kept:
        def __init__(self, *rows):
            self.kept = np.array(rows)

        def rows(self, store):
            return self.kept

    assert input_rows(None, []) is None
    assert input_rows(None, [Kept(2, 5, 7, 9)]).tolist() == [2, 5, 7, 9]
    assert input_rows(None, [Kept(2, 5, 7, 9), Kept(0, 2, 3), Kept(1, 2)]).tolist() == [7, 9]
