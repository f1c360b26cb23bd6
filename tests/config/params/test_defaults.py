"""Every default is decided once: estimators, functions and the command line have those of the tables of parameters."""

import dataclasses
import inspect
from typing import get_args, get_type_hints

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters, names_of_parameters
from scalemani.config.params.by_stage import AffinitiesParams, LandmarksParams
from scalemani.config.routes import ROUTES
from scalemani.config.stages import SIDE_DATA_LANDMARKS
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.interfaces.cli.options import Options
from scalemani.interfaces.estimators.fitting import Embedder, requested_of
from scalemani.interfaces.estimators.parameters import OF_POINTS, RESOURCES, defaults_of
from scalemani.interfaces.wording import PARAMETERS, SETTINGS
from scalemani.kernels.affinities.entropic import ORDERS
from scalemani.kernels.affinities.root_finders import SOLVERS
from scalemani.kernels.landmarks.selection import LANDMARK_METHODS

PUBLIC = [getattr(sm, name) for name in sm.__all__]
ESTIMATORS = {one._method: one for one in PUBLIC if inspect.isclass(one) and issubclass(one, Embedder)}
# Of the functions in memory, by the parameter of runs that they stand for; what they have beside is data.
FUNCTIONS = {
    sm.knn_graph: {
        **{name: PARAMETERS[name] for name in ("n_neighbors", "metric")},
        "method": "neighbors.method",
        "recall": "neighbors.recall",
        "max_rounds": "neighbors.max_rounds",
    },
    sm.KNeighborsTransformer: {"metric": "points.metric"},
    sm.append: {"freeze": "layout.freeze"},
    sm.entropic_affinities: {
        "perplexity": "affinities.perplexity",
        "solver": "affinities.solver",
        "order": "affinities.order",
        "tol": "affinities.tolerance",
    },
    sm.gaussian_affinities: {"sigma": "affinities.sigma", "neighbor": "affinities.bandwidth_neighbor"},
    sm.mixed_affinities: {"perplexity": "affinities.perplexity", "n_neighbors": "neighbors.n_neighbors"},
    sm.self_tuning_affinities: {"neighbor": "affinities.bandwidth_neighbor"},
    sm.select_landmarks: {
        **{name: f"landmarks.{name}" for name in ("method", "sample_points", "snap")},
        "metric": "points.metric",
    },
    sm.compare_landmarks: {"n_landmarks": "landmarks.n_landmarks"},
    sm.landmark_features: {},
    sm.landmark_weights: {name: f"landmark_weights.{name}" for name in ("n_neighbors", "tolerance", "radius")},
    sm.grow_landmarks: {"n_neighbors": "landmark_weights.n_neighbors"},
    sm.affinity_order: {},
    sm.affinities_in_order: {
        "perplexity": "affinities.perplexity",
        "solver": "affinities.solver",
        "tol": "affinities.tolerance",
    },
    sm.order_lengths: {},
    sm.determinantal_draw: {},
    sm.symmetric_affinities: {"target_weight": "symmetric_affinities.target_weight"},
    sm.solve_reduced: {"n_components": "landmark_embedding.n_components"},
    sm.repulsion: {"method": "layout.repulsion", "tolerance": "layout.tolerance"},
    sm.repulsion_bound: {"tolerance": "layout.tolerance"},
    sm.continue_eigenvectors: {},
    sm.objective_of_pairs: {"strength": "layout.strength"},
    sm.minimize: {"n_components": "landmark_embedding.n_components", "direction": "layout.direction"},
    sm.objective: {
        "strength": "layout.strength",
        "dof": "layout.dof",
        "repulsion": "layout.repulsion",
        "tolerance": "layout.tolerance",
    },
}
MOST_ARGUMENTS = 28
# Defaults that are no parameters of runs: data, and what a function is about.
OTHERS = {
    "geometry": "euclidean",
    "random_state": 0,
    "indices": None,
    "init": None,
    "kernel": "student",
    "theta": None,
    "covariances": None,
    "diagonal": False,
    SETTINGS: None,
    **dict.fromkeys((*RESOURCES, *OF_POINTS)),
    "verbose": False,
    "callbacks_every": 50,
    "sample_weight": None,
    "twins": None,
    "labels": None,
    "combine": "mean",
    "weights": None,
}


