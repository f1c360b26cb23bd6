"""The attractive half of the objective, its solver, and what they are made of, against dense sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.descents.directions import conjugate_gradients, shifted_laplacian, spectral_operator
from scalemani.kernels.arrays.coordinates import dot
from scalemani.kernels.descent import Motion, PairCurvature, momentum_step
from scalemani.kernels.graph.attraction import attraction_at, attraction_energy, attraction_gradient
from scalemani.kernels.machine.vector_math import log_positive
from tests.kernels.oracles import rows_of, symmetric


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_points=st.integers(2, 700),
    n_dims=st.integers(1, 4),
    kernel=st.sampled_from(["quadratic", "student"]),
    size=st.sampled_from([1e-6, 1.0, 1e4]),
)
def test_energy_and_gradient_are_the_sums(seed, n_points, n_dims, kernel, size):
    dense = symmetric(n_points, seed, 0.1)
    positions = size * np.random.default_rng(seed).normal(size=(n_points, n_dims))
    squares = ((positions[:, None] - positions[None]) ** 2).sum(axis=2)
    rows = rows_of(dense)
    energy = (dense * (squares if kernel == "quadratic" else np.log1p(squares))).sum()
    assert attraction_energy(rows, positions, kernel) == pytest.approx(energy, rel=1e-9, abs=1e-12)
    pulls = dense if kernel == "quadratic" else dense / (1 + squares)
    gradient = 4 * np.einsum("nm,nmd->nd", pulls, positions[:, None] - positions[None])
    found = attraction_gradient(rows, positions, kernel, np.empty_like(positions))
    np.testing.assert_allclose(found, gradient, atol=1e-11 * max(np.abs(gradient).max(), 1e-300))


@pytest.mark.parametrize(("student", "dof", "n_dims"), [(False, 1.0, 2), (True, 1.0, 3), (True, 0.5, 2)])
def test_single_points_have_the_sums_of_their_lists(student, dof, n_dims):
    draws = np.random.default_rng(1)
    sources, places = draws.normal(size=(50, n_dims)), 3.0 * draws.normal(size=(4, n_dims))
    neighbors, affinities, rows = draws.integers(50, size=(9, 7)), draws.random((9, 7)), np.array([8, 0, 3, 3])
    apart = places[:, np.newaxis] - sources[neighbors[rows]]
    squares, p = (apart**2).sum(axis=2), affinities[rows]
    pulled = p / (1 + squares / dof) if student else p
    csr = (np.arange(0, 64, 7), neighbors.ravel(), affinities.ravel())
    found = attraction_at(places, sources, rows, csr, student, dof)
    expected = (p * (dof * np.log1p(squares / dof) if student else squares)).sum(axis=1)
    np.testing.assert_allclose(found[0], expected, rtol=1e-13)
    np.testing.assert_allclose(found[1], 2 * np.einsum("mk,mkd->md", pulled, apart), rtol=1e-12)
    np.testing.assert_allclose(found[2], 2 * pulled.sum(axis=1), rtol=1e-13)


def test_a_row_longer_than_is_held_at_a_time():
    dense = np.zeros((1500, 1500))
    dense[0, 1:], dense[1:, 0] = 1.0, 1.0
    positions = np.random.default_rng(0).normal(size=(1500, 2))
    squares = ((positions - positions[0]) ** 2).sum(axis=1)
    assert attraction_energy(rows_of(dense), positions, "student") == pytest.approx(2 * np.log1p(squares).sum())


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-300, 1e300))
def test_logarithms(x):
    assert log_positive(x) == pytest.approx(np.log(x), rel=1e-15, abs=4e-16)


@pytest.mark.parametrize("factor", [1.0, 12.0])
def test_the_spectral_direction_solves_its_system(factor):
    dense = symmetric(300, 1, 0.05)
    gradient = np.random.default_rng(2).normal(size=(300, 2))
    gradient -= gradient.mean(axis=0)
    laplacian = shifted_laplacian(rows_of(dense), 300, factor)
    matrix = np.diag(laplacian.diagonal) - 4 * factor * dense
    np.testing.assert_allclose(laplacian.product(gradient), matrix @ gradient, atol=1e-10)
    solved = spectral_operator(rows_of(dense), 300, factor)(gradient)
    np.testing.assert_allclose(matrix @ solved, gradient, atol=1e-6)
    iterated = conjugate_gradients(laplacian.product, gradient, laplacian.diagonal[:, None], 1e-8, 500)
    np.testing.assert_allclose(matrix @ iterated, gradient, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), most_steps=st.integers(1, 12))
def test_a_truncated_solution_descends(seed, most_steps):
    gradient = np.random.default_rng(seed).normal(size=(100, 2))
    laplacian = shifted_laplacian(rows_of(symmetric(100, seed, 0.05)), 7, 1.0)
    found = conjugate_gradients(laplacian.product, gradient, laplacian.diagonal[:, None], 1e-12, most_steps)
    assert dot(found, gradient) > 0


@pytest.mark.parametrize("combine", ["sum", "log-sum", "sum-log"])
@pytest.mark.parametrize("kernel", ["gaussian", "student", "epanechnikov"])
def test_curvature_is_the_positive_part_of_the_hessian(kernel, combine):
    positions = 0.3 * np.random.default_rng(3).normal(size=(25, 2))
    vectors = np.random.default_rng(4).normal(size=positions.shape)
    curvature = PairCurvature(kernel, combine, 1.7)
    weights = curvature.weights(positions)
    differences = positions[:, None] - positions[None]
    squares = (differences**2).sum(axis=2)
    values = {"gaussian": np.exp(-squares), "student": 1 / (1 + squares), "epanechnikov": np.maximum(1 - squares, 0)}
    slopes = {"gaussian": values["gaussian"], "student": values["student"] ** 2, "epanechnikov": 1.0 * (squares < 1)}
    seconds = {"gaussian": values["gaussian"], "student": 2 * values["student"] ** 3, "epanechnikov": 0 * squares}
    sums = values[kernel].sum(axis=1) - 1
    expected = {"sum": 1.7, "log-sum": 1.7 / sums.sum(), "sum-log": 1.7 / sums}[combine]
    np.testing.assert_allclose(weights, np.broadcast_to(expected, 25), rtol=1e-12)
    pairs = 0.5 * (weights[:, None] + weights[None]) * seconds[kernel]
    products = 8 * np.einsum("nm,nmd,nmd->nd", pairs, differences**2, vectors[:, None] - vectors[None])
    np.testing.assert_allclose(curvature.product(positions, weights, vectors), products, atol=1e-12)
    diagonal, degrees = curvature.diagonals(positions, weights)
    np.testing.assert_allclose(diagonal, 8 * np.einsum("nm,nmd->nd", pairs, differences**2), atol=1e-12)
    pushes = 0.5 * (weights[:, None] + weights[None]) * slopes[kernel] * ~np.eye(25, dtype=bool)
    np.testing.assert_allclose(degrees, 4 * pushes.sum(axis=1), rtol=1e-12)


def test_momentum_follows_the_rule_of_gains():
    gradient = np.array([[1.0, -1.0], [1e6, 1e6]])
    before = Motion(np.array([[-1.0, -1.0], [0.0, 0.0]]), np.array([[1.0, 0.005], [1.0, 1.0]]))
    velocity, gains = momentum_step(gradient, before, 0.1, 0.8, 5.0)
    np.testing.assert_array_equal(before.velocity, [[-1.0, -1.0], [0.0, 0.0]])
    np.testing.assert_allclose(gains[0], [1.2, 0.01])  # pushed on: more; pushed back: less, but not below the least
    np.testing.assert_allclose(velocity[0], [-0.8 - 0.12, -0.8 + 0.001])
    assert np.linalg.norm(velocity[1]) == pytest.approx(5.0)
