"""Keys say what a result depends on: its parameters, its inputs and the points, and nothing of the machine."""

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DataError
from scalemani.io.sources import open_points
from scalemani.runs.outline import outline_run
from scalemani.runs.survey import survey

VALUES = {"neighbors": {"n_neighbors": 9}, "affinities": {"perplexity": 3}, "landmarks": {"n_landmarks": 50}}
POINTS = np.random.default_rng(0).normal(size=(2100, 4)).astype(np.float32)


def keys_of(changed=None, points=POINTS, block_rows=1024, method="t-sne"):
    params = Parameters().with_values(VALUES).with_values(changed or {})
    return outline_run(method, params, survey(open_points(points), Executor(workers=2), block_rows)).keys


def test_keys_do_not_depend_on_the_size_of_blocks():
    assert keys_of() == keys_of(block_rows=2048)


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({"affinities": {"perplexity": 2.5}}, {"points", "partition", "work_points", "neighbors", "landmarks"}),
        ({"neighbors": {"n_neighbors": 10}}, {"points", "partition", "work_points", "landmarks"}),
        ({"seed": 1}, {"points"}),
    ],
)
def test_a_parameter_changes_the_keys_of_its_stage_and_of_all_that_follow(changed, kept):
    before, after = keys_of(), keys_of(changed)
    assert {stage for stage in before if before[stage] == after[stage]} == kept


def test_other_points_change_every_key():
    other = POINTS.copy()
    other[1500, 2] += 1
    before, after = keys_of(), keys_of(points=other)
    assert all(before[stage] != after[stage] for stage in before)


def test_methods_share_the_keys_of_the_stages_that_they_share():
    spectral, nonlinear = keys_of(method="laplacian-eigenmaps"), keys_of()
    shared = set(spectral) & set(nonlinear) - {"embedding", "coarse_embedding"}  # solved as exactly as each needs
    assert "affinities" in shared
    assert all(spectral[stage] == nonlinear[stage] for stage in shared)


def test_too_few_points_are_answered_with_the_parameters_that_the_method_has():
    points = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.raises(DataError, match=r"or a smaller n_neighbors$"):
        sm.knn_graph(points, 400)
    with pytest.raises(DataError, match=r"or a smaller n_neighbors or perplexity$"):
        sm.LaplacianEigenmaps(n_neighbors=400).fit(points)
