"""Spectral embeddings and clusters against dense eigenproblems and scikit-learn."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap
from sklearn.metrics import adjusted_rand_score

import scalemani as sm


def smallest(affinities: np.ndarray, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest nontrivial solutions of L y = lambda D y."""
    degrees = np.diag(affinities.sum(axis=1))
    values, vectors = scipy.linalg.eigh(degrees - affinities, degrees)
    return values[1 : n_components + 1], vectors[:, 1 : n_components + 1]


def sine(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.sin(scipy.linalg.subspace_angles(one, other).max()))


def test_laplacian_eigenmaps_solve_the_dense_eigenproblem(dense_affinities):
    model = sm.LaplacianEigenmaps(3, affinity="precomputed", residual=1e-8).fit(sp.csr_matrix(dense_affinities))
    values, vectors = smallest(dense_affinities, 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-5)
    assert sine(model.embedding_, vectors) < 1e-4


@pytest.mark.filterwarnings("ignore:.*apart:UserWarning")  # of landmarks alone the second pair is close
def test_landmarks_give_a_subspace_close_to_the_refined_one(digits):
    exact = sm.LaplacianEigenmaps(2, n_neighbors=15, perplexity=5).fit(digits[0])
    landmarks = sm.LaplacianEigenmaps(2, n_neighbors=15, perplexity=5, solver="lll", n_landmarks=400).fit(digits[0])
    refined = sm.LaplacianEigenmaps(2, n_neighbors=15, perplexity=5, solver="lll+refine", n_landmarks=400)
    refined.fit(digits[0])
    assert sm.measures.subspace_angle(refined.embedding_, exact.embedding_) < 0.02
    assert landmarks.eigenvalues_.min() >= exact.eigenvalues_.min() * (1 - 1e-6)


def test_diffusion_maps_scale_eigenvectors_by_powers_of_their_eigenvalues(dense_affinities):
    model = sm.DiffusionMaps(2, alpha=0.0, time=3, affinity="precomputed", residual=1e-8)
    model.fit(sp.csr_matrix(dense_affinities))
    values, vectors = smallest(dense_affinities, 2)
    expected = vectors * (1 - values) ** 3
    ratio = np.linalg.norm(model.embedding_, axis=0) / np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(ratio / ratio[0], 1.0, rtol=1e-3)


def test_spectral_clustering_finds_separate_groups():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 100)
    points = rng.normal(size=(400, 5)) + 4 * rng.normal(size=(4, 5))[truth]
    labels = sm.SpectralClustering(4, n_neighbors=15).fit(points).labels_
    assert adjusted_rand_score(truth, labels) > 0.95


def test_clusters_follow_from_what_digits_show(digits):
    labels = sm.SpectralClustering(10, n_neighbors=15).fit_predict(digits[0])
    assert sm.measures.normalized_mutual_information(labels, digits[1]) > 0.6


def test_principal_components_of_all_landmarks_are_those_of_scikit_learn(digits):
    points = digits[0][:300].astype(np.float64)
    found = sm.LandmarkPCA(2, n_landmarks=300).fit(points).embedding_
    assert sine(found, PCA(2).fit_transform(points)) < 1e-6


def test_isomap_of_all_landmarks_is_that_of_scikit_learn(surface):
    found = sm.LandmarkIsomap(2, n_landmarks=600, n_neighbors=10).fit(surface[0]).embedding_
    expected = Isomap(n_neighbors=10, n_components=2).fit_transform(surface[0])
    assert sm.measures.procrustes_error(found, expected) < 0.02


@pytest.mark.parametrize("estimator", ["LandmarkLDA", "LandmarkKernelLDA"])
def test_discriminants_separate_what_labels_name(digits, estimator):
    model = getattr(sm, estimator)(2, n_landmarks=200).fit(digits[0], digits[1] % 3)
    accuracy = sm.measures.knn_accuracy(model.embedding_, digits[1] % 3, 5)
    assert accuracy.value > 0.8


@pytest.mark.parametrize("name", ["LandmarkKernelPCA", "LandmarkLLE"])
def test_other_methods_with_landmarks_embed_all_rows(digits, name):
    embedding = getattr(sm, name)(2, n_landmarks=150).fit_transform(digits[0])
    assert embedding.shape == (800, 2)
    assert np.isfinite(embedding).all()
    assert np.linalg.matrix_rank(embedding - embedding.mean(axis=0)) == 2


def test_pieces_are_connected_with_a_warning_or_refused(digits):
    apart = np.concatenate([digits[0][:200], digits[0][200:400] + 1e4])
    with pytest.warns(UserWarning, match=r"component|piece|connect"):
        sm.LaplacianEigenmaps(2, n_neighbors=10).fit(apart)
    with pytest.raises(ValueError, match=r"component|piece|connect"):
        sm.LaplacianEigenmaps(2, n_neighbors=10, disconnected="error").fit(apart)
