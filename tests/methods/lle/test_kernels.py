import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.manifold._locally_linear import barycenter_weights

from scalemani.errors import RankError
from scalemani.methods.lle.kernels import (
    locally_linear_components,
    neighbor_weights,
    reflection,
)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("reg", [1e-3, 0.1])
def test_weights_of_neighbours_are_those_of_scikit_learn_where_points_have_copies_too(dtype, reg):
    random = np.random.default_rng(0)
    points = random.integers(0, 50, (40, 6)).astype(dtype)
    points[1] = points[0]
    points[10:15] = points[9]
    indices = np.stack([random.choice(np.delete(np.arange(40), row), 8, replace=False) for row in range(40)])
    indices[0, 0], indices[1, 0] = 1, 0
    indices[9, :5] = np.arange(10, 15)
    expected = barycenter_weights(points.astype(np.float64), points.astype(np.float64), indices, reg=reg)
    np.testing.assert_allclose(neighbor_weights(points, points, indices, reg), expected, rtol=1e-6, atol=1e-9)


def test_a_point_among_copies_alone_takes_the_same_of_each():
    points = np.ones((5, 3))
    found = neighbor_weights(points[:1], points, np.array([[1, 2, 3, 4]]), 1e-3)
    np.testing.assert_array_equal(found, np.full((1, 4), 0.25))


def problem(n_points=60, n_landmarks=20, pieces=1):
    """Return Z (N, L) and R (N, N) with rows that sum to one, neither leading from one piece to another."""
    random, blocks = np.random.default_rng(3), []
    for columns in (n_landmarks, n_points):
        rows = []
        for row in range(n_points):
            piece = row * pieces // n_points
            values = np.zeros(columns)
            own = np.arange(piece * columns // pieces, (piece + 1) * columns // pieces)
            chosen = random.choice(own[own != row] if columns == n_points else own, 4, replace=False)
            values[chosen] = random.normal(size=4) + 1
            rows.append(values / values.sum())
        blocks.append(sp.csr_matrix(np.stack(rows)))
    return blocks


def reduced(z, r):
    """Return Z^T M Z and Z^T Z."""
    left = z - r @ z
    return sp.csr_matrix(left.T @ left), sp.csr_matrix(z.T @ z)


def test_components_are_those_of_the_generalised_problem_without_the_constant_vector():
    z, r = problem()
    z = sp.csr_matrix(sp.hstack([z, sp.csr_matrix((60, 1))]))  # a landmark that no point uses
    found, _, n_zero = locally_linear_components(*reduced(z, r), 5)
    dense = z[:, :-1].toarray()
    kept = np.eye(60) - r.toarray()
    values, vectors = scipy.linalg.eigh(dense.T @ kept.T @ kept @ dense, dense.T @ dense)
    assert n_zero == 0
    np.testing.assert_allclose(found.eigenvalues, values[1:6], rtol=1e-9)
    embedding, expected = z @ found.vectors, dense @ vectors[:, 1:6]
    np.testing.assert_allclose(embedding, expected * np.sign((embedding * expected).sum(axis=0)), atol=1e-8)
    np.testing.assert_allclose(embedding.sum(axis=0), 0, atol=1e-10)
    assert not found.vectors[-1].any()


def test_pieces_are_counted_by_eigenvalues_that_are_zero():
    found, _, n_zero = locally_linear_components(*reduced(*problem(pieces=3)), 4)
    assert n_zero == 2
    assert (found.eigenvalues[2:] > 1e-6).all()


def test_more_components_than_landmarks_span_are_refused():
    errors, gram = reduced(*problem())
    assert locally_linear_components(errors, gram, 19)[0].vectors.shape == (20, 19)
    with pytest.raises(RankError, match="20 components were requested of landmarks whose weights span 20 dimensions"):
        locally_linear_components(errors, gram, 20)


@pytest.mark.parametrize("vector", [[3.0, 4.0, 0.0], [-1.0, 2.0, 2.0], [0.0, 0.0, 5.0], [2.0, 0.0, 0.0]])
def test_a_reflection_turns_its_vector_onto_the_first_axis(vector):
    mirror = reflection(np.array(vector))
    turned = vector - 2 * mirror * (mirror @ vector)
    np.testing.assert_allclose(np.abs(turned), [np.linalg.norm(vector), 0, 0], atol=1e-12)
