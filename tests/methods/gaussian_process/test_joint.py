"""Landmarks that are improved jointly, against determinants by NumPy."""

from dataclasses import replace

import numpy as np
import pytest

from scalemani.kernels.landmarks.selection import selected_landmarks
from scalemani.methods.gaussian_process.joint import append, drop_first, swept_rows
from scalemani.methods.gaussian_process.kernels import GaussianProcessChoice, drawn_batches


def features(points, landmarks, eta):
    return np.exp(-np.square(points[:, None].astype(float) - landmarks[None]).sum(axis=2) / eta)


def log_determinant(matrix):
    sign, value = np.linalg.slogdet(matrix)
    assert sign == 1
    return value


@pytest.mark.parametrize(("dtype", "eta"), [(np.float64, 8.0), (np.float32, 4.0), (np.uint8, 500.0)])
def test_no_exchange_of_one_landmark_raises_the_determinant(dtype, eta):
    draws = np.random.default_rng(2)
    points = draws.integers(0, 60, (120, 3)) if dtype == np.uint8 else draws.normal(size=(120, 3))
    points = points.astype(dtype)
    kernel, choice = features(points, points, eta), GaussianProcessChoice(10, "gp-active", eta=eta)
    greedy, joint = (selected_landmarks(points, replace(choice, sweeps=sweeps)) for sweeps in (0, 50))
    before, after = (log_determinant(kernel[np.ix_(rows, rows)]) for rows in (greedy.rows, joint.rows))
    assert joint.certificates["joint_gain"] == pytest.approx((after - before) / 10, abs=1e-9)
    assert after > before
    for number in range(10):
        for other in np.setdiff1d(np.arange(120), joint.rows):
            rows = np.r_[np.delete(joint.rows, number), other]
            assert np.linalg.slogdet(kernel[np.ix_(rows, rows)])[1] <= after + 1e-5


def test_a_sweep_exchanges_each_landmark_for_the_best_point_given_all_others():
    points = np.random.default_rng(3).normal(size=(80, 2))
    kernel, expected = features(points, points, 3.0), np.arange(6)
    for number in range(6):
        others = np.delete(expected, number)
        solved = np.linalg.solve(kernel[np.ix_(others, others)], kernel[others])
        expected[number] = np.argmax(1 - (kernel[others] * solved).sum(axis=0))
    rows, n_exchanged = swept_rows(points, np.arange(6), 3.0)
    np.testing.assert_array_equal(rows, expected)
    assert n_exchanged == np.count_nonzero(expected != np.arange(6))


def test_a_basis_without_its_first_feature_spans_all_others_and_may_have_repeated_ones():
    batches = drawn_batches(np.random.default_rng(1).normal(size=(60, 2)), GaussianProcessChoice(7, batch_points=60))
    landmarks = np.random.default_rng(4).normal(size=(7, 2))
    landmarks[4] = landmarks[2]  # leaves a row of zeros
    bases, triangles = np.zeros((1, 7, 60)), np.zeros((1, 7, 7))
    for number in range(7):
        append(batches, bases, triangles, number, landmarks[number], 1.5)
    for number in range(9):
        drop_first(bases[0], triangles[0])
        rest = np.take(landmarks, np.arange(number + 1, number + 7), axis=0, mode="wrap")
        expected = features(batches.points[0], rest, 1.5)
        np.testing.assert_allclose(bases[0, :-1].T @ triangles[0, :-1, :-1], expected, atol=1e-9)
        products = bases[0, :-1] @ bases[0, :-1].T
        np.testing.assert_allclose(products, np.diag(np.diag(products).round()), atol=1e-9)
        append(batches, bases, triangles, 6, landmarks[number % 7], 1.5)


@pytest.mark.parametrize("batch_points", [500, 250])
def test_landmarks_off_the_data_climb_the_determinant_of_their_features(batch_points):
    points, eta = np.random.default_rng(5).normal(size=(500, 2)), 0.5
    choice = GaussianProcessChoice(8, "gp", sample_points=500, eta=eta, batch_points=batch_points, steps=100)
    greedy, joint = (selected_landmarks(points, replace(choice, sweeps=sweeps)) for sweeps in (0, 2))
    batches = drawn_batches(points, choice).points

    def value(landmarks):
        of_batches = [features(batch, landmarks, eta) for batch in batches]
        return np.mean([log_determinant(phi.T @ phi) for phi in of_batches])

    gain = value(joint.points) - value(greedy.points)
    assert joint.certificates["joint_gain"] == pytest.approx(gain / 8, abs=1e-6)
    assert gain > 0.1
    assert joint.certificates["first_objective"] == greedy.certificates["first_objective"]
