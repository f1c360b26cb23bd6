"""Sums of kernels on a grid, against sums over all pairs."""

import numpy as np
import pytest
import scipy.spatial

from scalemani.audit.kernel_sums import all_sums

KERNELS = {"student": lambda squares: 1 / (1 + squares), "gaussian": lambda squares: np.exp(-squares),
           0.5: lambda squares: (1 + 2 * squares) ** -0.5}  # fmt: skip
MEMORY = 2 * 10**9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_sums_on_a_grid_are_those_over_all_pairs(kernel, n_axes):
    rng, act = np.random.default_rng(0), KERNELS[kernel]
    positions = rng.normal(size=(500, n_axes)) * (20, 8, 3)[n_axes - 1]
    masses = rng.integers(1, 4, 500).astype(float)
    found = all_sums(act, positions, masses, MEMORY)
    squares = scipy.spatial.distance.cdist(positions, positions, "sqeuclidean")
    expected = act(squares) @ masses - 1
    assert np.abs(found.sums - expected).max() < 1e-4 * expected.mean()
    step = 1e-5
    for axis in range(n_axes):
        sums = []
        for sign in (-1, 1):
            moved = positions + sign * step * np.eye(n_axes)[axis]
            sums.append(act(scipy.spatial.distance.cdist(moved, positions, "sqeuclidean")) @ masses)
        slopes = (sums[1] - sums[0]) / (2 * step)
        assert np.abs(found.gradients[:, axis] - slopes).max() < 1e-3 * np.abs(slopes).max()


def test_a_grid_that_would_be_too_coarse_is_none():
    positions = np.array([[0.0, 0.0], [1e5, 1e5]])
    assert all_sums(KERNELS["student"], positions, np.ones(2), MEMORY) is None
