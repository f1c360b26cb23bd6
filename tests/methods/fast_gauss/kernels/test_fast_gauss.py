from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import ConfigError
from scalemani.kernels.repulsion.pair_sums import ExactSums
from scalemani.methods.fast_gauss.kernels.fast_gauss import FastGauss
from tests.methods.clustered_maps import clusters, relative

EXACT = ExactSums("gaussian")
seeds = st.integers(0, 2**32 - 1)


def test_no_error_is_above_its_bound():
    """A thousand drawn bandwidths (scales of the map), orders, reaches, dimensions and charges of both signs."""
    random, closest = np.random.default_rng(0), np.zeros((13, 2))
    for draw in range(1000):
        d, n = int(random.integers(1, 4)), int(random.integers(1, 150))
        order = int(random.integers(1, 13 if d < 3 else 7))
        reach = int(random.integers(1, 7 if d < 3 else 4))
        few_pairs = int(random.choice([0, 0, 0, 1, 5]))
        points = clusters(draw, n, d, 10.0 ** random.uniform(-2.0, 1.2))
        targets = None if random.random() < 0.5 else clusters(draw + 1, 50, d, 10.0 ** random.uniform(-1.0, 1.0))
        charges = None if random.random() < 0.3 else random.normal(size=n)
        method = FastGauss(order, reach, few_pairs)
        found, exact = method.field(points, targets, charges), EXACT.field(points, targets, charges)
        in_sum, in_gradient = method.bounds(points, targets, charges)
        assert method.bound(points, targets, charges) == in_sum
        errors = np.abs(found[0] - exact[0]).max(), np.linalg.norm(found[1] - exact[1], axis=1).max()
        assert errors[0] <= in_sum
        assert errors[1] <= in_gradient
        closest[order] = np.maximum(closest[order], np.divide(errors, (in_sum, in_gradient)))
    assert closest[1:].min() > 0.1  # a bound that is never nearly met would not say much


@settings(max_examples=40, deadline=None)
@given(seed=seeds, d=st.integers(1, 3), n=st.integers(1, 300), other=st.booleans(), few_pairs=st.sampled_from([0, 5]))
def test_high_orders_are_exact(seed, d, n, other, few_pairs):
    random = np.random.default_rng(seed)
    points = np.round(random.normal(size=(n, d)) * 2.0, int(random.integers(0, 4)))
    targets = np.concatenate([points[:5], random.normal(size=(30, d))]) if other else None
    charges = random.normal(size=n)
    sums, gradients = FastGauss(18, 9, few_pairs).field(points, targets, charges)
    exact_sums, exact_gradients = EXACT.field(points, targets, charges)
    np.testing.assert_allclose(sums, exact_sums, rtol=0, atol=1e-12 * n)
    np.testing.assert_allclose(gradients, exact_gradients, rtol=0, atol=1e-11 * n)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_errors_fall_with_the_order_and_the_reach(d):
    points = clusters(0, 3000, d, 12.0)
    exact = EXACT.field(points)
    errors = [relative(FastGauss(order, 8).field(points)[1], exact[1]) for order in (2, 4, 6, 8, 10)]
    assert np.all(np.array(errors[:-1]) > 8.0 * np.array(errors[1:]))
    errors = [relative(FastGauss(16, reach, few_pairs=0).field(points)[1], exact[1]) for reach in (2, 3, 4, 5)]
    assert np.all(np.array(errors[:-1]) > 5.0 * np.array(errors[1:]))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-3, 1e-6, 1e-9])
def test_a_tolerance_is_met(d, tolerance):
    method = FastGauss.for_tolerance("gaussian", tolerance)
    for seed, extent in enumerate([1e-4, 0.5, 1.0, 10.0, 30.0, 100.0]):
        if d == 2 or extent < 30.0 or tolerance > 1e-6:
            points = clusters(seed, 3000, d, extent)
            assert relative(method.field(points)[1], EXACT.field(points)[1]) <= tolerance


