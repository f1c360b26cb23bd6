import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors
from scalemani.kernels.neighbors.sparse_scan import sparse_neighbors
from scalemani.kernels.rows.reduced import COORDINATES

K = 6


def counts(seed, n, dtype=np.uint8):
    """Counts of 500 words, some of them in most rows, with repeated and empty rows among them."""
    rng = np.random.default_rng(seed)
    table = rng.poisson(rng.gamma(0.05, 1.0, 500), (n, 500))
    table[n // 2] = table[3]
    table[5] = 0
    return sparse.csr_matrix(table.astype(dtype))


def brute_force(queries, rows, labels):
    away = cdist(queries.toarray().astype(float), rows.toarray().astype(float))
    away[labels[:, None] == np.arange(rows.shape[0])] = np.inf
    order = np.argsort(away, axis=1, kind="stable")[:, :K]
    return order, np.take_along_axis(away, order, axis=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_neighbors_are_those_of_brute_force_for_any_cut_of_the_rows(dtype):
    rows, labels = counts(1, 333, dtype), np.arange(333)
    indices, distances = brute_force(rows, rows, labels)
    found = no_neighbors(333, K)
    for start in range(0, 333, 150):
        found = sparse_neighbors(
            COORDINATES, rows, labels, rows[start : start + 150], start, found, np.full(333, np.inf)
        )
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-14)


def test_queries_that_are_no_rows_find_the_rows_they_equal():
    rows = counts(2, 200)
    found = sparse_neighbors(COORDINATES, rows[:9], np.full(9, -1), rows, 0, no_neighbors(9, K), np.full(9, np.inf))
    indices, distances = brute_force(rows[:9], rows, np.full(9, -1))
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.distances, distances)


def test_lists_are_complete_up_to_the_limit_and_known_neighbors_stay():
    rows, labels = counts(3, 250), np.arange(250)
    _, distances = brute_force(rows, rows, labels)
    limits = distances[:, 2]
    found = sparse_neighbors(COORDINATES, rows, labels, rows, 0, no_neighbors(250, K), limits)
    near = distances <= limits[:, None]
    np.testing.assert_array_equal(found.distances[near], distances[near])
    known = Neighbors(np.full((250, 1), 999, np.int32), np.zeros((250, 1), np.float32))
    assert (
        sparse_neighbors(COORDINATES, rows, labels, rows[6:100], 6, known, np.full(250, np.inf)).distances == 0
    ).all()


def test_values_whose_products_overflow_in_float32_are_compared_all_the_same():
    table = sparse.csr_matrix(np.diag(np.geomspace(1e25, 1e30, 80)))
    labels = np.arange(80)
    found = sparse_neighbors(COORDINATES, table, labels, table, 0, no_neighbors(80, K), np.full(80, np.inf))
    indices, distances = brute_force(table, table, labels)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-14)
