from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import ConfigError
from scalemani.kernels.repulsion.pair_sums import ExactSums
from scalemani.methods.barnes_hut.kernels import BarnesHut
from tests.methods.clustered_maps import clusters, relative

KERNELS = ["student", "gaussian"]
seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds, kernel=st.sampled_from(KERNELS), d=st.sampled_from([2, 3]), n=st.integers(1, 400), other=st.booleans()
)
def test_an_angle_of_zero_is_exact(seed, kernel, d, n, other):
    random = np.random.default_rng(seed)
    points = np.round(random.normal(size=(n, d)) * 2.0, int(random.integers(0, 4)))  # some of them coincide
    targets = np.concatenate([points[:5], random.normal(size=(30, d))]) if other else None
    charges = random.normal(size=n)
    sums, gradients = BarnesHut(kernel, 0.0).field(points, targets, charges)
    exact_sums, exact_gradients = ExactSums(kernel).field(points, targets, charges)
    np.testing.assert_allclose(sums, exact_sums, rtol=0, atol=1e-12 * n)
    np.testing.assert_allclose(gradients, exact_gradients, rtol=0, atol=1e-12 * n)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [2, 3])
def test_errors_fall_with_the_angle(kernel, d):
    points = clusters(0, 4000, d, 20.0)
    exact = ExactSums(kernel).field(points)
    errors = []
    for theta in (1.0, 0.5, 0.25):
        found = BarnesHut(kernel, theta).field(points)
        errors.append([relative(found[0], exact[0]), relative(found[1], exact[1])])
    assert np.all(np.array(errors[0]) > 4.0 * np.array(errors[1]))  # the third moments that are left out: theta^3
    assert np.all(np.array(errors[1]) > 4.0 * np.array(errors[2]))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-3])
def test_a_tolerance_is_met(kernel, d, tolerance):
    method = BarnesHut.for_tolerance(kernel, tolerance)
    for seed, extent in enumerate([1e-4, 1.0, 10.0, 100.0, 300.0 if kernel == "student" else 50.0]):
        points = clusters(seed, 3000, d, extent)
        assert relative(method.field(points)[1], ExactSums(kernel).field(points)[1]) <= tolerance


def test_charges_of_both_signs():
    points, charges = clusters(1, 3000, 2, 20.0), np.random.default_rng(0).normal(size=3000)
    for kernel in KERNELS:
        exact, sizes = (
            ExactSums(kernel).field(points, None, charges),
            ExactSums(kernel).field(points, None, abs(charges)),
        )
        found = BarnesHut(kernel, 0.3).field(points, None, charges)
        assert np.linalg.norm(found[0] - exact[0]) <= 1e-3 * np.linalg.norm(sizes[0])
        assert np.linalg.norm(found[1] - exact[1]) <= 3e-3 * np.linalg.norm(sizes[1])
        opposite = BarnesHut(kernel, 0.3).field(points, None, -charges)
        assert np.array_equal(found[0], -opposite[0])


def test_targets_apart_from_the_sources():
    sources, targets = clusters(2, 3000, 2, 20.0), clusters(3, 2000, 2, 30.0)
    for kernel in KERNELS:
        exact, found = ExactSums(kernel).field(sources, targets), BarnesHut(kernel, 0.3).field(sources, targets)
        assert relative(found[0], exact[0]) < 1e-3
        assert relative(found[1], exact[1]) < 3e-3
    alone, among = BarnesHut("student", 0.0).field(sources), BarnesHut("student", 0.0).field(sources, sources)
    np.testing.assert_allclose(among[0], alone[0] + 1.0, rtol=1e-12)


@pytest.mark.parametrize("theta", [0.0, 0.5, 2.0])
def test_points_in_piles_and_on_lines(theta):
    line = np.linspace(0.0, 1.0, 500)[:, None] * np.array([[1.0, 3.0]])
    piles = np.repeat(np.array([[0.0, 0.0], [0.0, 1e-300], [1.0, 1e-13], [7.0, 7.0]]), 200, axis=0)
    for kernel in KERNELS:
        for points in (line, line * 0.0, piles, piles[:2], np.repeat(line, 3, axis=0)):
            found, exact = BarnesHut(kernel, theta).field(points), ExactSums(kernel).field(points)
            assert np.all(np.isfinite(found[0]))
            assert np.all(np.isfinite(found[1]))
            if theta <= 0.5:
                np.testing.assert_allclose(found[0], exact[0], rtol=2e-2, atol=1e-12)
    million = BarnesHut("student", theta).field(np.full((200_000, 2), 3.0))
    assert np.array_equal(million[0], np.full(200_000, 199_999.0))


@pytest.mark.parametrize("d", [2, 3])
def test_order_and_place_do_not_matter(d):
    points = np.round(clusters(4, 3000, d, 20.0) * 2**20) / 2**20
    method = BarnesHut("student", 0.5)
    sums, gradients = method.field(points)
    order = np.random.default_rng(0).permutation(3000)
    permuted, far = method.field(points[order]), method.field(points + 2.0**20)
    np.testing.assert_allclose(permuted[0], sums[order], rtol=1e-12)
    np.testing.assert_allclose(permuted[1], gradients[order], rtol=0, atol=1e-9)
    np.testing.assert_allclose(far[0], sums, rtol=1e-9)
    np.testing.assert_allclose(far[1], gradients, rtol=0, atol=1e-7)


def test_threads_change_nothing():
    points = clusters(5, 20_000, 2, 50.0)
    alone = BarnesHut("gaussian", 0.7).field(points)
    with ThreadPoolExecutor(3) as pool:
        together = BarnesHut("gaussian", 0.7, over=pool.map).field(points)
    assert np.array_equal(alone[0], together[0])
    assert np.array_equal(alone[1], together[1])


def test_what_cannot_be_summed_is_refused():
    with pytest.raises(ConfigError, match="allowed: gaussian, student"):
        BarnesHut("epanechnikov", 0.5)
    with pytest.raises(ConfigError, match=r"theta must be in \[0, 2\]"):
        BarnesHut("student", 2.5)
    for d in (1, 4):
        with pytest.raises(ConfigError, match="take the method 'exact'"):
            BarnesHut("student", 0.5).field(np.ones((3, d)))
    with pytest.raises(ConfigError, match="take the method 'fgt' or 'exact'"):
        BarnesHut.for_tolerance("gaussian", 1e-9)
    with pytest.raises(ConfigError, match="take the method 'grid' or 'exact'"):
        BarnesHut.for_tolerance("student", 1e-9)
