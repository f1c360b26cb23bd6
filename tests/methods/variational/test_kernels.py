import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import scalemani as sm
from scalemani.errors import DisconnectedGraphError
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral.eigenmaps import Eigenmaps, exact_eigenmaps
from scalemani.methods.variational.kernels import (
    MOST_LANDMARKS,
    completed_weights,
    direct_weights,
    landmark_numbers,
)


def variational_eigenmaps(affinities, landmarks, n_components):
    """Return the eigenmaps of W (N, N) in the span of its Z, in the way of a run."""
    direct = direct_weights(affinities, landmark_numbers(landmarks, affinities.shape[0]), 0, len(landmarks))
    weights = completed_weights(direct, lambda rows: affinities[rows]).weights
    values, vectors = sm.solve_reduced(*sm.reduce_laplacian(affinities, weights), n_components=n_components)
    return Eigenmaps(values, weights @ vectors)


def graph(n_points, seed=0, n_neighbors=6):
    """W of points on a plane, dense."""
    points = np.random.default_rng(seed).normal(size=(n_points, 2))
    squares = np.sum((points[:, None] - points) ** 2, axis=2)
    reach = np.sort(squares, axis=1)[:, n_neighbors]
    near = (squares <= reach[:, None]) & ~np.eye(n_points, dtype=bool)
    directed = np.where(near, np.exp(-squares / reach[:, None]), 0.0)
    return (directed + directed.T) / 2


def weights_by_hand(affinities, landmarks):
    """Z point by point, by the words of the docstring."""
    table = np.full((len(affinities), len(landmarks)), np.nan)
    for row, line in enumerate(affinities):
        if row in landmarks:
            table[row] = np.asarray(landmarks) == row
        elif line[landmarks].any():
            table[row] = line[landmarks] / line[landmarks].sum()
    while np.isnan(table).any():
        known = ~np.isnan(table).any(axis=1)
        for row in np.flatnonzero(~known):
            if (affinities[row] * known).any():
                mean = (affinities[row] * known) @ np.nan_to_num(table) * 1.0
                mean[np.argsort(-mean, kind="stable")[MOST_LANDMARKS:]] = 0
                table[row] = mean / mean.sum()
    return table


@given(st.integers(0, 1000), st.integers(2, 30))
def test_points_are_means_of_the_landmarks_among_their_neighbors(seed, n_landmarks):
    affinities = graph(60, seed)
    landmarks = np.random.default_rng(seed).permutation(60)[:n_landmarks]
    if len(set(sp.csgraph.connected_components(affinities > 0)[1])) > 1:
        return
    numbers = landmark_numbers(landmarks, 60)
    matrix = sp.csr_matrix(affinities)
    blocks = [direct_weights(matrix[part], numbers, part.start, n_landmarks) for part in (slice(0, 25), slice(25, 60))]
    found = completed_weights(sp.csr_matrix(sp.vstack(blocks)), lambda rows: matrix[rows])
    np.testing.assert_allclose(found.weights.toarray(), weights_by_hand(affinities, landmarks), atol=1e-12)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=1e-12)
    assert all((np.diff(row.indices) > 0).all() for row in found.weights)
    reached = (affinities[:, landmarks] > 0).any(axis=1)
    reached[landmarks] = True
    assert found.unreached == np.count_nonzero(~reached)


def test_a_component_without_a_landmark_is_told_of():
    affinities = sp.csr_matrix(scipy.linalg.block_diag(graph(20, 1, 19), graph(20, 2, 19)))
    with pytest.raises(DisconnectedGraphError, match="20 points are connected to no landmark, the first is row 20"):
        variational_eigenmaps(affinities, np.arange(10), 2)


def test_all_points_as_landmarks_give_the_exact_eigenmaps():
    affinities = sp.csr_matrix(graph(150, 3, 12))
    found, exact = variational_eigenmaps(affinities, np.arange(150), 3), exact_eigenmaps(affinities, 3)
    np.testing.assert_allclose(found.eigenvalues, exact.eigenvalues, atol=1e-10)
    assert subspace_angle(found.embedding, exact.embedding) < 1e-6


def test_it_minimizes_over_all_affinities():
    """The vectors are stationary for x^T L x / x^T D x within the span of Z, whose minimum bounds the exact one."""
    affinities = graph(200, 5, 12)
    landmarks = np.arange(0, 200, 4)
    found = variational_eigenmaps(sp.csr_matrix(affinities), landmarks, 4)
    z, degrees = weights_by_hand(affinities, landmarks), affinities.sum(axis=1)
    laplacian = np.diag(degrees) - affinities
    expected = scipy.linalg.eigh(z.T @ laplacian @ z, z.T @ (degrees[:, None] * z), eigvals_only=True)
    np.testing.assert_allclose(found.eigenvalues, expected[1:5], atol=1e-10)
    assert np.all(found.eigenvalues >= exact_eigenmaps(sp.csr_matrix(affinities), 4).eigenvalues - 1e-12)


def rayleigh_ritz(affinities, z, n_wanted):
    """Return the smallest stationary values of x^T L x / x^T D x over x in the span of Z, the trivial one left out."""
    degrees = affinities.sum(axis=1)
    laplacian = np.diag(degrees) - affinities
    return scipy.linalg.eigh(z.T @ laplacian @ z, z.T @ (degrees[:, None] * z), eigvals_only=True)[1 : n_wanted + 1]


@pytest.mark.parametrize("seed", range(4))
def test_it_differs_from_the_columns_of_w_plus_identity_only_in_how_landmarks_stand_for_themselves(seed):
    """With those columns a landmark is a mean of itself and others; the rest of Z is the same, and both bound alike."""
    affinities, landmarks = graph(200, seed, 30), np.arange(0, 200, 4)
    columns = (affinities + np.eye(200))[:, landmarks]
    z = columns / columns.sum(axis=1, keepdims=True)
    by_columns = rayleigh_ritz(affinities, z, 3)
    z[landmarks] = np.eye(len(landmarks))
    found = variational_eigenmaps(sp.csr_matrix(affinities), landmarks, 3)
    np.testing.assert_allclose(found.eigenvalues, rayleigh_ritz(affinities, z, 3), atol=1e-10)
    exact = exact_eigenmaps(sp.csr_matrix(affinities), 3).eigenvalues
    assert np.all(found.eigenvalues >= exact - 1e-12)
    assert np.all(by_columns >= exact - 1e-12)
    # Coordinates of the landmarks are those that the problem is solved for.
    weights = scipy.linalg.lstsq(z, found.embedding)[0]
    np.testing.assert_allclose(found.embedding[landmarks], weights, atol=1e-8)
