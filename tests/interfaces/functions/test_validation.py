import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.errors import DataError, DisconnectedGraphError
from scalemani.interfaces.functions.spectral import entropic_affinities, solve_reduced
from scalemani.interfaces.functions.validation import check_affinities, checked_sparse


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ("words", "M must be a sparse or dense matrix"),
        (np.ones((2, 2), complex), "M must be a real, finite matrix .* got dtype complex128"),
        (np.ones((0, 3)), r"rows and columns, got dtype float64, shape \(0, 3\)"),
        ([[1.0, np.nan], [np.inf, 0.0]], "2 values that are not finite"),
    ],
)
def test_matrices_that_cannot_be_used(matrix, message):
    with pytest.raises(DataError, match=message):
        checked_sparse(matrix, "M")


@pytest.mark.parametrize(("dtype", "expected"), [("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("?", "f8")])
def test_matrices_are_made_csr_and_floating(dtype, expected):
    given = np.array([[0, 1], [1, 1]], dtype)
    for matrix in (given, sp.coo_matrix(given), given.tolist()):
        checked = checked_sparse(matrix, "M")
        assert sp.issparse(checked)
        assert checked.format == "csr"
        np.testing.assert_array_equal(checked.toarray(), given)
    assert checked_sparse(given, "M").dtype == expected


@pytest.mark.parametrize(
    ("entries", "error", "message"),
    [
        ([[0, 1, -1], [1, 0, 1], [-1, 1, 0]], DataError, "negative, its least entry is -1"),
        ([[0, 1, 1], [1, 0, 1], [1, 2, 0]], DataError, "symmetric, W - W.T reaches 1"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], DisconnectedGraphError, "1 points .* the first is row 2"),
    ],
)
def test_affinities_that_a_graph_cannot_have(entries, error, message):
    with pytest.raises(error, match=message):
        check_affinities(checked_sparse(entries, "W"))


def test_affinities_that_are_symmetric_but_for_rounding_pass():
    check_affinities(sp.csr_matrix([[0.0, 1.0], [1.0 + 1e-10, 0.0]]))
    with pytest.raises(DataError, match="symmetric"):
        check_affinities(sp.csr_matrix([[0.0, 1.0], [1.0 + 1e-8, 0.0]]))


@pytest.mark.parametrize("scale", [1e-200, 1e-152, 1e152, 1e200])
def test_distances_and_matrices_whose_squares_leave_float64_are_refused(scale):
    distances = np.sort(np.random.default_rng(0).uniform(1, 2, (20, 9)), axis=1)
    with pytest.raises(DataError, match=r"squares of distances leave float64: the largest is .*multiply distances"):
        entropic_affinities(scale * distances, perplexity=3)
    with pytest.raises(DataError, match="squares of distances leave float64"):
        entropic_affinities(np.linspace(1e149, 1e150, 9)[None], perplexity=3)
    a, b = scale * np.array([[1.0, -1.0], [-1.0, 1.0]]), scale * np.eye(2)
    with pytest.raises(DataError, match="squares of A leave float64"):
        solve_reduced(a, b, 1)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_scaled_distances_have_the_affinities_of_others(scale):
    distances = np.sort(np.random.default_rng(0).uniform(1, 2, (20, 9)), axis=1)
    expected = entropic_affinities(distances, perplexity=3).values
    np.testing.assert_allclose(entropic_affinities(scale * distances, perplexity=3).values, expected, rtol=1e-12)
    assert entropic_affinities(0 * distances, perplexity=3).saturated.all()
