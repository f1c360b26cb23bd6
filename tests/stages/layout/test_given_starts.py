"""Descents from coordinates that are given: what one step that is too small to be seen leaves of them."""

import functools

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import open_points
from scalemani.runs.aligning import with_start
from scalemani.runs.opened import open_run
from scalemani.runs.walk import plan_run, run

TINY = {"direction": "gradient-descent", "learning_rate": 1e-12, "max_iterations": 1, "converged": 0.0}
N_POINTS = 600


def asked_for(**layout):
    asked = {"init": "given", "jitter": 1e-6, **TINY, **layout}
    return Parameters().with_values(
        {"neighbors": {"n_neighbors": 12}, "affinities": {"perplexity": 4}, "layout": asked}
    )


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).uniform(-1, 1, (N_POINTS, 3))


@pytest.fixture(scope="module")
def coordinates():
    return np.random.default_rng(1).normal(size=(N_POINTS, 2)) * [9.0, 2.0] + 40.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("given") / "run"


@pytest.fixture(scope="module")
def started(points, folder):
    def embedded(given, ids=None, where=folder, n_points=N_POINTS, **layout):
        source = with_start(open_points(points[:n_points]), given, ids)
        return run(source, where, "t-sne", asked_for(**layout), Executor(workers=1))

    return embedded


@pytest.fixture(scope="module")
def whole(started, coordinates):
    return started(coordinates)


def test_given_coordinates_stay_as_they_are_but_for_their_mean(whole, coordinates):
    np.testing.assert_allclose(whole.embedding[...], coordinates - coordinates.mean(axis=0), atol=1e-9)
    certificates = whole.certificates["layout"]
    assert certificates["started"] == N_POINTS
    assert certificates["moved"] < 1e-9
    assert (whole.params.layout.early_exaggeration, whole.params.layout.exaggerated_iterations) == (1.0, 0)
    assert "embedding" not in whole.keys


@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_a_deviation_that_is_asked_for_scales_all_columns_by_one_factor(started, coordinates, unit):
    found = np.asarray(started(unit * coordinates, start_deviation=0.5).embedding[...])
    centred = coordinates - coordinates.mean(axis=0)
    np.testing.assert_allclose(found, centred * (0.5 / np.sqrt(centred.var(axis=0).mean())), atol=1e-9)


def test_points_without_a_start_come_among_their_neighbours(started, coordinates, whole):
    partial = coordinates.copy()
    partial[::3] = np.nan
    finished = started(partial)
    found, kept = np.asarray(finished.embedding[...]), np.arange(N_POINTS) % 3 != 0
    shift = found[kept] - coordinates[kept]
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-9)
    affinities = finished.affinities.tocsr()[0, :].toarray().ravel()
    weights = np.where(kept, affinities, 0.0)
    expected = weights @ coordinates / weights.sum() if weights.sum() else coordinates[kept].mean(axis=0)
    assert np.abs(found[0] - shift[0] - expected).max() < 1e-4
    assert finished.certificates["layout"]["started"] == kept.sum()
    assert finished.keys["layout"] != whole.keys["layout"]
    assert finished.keys["symmetric_affinities"] == whole.keys["symmetric_affinities"]


def test_coordinates_of_another_run_go_to_the_points_of_one_identifier(started, whole, folder, tmp_path, coordinates):
    turned = np.arange(N_POINTS)[::-1]
    finished = started(whole, (turned, np.arange(N_POINTS)), where=tmp_path / "run")
    np.testing.assert_allclose(finished.embedding[...], np.asarray(whole.embedding[...])[turned], atol=1e-9)
    fewer = started(whole, where=tmp_path / "run", n_points=500)
    expected = coordinates[:500] - coordinates[:500].mean(axis=0)
    np.testing.assert_allclose(fewer.embedding[...], expected, atol=1e-9)