# Those of scikit-learn's class of this name, and what is no parameter of runs.
NOT_OF_RUNS = {(sm.KNeighborsTransformer, "n_neighbors"), (sm.KNeighborsTransformer, "mode")}
NOT_OF_RUNS |= {
    (sm.minimize, "method"),
    (sm.objective, "method"),
    (sm.objective_of_pairs, "method"),
    (sm.continue_eigenvectors, "formula"),
    (sm.repulsion, "order"),
    (sm.repulsion_bound, "order"),
    *((sm.grow_landmarks, name) for name in ("angle", "batch", "most")),
    *((sm.affinity_order, name) for name in ("method", "kappa", "image_columns")),
    (sm.order_lengths, "points"),
    *((sm.determinantal_draw, name) for name in ("n_drawn", "exponent")),
    *((sm.compare_landmarks, name) for name in ("methods", "seeds", "sigma", "n_sampled", "settings", "progress")),
}


def same_default(name: str, value: object, method: str) -> bool:
    """Return whether a default is that of the tables: as it stands there, or what is made of it for many points."""
    return value == Parameters().value(name) or value == Parameters().resolved(method).value(name)


def test_there_is_an_estimator_for_every_method_that_embeds():
    assert {*ESTIMATORS, "knn-graph"} == set(ROUTES)


@pytest.mark.parametrize("method", ESTIMATORS)
def test_an_estimator_has_the_defaults_of_the_command_line(method):
    defaults = defaults_of(ESTIMATORS[method])
    for name, value in defaults.items():
        if name in PARAMETERS and name != "random_state":
            assert same_default(PARAMETERS[name], value, method), name
        else:
            assert value == OTHERS[name], name
    asked = requested_of(ESTIMATORS[method]()).params
    assert asked.resolved(method, 10**6) == Parameters().resolved(method, 10**6)


@pytest.mark.parametrize("method", ESTIMATORS)
def test_arguments_are_few_and_of_stages_that_the_method_has(method):
    read = {stage.name for stage in ROUTES[method]} | {"landmark_embedding", "seed"}
    arguments = defaults_of(ESTIMATORS[method])
    assert len(arguments) <= MOST_ARGUMENTS
    assert {PARAMETERS[name].partition(".")[0] for name in arguments if name in PARAMETERS} <= read


@pytest.mark.parametrize("method", ESTIMATORS)
def test_parameters_of_an_estimator_are_named_but_the_first(method):
    kinds = [parameter.kind for parameter in inspect.signature(ESTIMATORS[method]).parameters.values()]
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}


def test_names_in_python_and_on_the_command_line_go_one_to_one():
    assert len(set(PARAMETERS.values())) == len(PARAMETERS)
    assert set(PARAMETERS.values()) <= set(names_of_parameters())


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_has_the_defaults_of_the_command_line(function):
    names, method = (
        FUNCTIONS[function],
        "elastic-embedding" if function in (sm.objective, sm.objective_of_pairs) else "knn-graph",
    )
    for name, value in defaults_of(function).items():
        if name in names:
            assert same_default(names[name], value, method), name
        elif (function, name) not in NOT_OF_RUNS:
            assert value == OTHERS[name], name


def test_every_public_function_is_looked_at():
    functions = {one for one in PUBLIC if inspect.isfunction(one)}
    exempt = {sm.align, sm.open_run, sm.reduce_laplacian, sm.transform, sm.tune}
    assert functions - exempt == {one for one in FUNCTIONS if inspect.isfunction(one)}
    assert not any(value not in (None, False) for function in exempt for value in defaults_of(function).values())


def test_options_of_the_command_line_have_the_defaults_of_the_executor():
    options = {field.name: field.default for field in dataclasses.fields(Options)}
    executor = Executor()
    assert (options["memory"], options["tls"], options["wait"]) == (executor.memory, executor.tls, executor.wait)
    assert options["workers"] is None  # which is as many as the executor has of its own
    assert (options["scheduler"], executor.scheduler) == ("threads", None)  # two words for the same
    assert options["method"] in ROUTES


def test_the_names_of_methods_are_those_of_the_kernels():
    def allowed(table, name):
        return set(get_args(get_type_hints(table)[name]))

    assert allowed(AffinitiesParams, "solver") == set(SOLVERS)
    assert allowed(AffinitiesParams, "order") == set(ORDERS)
    assert allowed(LandmarksParams, "method") == {*LANDMARK_METHODS, *SIDE_DATA_LANDMARKS}


