import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from scalemani.methods.gaussian_process.kernels import landmark_features


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_features_are_those_of_distances_by_scipy(dtype):
    draws = np.random.default_rng(0)
    points, landmarks = draws.integers(0, 9, (70, 8)).astype(dtype), draws.uniform(0, 9, (11, 8))
    expected = np.exp(-cdist(points.astype(float), landmarks, "sqeuclidean") / 30)
    np.testing.assert_allclose(landmark_features(points, landmarks, 30.0), expected, rtol=1e-12)
    sparse = landmark_features(sp.csr_matrix(points), landmarks, 30.0)
    np.testing.assert_allclose(sparse, expected, rtol=1e-12)
    np.testing.assert_array_equal(
        landmark_features(points[30:31], landmarks, 30.0)[0], landmark_features(points, landmarks, 30.0)[30]
    )
