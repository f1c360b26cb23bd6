"""The reduced centred kernel and its components, against dense matrices of all points."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral.linear import kernel_components
from scalemani.methods.kernel_pca.kernels import centered_kernel


def problem(n_points=120, n_landmarks=15, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n_points, n_landmarks))
    z /= z.sum(axis=1, keepdims=True)
    points = rng.normal(size=(n_points, 2))
    w = np.exp(-((points[:, np.newaxis] - points) ** 2).sum(axis=2) / 2)
    np.fill_diagonal(w, 0.0)
    return z, w


def reduced(z, w):
    degrees = np.diag(w.sum(axis=1))
    return (sp.csr_matrix(z.T @ matrix @ z) for matrix in (degrees - w, degrees, np.eye(len(z))))


def dense_centred(w):
    centring = np.eye(len(w)) - 1 / len(w)
    return centring @ (w + np.eye(len(w))) @ centring


def test_centring_takes_nothing_but_reduced_matrices():
    z, w = problem()
    found = centered_kernel(*reduced(z, w))
    expected = z.T @ dense_centred(w) @ z
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_components_are_the_extremes_over_what_landmarks_can_say():
    z, w = problem()
    laplacian, mass, gram = reduced(z, w)
    found, _, least = kernel_components(centered_kernel(laplacian, mass, gram), gram, 3)
    values, vectors = scipy.linalg.eigh(z.T @ dense_centred(w) @ z, z.T @ z)
    np.testing.assert_allclose(found.eigenvalues, values[::-1][:3], rtol=1e-8)
    assert least == pytest.approx(values[0], abs=1e-8)
    assert subspace_angle(z @ found.vectors, z @ vectors[:, ::-1][:, :3]) < 1e-7
    scores = z @ found.vectors
    np.testing.assert_allclose(scores.T @ scores, np.diag(values[::-1][:3]), atol=1e-8 * values[-1])


def test_eigenvalues_below_zero_are_no_components():
    gram = sp.eye_array(4, format="csr")
    with pytest.raises(RankError, match="has 2 eigenvalues above zero"):
        kernel_components(np.diag([3.0, 1.0, 0.0, -2.0]), gram, 3)
