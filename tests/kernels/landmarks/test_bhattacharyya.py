import numpy as np

from scalemani.kernels.landmarks.geometry import bhattacharyya_distances, bhattacharyya_neighbors, local_geometry


def test_distances_are_those_of_overlaps_of_gaussians():
    """The Bhattacharyya distance is minus the logarithm of the integral of sqrt(p q)."""
    landmarks, deviations = np.array([[0.0], [1.3]]), np.array([0.7, 1.9])
    line = np.linspace(-30, 30, 200_001)
    densities = [
        np.exp(-((line - place) ** 2) / (2 * deviation**2)) / (deviation * np.sqrt(2 * np.pi))
        for place, deviation in zip(landmarks[:, 0], deviations, strict=True)
    ]
    expected = -np.log(np.trapezoid(np.sqrt(densities[0] * densities[1]), line))
    for covariances in (deviations[:, np.newaxis] ** 2, deviations[:, np.newaxis, np.newaxis] ** 2):
        found = bhattacharyya_distances(landmarks, covariances, np.arange(2))
        np.testing.assert_allclose(found, [[0, expected], [expected, 0]], rtol=1e-9)


def test_diagonal_and_full_covariances_agree_and_distances_follow_no_axes():
    draws = np.random.default_rng(1)
    landmarks, variances = draws.normal(size=(9, 4)), draws.random(size=(9, 4)) + 0.1
    full = np.stack([np.diag(row) for row in variances])
    expected = bhattacharyya_distances(landmarks, variances, np.arange(9))
    np.testing.assert_allclose(bhattacharyya_distances(landmarks, full, np.arange(9)), expected, rtol=1e-10)
    turn = np.linalg.qr(draws.normal(size=(4, 4)))[0]
    turned = bhattacharyya_distances(landmarks @ turn, turn.T @ full @ turn, np.arange(9))
    np.testing.assert_allclose(turned, expected, rtol=1e-9, atol=1e-12)


def test_neighbours_stay_on_their_sheet():
    """Landmarks on two sheets are nearer across than along; their Gaussians are flat and far apart."""
    draws = np.random.default_rng(2)
    sheets = draws.random(size=(8000, 3)) * [10, 10, 0.01]
    sheets[4000:, 2] += 0.8
    rows = np.concatenate([draws.choice(4000, 60, replace=False), 4000 + draws.choice(4000, 60, replace=False)])
    landmarks = sheets[rows]
    found = local_geometry(sheets, landmarks, 40)
    neighbors = bhattacharyya_neighbors(landmarks, found.covariances, 4)
    nearest = np.argsort(np.linalg.norm(landmarks[:, np.newaxis] - landmarks, axis=2), axis=1)[:, 1:5]
    side = np.arange(120) // 60
    assert np.mean(side[neighbors] == side[:, np.newaxis]) > 0.98
    assert np.mean(side[nearest] == side[:, np.newaxis]) < 0.8
    assert not np.any(neighbors == np.arange(120)[:, np.newaxis])
