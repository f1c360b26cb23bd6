import contextlib
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.config.params import Parameters, parse_assignments, parse_value
from scalemani.config.params.fields import names_of
from scalemani.config.params.parsing import with_configuration
from scalemani.errors import ConfigError, ScalemaniError


def test_defaults_say_what_is_left_open_and_a_method_decides_it():
    params = Parameters()
    assert params.neighbors.n_neighbors is None
    assert params.usual_neighbors == 90
    assert params.with_values({"affinities": {"perplexity": 20}}).usual_neighbors == 60
    assert params.resolved("laplacian-eigenmaps").n_components == 2
    assert params.resolved("spectral-clustering").n_components == params.clustering.n_clusters
    assert params.resolved("laplacian-eigenmaps").neighbors.n_neighbors == 90


@pytest.mark.parametrize(
    ("most", "landmarks", "landmark_neighbors", "clusters"), [(10**6, 1000, 5, 10), (8, 8, 5, 7), (3, 3, 3, 2)]
)
def test_landmarks_that_were_left_open_are_no_more_than_there_can_be(most, landmarks, landmark_neighbors, clusters):
    params = Parameters().resolved("spectral-clustering", 10**6, most)
    assert (params.n_landmarks, params.landmark_neighbors) == (landmarks, landmark_neighbors)
    assert params.n_components == clusters
    asked = Parameters().with_values({"landmarks": {"n_landmarks": 500}}).resolved("laplacian-eigenmaps", 10**6, most)
    assert (asked.n_landmarks, asked.landmark_neighbors, asked.n_components) == (500, 5, 2)


def test_values_replace_values_and_leave_the_rest_and_the_original():
    params = Parameters()
    changed = params.with_values({"seed": 3, "affinities": {"perplexity": 7}, "neighbors": {"n_neighbors": None}})
    assert (changed.seed, changed.affinities.perplexity, changed.affinities.solver) == (3, 7, "halley")
    assert params == Parameters()
    assert Parameters().with_values(changed.as_dict()) == changed


def test_numbers_of_numpy_are_numbers():
    params = Parameters().with_values({"neighbors": {"n_neighbors": np.int64(15), "recall": np.float64(0.9)}})
    assert type(params.neighbors.n_neighbors) is int
    assert type(params.neighbors.recall) is float


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("1e-3", 1e-3), ("true", True), ("none", None), ("None", None), ("kmeans++", "kmeans++"), ('"3"', "3")],
)
def test_values_on_the_command_line(text, value):
    assert parse_value(text) == value


def test_assignments_are_by_name_and_the_last_one_counts():
    found = parse_assignments(
        ["seed=1", "affinities.perplexity=5", "affinities.solver=newton", "affinities.perplexity=6"]
    )
    assert found == {"seed": 1, "affinities.perplexity": 6, "affinities.solver": "newton"}
    nested = {"seed": 1, "affinities": {"perplexity": 6, "solver": "newton"}}
    assert Parameters().with_values(found) == Parameters().with_values(nested)


@pytest.mark.parametrize("assignments", [["affinities"], ["=3"], [""], ["affinities=1", "affinities.solver=newton"]])
def test_assignments_that_are_none(assignments):
    with pytest.raises(ConfigError):
        Parameters().with_values(parse_assignments(assignments))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"affinities": {"perplexity": True}}, r"affinities.perplexity .*number, got True \(bool\)"),
        ({"affinities": {"perplexity": "30"}}, r"affinities.perplexity .*number, got '30' \(str\)"),
        ({"neighbors": {"n_neighbors": 15.5}}, r"neighbors.n_neighbors .*integer, got 15.5 \(float\)"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
        ({"neighbors": {"n_neighbors": 0}, "affinities": {"perplxity": 3}}, "affinities.perplxity"),
        ({"reduced": {"x": 1}}, "unknown parameter reduced.x: none"),
    ],
)
def test_values_that_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Parameters().with_values(values)


def test_several_problems_are_told_at_once():
    with pytest.raises(ConfigError, match=r"n_neighbors must be >= 1.*; neighbors.recall must be <= 1"):
        Parameters().with_values({"neighbors": {"n_neighbors": 0, "recall": 2.0}})


def test_every_stage_has_a_meaning():
    for name in names_of(Parameters()):
        if name != "seed":
            assert type(getattr(Parameters(), name)).__doc__


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
names = st.sampled_from(["seed", "neighbors", "affinities", "n_neighbors", "perplexity", "recall", "x", ""])


@given(st.recursive(plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3)))
def test_any_value_makes_parameters_or_one_of_our_errors(values):
    for nested in ({"neighbors": values}, {"affinities": {"perplexity": values}}, {"seed": values}):
        with contextlib.suppress(ScalemaniError):
            Parameters().with_values(nested)


@given(st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_assigned_or_refused(assignments):
    with contextlib.suppress(ScalemaniError):
        Parameters().with_values(parse_assignments(assignments))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"seed = {'9' * 5000}", "far beyond"),
        (f"seed = 0x{'f' * 100_000}", "far beyond"),
        (f"[neighbors]\nn_neighbors = [{2**2000}]", "far beyond"),
        (f"{'a' * 900_000} = 1", "a name has 900000 letters"),
        (f"[neighbors]\n{'a' * 900_000} = 1", "a name has 900000 letters"),
        (f"{'.'.join(['a'] * 20_000)} = 1", "nested too deeply"),
        (f"[{'.'.join(['a'] * 20_000)}]", "nested too deeply"),
        (f"x = {{ {'.'.join(['a'] * 20_000)} = 1 }}", "nested too deeply"),
    ],
)
def test_configurations_beyond_all_bounds_are_refused_in_little_time(tmp_path, text, words):
    (tmp_path / "c.toml").write_text(text)
    began = time.process_time()
    with pytest.raises(ConfigError, match=words) as caught:
        with_configuration(Parameters(), tmp_path / "c.toml")
    assert time.process_time() - began < 2  # of the processor: without bounds from eight seconds to hours
    assert len(str(caught.value)) < 500


def test_a_name_far_longer_than_any_has_no_nearest_one():
    began = time.process_time()
    with pytest.raises(ConfigError, match="unknown stage"):
        Parameters().with_values({"b" * 900_000: {}})
    assert time.process_time() - began < 2
    with pytest.raises(ConfigError, match="did you mean 'neighbors'"):
        Parameters().with_values({"neighbours": {}})


@pytest.mark.parametrize("text", ["9" * 5000, f"0x{'f' * 5000}"])
def test_an_integer_of_the_command_line_of_thousands_of_digits_is_refused(text):
    with pytest.raises(ConfigError, match="far beyond"):
        parse_assignments([f"seed={text}"])