def test_a_start_is_in_the_key_of_the_descent_alone_and_of_no_run_without_one(points, coordinates, tmp_path):
    def keys(source, asked):
        plan = plan_run(source, tmp_path / "run", "t-sne", asked, Executor(workers=1))
        return {planned.stage.name: planned.key for planned in plan.stages}

    source = open_points(points)
    one, other = (keys(with_start(source, given), asked_for()) for given in (coordinates, coordinates + 1.0))
    assert {name for name in one if one[name] != other[name]} == {"layout"}
    assert keys(with_start(source, coordinates.astype(">f8")), asked_for()) == one


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda y: y[:-1], DataError, "599 rows for 600 points"),
        (lambda y: y[:, :1], ConfigError, "the start has 1 columns"),
        (lambda y: np.where(np.arange(N_POINTS)[:, None] == 7, [[np.nan, 1.0]], y), DataError, "in 1 rows: first 7"),
        (lambda y: np.where(np.arange(N_POINTS)[:, None] == 9, np.inf, y), DataError, "in 1 rows: first 9"),
        (lambda y: y * 1e6, DataError, "up to 1e.06"),
        (lambda y: np.full_like(y, np.nan), DataError, "for none of the 600 points"),
        (lambda y: y.astype(complex), DataError, "Complex"),
        (lambda y: y.ravel(), DataError, "2D"),
    ],
)
def test_coordinates_that_cannot_be_a_start_are_refused(started, coordinates, change, error, words):
    with pytest.raises(error, match=words):
        started(change(coordinates))


def test_a_start_that_nothing_reads_is_refused(points, coordinates, tmp_path):
    source, folder = open_points(points), tmp_path / "run"
    with pytest.raises(ConfigError, match="there is none"):
        run(with_start(source, coordinates), folder, "laplacian-eigenmaps", asked_for(), Executor(workers=1))
    with pytest.raises(ConfigError, match=r"layout\.init=random asks for another start"):
        run(with_start(source, coordinates), folder, "t-sne", asked_for(init="random"), Executor(workers=1))
    with pytest.raises(ConfigError, match=r"layout\.init=given takes coordinates"):
        run(source, folder, "t-sne", asked_for(), Executor(workers=1))
    with pytest.raises(ConfigError, match="neither a run nor a file"):
        sm.TSNE(init="spectrum").fit(points)
    assert not folder.exists()


def test_the_command_line_starts_from_a_run_with_identifiers(scalemani, points, coordinates, tmp_path):
    np.save(tmp_path / "points.npy", points)
    np.save(tmp_path / "start.npy", coordinates)
    (tmp_path / "own.txt").write_text("\n".join(f"p{row}" for row in range(N_POINTS)))
    (tmp_path / "other.txt").write_text("\n".join(f"p{N_POINTS - 1 - row}" for row in range(N_POINTS)))
    sets = [f"--set=layout.{name}={value}" for name, value in TINY.items()]
    sets += ["--set=neighbors.n_neighbors=12", "--set=affinities.perplexity=4"]
    embed = functools.partial(scalemani, "embed", tmp_path / "points.npy")
    status, _, told = embed(tmp_path / "one", "--method", "t-sne", "--init", tmp_path / "start.npy", *sets)
    assert status == 0, told
    ids = ("--ids", tmp_path / "own.txt", tmp_path / "other.txt")
    again = functools.partial(embed, tmp_path / "two", "--method", "t-sne", *sets)
    assert again("--init", tmp_path / "one", *ids)[0] == 0
    one, two = (np.asarray(open_run(tmp_path / name).embedding[...]) for name in ("one", "two"))
    np.testing.assert_allclose(two, one[::-1], atol=1e-9)
    for wrong, words in ((ids, "--init RUN"), (("--init", tmp_path / "two"), "choose another place")):
        status, _, told = again(*wrong)
        assert (status, words in told) == (2, True)


@pytest.mark.parametrize("direction", ["momentum", "spectral+l-bfgs", "conjugate-gradients"])
def test_frozen_points_stay_to_the_bit_while_the_others_descend(started, coordinates, direction):
    partial = np.where(np.arange(N_POINTS)[:, np.newaxis] % 5 == 0, np.nan, coordinates)
    moving = {"direction": direction, "learning_rate": None, "max_iterations": 20, "freeze": True}
    finished, kept = started(partial, **moving), np.arange(N_POINTS) % 5 != 0
    found = np.asarray(finished.embedding[...])
    np.testing.assert_array_equal(found[kept], coordinates[kept])
    assert finished.certificates["layout"]["moved"] == 0.0
    values = finished.curve.objective
    filled = np.asarray(started(partial).embedding[...])
    assert np.abs(found[~kept] - filled[~kept] - (found[kept] - filled[kept]).mean(axis=0)).max() > 0.01
    assert direction == "momentum" or values[-1] < values[0]


def test_estimators_start_from_arrays(points, coordinates):
    model = sm.TSNE(init=coordinates, n_neighbors=12, perplexity=4, max_iter=1, settings={"layout.converged": 0.0}).fit(
        points
    )
    assert model.certificates_["layout"]["started"] == N_POINTS
    assert model.get_params()["init"] is coordinates
