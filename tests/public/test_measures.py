"""Measures of quality against scikit-learn and their definitions."""

import numpy as np
import pytest
import sklearn.metrics
from sklearn.manifold import trustworthiness

import scalemani as sm


@pytest.fixture(scope="module")
def flat(digits) -> np.ndarray:
    """A linear map of the digits to two dimensions."""
    return digits[0] @ np.random.default_rng(0).normal(size=(64, 2))


def test_trustworthiness_is_that_of_scikit_learn(surface):
    flat = surface[0][:, :2]
    found = sm.measures.trustworthiness(surface[0], flat, 10)
    assert found.value == pytest.approx(trustworthiness(surface[0], flat, n_neighbors=10), abs=1e-9)


def test_labels_are_compared_as_by_scikit_learn(digits):
    labels = np.random.default_rng(0).integers(0, 5, 800)
    ours, theirs = sm.measures, sklearn.metrics
    assert ours.adjusted_rand_index(labels, digits[1]) == pytest.approx(theirs.adjusted_rand_score(digits[1], labels))
    assert ours.normalized_mutual_information(labels, digits[1]) == pytest.approx(
        theirs.normalized_mutual_info_score(digits[1], labels)
    )
    assert ours.clustering_error((digits[1] + 3) % 10, digits[1]) == 0


def test_accuracy_of_neighbors_is_that_of_leaving_one_out(digits, flat):
    distances = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    expected = np.mean(digits[1][distances.argmin(axis=1)] == digits[1])
    assert sm.measures.knn_accuracy(flat, digits[1]).value == pytest.approx(expected)


def test_recall_counts_true_neighbors(surface):
    distances = np.linalg.norm(surface[0][:, None] - surface[0][None], axis=2)
    order = np.argsort(distances, axis=1)
    indices = np.concatenate([order[:, 1:6], order[:, -1:]], axis=1)
    assert sm.measures.recall(indices, surface[0]).value == pytest.approx(5 / 6)


def test_procrustes_error_ignores_rotation_shift_and_scale(flat):
    turned = 2.5 * flat @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 7
    assert sm.measures.procrustes_error(turned, flat) < 1e-6
    noisy = flat + np.random.default_rng(1).normal(size=flat.shape) * flat.std()
    assert sm.measures.procrustes_error(noisy, flat) > 0.1


def test_subspace_angle_is_that_between_spans(flat):
    basis = np.random.default_rng(2).normal(size=(50, 3))
    mixed = basis @ np.random.default_rng(3).normal(size=(3, 3))
    assert sm.measures.subspace_angle(mixed, basis) < 1e-6
