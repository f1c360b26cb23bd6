from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import ConfigError
from scalemani.kernels.repulsion.pair_sums import ExactSums

KERNELS = {
    "student": (lambda s: 1.0 / (1.0 + s), lambda s: -1.0 / (1.0 + s) ** 2),
    "gaussian": (lambda s: np.exp(-s), lambda s: -np.exp(-s)),
    "epanechnikov": (lambda s: np.maximum(1.0 - s, 0.0), lambda s: -(s < 1.0).astype(float)),
    0.5: (lambda s: (1.0 + 2.0 * s) ** -0.5, lambda s: -((1.0 + 2.0 * s) ** -1.5)),
    10.0: (lambda s: (1.0 + s / 10) ** -10, lambda s: -((1.0 + s / 10) ** -11)),
}
seeds = st.integers(0, 2**32 - 1)


def by_definition(kernel, sources, targets=None, charges=None):
    at = sources if targets is None else targets
    response, slope = KERNELS[kernel]
    differences = at[:, None, :].astype(np.float64) - sources[None].astype(np.float64)
    squared = np.square(differences).sum(axis=2)
    weights = np.ones((len(at), len(sources))) * (1.0 if charges is None else charges)
    if targets is None:
        np.fill_diagonal(weights, 0.0)
    sums = (weights * response(squared)).sum(axis=1)
    return sums, 2.0 * ((weights * slope(squared))[:, :, None] * differences).sum(axis=1)


def drawn(seed, n, d, scale=1.0):
    return np.random.default_rng(seed).normal(size=(n, d)) * scale


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_sums_are_the_definition(kernel, d):
    sources, targets = drawn(0, 1500, d), drawn(1, 1100, d)
    charges = np.random.default_rng(2).normal(size=1500)
    for arguments in ((sources,), (sources, targets), (sources, targets, charges), (sources, None, charges)):
        sums, gradients = ExactSums(kernel).field(*arguments)
        expected_sums, expected_gradients = by_definition(kernel, *arguments)
        np.testing.assert_allclose(sums, expected_sums, rtol=0, atol=1e-12 * 1500)
        np.testing.assert_allclose(gradients, expected_gradients, rtol=0, atol=1e-12 * 1500)


@pytest.mark.parametrize("kernel", ["student", "gaussian"])
def test_the_gradient_is_the_complex_step(kernel):
    sources, targets, step = drawn(3, 60, 2), drawn(4, 40, 2), 1e-30
    gradients = ExactSums(kernel).field(sources, targets)[1]
    for k in range(2):
        moved = targets.astype(complex)
        moved[:, k] += 1j * step
        squared = np.square(moved[:, None] - sources[None]).sum(axis=2)
        expected = KERNELS[kernel][0](squared) if kernel == "student" else np.exp(-squared)
        np.testing.assert_allclose(gradients[:, k], expected.sum(axis=1).imag / step, rtol=1e-12, atol=1e-13)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, kernel=st.sampled_from([*KERNELS]), d=st.integers(1, 4), n=st.integers(1, 40))
def test_forces_between_the_points_cancel(seed, kernel, d, n):
    points = drawn(seed, n, d)
    sums, gradients = ExactSums(kernel).field(points)
    assert np.abs(gradients.sum(axis=0)).max() <= 1e-12 * n
    torques = points[:, :, None] * gradients[:, None, :]
    assert np.abs((torques - torques.transpose(0, 2, 1)).sum(axis=0)).max() <= 1e-11 * n
    assert np.all(sums >= 0.0)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, kernel=st.sampled_from([*KERNELS]), d=st.integers(1, 3))
def test_order_place_and_sign_do_not_matter(seed, kernel, d):
    points, method, random = (
        np.round(drawn(seed, 50, d) * 2**20) / 2**20,
        ExactSums(kernel),
        np.random.default_rng(seed),
    )
    sums, gradients = method.field(points)
    order = random.permutation(50)
    permuted = method.field(points[order])
    np.testing.assert_allclose(permuted[0], sums[order], rtol=1e-12)
    far = method.field(points + 2.0**20)
    np.testing.assert_allclose(far[0], sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(far[1], gradients, rtol=1e-12, atol=1e-12)
    charges = random.normal(size=50)
    one, other = method.field(points, None, charges), method.field(points, None, -charges)
    assert np.array_equal(one[0], -other[0])


def test_a_point_leaves_itself_out_but_not_its_twin():
    points = np.array([[1e8, 1.0], [1e8, 1.0], [1e8, 1.0]])
    for kernel in KERNELS:
        sums, gradients = ExactSums(kernel).field(points)
        assert np.array_equal(sums, [2.0, 2.0, 2.0])
        assert np.array_equal(gradients, np.zeros((3, 2)))
        assert np.array_equal(ExactSums(kernel).field(points, points)[0], [3.0, 3.0, 3.0])


@settings(max_examples=30, deadline=None)
@given(seed=seeds, kernel=st.sampled_from([*KERNELS]), d=st.integers(1, 4), n=st.integers(1, 60))
def test_rows_in_any_order_are_left_out_of_their_own_sums(seed, kernel, d, n):
    random = np.random.default_rng(seed)
    points, charges = drawn(seed, n, d), random.normal(size=n)
    rows = random.integers(0, n, size=random.integers(0, 2 * n))
    for amounts in (None, charges):
        every = by_definition(kernel, points, None, amounts)
        sums, gradients = ExactSums(kernel).field(points, charges=amounts, rows=rows)
        np.testing.assert_allclose(sums, every[0][rows], rtol=0, atol=1e-12 * n)
        np.testing.assert_allclose(gradients, every[1][rows], rtol=0, atol=1e-12 * n)


def test_rows_do_not_depend_on_how_they_are_shared_out():
    points, rows = drawn(6, 400, 2), np.arange(399, -1, -1)
    alone = ExactSums("student").field(points, rows=rows)
    with ThreadPoolExecutor(3) as pool:
        together = ExactSums("student", over=pool.map).field(points, rows=rows)
    one_by_one = [ExactSums("student").field(points, rows=rows[i : i + 1])[0][0] for i in range(400)]
    assert np.array_equal(alone[0], together[0])
    assert np.array_equal(alone[1], together[1])
    assert np.array_equal(alone[0], one_by_one)


def test_one_point_and_no_targets():
    sums, gradients = ExactSums("student").field(np.ones((1, 2)))
    assert np.array_equal(sums, [0.0])
    assert np.array_equal(gradients, [[0.0, 0.0]])
    assert ExactSums("student").field(np.ones((1, 2)), np.empty((0, 2)))[1].shape == (0, 2)


def test_threads_and_float32_points_change_nothing():
    points = drawn(5, 3000, 2).astype(np.float32)
    alone = ExactSums("gaussian").field(points)
    with ThreadPoolExecutor(3) as pool:
        together = ExactSums("gaussian", over=pool.map).field(points.astype(np.float64))
    assert np.array_equal(alone[0], together[0])
    assert np.array_equal(alone[1], together[1])


def test_what_cannot_be_summed_is_refused():
    with pytest.raises(ConfigError, match=r"did you mean 'gaussian'\? allowed: epanechnikov, gaussian, student"):
        ExactSums("gausian")
    with pytest.raises(ConfigError, match="targets or rows of the sources, got both"):
        ExactSums("student").field(np.ones((3, 2)), np.ones((1, 2)), rows=np.array([0]))
    with pytest.raises(ConfigError, match="do not fit"):
        ExactSums("student").field(np.ones((3, 2)), np.ones((3, 3)))
