"""Nonlinear embeddings: objectives against double sums, and maps that keep neighbours."""

import numpy as np
import pytest
import scipy.sparse as sp

import scalemani as sm

pytestmark = pytest.mark.filterwarnings("ignore:.*not converged:UserWarning")  # few iterations suffice for these


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, np.ndarray]:
    """A map of 40 points, and symmetric affinities between them."""
    rng = np.random.default_rng(0)
    affinities = rng.random((40, 40)) * (rng.random((40, 40)) < 0.3)
    affinities = affinities + affinities.T
    np.fill_diagonal(affinities, 0.0)
    return rng.normal(size=(40, 2)), affinities


def squared_distances(embedding):
    return ((embedding[:, None] - embedding[None]) ** 2).sum(axis=2)


def test_the_student_field_is_the_sum_over_all_pairs(small):
    total, gradient = sm.repulsion(small[0], "student", "exact")
    kernel = 1 / (1 + squared_distances(small[0]))
    np.fill_diagonal(kernel, 0.0)
    np.testing.assert_allclose(total, kernel.sum(axis=1), rtol=1e-10)
    step = 1e-6
    moved = small[0].copy()
    moved[3, 1] += step
    other = sm.repulsion(moved, "student", "exact")[0]
    assert (other[3] - total[3]) / step == pytest.approx(gradient[3, 1], rel=1e-3)


@pytest.mark.parametrize("method", ["barnes-hut", "grid", "auto"])
def test_approximate_fields_keep_the_tolerance(method):
    embedding = np.random.default_rng(1).normal(size=(3000, 2)) * 20
    exact = sm.repulsion(embedding, "student", "exact")[1]
    found = sm.repulsion(embedding, "student", method, 1e-3)[1]
    assert np.linalg.norm(found - exact) <= 1e-3 * np.linalg.norm(exact)


def test_the_elastic_embedding_objective_is_its_double_sum(small):
    value, gradient = sm.objective(small[0], sp.csr_matrix(small[1]), "elastic-embedding", 5.0, "exact")
    squared = squared_distances(small[0])
    repulsion = np.exp(-squared)
    np.fill_diagonal(repulsion, 0.0)
    assert value == pytest.approx((small[1] * squared).sum() + 5.0 * repulsion.sum(), rel=1e-6)
    assert gradient.shape == (40, 2)


@pytest.mark.parametrize("method", ["t-sne", "s-sne", "elastic-embedding"])
def test_gradients_are_finite_differences_of_the_objective(small, method):
    W = sp.csr_matrix(small[1] / small[1].sum())
    value, gradient = sm.objective(small[0], W, method, 1.0, "exact")
    for row, axis in ((0, 0), (17, 1)):
        moved = small[0].copy()
        moved[row, axis] += 1e-5
        other = sm.objective(moved, W, method, 1.0, "exact")[0]
        assert (other - value) / 1e-5 == pytest.approx(gradient[row, axis], rel=1e-2, abs=1e-6)


def test_minimize_goes_downhill_and_follows_the_start(small):
    W = sp.csr_matrix(small[1] / small[1].sum())
    found = sm.minimize(W, "elastic-embedding", init=small[0])
    assert found.objective <= sm.objective(small[0], W, "elastic-embedding", repulsion="exact")[0]
    assert found.embedding.shape == (40, 2)


@pytest.mark.parametrize("estimator", ["TSNE", "SymmetricSNE", "ElasticEmbedding"])
def test_maps_keep_neighbors_and_labels(digits, estimator):
    embedding = getattr(sm, estimator)(perplexity=15, max_iter=250).fit_transform(digits[0])
    assert embedding.shape == (800, 2)
    assert sm.measures.knn_accuracy(embedding, digits[1]).value > 0.85


def test_t_sne_is_as_good_as_that_of_scikit_learn(digits):
    from sklearn.manifold import TSNE, trustworthiness

    ours = sm.TSNE(perplexity=20, random_state=0).fit_transform(digits[0][:400])
    theirs = TSNE(perplexity=20, random_state=0).fit_transform(digits[0][:400])
    points = digits[0][:400]
    assert trustworthiness(points, ours) > trustworthiness(points, theirs) - 0.01


def test_callbacks_see_the_descent(digits):
    seen = []
    model = sm.TSNE(
        perplexity=15,
        max_iter=100,
        callbacks=lambda *state: seen.append((state[0], state[2].copy())),
        callbacks_every=50,
    )
    model.fit(digits[0][:300])
    assert [iteration for iteration, _ in seen] == [50, 100]
    np.testing.assert_allclose(seen[-1][1], model.embedding_, rtol=1e-6, atol=1e-9)


def test_weights_count_as_copies(digits):
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, 200)
    embedding = sm.TSNE(perplexity=10, max_iter=50).fit(digits[0][:200], sample_weight=weights).embedding_
    unweighted = sm.TSNE(perplexity=10, max_iter=50).fit(digits[0][:200]).embedding_
    assert embedding.shape == (200, 2)
    assert not np.allclose(embedding, unweighted)
