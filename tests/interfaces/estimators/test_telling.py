"""What a run finds amiss with its result reaches whoever asked for it: Python's warnings, lines of the command."""

import functools
import json
import warnings

import numpy as np
import pytest
import sklearn.exceptions

import scalemani as sm
from scalemani.descents.placement import place_points
from scalemani.errors import ConfigError, ScalemaniWarning, ShortfallWarning
from scalemani.interfaces.estimators.running import LoggedProgress
from scalemani.runs.new_points import placements
from scalemani.runs.opened import open_run

UNREACHED = {"embedding.residual": 1e-9, "embedding.max_passes": 2, "affinities.perplexity": 4}


@pytest.fixture(scope="module")
def points(roll):
    return np.array(roll[:1500])


@pytest.fixture(scope="module")
def descended(points):
    """A t-SNE of a third of the points that was cut short, and how it was told of."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model = sm.TSNE(perplexity=4, max_iter=30, random_state=0).fit(points[:500])
    return model, given


def test_a_residual_that_is_not_reached_is_a_warning_of_the_line_that_asked_for_it(points):
    with pytest.warns(
        sklearn.exceptions.ConvergenceWarning, match="residual .* is above the 1.0e-15 asked for"
    ) as given:
        sm.LaplacianEigenmaps(n_landmarks=100, perplexity=4, residual=1e-15).fit_transform(points)
    (told,) = [warning for warning in given if "asked for" in str(warning.message)]
    assert issubclass(told.category, ShortfallWarning)
    assert told.filename == __file__


def test_a_residual_that_is_reached_is_none(points):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        sm.LaplacianEigenmaps(n_landmarks=100, perplexity=4, residual=1e-2).fit(points)
    assert not [warning for warning in given if "asked for" in str(warning.message)]


def test_a_warning_is_given_again_by_whoever_takes_the_result_from_its_store(points, tmp_path):
    asked = {"perplexity": 4, "max_iter": 12, "random_state": 0, "store": tmp_path / "run"}
    for _ in range(2):
        with pytest.warns(ScalemaniWarning, match=r"not converged after 12 .*raise max_iter,"):
            sm.TSNE(**asked).fit(points)


def test_a_descent_that_was_cut_short_is_told_of_and_one_that_was_to_go_to_its_end_is_not(descended, points):
    _, given = descended
    assert [w for w in given if "not converged after 30 iterations" in str(w.message)]
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        sm.TSNE(
            perplexity=4,
            max_iter=30,
            settings={"layout.exaggerated_iterations": 10, "layout.converged": 0.0},
            random_state=0,
        ).fit(points[:500])
    assert not [w for w in given if "not converged" in str(w.message)]


def test_a_command_prints_what_python_is_warned_of_each_time_and_info_keeps_it(scalemani, points, tmp_path):
    np.save(tmp_path / "points.npy", points)
    values = [f"--set={name}={value}" for name, value in UNREACHED.items()]
    for _ in range(2):
        status, _, errors = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *values)
        assert status == 0
        residual = open_run(tmp_path / "run").certificates["embedding"]["residual"]
        assert residual > 1e-9
        assert f"embedding: residual {residual:.1e} after 2 passes is above the 1.0e-09 asked for" in errors
    record = json.loads(scalemani("info", tmp_path / "run", "--json")[1])["stages"]["embedding"]
    assert [kind for kind, message in record["warnings"] if "is above" in message] == ["ShortfallWarning"]


def test_new_points_that_are_still_on_their_way_are_told_of(descended, points, monkeypatch):
    model, _ = descended
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShortfallWarning)
        model.transform(points[500:600])
    one_step = functools.partial(place_points, most_steps=1)
    monkeypatch.setattr(placements, "place_points", one_step)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="of 100 new points were still moving") as given:
        model.transform(points[500:600])
    assert given[0].filename == __file__


@pytest.mark.parametrize("verbose", [False, True])
def test_a_verbose_fit_shows_its_progress_and_another_one_nothing(capsys, verbose):
    points = np.random.default_rng(0).normal(size=(300, 4))
    sm.LaplacianEigenmaps(n_neighbors=8, verbose=verbose).fit(points)
    shown = capsys.readouterr().err
    assert ("neighbors: 1 block to do" in shown) == verbose
    assert bool(shown) == verbose


def test_a_callback_that_changes_what_it_is_given_changes_it_for_nobody_else():
    seen, true = [], np.arange(6.0).reshape(3, 2)

    def spoil(iteration, objective, embedding):
        seen.append(embedding.copy())
        embedding[:] = 0

    progress = LoggedProgress()
    progress.callbacks, progress.callbacks_every = [spoil, spoil], 1
    progress.iterate(0, 1.0, true.copy)
    assert len(seen) == 2
    assert all((embedding == true).all() for embedding in seen)


def test_callbacks_see_the_descent_and_leave_it_as_it_is(points):
    seen = []
    settings = {"layout.exaggerated_iterations": 5, "layout.converged": 0.0}
    asked = {"perplexity": 4, "max_iter": 25, "settings": settings}
    model = sm.TSNE(**asked, callbacks=lambda *given: seen.append(given), callbacks_every=10).fit(points[:300])
    assert [iteration for iteration, _, _ in seen] == [10, 20]
    for iteration, objective, embedding in seen:
        assert np.isnan(objective) or objective in model.curve_.objective[model.curve_.iteration <= iteration]
        assert embedding.shape == (300, 2)
        embedding[:] = 0  # theirs
    np.testing.assert_array_equal(model.embedding_, sm.TSNE(**asked).fit(points[:300]).embedding_)
    one, other = sm.TSNE(**asked, callbacks=[seen.append]), sm.TSNE(**asked, callbacks_every=0)
    for wrong, message in (
        (one.set_params(callbacks=["print"]), "callables of"),
        (other, "callbacks_every must be >= 1, got 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            wrong.fit(points[:300])


def test_an_error_names_a_parameter_as_arguments_do(points):
    with pytest.raises(ConfigError, match=r"^affinity must .*'gausian': did you mean 'gaussian'\?$"):
        sm.LaplacianEigenmaps(affinity="gausian").fit(points)
    with pytest.raises(ConfigError, match=r"^perplexity must be > 1, got 0.5$"):
        sm.LaplacianEigenmaps(perplexity=0.5).fit(points)


@pytest.mark.parametrize(
    ("estimator", "values", "words"),
    [
        (
            sm.SymmetricSNE,
            {"layout.exaggerated_iterations": 50},
            r".*early_exaggeration.* is above 1; here it is 1.0",
        ),
        (sm.ElasticEmbedding, {"layout.exaggerated_momentum": 0.5}, r".*direction.* is momentum; here it is spectral"),
        (sm.LaplacianEigenmaps, {"affinities.sigma": 0.5}, "affinity is gaussian; here it is entropic"),
    ],
)
@pytest.mark.filterwarnings("ignore:layout. not converged")
def test_a_parameter_that_has_no_effect_is_a_warning(points, estimator, values, words):
    (name,) = values
    few = {"max_iter": 2} if estimator is not sm.LaplacianEigenmaps else {}
    with pytest.warns(ScalemaniWarning, match=f"{name}=.* has no effect: it acts only where {words}"):
        estimator(perplexity=4, **few, settings=values).fit(points[:200])


def test_a_command_warns_of_a_parameter_that_has_no_effect_even_where_it_is_quiet(scalemani, points, tmp_path):
    np.save(tmp_path / "points.npy", points[:200])
    values = ["--set=layout.exaggerated_iterations=50", "--set=layout.max_iterations=2"]
    status, _, errors = scalemani(
        "embed", tmp_path / "points.npy", tmp_path / "run", "--method=s-sne", "--quiet", *values
    )
    assert status == 0
    assert (
        "layout.exaggerated_iterations=50 has no effect: it acts only where layout.early_exaggeration is above 1"
        in errors
    )


def test_a_callback_that_raises_stop_iteration_ends_the_fit_with_one_clear_error():
    def stop(*_):
        raise StopIteration

    points = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ConfigError, match=r"a callback raised StopIteration.*raise another exception") as ended:
        sm.TSNE(perplexity=5, max_iter=60, callbacks=stop, callbacks_every=1).fit(points)
    assert isinstance(ended.value.__cause__, StopIteration)


@pytest.mark.parametrize("estimator", [sm.TSNE, sm.ElasticEmbedding])
def test_landmarks_on_which_no_coordinates_of_a_descent_depend_are_told(estimator):
    points = np.random.default_rng(0).normal(size=(120, 4))
    few = {"perplexity": 8, "max_iter": 5}
    with pytest.warns(UserWarning, match=r"n_landmarks=37: no effect on coordinates .*lie far out"):
        model = estimator(n_landmarks=37, **few).fit(points)
    np.testing.assert_array_equal(model.embedding_, estimator(**few).fit(points).embedding_)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        estimator(n_landmarks=37, settings={"embedding.solver": "lll"}, **few).fit(points)
        estimator(**few).fit(points)
    assert not [one for one in told if "landmarks" in str(one.message)]
