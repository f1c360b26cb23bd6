"""Descents of runs that points were appended to: where these start, and when the descent ends."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.objectives import objective_of
from scalemani.config.params import Parameters
from scalemani.descents.phases import Phase
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.repulsion.pair_sums import ExactSums
from scalemani.runs.appending import append_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.layout.continued import in_short_windows, place_appended, strongest_known, tolerance_factor

N_POINTS, BEFORE = 1500, 1440


@pytest.fixture(scope="module")
def affinities():
    draws = np.random.default_rng(0)
    matrix = sp.random_array((60, 60), density=0.15, format="csr", rng=draws, dtype=np.float32)
    matrix = sp.csr_array(matrix + matrix.T)
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def rows_of(matrix):
    return AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)


def test_strongest_known_neighbours_come_first_and_others_have_no_affinity(affinities):
    known = np.random.default_rng(1).random(60) < 0.5
    numbers = np.flatnonzero(~known)
    neighbors, values = strongest_known(rows_of(affinities), numbers, known, 4)
    dense = np.where(known, affinities.toarray(), 0.0)[numbers]
    np.testing.assert_array_equal(values, -np.sort(-dense, axis=1)[:, : values.shape[1]])
    np.testing.assert_array_equal(np.take_along_axis(dense, neighbors, axis=1)[values > 0], values[values > 0])
    assert known[neighbors].all()


@pytest.mark.parametrize("method", ["t-sne", "elastic-embedding", "sne"])
def test_appended_points_are_placed_where_their_forces_vanish_and_by_no_other(affinities, method):
    draws, objective = np.random.default_rng(2), objective_of(method)
    positions = draws.normal(size=(60, 2)) * 3
    waiting = np.arange(60) >= 50
    matrix = affinities.tolil()
    matrix[59, :50], matrix[:50, 59] = 0, 0  # the last has appended neighbours alone
    matrix = sp.csr_array(matrix)
    matrix.eliminate_zeros()
    start = np.where(waiting[:, np.newaxis], np.nan, positions)
    found = start.copy()
    place_appended(rows_of(matrix), found, ExactSums(objective.kernel), objective, 0.5, 60)
    np.testing.assert_array_equal(found[:50], positions[:50])
    assert np.isnan(found[59]).all()
    dense = matrix.toarray().astype(np.float64)
    for point in range(50, 59):
        weights = dense[point, :50] / dense[point, :50].sum()
        differences = found[point] - positions[:50]
        squares = (differences**2).sum(axis=1)
        student = 1 / (1 + squares)
        pulls = student if objective.attraction == "student" else np.ones(50)
        kernel = student if objective.kernel == "student" else np.exp(-squares)
        slopes = -(student**2) if objective.kernel == "student" else -kernel
        push = (slopes[:, np.newaxis] * differences).sum(axis=0)
        if objective.combine != "sum":
            push /= kernel.sum()
        force = (weights * pulls) @ differences + 0.5 * push
        assert np.linalg.norm(force) < 5e-3 * (weights * pulls).sum()
    alone = np.where(np.arange(60)[:, np.newaxis] == 55, np.nan, found)
    alone[51:55] = alone[56:] = 1e3
    only_one = start.copy()
    only_one[51:55] = only_one[56:59] = np.nan
    place_appended(rows_of(matrix), only_one, ExactSums(objective.kernel), objective, 0.5, 60)
    np.testing.assert_array_equal(only_one[55], found[55])


def test_windows_are_shorter_and_as_much_has_to_fall_in_an_iteration():
    phases = [Phase("momentum", 1000, converged=0.01, window=50), Phase("spectral", 10, converged=1e-6, window=1)]
    short = in_short_windows(phases)
    assert [phase.window for phase in short] == [10, 1]
    assert [phase.converged / phase.window for phase in short] == pytest.approx([2e-4, 1e-6])


@pytest.fixture(scope="module")
def points():
    draws = np.random.default_rng(3)
    middles = 4 * draws.normal(size=(8, 10))
    return (middles[draws.integers(0, 8, N_POINTS)] + draws.normal(size=(N_POINTS, 10))).astype(np.float32)


def embedded(points, folder, **layout):
    values = {"neighbors": {"n_neighbors": 30}, "affinities": {"perplexity": 10}, "layout": layout}
    return run(open_points(points), folder, "t-sne", Parameters().with_values(values), Executor(workers=1), 1024)


@pytest.fixture(scope="module")
def before(points, tmp_path_factory):
    return embedded(points[:BEFORE], tmp_path_factory.mktemp("before") / "run")


def test_a_settled_map_takes_few_iterations_and_comes_to_the_objective_of_a_new_one(before, points, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(before.store.root, folder)
    grown = append_points(open_run(folder), points[BEFORE:], Executor(workers=1)).run.certificates["layout"]
    anew = embedded(points, tmp_path / "anew").certificates["layout"]
    assert grown["stopped"] == "converged"
    assert grown["iterations"] < anew["iterations"] / 5
    assert grown["objective"] < 1.04 * anew["objective"]


@pytest.mark.parametrize(("method", "factor"), [("grid", 0.25), ("exact", 1.0)])
def test_sums_are_as_fine_as_the_earlier_descent_had_them_at_its_end(method, factor):
    record = {"certificates": {"repulsion": "grid", "repulsion_tolerance": 5e-4}}
    earlier = SimpleNamespace(groups={"layout": SimpleNamespace(record=record)})
    params = SimpleNamespace(layout=SimpleNamespace(tolerance=2e-3))
    assert tolerance_factor(SimpleNamespace(earlier_results=earlier, params=params), method) == factor
