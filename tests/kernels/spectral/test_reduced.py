import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.spectral.reduced import (
    PackedSum,
    TreeSum,
    diagonal_product,
    lower_triangle,
    reduced_laplacian,
    symmetric_triangle,
    tree_sum,
    weighted_product,
    whole_of_triangle,
)


def problem(n_points=400, n_landmarks=30, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.array([rng.choice(np.delete(np.arange(n_points), i), 6, False) for i in range(n_points)], np.int32)
    values = rng.dirichlet(np.ones(6), n_points)
    p = sp.csr_matrix((values.ravel(), indices.ravel(), np.arange(0, 6 * n_points + 1, 6)), shape=(n_points, n_points))
    columns = np.array([rng.choice(n_landmarks, 4, False) for _ in range(n_points)])
    weights = rng.normal(size=(n_points, 4))
    weights /= weights.sum(axis=1, keepdims=True)
    z = sp.csr_matrix(
        (weights.ravel(), columns.ravel(), np.arange(0, 4 * n_points + 1, 4)), shape=(n_points, n_landmarks)
    )
    return indices, values, p, sp.csr_matrix((p + p.T) / 2), z


def in_blocks(w, z, degrees, size):
    rows = [slice(s, s + size) for s in range(0, z.shape[0], size)]
    return reduced_laplacian(
        [weighted_product(z[r], w[r], z) for r in rows], [diagonal_product(z[r], degrees[r]) for r in rows]
    )


@pytest.mark.parametrize("size", [400, 100, 33])
def test_equals_the_dense_product_for_any_blocks(size):
    _, _, _, w, z = problem()
    degrees = np.asarray(w.sum(axis=1)).ravel()
    reduced = in_blocks(w, z, degrees, size)
    dense = z.toarray()
    laplacian = dense.T @ (np.diag(degrees) - w.toarray()) @ dense
    np.testing.assert_allclose(reduced.laplacian.toarray(), laplacian, atol=1e-12 * abs(laplacian).max())
    mass = dense.T @ np.diag(degrees) @ dense
    np.testing.assert_allclose(reduced.mass.toarray(), mass, atol=1e-12 * abs(mass).max())


def test_symmetric_bit_for_bit_rows_vanish_and_semidefinite():
    _, _, _, w, z = problem(seed=1)
    reduced = in_blocks(w, z, np.asarray(w.sum(axis=1)).ravel(), 64)
    for matrix in reduced:
        assert (matrix != matrix.T).nnz == 0
    norm = np.linalg.norm(reduced.laplacian.data)
    assert abs(reduced.laplacian.sum(axis=1)).max() <= 1e-12 * norm
    assert np.linalg.eigvalsh(reduced.laplacian.toarray())[0] >= -1e-12 * norm
    assert np.linalg.eigvalsh(reduced.mass.toarray())[0] >= -1e-12 * np.linalg.norm(reduced.mass.data)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_tree_sum_streamed_is_tree_sum_of_all(count):
    rng = np.random.default_rng(3)
    parts = [sp.csr_matrix(rng.normal(size=(5, 5))) for _ in range(count)]
    streamed = TreeSum()
    for part in parts:
        streamed.add(part)
    np.testing.assert_array_equal(streamed.total().toarray(), tree_sum(parts).toarray())
    np.testing.assert_allclose(streamed.total().toarray(), sum(p.toarray() for p in parts), atol=1e-14)


def test_a_triangle_is_the_lower_half_of_the_symmetric_part_and_gives_it_back():
    matrix = sp.random_array((80, 80), density=0.2, rng=np.random.default_rng(5), format="csr")
    matrix = sp.csr_matrix(matrix)
    whole = (matrix.toarray() + matrix.toarray().T) / 2
    triangle = lower_triangle(symmetric_triangle(matrix))
    np.testing.assert_array_equal(triangle.toarray(), np.tril(whole))
    np.testing.assert_array_equal(whole_of_triangle(triangle).toarray(), whole)
    assert lower_triangle(triangle) is triangle
    np.testing.assert_array_equal(lower_triangle(sp.csr_matrix(whole)).toarray(), np.tril(whole))


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_a_dense_sum_is_that_of_its_parts(count, density):
    rng = np.random.default_rng(7)
    parts = [
        sp.csr_matrix(np.tril(rng.normal(size=(150, 150)) * (rng.random((150, 150)) < density))) for _ in range(count)
    ]
    packed, expected = PackedSum(150), sum(part.toarray() for part in parts)
    for part in parts:
        packed.add(part)
    total = packed.total()
    np.testing.assert_allclose(total.toarray(), expected, atol=1e-14)
    assert total.nnz == np.count_nonzero(expected)
    assert total.has_sorted_indices
    other = sp.csr_matrix(np.tril(rng.normal(size=(150, 150))))
    np.testing.assert_allclose(packed.subtracted_from(other).toarray(), other.toarray() - expected, atol=1e-14)


def test_float32_affinities_are_summed_in_float64():
    n = 20_000
    z = sp.csr_matrix(np.ones((n, 1)))
    w = sp.csr_matrix((np.full(n, 0.1, np.float32), np.zeros(n, int), np.arange(n + 1)), shape=(n, n))
    np.testing.assert_allclose(weighted_product(z, w, z).toarray(), n * np.float64(np.float32(0.1)), rtol=1e-14)
