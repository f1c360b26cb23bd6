import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from scalemani.errors import ConfigError, DataError
from scalemani.kernels.arrays.columns import total_variance
from scalemani.methods.gaussian_process.kernels import (
    GaussianProcessChoice,
    active_landmarks,
    drawn_batches,
    grow,
    learned_landmarks,
    objective,
    projected,
)


def feature(batch, landmark, eta):
    return np.exp(-np.square(batch.astype(np.float64) - landmark).sum(axis=1) / eta)


def drawn(n_points=400, n_columns=6, dtype=np.float64, seed=0):
    draws = np.random.default_rng(seed)
    return (draws.normal(size=(n_points, n_columns)) * 20 + 100).astype(dtype)


def basis_of(batch, landmarks, eta):
    basis = np.zeros((len(landmarks), len(batch)))
    for number, landmark in enumerate(landmarks):
        grow(basis, number, batch, landmark, eta)
    return basis


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("n_before", [0, 1, 30])
def test_the_objective_is_the_residual_of_a_projection_by_qr(dtype, n_before):
    batch, landmarks = drawn(dtype=dtype), drawn(n_before + 1, seed=1)
    eta = total_variance(batch)
    value, _ = objective(batch, basis_of(batch, landmarks[:-1], eta), landmarks[-1], eta)
    phi = feature(batch, landmarks[-1], eta)
    residual = phi
    if n_before:
        q = np.linalg.qr(np.stack([feature(batch, one, eta) for one in landmarks[:-1]], axis=1))[0]
        residual = phi - q @ (q.T @ phi)
    assert value == pytest.approx(residual @ residual, rel=1e-9)


@pytest.mark.parametrize("n_before", [0, 1, 30])
def test_the_gradient_is_that_of_finite_differences(n_before):
    batch, landmarks = drawn(), drawn(n_before + 1, seed=1)
    eta = total_variance(batch)
    basis = basis_of(batch, landmarks[:-1], eta)
    _, gradient = objective(batch, basis, landmarks[-1], eta)
    numeric = scipy.optimize.approx_fprime(
        landmarks[-1] / 20, lambda place: objective(batch, basis, 20 * place, eta)[0], 1e-6
    )
    backward = scipy.optimize.approx_fprime(
        landmarks[-1] / 20, lambda place: objective(batch, basis, 20 * place, eta)[0], -1e-6
    )
    central = (numeric + backward) / 40
    assert np.linalg.norm(gradient - central) <= 1e-6 * np.linalg.norm(gradient)


def test_the_gradient_is_the_double_sum_of_the_paper():
    batch, landmarks = drawn(60), drawn(5, seed=1)
    eta = total_variance(batch)
    basis = basis_of(batch, landmarks[:-1], eta)
    features = np.stack([feature(batch, one, eta) for one in landmarks[:-1]], axis=1)
    m = np.eye(60) - features @ np.linalg.solve(features.T @ features, features.T)
    phi, t = feature(batch, landmarks[-1], eta), landmarks[-1]
    middle = (batch[:, None] + batch[None]) / 2
    expected = -4 / eta * np.einsum("ij,i,j,ijd->d", m, phi, phi, t - middle)
    np.testing.assert_allclose(objective(batch, basis, t, eta)[1], expected, rtol=1e-6)


def test_a_basis_is_orthonormal_and_a_repeated_landmark_adds_nothing():
    batch, landmarks = drawn(), drawn(20, seed=2)
    eta = total_variance(batch)
    basis = basis_of(batch, np.concatenate([landmarks, landmarks[:1]]), eta)
    np.testing.assert_allclose(basis[:-1] @ basis[:-1].T, np.eye(20), atol=1e-12)
    np.testing.assert_array_equal(basis[-1], 0.0)


def learned(points, n_landmarks, **asked):
    choice = GaussianProcessChoice(n_landmarks, sample_points=10**6, **asked)
    return learned_landmarks(drawn_batches(points, choice), choice)


def test_each_landmark_is_told_of():
    told = []
    choice = GaussianProcessChoice(4, sample_points=100, steps=3, advance=lambda: told.append(None))
    learned_landmarks(drawn_batches(drawn(100), choice), choice)
    assert len(told) == 4


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_landmarks_find_separate_clusters_one_each_in_any_unit(unit):
    draws = np.random.default_rng(3)
    centers = unit * 10 * np.eye(5)
    points = centers[draws.integers(0, 5, 3000)] + draws.normal(size=(3000, 5)) * unit
    found = learned(points, 5, eta=40.0 * unit**2)
    away = np.linalg.norm(found.landmarks[:, None] - centers[None], axis=2)
    assert sorted(away.argmin(axis=1)) == [0, 1, 2, 3, 4]
    assert away.min(axis=1).max() < unit
    assert (found.objectives[1:] > found.starts[1:]).all()


def test_landmarks_end_where_the_exact_gradient_nearly_vanishes():
    points = drawn(500)
    found = learned(points, 3, batch_points=500)
    batches = drawn_batches(points, GaussianProcessChoice(3, sample_points=500, batch_points=500))
    eta = total_variance(batches.points[0])
    for number in range(3):
        basis = basis_of(batches.points[0], found.landmarks[:number], eta)
        value, gradient = objective(batches.points[0], basis, found.landmarks[number], eta)
        assert np.linalg.norm(gradient) * np.sqrt(eta) < 2e-2 * value


