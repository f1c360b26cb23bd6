"""Momentum with gains: the rule written out coordinate by coordinate, and the bound on the length of a step."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scalemani.kernels.arrays.tiles import light_panels
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.descent.momentum import Motion, momentum_step

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