def test_summing_pairs_and_expanding_them_agree():
    points = clusters(1, 4000, 2, 15.0)
    expanded, summed = FastGauss(16, 8, few_pairs=0).field(points), FastGauss(1, 8, few_pairs=1_000_000).field(points)
    np.testing.assert_allclose(expanded[0], summed[0], rtol=1e-10)
    np.testing.assert_allclose(expanded[1], summed[1], rtol=0, atol=1e-8)


@pytest.mark.parametrize("order", [1, 5])
def test_points_in_piles_on_lines_and_far_away(order):
    line = np.linspace(0.0, 1.0, 500)[:, None] * np.array([[1.0, 3.0]])
    piles = np.repeat(np.array([[0.0, 0.0], [0.0, 1e-300], [1.0, 1e-13], [7.0, 7.0]]), 200, axis=0)
    outliers = np.concatenate([line, [[1e6, -1e6], [1e6, 0.0]], [[-1e5, 3.0]] * 2])
    for points in (line, line * 0.0, piles, piles[:2], np.repeat(line, 3, axis=0), outliers):
        method = FastGauss(order)
        found, exact = method.field(points), EXACT.field(points)
        assert np.all(np.isfinite(found[1]))
        assert np.abs(found[0] - exact[0]).max() <= method.bound(points)
    assert found[0][-1] == pytest.approx(1.0)  # its twin, though both are far from everything


@pytest.mark.parametrize("d", [1, 2, 3])
def test_order_and_place_do_not_matter(d):
    points = np.round(clusters(4, 2000, d, 12.0) * 2**20) / 2**20
    method = FastGauss(6)
    sums, gradients = method.field(points)
    order = np.random.default_rng(0).permutation(2000)
    permuted, far = method.field(points[order]), method.field(points + 2.0**20)
    np.testing.assert_allclose(permuted[0], sums[order], rtol=1e-12)
    np.testing.assert_allclose(permuted[1], gradients[order], rtol=0, atol=1e-9)
    np.testing.assert_allclose(far[0], sums, rtol=1e-8)
    np.testing.assert_allclose(far[1], gradients, rtol=0, atol=1e-6)


def test_threads_and_float32_points_change_nothing():
    points = clusters(5, 30_000, 2, 40.0).astype(np.float32)
    alone = FastGauss(4).field(points)
    with ThreadPoolExecutor(3) as pool:
        together = FastGauss(4, over=pool.map).field(points.astype(np.float64))
    assert np.array_equal(alone[0], together[0])
    assert np.array_equal(alone[1], together[1])


def test_a_point_leaves_itself_out():
    points = clusters(6, 500, 2, 3.0)
    alone, among = FastGauss(12, 7).field(points), FastGauss(12, 7).field(points, points)
    np.testing.assert_allclose(among[0], alone[0] + 1.0, rtol=1e-12)
    assert np.array_equal(FastGauss(3).field(points[:1])[0], [0.0])
    assert FastGauss(3).field(points, np.empty((0, 2)))[1].shape == (0, 2)
    assert FastGauss(3).bound(points, np.empty((0, 2))) == 0.0
    assert np.array_equal(FastGauss(3).field(np.empty((0, 2)), points)[0], np.zeros(500))


def test_what_cannot_be_summed_is_refused():
    for arguments in ((0,), (31,), (4, 0), (4, 13), (4, 4, -1)):
        with pytest.raises(ConfigError, match="fgt takes order 1 to 30, reach 1 to 12"):
            FastGauss(*arguments)
    with pytest.raises(ConfigError, match="fgt sums in 1 to 3 dimensions, not 4: take the method 'exact'"):
        FastGauss(3).field(np.ones((3, 4)))
    with pytest.raises(ConfigError, match="cannot be summed by this method"):
        FastGauss.for_tolerance("student", 0.1)
    with pytest.raises(ConfigError, match="fgt reaches a tolerance of 2e-12, not 1e-13: take the method 'exact'"):
        FastGauss.for_tolerance("gaussian", 1e-13)
    with pytest.raises(ConfigError, match="take the method 'barnes-hut' or 'exact'"):
        FastGauss(3).field(np.array([[0.0, 0.0], [1e12, 1e12]]))
