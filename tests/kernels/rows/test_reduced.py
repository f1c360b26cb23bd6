"""Distances as arguments of kernels: what is compared for each, and what a reduced distance stands for."""

import pickle

import numba
import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.comparisons import COMPARISONS
from scalemani.kernels.rows.compressed import compressed_rows
from scalemani.kernels.rows.metrics import compared_rows
from scalemani.kernels.rows.reduced import (
    COORDINATES,
    SETS,
    compares_sets,
    distance_of,
    reduced_distance,
    reduced_of,
)


@compiled
def all_pairs(distance, queries, rows, n_queries, n_rows):
    found = np.empty((n_queries, n_rows))
    for i in range(n_queries):
        for j in range(n_rows):
            found[i, j] = distance_of(distance, reduced_distance(distance, queries, i, rows, j, np.inf))
    return found


@compiled
def kinds(distance, value):
    return compares_sets(distance), distance_of(distance, reduced_of(distance, value))


def points():
    return np.random.default_rng(3).random((30, 12))


def test_coordinates_dense_and_sparse_have_euclidean_distances():
    rows = points() * (points() > 0.3)
    expected = cdist(rows, rows)
    np.testing.assert_allclose(all_pairs(COORDINATES, rows, rows, 30, 30), expected, rtol=1e-12)
    thin = sparse.csr_matrix(rows)
    found = all_pairs(COORDINATES, compressed_rows(thin), compressed_rows(thin), 30, 30)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_sets_dense_and_sparse_have_roots_of_jaccard_distances():
    bits = points() > 0.6
    expected = np.sqrt(cdist(bits, bits, "jaccard"))
    words = compared_rows(bits.astype(np.float32), "jaccard")
    np.testing.assert_allclose(all_pairs(SETS, words, words, 30, 30), expected, rtol=1e-12)
    thin = compressed_rows(compared_rows(sparse.csr_matrix(bits.astype(np.float32)), "jaccard"))
    np.testing.assert_allclose(all_pairs(SETS, thin, thin, 30, 30), expected, rtol=1e-12)


def test_a_function_is_its_own_reduced_distance():
    rows = points()
    found = all_pairs(COMPARISONS["chebyshev"].distance, rows, rows, 30, 30)
    np.testing.assert_array_equal(found, cdist(rows, rows, "chebyshev"))


@pytest.mark.parametrize("distance", [COORDINATES, SETS, COMPARISONS["manhattan"].distance])
def test_a_distance_is_that_of_its_reduced_one_and_a_type_of_its_own(distance):
    assert kinds(distance, 3.0) == (distance == SETS, 3.0)
    assert distance.by_function == (distance not in (COORDINATES, SETS))
    kind = numba.typeof(distance)
    assert kind == pickle.loads(pickle.dumps(kind))
    others = {COORDINATES, SETS, COMPARISONS["manhattan"].distance} - {distance}
    assert kind not in [numba.typeof(other) for other in others]