@pytest.mark.parametrize("method", ROUTES)
def test_what_was_decided_is_decided_for_good(method):
    for n_points in (None, 3, 40, 5000):
        once = Parameters().resolved(method, n_points, n_points)
        assert Parameters.of(once).resolved(method, n_points, n_points) == once


@pytest.mark.parametrize(("n_points", "k", "perplexity"), [(3, 2, 1.5), (4, 3, 1.5), (31, 30, 10.0), (95, 90, 30.0)])
def test_neighbours_and_perplexity_follow_few_points(n_points, k, perplexity):
    params = Parameters().resolved("t-sne", n_points)
    assert (params.n_neighbors, params.perplexity) == (k, pytest.approx(perplexity))


def test_neighbours_and_perplexity_follow_each_other():
    def followed(**values):
        params = Parameters().with_values({name: values[name] for name in values}).resolved("t-sne", 1000)
        return params.n_neighbors, params.perplexity

    assert followed() == (90, 30.0)
    assert followed(neighbors={"n_neighbors": 12}) == (12, 4.0)
    assert followed(affinities={"perplexity": 7.5}) == (22, 7.5)
    assert followed(affinities={"perplexity": 400.0}) == (999, 400.0)
    assert followed(neighbors={"n_neighbors": 12}, affinities={"perplexity": 7.0}) == (12, 7.0)
    assert followed(neighbors={"n_neighbors": 12}, affinities={"kind": "gaussian"}) == (12, 30.0)


def test_a_descent_starts_from_a_rougher_embedding_in_both_faces():
    for solver, residual in (("refine", 1e-2), ("lll+refine", 1e-2), ("lll", 1e-4)):
        asked = Parameters().with_values({"embedding": {"solver": solver}})
        assert asked.resolved("t-sne").residual == residual
        assert asked.resolved("laplacian-eigenmaps").residual == 1e-4


def test_settings_are_parameters_by_their_names_and_checked_as_those_of_the_command_line():
    points = np.random.default_rng(0).normal(size=(40, 3))
    asked = requested_of(sm.TSNE(settings={"neighbors.recall": 0.99, "layout.jitter": 1e-3, "seed": 4})).params
    assert (asked.neighbors.recall, asked.layout.jitter, asked.seed) == (0.99, 1e-3, 4)
    for settings, message in (
        ({"neighbors.recal": 0.9}, r"unknown parameter neighbors.recal: did you mean 'recall'"),
        ({"neighbours.recall": 0.9}, r"unknown stage 'neighbours': did you mean 'neighbors'"),
        ({"recall": 0.9}, r"unknown stage 'recall': it is a parameter, (settings\['neighbors.)?recall"),
        ({"neighbors.n_probes": 0}, r"neighbors.n_probes must be >= 1, got 0"),
        ({"neighbors.nearby_cells": 9}, r"unknown parameter neighbors.nearby_cells"),
        ({"neighbors": {"recall": 0.9}}, "settings takes values by the names of --set"),
        (512, "settings takes values by the names of --set, .* got 512"),
        ({5: 5}, "settings takes values by the names of --set, .* got {5: 5}"),
    ):
        for fit in (sm.TSNE(settings=settings).fit, lambda X, asked=settings: sm.knn_graph(X, settings=asked)):
            with pytest.raises(ConfigError, match=message):
                fit(points)


def test_what_an_argument_and_a_setting_both_give_is_refused_by_both_names():
    points = np.random.default_rng(0).normal(size=(40, 3))
    words = r"argument perplexity and settings\['affinities.perplexity'\] give the same parameter: leave out one"
    with pytest.raises(ConfigError, match=words):
        sm.TSNE(perplexity=5, settings={"affinities.perplexity": 6}).fit(points)
    with pytest.raises(ConfigError, match=r"argument init and settings\['layout.init'\] give"):
        sm.TSNE(init=points[:, :2], settings={"layout.init": "pca"}).fit(points)
    with pytest.raises(ConfigError, match=r"argument recall and settings\['neighbors.recall'\] give"):
        sm.knn_graph(points, recall=0.5, settings={"neighbors.recall": 0.9})
