"""Bounds of Ritz pairs against exact eigenvectors, and problems of landmarks against SciPy's solver."""

import numpy as np
import pytest
import scipy.linalg

from scalemani.audit.bounds import Pairs, bounds_of, judge_pairs
from scalemani.audit.pencils import Pencil, check_leading, check_solution

N_KEPT = 3


def ritz_pairs(seed, noise):
    """Return a symmetric matrix, Ritz pairs of a subspace near its leading eigenvectors, and their residuals."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    exact = np.sort(rng.uniform(0, 1, 60))[::-1] + np.repeat([2.0, 0.5, 0.0], [N_KEPT, 3, 54])
    matrix = basis * exact @ basis.T
    span = np.linalg.qr(basis[:, : N_KEPT + 3] + noise * rng.normal(size=(60, N_KEPT + 3)))[0]
    values, turn = scipy.linalg.eigh(span.T @ matrix @ span)
    values, vectors = values[::-1], (span @ turn)[:, ::-1]
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    return exact, basis, values, vectors, residuals


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(5))
def test_angles_and_errors_of_ritz_pairs_lie_within_their_bounds(seed, noise):
    exact, basis, values, vectors, residuals = ritz_pairs(seed, noise)
    found = bounds_of(Pairs(values, residuals, N_KEPT, 1.0))
    angle = scipy.linalg.subspace_angles(vectors[:, :N_KEPT], basis[:, :N_KEPT]).max()
    assert 0 < angle <= found.angle < 30 * angle
    assert np.abs(values - exact[: len(values)])[:N_KEPT].max() <= found.error
    assert found.resolved == N_KEPT


def test_claims_that_are_a_third_or_three_times_what_residuals_allow_fail():
    _, _, values, _, residuals = ritz_pairs(0, 1e-3)
    pairs = Pairs(values, residuals, N_KEPT, float(values[0]))
    found = bounds_of(pairs)
    said = {
        "residual": residuals[:N_KEPT].max() / values[0],
        "eigengap": float(values[N_KEPT - 1] - values[N_KEPT]),
        "angle_bound": found.angle,
        "eigenvalue_error_bound": found.error * values[0],
        "resolved_components": N_KEPT,
        "resolved_angle_bound": found.resolved_angle,
    }
    assert [one.verdict for one in judge_pairs("a", said, pairs)] == ["holds"] * len(said)
    for name in said:
        for factor in (1 / 3, 3):
            wrong = said | {name: factor * said[name]}
            assert [one.claim for one in judge_pairs("a", wrong, pairs) if one.verdict == "fails"] == [name]


def problem(seed=0, dependent=False):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(40, 12))
    if dependent:
        columns[:, 5] = columns[:, 3] + columns[:, 4]
        columns[:, 7] = 0
    middle = rng.normal(size=(40, 40))
    return columns.T @ (middle + middle.T) @ columns, columns.T @ columns, columns


def test_leading_solutions_are_those_of_scipy():
    matrix, masses, _ = problem()
    values, vectors = scipy.linalg.eigh(matrix, masses)
    pencil = Pencil(matrix, masses)
    assert np.allclose(pencil.leading(4)[0], values[::-1][:4])
    assert np.isclose(pencil.least, values[0])
    leading, second = vectors[:, ::-1][:, :2], vectors[:, ::-1][:, 1:3]
    assert all(one.verdict == "holds" for one in check_solution("a", pencil, values[::-1][:2], leading))
    assert all(one.verdict == "holds" for one in check_solution("a", pencil, values[::-1][1:3], second))
    assert check_leading("a", pencil, values[::-1][:2]).verdict == "holds"
    assert check_leading("a", pencil, values[::-1][1:3]).verdict == "fails"
    turned = leading @ np.array([[0.999, -0.045], [0.045, 0.999]])
    assert any(one.verdict == "fails" for one in check_solution("a", pencil, values[::-1][:2], turned))


def test_columns_that_depend_on_others_count_once():
    matrix, masses, columns = problem(dependent=True)
    kept = [column for column in range(12) if column not in (5, 7)]
    expected = scipy.linalg.eigvalsh(matrix[np.ix_(kept, kept)], masses[np.ix_(kept, kept)])
    pencil = Pencil(matrix, masses)
    assert pencil.span.shape[1] == len(kept) == np.linalg.matrix_rank(columns)
    assert np.allclose(pencil.leading(12)[0], expected[::-1])


def test_smallest_solutions_leave_a_known_vector_out():
    rng = np.random.default_rng(1)
    factor, columns = rng.normal(size=(30, 12)), rng.normal(size=(40, 12))
    factor -= factor.mean(axis=1, keepdims=True)  # the constant vector has the eigenvalue zero
    matrix, masses = factor.T @ factor, columns.T @ columns
    expected = scipy.linalg.eigvalsh(matrix, masses)[1:4]
    pencil = Pencil(matrix, masses, np.ones(12))
    assert np.allclose(pencil.leading(3)[0], expected)
    assert check_leading("a", pencil, expected).verdict == "holds"
    assert check_leading("a", pencil, scipy.linalg.eigvalsh(matrix, masses)[2:5]).verdict == "fails"
