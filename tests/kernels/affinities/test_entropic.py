import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from scalemani.kernels.affinities.entropic import ORDERS, RowsOfData, entropic_affinities
from scalemani.kernels.affinities.entropy import LARGEST
from scalemani.kernels.affinities.root_finders import SOLVERS


def squared_rows(n_rows, k, seed=0):
    rng = np.random.default_rng(seed)
    offsets = rng.gamma(3.0, 10.0, (n_rows, 1))
    return np.sort(offsets * (1.0 + rng.gamma(2.0, 0.3, (n_rows, k))), axis=1)


def neighbors(n_rows, k, seed=0):
    return np.random.default_rng(seed).integers(0, n_rows, (n_rows, k))


def entropies(values):
    positive = np.where(values > 0.0, values, 1.0)
    return -(positive * np.log(positive)).sum(axis=1)


def oracle_log_beta(squared, perplexity):
    """Bracketing root of the entropy by its definition, one row."""
    differences = squared - squared[0]

    def excess(log_beta):
        weights = np.exp(-math.exp(log_beta) * differences)
        p = weights / weights.sum()
        return -(p[p > 0] * np.log(p[p > 0])).sum() - math.log(perplexity)

    centre = -math.log(differences[-1])
    return brentq(excess, centre - 15.0, centre + 30.0, xtol=1e-13, rtol=1e-15)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", ORDERS)
def test_every_solver_and_order_finds_the_oracle_root(solver, order):
    squared = squared_rows(1500, 40)
    found = entropic_affinities(
        squared, 12.5, solver=solver, order=order, tol=1e-12, rows=RowsOfData(neighbors(1500, 40), seed=3)
    )
    assert np.max(np.abs(found.residuals)) <= 1e-12
    assert not found.saturated.any()
    np.testing.assert_allclose(entropies(found.values), math.log(12.5), atol=1e-11)
    for row in range(0, 1500, 97):
        assert math.log(found.beta[row]) == pytest.approx(oracle_log_beta(squared[row], 12.5), abs=1e-10)
    weights = np.exp(-found.beta[:, None] * (squared - squared[:, :1]))
    np.testing.assert_allclose(found.values, weights / weights.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_give_the_bits_of_one_call(order):
    squared, indices = squared_rows(3000, 20), neighbors(3000, 20)
    whole = entropic_affinities(squared, 6.0, order=order, rows=RowsOfData(indices, seed=1))
    for start, stop in ((0, 1024), (1024, 3000), (2048, 3000)):
        part = entropic_affinities(
            squared[start:stop], 6.0, order=order, rows=RowsOfData(indices[start:stop], start, 1)
        )
        for of_part, of_whole in zip(part, whole, strict=True):
            assert np.array_equal(of_part, of_whole[start:stop])


def test_float32_views_and_orders_of_memory_give_the_same_rows():
    squared = squared_rows(200, 30).astype(np.float32)
    expected = entropic_affinities(squared.astype(np.float64), 8.0)
    for given_rows in (squared, np.asfortranarray(squared), np.repeat(squared, 2, axis=1)[:, ::2]):
        found = entropic_affinities(given_rows, 8.0)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert np.max(np.abs(np.exp(entropies(expected.values)) / 8.0 - 1.0)) < 1.1e-10


def test_ties_below_the_perplexity_have_a_root_and_ties_from_it_saturate():
    row = np.concatenate([np.full(5, 3.0), np.linspace(4.0, 9.0, 15)])
    for perplexity in (5.0 + 1e-12, 5.0 + 1e-6, 5.1, 19.9):
        found = entropic_affinities(row[None], perplexity)
        assert not found.saturated[0]
        assert abs(found.residuals[0]) <= 1e-10
        assert np.all(found.values[0, :5] == found.values[0, 0])
    for perplexity in (1.5, 4.0, 5.0):
        found = entropic_affinities(row[None], perplexity)
        assert found.saturated[0]
        assert found.beta[0] == LARGEST
        assert np.array_equal(found.values[0], np.where(np.arange(20) < 5, 0.2, 0.0))


@pytest.mark.parametrize("distance", [0.0, 7.0, 1e300])
def test_equal_distances_are_uniform_and_counted(distance):
    found = entropic_affinities(np.full((3, 8), distance), 4.0)
    assert np.all(found.values == 0.125)
    assert found.saturated.all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("perplexity", [1.0 + 4e-16, 30.0 - 4e-15])
def test_perplexities_next_to_their_limits_have_a_root(solver, perplexity):
    found = entropic_affinities(squared_rows(20, 30), perplexity, solver=solver)
    assert np.max(np.abs(found.residuals)) <= 1e-10
    assert np.isfinite(found.beta).all()


def test_saturated_rows_do_not_spoil_the_starts_of_others():
    squared = squared_rows(300, 30)
    squared[::3, :20] = squared[::3, :1]
    found = entropic_affinities(squared, 10.0)
    alone = entropic_affinities(squared[1::3], 10.0, tol=1e-12)
    assert found.saturated[::3].all()
    assert not found.saturated[1::3].any()
    np.testing.assert_allclose(found.values[1::3], alone.values, rtol=1e-8, atol=1e-11)
    assert found.iterations.max() < 8


@pytest.mark.parametrize("perplexity", [29.0, 50.0, 99.0])
def test_two_far_clusters_converge_across_the_plateau(perplexity):
    rng = np.random.default_rng(0)
    near, far = rng.uniform(0.5, 1.5, (200, 50)), rng.uniform(900.0, 1100.0, (200, 50))
    squared = np.sort(np.hstack([near, far]) ** 2, axis=1)
    for solver in SOLVERS:
        for order in ("density", "bounds"):
            found = entropic_affinities(squared, perplexity, solver=solver, order=order)
            assert np.max(np.abs(found.residuals)) <= 1e-10, (solver, order)


rows = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=40).map(sorted)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    row=rows,
    ties=st.integers(1, 5),
    exponent=st.integers(-150, 150),
    offset=st.sampled_from([0.0, 1.0, 1e8]),
    share=st.floats(0.0, 1.0, exclude_min=True, exclude_max=True),
    solver=st.sampled_from(list(SOLVERS)),
)
def test_any_row_is_solved_or_counted_as_saturated(row, ties, exponent, offset, share, solver):
    squared = (np.square(np.array([row[0]] * (ties - 1) + row)) + offset) * 10.0 ** (2 * exponent)
    k = squared.size
    perplexity = 1.0 + share * (k - 1)
    assume(1.0 < perplexity < k)
    found = entropic_affinities(squared[None], perplexity, solver=solver, order="bounds")
    n_ties = int(np.sum(squared - squared[0] < 1e-306))
    assert found.saturated[0] == (n_ties >= perplexity)
    assert found.saturated[0] or abs(found.residuals[0]) <= 1e-10
    assert all(np.all(np.isfinite(array)) for array in found)
    assert np.all(found.values >= 0.0)
    assert abs(found.values.sum() - 1.0) <= 4 * np.finfo(float).eps * k
    assert found.values[0, 0] > 0.0
    if not found.saturated[0]:
        assert abs(math.exp(entropies(found.values)[0]) / perplexity - 1.0) <= 1.1e-10
    assert solver != "bisection" or found.iterations[0] <= 60


