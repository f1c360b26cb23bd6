"""Attraction over positions in whole numbers, beside sums in float64: how far apart they are, and where not at all."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.arrays.workspace import Workspace, threads
from scalemani.kernels.graph.attraction import AffinityRows, attraction_gradient, rounded_attraction_gradient


def affinities(n_points, draws, dtype=np.float32):
    matrix = sp.random(n_points, n_points, min(1.0, 60 / n_points), format="csr", random_state=draws, dtype=np.float64)
    matrix = sp.csr_matrix(matrix + matrix.T)
    return AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data.astype(dtype))


def of_terms(rows, positions):
    """Return what a row's terms have as lengths, added up: what cancels in the gradient does not here."""
    matrix = sp.csr_matrix((rows.values.astype(float), rows.indices, rows.indptr)).tocoo()
    differences = positions[matrix.row] - positions[matrix.col]
    lengths = matrix.data / (1 + (differences**2).sum(axis=1)) * np.abs(differences).max(axis=1)
    return 4 * np.bincount(matrix.row, lengths, minlength=len(positions))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_points=st.integers(2, 900),
    size=st.sampled_from([1e-140, 1e-30, 1e-4, 1.0, 50.0, 1000.0]),
    shift=st.sampled_from([0.0, 1e3]),
)
def test_the_gradient_is_that_of_float64_but_for_rounding(seed, n_points, size, shift):
    draws = np.random.default_rng(seed)
    rows, positions = affinities(n_points, draws), size * (draws.normal(size=(n_points, 2)) + shift)
    positions[: n_points // 2] = positions[0] + 1e-3 * (positions[: n_points // 2] - positions[0])  # a narrow cluster
    exact = attraction_gradient(rows, positions, "student", np.empty_like(positions))
    found = rounded_attraction_gradient(rows, positions, "student", np.full_like(positions, np.nan))
    steps = (
        np.ptp(positions, axis=0).max()
        / 2**31
        * 8
        * np.add.reduceat(np.append(rows.values, 0.0), rows.indptr[:-1])
        * (np.diff(rows.indptr) > 0)
    )
    allowed = 1e-5 * of_terms(rows, positions) + steps
    assert (np.abs(found - exact).max(axis=1) <= allowed).all()
    assert n_points < 50 or not np.array_equal(found, exact)


@pytest.mark.parametrize(
    ("kernel", "n_dims", "size", "dtype"),
    [
        ("quadratic", 2, 1.0, np.float32),
        ("student", 3, 1.0, np.float32),
        ("student", 1, 1.0, np.float32),
        ("student", 2, 1e5, np.float32),
        ("student", 2, 1e-160, np.float32),
        ("student", 2, 1.0, np.float64),
    ],
)
def test_what_has_no_rounded_form_is_summed_in_float64(kernel, n_dims, size, dtype):
    draws = np.random.default_rng(3)
    rows, positions = affinities(400, draws, dtype), size * draws.normal(size=(400, n_dims))
    exact = attraction_gradient(rows, positions, kernel, np.empty_like(positions))
    np.testing.assert_array_equal(rounded_attraction_gradient(rows, positions, kernel, np.empty_like(positions)), exact)


def test_points_at_one_place_are_not_drawn():
    rows, positions = affinities(300, np.random.default_rng(0)), np.full((300, 2), 7.0)
    assert not rounded_attraction_gradient(rows, positions, "student", np.ones_like(positions)).any()


def test_no_points_have_no_gradient():
    rows = AffinityRows(np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32))
    assert rounded_attraction_gradient(rows, np.empty((0, 2)), "student", np.empty((0, 2))).shape == (0, 2)


def test_the_bits_do_not_depend_on_threads():
    draws = np.random.default_rng(1)
    rows, positions = affinities(5000, draws), 20 * draws.normal(size=(5000, 2))
    alone = rounded_attraction_gradient(rows, positions, "student", np.empty_like(positions))
    with threads(3) as some:
        found = rounded_attraction_gradient(rows, positions, "student", np.empty_like(positions), Workspace(some.over))
    np.testing.assert_array_equal(found, alone)
