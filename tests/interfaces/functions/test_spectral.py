import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import cKDTree

from scalemani.errors import ConfigError, DataError, DisconnectedGraphError
from scalemani.interfaces.functions.spectral import reduce_laplacian, solve_reduced, symmetric_affinities
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps


def graph(n_points=500, seed=0, n_neighbors=8):
    rng = np.random.default_rng(seed)
    t = rng.random(n_points) * 4
    points = np.column_stack([np.cos(t), np.sin(t), rng.random(n_points)])
    indices = cKDTree(points).query(points, n_neighbors + 1)[1][:, 1:]
    return indices, rng.dirichlet(np.ones(n_neighbors), n_points)


def test_all_points_as_landmarks_equal_the_exact_solution():
    w = symmetric_affinities(*graph())
    values, vectors = solve_reduced(*reduce_laplacian(w, sp.eye_array(500, format="csr")), 3)
    exact = exact_eigenmaps(w, 3)
    np.testing.assert_allclose(values, exact.eigenvalues, atol=1e-10)
    assert subspace_angle(vectors, exact.embedding) < 1e-7


def test_reduced_eigenvalues_are_at_least_the_exact_ones():
    w = symmetric_affinities(*graph())
    rng = np.random.default_rng(1)
    z = rng.random((500, 40)) * (rng.random((500, 40)) < 0.15)
    z[np.arange(500), rng.integers(0, 40, 500)] += 1
    a, b = reduce_laplacian(w, sp.csr_matrix(z / z.sum(axis=1, keepdims=True)))
    assert (solve_reduced(a, b, 5)[0] >= exact_eigenmaps(w, 5).eigenvalues - 1e-10).all()
    assert (a != a.T).nnz == 0


@pytest.mark.parametrize(
    ("indices", "values", "message"),
    [
        ([[1], [0]], [[1.0]], r"values must be real numbers \(2, 1\)"),
        ([[1], [2]], [[1.0], [1.0]], r"\[0, 2\), got 2 in row 1"),
        ([[1], [-1]], [[1.0], [1.0]], "got -1"),
        ([[0], [0]], [[1.0], [1.0]], "list themselves"),
        ([[1], [0]], [[1.0], [np.nan]], "finite"),
        ([[1], [0]], [[1.0], [-1.0]], "not negative"),
        ([[1.0], [0.0]], [[1.0], [1.0]], "integers"),
        (np.empty((0, 3), int), np.empty((0, 3)), "indices must be"),
    ],
)
def test_graphs_that_cannot_be_used(indices, values, message):
    with pytest.raises(DataError, match=message):
        symmetric_affinities(indices, values)


def test_matrices_that_cannot_be_used():
    w = symmetric_affinities(*graph(60))
    eye = sp.eye_array(60, format="csr")
    with pytest.raises(DataError, match="N = 50 rows of Z, got"):
        reduce_laplacian(w, sp.eye_array(50, format="csr"))
    with pytest.raises(DataError, match="sum to one"):
        reduce_laplacian(w, 2 * eye)
    with pytest.raises(DataError, match="symmetric"):
        reduce_laplacian(sp.triu(w), eye)
    with pytest.raises(DataError, match="negative"):
        reduce_laplacian(-w, eye)
    with pytest.raises(DataError, match="real"):
        reduce_laplacian(w.astype(complex), eye)
    isolated = w.tolil()
    isolated[3], isolated[:, 3] = 0, 0
    with pytest.raises(DisconnectedGraphError, match="row 3"):
        reduce_laplacian(sp.csr_matrix(isolated), eye)
    a, b = reduce_laplacian(w, eye)
    for n_components in (0, 60, 2.5):
        with pytest.raises(ConfigError, match="n_components"):
            solve_reduced(a, b, n_components)
    with pytest.raises(DataError, match="both be"):
        solve_reduced(a, b[:10, :10])


def test_components_are_reported_not_embedded():
    w = sp.csr_matrix(sp.block_diag([symmetric_affinities(*graph(60)), symmetric_affinities(*graph(40))]))
    with pytest.raises(DisconnectedGraphError, match="2 eigenvalues are zero"):
        solve_reduced(*reduce_laplacian(w, sp.eye_array(100, format="csr")), 2)
