import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.manifold import SpectralEmbedding

from scalemani.errors import ConvergenceError, DisconnectedGraphError
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps


def affinities(points, others=None, sigma=0.7):
    w = np.exp(-(cdist(points, points if others is None else others) ** 2) / (2 * sigma**2))
    if others is None:
        np.fill_diagonal(w, 0)
    return sp.csr_matrix(np.where(w > 1e-4, w, 0))


def points(n=300, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.random(n) * 4
    return np.column_stack([np.cos(t), np.sin(t), rng.random(n)])


def test_both_exact_solvers_agree_and_equal_scikit_learn():
    w = affinities(points())
    factored = exact_eigenmaps(w, 3)
    products = exact_eigenmaps(w, 3, dense_up_to=100)
    np.testing.assert_allclose(products.eigenvalues, factored.eigenvalues, atol=1e-10)
    np.testing.assert_allclose(products.embedding, factored.embedding, atol=1e-7)
    assert ((products.eigenvalues >= 0) & (products.eigenvalues <= 2)).all()
    theirs = SpectralEmbedding(3, affinity="precomputed", random_state=0, eigen_solver="arpack").fit_transform(
        w.toarray()
    )
    np.testing.assert_allclose(np.abs(theirs), np.abs(factored.embedding), atol=1e-6)


def test_the_exact_solver_gives_up_where_eigenvalues_are_too_close_to_each_other():
    """On a chain of 4,000 points the second eigenvalue is a millionth from the first."""
    links = np.ones(3999)
    chain = sp.csr_matrix(sp.diags_array([links, links], offsets=[-1, 1]))
    with pytest.raises(ConvergenceError, match=r"of 3 eigenvectors in 5 restarts.*take embedding\.solver=refine"):
        exact_eigenmaps(chain, 2, most_restarts=5)


def test_landmarks_stand_in_for_the_whole():
    y = points(600)
    landmarks = y[:250]
    exact = exact_eigenmaps(affinities(y), 2)
    w = affinities(landmarks)
    nearest = np.argmin(cdist(y, landmarks), axis=1)
    z = sp.csr_matrix((np.ones(600), nearest, np.arange(601)), shape=(600, 250))
    assert subspace_angle(z @ exact_eigenmaps(w, 2).embedding, exact.embedding) < 0.5


def test_points_without_affinities():
    w = affinities(points(50)).tolil()
    w[7], w[:, 7] = 0, 0
    with pytest.raises(DisconnectedGraphError, match="row 7"):
        exact_eigenmaps(sp.csr_matrix(w), 2)