def test_batches_are_rows_by_seed_and_the_same_however_points_are_read():
    points = drawn(2500, dtype=np.uint8)
    choice = GaussianProcessChoice(10, seed=5, sample_points=2000, batch_points=300)
    batches = drawn_batches(points, choice)
    assert batches.points.shape == (6, 300, 6)
    assert len(np.unique(batches.rows)) == 1800
    np.testing.assert_array_equal(batches.points, points[batches.rows])
    assert not np.array_equal(drawn_batches(points, replace(choice, seed=6)).rows, batches.rows)
    np.testing.assert_array_equal(drawn_batches(points, replace(choice, sample_points=700)).rows, batches.rows[:2])
    assert drawn_batches(points, GaussianProcessChoice(700, seed=5, sample_points=2000)).rows.shape == (1, 1400)


@pytest.mark.parametrize("projection", ["orthant", "sphere"])
def test_projections_are_the_nearest_places_of_the_set(projection):
    for seed in range(20):
        place = np.random.default_rng(seed).normal(size=4) - (2 if seed > 15 else 0)
        found = projected(place, projection)
        others = np.abs(np.random.default_rng(99).normal(size=(20_000, 4)))
        if projection == "sphere":
            others /= np.linalg.norm(others, axis=1, keepdims=True)
            assert np.linalg.norm(found) == pytest.approx(1.0)
        assert found.min() >= 0
        assert np.linalg.norm(found - place) <= np.linalg.norm(others - place, axis=1).min() + 1e-12


def test_landmarks_stay_in_their_set():
    counts = np.random.default_rng(0).poisson(0.4, (1200, 30)) + np.eye(30, dtype=int)[np.arange(1200) % 30]
    roots = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    sphere = learned(roots, 4, steps=50, projection="sphere").landmarks
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=1), 1.0)
    assert sphere.min() >= 0
    assert learned(roots, 4, steps=50, projection="orthant").landmarks.min() >= 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda points: points - 90, r"positive orthant, but row \d+ of the points has the value -"),
        (lambda points: np.abs(points), r"unit sphere, but row \d+ of the points has the length"),
    ],
)
def test_points_outside_the_set_are_refused_by_row(change, words):
    with pytest.raises(DataError, match=words):
        learned(change(drawn()), 3, projection="sphere")


def test_an_eta_that_is_far_too_small_or_large_is_refused_with_a_remedy():
    points = drawn(600, 3)
    with pytest.raises(DataError, match=r"eta=1e-06 is far too small .* would do, "):
        learned(points, 3, eta=1e-6)
    words = r"50 landmarks were requested, but at landmarks.eta=1e\+09 \d+ of them .* a smaller landmarks.eta"
    with pytest.raises(DataError, match=words):
        learned(points, 50, eta=1e9, steps=100)


def test_more_landmarks_than_a_batch_or_the_distinct_points_are_refused():
    with pytest.raises(ConfigError, match=r"got batches of 400 points and n_landmarks=400"):
        learned(drawn(), 400)
    with pytest.raises(DataError, match=r"9 landmarks were requested, but these 400 points have only 8 distinct"):
        learned(drawn()[np.arange(400) % 8], 9, steps=5)


def conditional_variances(points, rows, eta):
    """Return k(x, x) - k(x, T) K^-1 k(T, x) of all points, by a solver of numpy."""
    kernel = np.exp(-np.square(points[:, None].astype(float) - points[None]).sum(axis=2) / eta)
    if len(rows) == 0:
        return np.diag(kernel).copy()
    known = kernel[np.ix_(rows, rows)]
    return np.diag(kernel) - np.einsum("it,ti->i", kernel[:, rows], np.linalg.solve(known, kernel[rows]))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("eta", [None, 0.3])
def test_each_landmark_has_the_largest_conditional_variance(dtype, eta):
    points = np.random.default_rng(0).normal(size=(200, 5)) * 20 + 100
    points = points.astype(dtype)
    bandwidth = None if eta is None else eta * total_variance(points)
    rows = active_landmarks(points, 40, bandwidth, first=17)
    assert rows[0] == 17
    for step in range(1, 40):
        variances = conditional_variances(points, rows[:step], bandwidth or total_variance(points))
        assert variances[rows[step]] == pytest.approx(variances.max(), rel=1e-8)


def test_ties_go_to_the_lower_row():
    corners = np.array([[0, 0], [10, 0], [0, 10], [10, 10], [5, 5]], dtype=float)
    np.testing.assert_array_equal(active_landmarks(corners, 4, 20.0), [0, 3, 1, 2])
    grid = np.tile(corners[:4], (2, 1))
    np.testing.assert_array_equal(active_landmarks(grid, 4, 20.0), [0, 3, 1, 2])


def test_repeated_points_are_chosen_once_and_too_few_are_told_of():
    points = np.repeat(np.random.default_rng(1).normal(size=(12, 3)), 4, axis=0)
    rows = active_landmarks(points, 12)
    assert len(np.unique(points[rows], axis=0)) == 12
    with pytest.raises(DataError, match="13 landmarks were requested, but these 48 points have only 12 distinct rows"):
        active_landmarks(points, 13)


def test_an_eta_at_which_few_landmarks_determine_all_says_how_many_there_are():
    points = np.random.default_rng(2).normal(size=(500, 2))
    words = r"100 landmarks were requested, but at landmarks.eta=1e\+04 (\d+) of them .* a smaller landmarks.eta"
    with pytest.raises(DataError, match=words) as error:
        active_landmarks(points, 100, 1e4)
    n_found = int(re.search(words, str(error.value)).group(1))
    assert len(active_landmarks(points, n_found, 1e4)) == n_found


def test_an_eta_that_is_far_too_small_names_one_that_does():
    points = np.random.default_rng(2).normal(size=(500, 2))
    with pytest.raises(DataError, match=r"eta=1e-09 is far too small .* would do, ") as error:
        active_landmarks(points, 20, 1e-9)
    assert len(active_landmarks(points, 20, float(str(error.value).rpartition(" ")[2]))) == 20
