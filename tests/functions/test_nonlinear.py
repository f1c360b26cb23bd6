import numpy as np
import pytest

from scalemani.errors import ConfigError, DataError, DisconnectedGraphError
from scalemani.functions.nonlinear import objective, repulsion

KERNELS = {
    "student": (lambda t: 1 / (1 + t), lambda t: -((1 + t) ** -2)),
    "gaussian": (lambda t: np.exp(-t), lambda t: -np.exp(-t)),
    "epanechnikov": (lambda t: np.maximum(0, 1 - t), lambda t: -1.0 * (t < 1)),
}


def dense_sums(positions, kernel):
    value, slope = KERNELS[kernel]
    differences = positions[:, None] - positions[None]
    squares = (differences**2).sum(axis=2)
    others = ~np.eye(len(positions), dtype=bool)
    sums = (value(squares) * others).sum(axis=1)
    return sums, 2 * np.einsum("nm,nmd->nd", slope(squares) * others, differences)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_dims", [1, 2, 3, 5])
def test_exact_repulsion_is_the_sum_over_all_other_points(kernel, n_dims):
    positions = np.random.default_rng(0).normal(size=(80, n_dims))
    sums, gradient = repulsion(positions.tolist(), kernel, "exact")
    expected_sums, expected = dense_sums(positions, kernel)
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "method"), [("student", "grid"), ("student", "barnes-hut"), ("gaussian", "fgt"), ("gaussian", "grid")]
)
def test_approximate_repulsion_meets_its_tolerance(kernel, method):
    positions = np.random.default_rng(1).normal(size=(3000, 2)) * 5
    _, exact = repulsion(positions, kernel, "exact")
    _, gradient = repulsion(positions, kernel, method, tolerance=1e-3)
    assert np.linalg.norm(gradient - exact) <= 1e-3 * np.linalg.norm(exact)


@pytest.mark.parametrize("tolerance", [0, 1, -1.0, True, "small", None, np.nan])
def test_tolerances_that_mean_nothing_are_refused(tolerance):
    with pytest.raises(ConfigError, match="tolerance must be a number above 0 and below 1"):
        repulsion(np.zeros((3, 2)), tolerance=tolerance)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"strength": 0.0}, ConfigError, "strength must be a number above zero, got 0.0"),
        ({"strength": np.inf}, ConfigError, "above zero"),
        ({"strength": True}, ConfigError, "above zero"),
        ({"method": "t-snee"}, ConfigError, "t-sne"),
        ({"W": np.ones((2, 2)) - np.eye(2)}, DataError, r"N = 3 rows of the embedding, got \(2, 2\)"),
        ({"W": np.zeros((3, 3))}, DisconnectedGraphError, "3 points"),
        ({"embedding": [[np.nan], [0.0], [1.0]]}, DataError, "embedding"),
    ],
)
def test_objectives_that_cannot_be_evaluated(changed, error, message):
    given = {"embedding": [[0.0], [1.0], [3.0]], "W": np.ones((3, 3)) - np.eye(3), **changed}
    with pytest.raises(error, match=message):
        objective(**given)


def test_the_objective_is_attraction_and_strength_times_repulsion():
    positions = np.random.default_rng(2).normal(size=(30, 2))
    draws = np.random.default_rng(3).random((30, 30))
    weights = np.triu(draws, 1) + np.triu(draws, 1).T
    squares = ((positions[:, None] - positions[None]) ** 2).sum(axis=2)
    sums, slopes = dense_sums(positions, "gaussian")
    value, gradient = objective(positions, weights, "elastic-embedding", strength=2.5, repulsion="exact")
    assert value == pytest.approx((weights * squares).sum() + 2.5 * sums.sum(), rel=1e-12)
    pull = 4 * np.einsum("nm,nmd->nd", weights, positions[:, None] - positions[None])
    np.testing.assert_allclose(gradient, pull + 2.5 * 2 * slopes, atol=1e-11)
