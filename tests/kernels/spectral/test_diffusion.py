"""Scales of diffusion maps: powers of the eigenvalues of the random walk."""

import numpy as np
import pytest

from scalemani.stages.diffusion_coordinates import diffusion_scales


@pytest.mark.parametrize("time", [0, 1, 2, 7])
def test_scales_are_those_of_so_many_steps_of_the_walk(time):
    rng = np.random.default_rng(0)
    weights = rng.uniform(size=(12, 12))
    weights += weights.T
    walk = weights / weights.sum(axis=1, keepdims=True)
    eigenvalues = 1 - np.sort(np.linalg.eigvals(walk).real)[::-1]
    steps = np.linalg.matrix_power(walk, time)
    expected = np.sort(np.abs(np.linalg.eigvals(steps).real))[::-1]
    np.testing.assert_allclose(np.sort(diffusion_scales(eigenvalues, time))[::-1], expected, atol=1e-10)


def test_a_time_between_steps_has_a_scale_whatever_the_sign_of_the_eigenvalue():
    np.testing.assert_allclose(diffusion_scales(np.array([0.19, 1.81, 1.0]), 0.5), [0.9, 0.9, 0.0], atol=1e-15)