@settings(derandomize=True, deadline=None, max_examples=100)
@given(seed=st.integers(0, 10**6), factor=st.floats(1e-3, 1e3), shift=st.floats(0.0, 10.0))
def test_scale_and_shift_change_beta_only(seed, factor, shift):
    squared = squared_rows(4, 30, seed)
    plain = entropic_affinities(squared, 9.0, tol=1e-13)
    scaled = entropic_affinities(squared * factor**2, 9.0, tol=1e-13)
    moved = entropic_affinities(squared + shift, 9.0, tol=1e-13)
    np.testing.assert_allclose(scaled.values, plain.values, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(scaled.beta * factor**2, plain.beta, rtol=1e-9)
    np.testing.assert_allclose(moved.values, plain.values, rtol=1e-9, atol=1e-300)


def test_a_data_row_and_the_same_row_as_a_query_agree():
    points = np.random.default_rng(5).normal(size=(400, 6))
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    nearest = np.sort(squared, axis=1)[:, :30]
    as_data = entropic_affinities(nearest, 10.0, tol=1e-12)
    as_query = entropic_affinities(nearest[57:58], 10.0, tol=1e-12)
    np.testing.assert_allclose(as_query.values[0], as_data.values[57], rtol=1e-10)


def test_warm_starts_save_steps():
    squared = squared_rows(4000, 60)
    steps = {
        order: entropic_affinities(squared, 15.0, solver="halley", order=order).iterations.mean()
        for order in ("oracle", "density", "bounds")
    }
    assert steps["oracle"] < steps["density"] < steps["bounds"]


def test_blocks_that_begin_within_a_tile_are_refused():
    with pytest.raises(ValueError, match="multiple of 1024, got 5"):
        entropic_affinities(squared_rows(4, 10), 3.0, rows=RowsOfData(first=5))
