"""Second derivatives of repulsion against a matrix that is written out, and momentum coordinate by coordinate."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scalemani.kernels.arrays.tiles import light_panels
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.descent import Motion, PairCurvature, momentum_step

STRENGTH = 0.7
KERNELS = {"gaussian": lambda squares: np.exp(-squares), "student": lambda squares: 1 / (1 + squares),
           2.0: lambda squares: (1 + squares / 2) ** -2}  # fmt: skip
SECOND = {"gaussian": lambda squares: np.exp(-squares), "student": lambda squares: 2 / (1 + squares) ** 3,
          2.0: lambda squares: 1.5 * (1 + squares / 2) ** -4}  # fmt: skip


def positions_of(n_points=40, n_dims=2):
    return np.random.default_rng(1).normal(size=(n_points, n_dims))


def squares_of(positions):
    return ((positions[:, np.newaxis] - positions) ** 2).sum(axis=2)


def energy(kernel, positions):
    """Return strength times the sum of the kernel over all ordered pairs."""
    values = KERNELS[kernel](squares_of(positions))
    return STRENGTH * (values.sum() - len(positions))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_dims", [2, 3])
def test_the_diagonal_is_the_second_difference_of_the_energy(kernel, n_dims):
    positions = positions_of(n_dims=n_dims)
    curvature = PairCurvature(kernel, "sum", STRENGTH)
    positive, degrees = curvature.diagonals(positions, curvature.weights(positions))
    for n, d in ((0, 0), (7, 1), (39, n_dims - 1)):
        step = np.zeros_like(positions)
        step[n, d] = 1e-4
        ends = energy(kernel, positions + step) + energy(kernel, positions - step)
        second = (ends - 2 * energy(kernel, positions)) / 1e-8
        assert positive[n, d] - degrees[n] == pytest.approx(second, abs=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("combine", ["sum", "log-sum", "sum-of-logs"])
def test_products_are_those_of_the_matrix_of_each_coordinate(kernel, combine):
    positions, vectors = positions_of(), np.random.default_rng(2).normal(size=(40, 2))
    curvature = PairCurvature(kernel, combine, STRENGTH)
    weights = curvature.weights(positions)
    second = SECOND[kernel](squares_of(positions))
    found = curvature.product(positions, weights, vectors)
    for d in range(2):
        apart = positions[:, np.newaxis, d] - positions[np.newaxis, :, d]
        pairs = 4 * (weights[:, np.newaxis] + weights) * second * apart**2
        laplacian = np.diag(pairs.sum(axis=1)) - pairs
        np.testing.assert_allclose(found[:, d], laplacian @ vectors[:, d], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(curvature.diagonals(positions, weights)[0][:, d], np.diag(laplacian), rtol=1e-9)


def test_weights_divide_the_strength_by_what_is_inside_the_logarithm():
    positions = positions_of()
    sums = KERNELS["student"](squares_of(positions)).sum(axis=1) - 1
    for combine, expected in (("sum", np.full(40, STRENGTH)), ("log-sum", np.full(40, STRENGTH / sums.sum()))):
        found = PairCurvature("student", combine, STRENGTH).weights(positions)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(
        PairCurvature("student", "sum-of-logs", STRENGTH).weights(positions), STRENGTH / sums, rtol=1e-10
    )


def test_a_kernel_with_an_edge_has_no_curvature_inside_and_ends_there():
    positions = np.array([[0.0, 0.0], [0.5, 0.0], [3.0, 0.0]])
    curvature = PairCurvature("epanechnikov", "sum", STRENGTH)
    positive, degrees = curvature.diagonals(positions, curvature.weights(positions))
    assert np.array_equal(positive, np.zeros((3, 2)))
    np.testing.assert_allclose(degrees, [4 * STRENGTH, 4 * STRENGTH, 0.0])


RATE, MOMENTUM = 3.0, 0.8


def motion_of(n_points, seed=0):
    """Return a gradient, and velocities of both signs with gains from the least on."""
    rng = np.random.default_rng(seed)
    gradient, velocity = rng.normal(size=(2, n_points, 2))
    return gradient, Motion(velocity, rng.choice([0.01, 0.011, 0.5, 1.0, 4.0], size=(n_points, 2)))


def plain_step(gradient, before):
    """The rule of Jacobs: a gain grows by 0.2 where the step goes on, and shrinks by a fifth where it turns."""
    gains = np.empty_like(gradient)
    for at in np.ndindex(gradient.shape):
        goes_on = (before.velocity[at] > 0) != (gradient[at] > 0)
        gains[at] = before.gains[at] + 0.2 if goes_on else max(0.8 * before.gains[at], 0.01)
    return MOMENTUM * before.velocity - RATE * gains * gradient, gains


def test_a_step_is_that_of_the_rule_written_out():
    gradient, before = motion_of(60)
    after = momentum_step(gradient, before, RATE, MOMENTUM, np.inf)
    velocity, gains = plain_step(gradient, before)
    np.testing.assert_allclose(after.velocity, velocity, rtol=1e-14)
    np.testing.assert_allclose(after.gains, gains, rtol=1e-14)


@pytest.mark.parametrize("longest", [0.1, 1.0, 5.0])
def test_a_step_beyond_the_longest_keeps_its_direction_and_others_stay_as_they_are(longest):
    gradient, before = motion_of(200)
    free, _ = plain_step(gradient, before)
    held = momentum_step(gradient, before, RATE, MOMENTUM, longest).velocity
    lengths = np.linalg.norm(free, axis=1)
    assert (lengths > longest).any()
    expected = free * np.minimum(1.0, longest / lengths)[:, np.newaxis]
    np.testing.assert_allclose(held, expected, rtol=1e-13)


def test_what_was_before_is_left_alone_and_threads_change_no_bit():
    gradient, before = motion_of(50_000)
    kept = Motion(before.velocity.copy(), before.gains.copy())
    assert len(list(light_panels(len(gradient)))) > 1
    one = momentum_step(gradient, before, RATE, MOMENTUM, 2.0)
    with ThreadPoolExecutor(3) as pool:
        other = momentum_step(gradient, before, RATE, MOMENTUM, 2.0, Workspace(pool.map))
    for found, expected in zip((*one, *before), (*other, *kept), strict=True):
        assert np.array_equal(found, expected)
