import numpy as np
import pytest

from scalemani.kernels.spectral.landmark_graph import extend_by_nystrom, landmark_kernel, landmark_maps


def drawn(n_points=60, seed=0):
    return np.random.default_rng(seed).normal(size=(n_points, 3))


def all_others(n_points):
    return np.array([[other for other in range(n_points) if other != row] for row in range(n_points)])


def test_the_kernel_joins_neighbours_both_ways():
    landmarks = drawn(5)
    kernel = landmark_kernel(landmarks, np.array([[1], [2], [1], [0], [0]]), 0.7).toarray()
    expected = np.eye(5)
    for i, j in [(0, 1), (1, 2), (0, 3), (0, 4)]:
        expected[i, j] = expected[j, i] = np.exp(-((landmarks[i] - landmarks[j]) ** 2).sum() / (2 * 0.49))
    np.testing.assert_allclose(kernel, expected, rtol=1e-12)
    np.testing.assert_array_equal(kernel, kernel.T)


def test_vectors_are_those_of_the_normalised_kernel():
    landmarks = drawn()
    kernel = landmark_kernel(landmarks, all_others(60), 1.0)
    maps = landmark_maps(kernel, 3, "")
    roots = np.sqrt(np.asarray(kernel.sum(axis=1)).ravel())
    normalized = kernel.toarray() / np.outer(roots, roots)
    np.testing.assert_allclose(normalized @ maps.vectors, maps.vectors * (1 - maps.eigenvalues), atol=1e-10)
    np.testing.assert_allclose(maps.vectors.T @ maps.vectors, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(maps.eigenvalues, 1 - np.linalg.eigvalsh(normalized)[-2:-5:-1], atol=1e-10)


def test_a_landmark_gets_its_own_coordinates():
    landmarks = drawn()
    maps = landmark_maps(landmark_kernel(landmarks, all_others(60), 1.0), 3, "")
    np.testing.assert_allclose(extend_by_nystrom(landmarks, landmarks, maps, 1.0), maps.vectors, atol=1e-10)


def test_points_are_placed_by_the_formula_of_the_paper():
    landmarks, points, sigma = drawn(), drawn(7, 1), 0.8
    maps = landmark_maps(landmark_kernel(landmarks, all_others(60), sigma), 2, "")

    def kernel(a, b):
        return np.exp(-((a - b) ** 2).sum() / (2 * sigma**2))

    for point, found in zip(points, extend_by_nystrom(points, landmarks, maps, sigma), strict=True):
        of_point = np.mean([kernel(other, point) for other in landmarks])
        means = [np.mean([kernel(landmark, other) for other in landmarks]) for landmark in landmarks]
        normalized = [
            kernel(landmark, point) / (60 * np.sqrt(of_point * mean))
            for landmark, mean in zip(landmarks, means, strict=True)
        ]
        np.testing.assert_allclose(found, normalized @ maps.vectors / (1 - maps.eigenvalues), rtol=1e-9)


@pytest.mark.filterwarnings("error")
def test_points_out_of_reach_are_put_at_the_origin():
    landmarks = drawn()
    maps = landmark_maps(landmark_kernel(landmarks, all_others(60), 1.0), 2, "")
    np.testing.assert_array_equal(extend_by_nystrom(np.full((1, 3), 1e5), landmarks, maps, 1.0), np.zeros((1, 2)))
