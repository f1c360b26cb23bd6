import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from scalemani.errors import DataError
from scalemani.kernels.landmarks.features import hellinger_rows, landmark_features


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


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_matrix])
def test_counts_become_points_whose_distance_is_that_of_hellinger(as_given):
    counts = np.random.default_rng(1).poisson(1.0, (40, 12)) + 1
    rows = hellinger_rows(as_given(counts))
    rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
    shares = counts / counts.sum(axis=1, keepdims=True)
    hellinger = np.array([[1 - np.sqrt(one * other).sum() for other in shares] for one in shares])
    np.testing.assert_allclose(cdist(rows, rows, "sqeuclidean") / 2, hellinger, atol=1e-14)


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_matrix])
def test_rows_without_counts_or_with_negative_ones_are_named(as_given):
    counts = np.ones((8, 3))
    counts[[2, 5]] = 0
    with pytest.raises(DataError, match="nothing was counted in 2 rows, first 102, 105: remove empty rows"):
        hellinger_rows(as_given(counts), 100)
    counts[4, 1] = -1
    with pytest.raises(DataError, match="negative, which they are in 1 rows, first 4:"):
        hellinger_rows(as_given(counts))
