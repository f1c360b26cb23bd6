import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.graph.attraction import strongest_neighbors
from tests.kernels.oracles import rows_of, symmetric


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_points=st.integers(2, 60), kappa=st.integers(1, 10))
def test_the_strongest_neighbors_stay(seed, n_points, kappa):
    dense = symmetric(n_points, seed)
    left = strongest_neighbors(rows_of(dense), kappa)
    found = sp.csr_matrix((left.values, left.indices, left.indptr), shape=dense.shape).toarray()
    strong = np.zeros_like(dense, dtype=bool)
    for row in range(n_points):
        order = np.argsort(-dense[row])[:kappa]
        strong[row, order] = dense[row, order] > 0
    np.testing.assert_array_equal(found, np.where(strong | strong.T, dense, 0))


def test_edges_as_strong_as_the_weakest_that_stays_stay_too():
    dense = np.ones((5, 5)) - np.eye(5)
    left = strongest_neighbors(rows_of(dense), 2)
    np.testing.assert_array_equal(np.diff(left.indptr), 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_are_those_given_and_points_without_edges_have_none(dtype):
    dense = np.zeros((4, 4))
    dense[0, 1] = dense[1, 0] = 0.5
    left = strongest_neighbors(rows_of(dense, dtype), 1)
    assert (left.indptr.dtype, left.indices.dtype, left.values.dtype) == (np.int64, np.uint32, dtype)
    assert left.indptr.tolist() == [0, 1, 2, 2, 2]
    assert left.indices.tolist() == [1, 0]
