import numpy as np
import pytest

from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.moments import moments, total_variance


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_means_and_variances_are_those_of_numpy_in_float64(dtype):
    points = np.random.default_rng(0).integers(0, 200, (2 * TILE_ROWS + 7, 5)).astype(dtype)
    mean, variance = moments(points)
    np.testing.assert_allclose(mean, points.astype(float).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(variance, points.astype(float).var(axis=0), rtol=1e-12)
    assert total_variance(points) == pytest.approx(points.astype(float).var(axis=0).sum(), rel=1e-12)


def test_variances_of_points_far_from_zero_keep_their_digits():
    points = np.random.default_rng(1).normal(size=(500, 3))
    np.testing.assert_allclose(moments(points + 1e8)[1], points.var(axis=0), rtol=1e-6)
