import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.errors import ConfigError, DataError, DisconnectedGraphError, ShortfallWarning
from scalemani.interfaces.functions.nonlinear import objective, repulsion

KERNELS = {
    "student": (lambda t: 1 / (1 + t), lambda t: -((1 + t) ** -2)),
    "gaussian": (lambda t: np.exp(-t), lambda t: -np.exp(-t)),
    "epanechnikov": (lambda t: np.maximum(0, 1 - t), lambda t: -1.0 * (t < 1)),
    2.0: (lambda t: (1 + t / 2) ** -2, lambda t: -((1 + t / 2) ** -3)),
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
    ("kernel", "method"),
    [("student", "grid"), ("student", "barnes-hut"), ("gaussian", "fgt"), ("gaussian", "grid"), (0.1, "grid"),
     (0.5, "grid"), (2.0, "grid"), (10.0, "grid"), (100.0, "grid")],
)  # fmt: skip
def test_approximate_repulsion_meets_its_tolerance(kernel, method):
    positions = np.random.default_rng(1).normal(size=(3000, 2)) * 5
    _, exact = repulsion(positions, kernel, "exact")
    _, gradient = repulsion(positions, kernel, method, tolerance=1e-3)
    assert np.linalg.norm(gradient - exact) <= 1e-3 * np.linalg.norm(exact)


def maps():
    """Return maps that no rule of a method was measured on, with few points each."""
    draws = np.random.default_rng(3)
    angles = np.linspace(0, 2 * np.pi, 2400, endpoint=False)
    axis = np.arange(50.0)
    return {
        "a dense cluster in a wide map": np.r_[draws.normal(0, 0.01, (2400, 2)), draws.uniform(-100, 100, (40, 2))],
        "isolated points": draws.uniform(-300, 300, (2400, 2)),
        "two scales": np.r_[draws.normal(0, 1e-4, (1200, 2)), draws.normal(0, 100, (1200, 2))],
        "duplicates": np.repeat(draws.normal(0, 20, (240, 2)), 10, axis=0),
        "a ring of equal distances": 50 * np.c_[np.cos(angles), np.sin(angles)],
        "a lattice": np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2),
        "a line in space": draws.uniform(0, 60, (2400, 1)) * np.ones(3),
        "one far outlier": np.r_[draws.normal(0, 5, (2400, 2)), [[1e4, 1e4]]],
    }


def own_errors(gradient, exact):
    """Return the relative error of all gradients, and that which nine in ten do not exceed, relative to their own."""
    errors, lengths = np.linalg.norm(gradient - exact, axis=1), np.linalg.norm(exact, axis=1)
    return np.linalg.norm(errors) / np.linalg.norm(lengths), np.quantile(errors / np.maximum(lengths, 1e-3), 0.9)


@pytest.mark.parametrize("name", maps())
@pytest.mark.parametrize("kernel", ["student", "gaussian"])
def test_a_tolerance_holds_for_the_whole_and_for_nine_in_ten_points_or_the_errors_are_told(kernel, name):
    positions = maps()[name]
    exact = dense_sums(positions, kernel)[1]
    for method in ("auto", "grid", "barnes-hut") + (("fgt",) if kernel == "gaussian" else ()):
        if method == "grid" and name == "one far outlier":  # for which there is no memory: an error says so
            continue
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            whole, single = own_errors(repulsion(positions, kernel, method, 1e-2)[1], exact)
        told = [warning for warning in given if issubclass(warning.category, ShortfallWarning)]
        assert told or (whole <= 1e-2 and single <= 1e-1), (method, whole, single)
        assert not told or method == "grid", method


def test_errors_that_a_method_cannot_make_small_enough_are_told_with_their_figures():
    positions = maps()["a ring of equal distances"]
    with pytest.warns(ShortfallWarning, match=r"requested were 3.1e-05 and 3.1e-04: take the method 'exact'") as given:
        gradient = repulsion(positions, "student", "barnes-hut", 3.1e-5)[1]
    whole, single = own_errors(gradient, dense_sums(positions, "student")[1])
    assert whole > 3.1e-5
    (told,) = given
    figures = [float(found) for found in re.findall(r"by (\d\.\de-\d+)", str(told.message))]
    assert figures == pytest.approx([whole, single], rel=0.5)  # of the 1,000 points that were looked at


def test_forces_that_leave_the_range_of_numbers_are_told():
    positions = 1e150 * np.random.default_rng(0).normal(size=(150, 2))
    with pytest.warns(ShortfallWarning, match="take the method 'exact'"):
        repulsion(positions, "student", "barnes-hut", 1e-3)
    assert np.isfinite(repulsion(positions, "student", "auto", 1e-3)[1]).all()


def test_an_objective_by_approximate_sums_has_the_gradient_that_its_tolerance_promises():
    draws = np.random.default_rng(3)
    positions = np.r_[draws.normal(0, 0.01, (3000, 2)), draws.uniform(-100, 100, (40, 2))]
    ring = sp.csr_matrix((np.full(3040, 1e-12), (np.arange(3040), np.roll(np.arange(3040), 1))), shape=(3040, 3040))
    for sums in ("auto", "grid"):
        settings = {"W": ring + ring.T, "method": "t-ee", "strength": 1.0}
        _, exact = objective(positions, **settings, repulsion="exact")
        _, gradient = objective(positions, **settings, repulsion=sums, tolerance=1e-3)
        assert own_errors(gradient, exact)[0] <= 1e-3


@pytest.mark.parametrize("tolerance", [0, 1, -1.0, True, "small", None, np.nan])
def test_tolerances_that_mean_nothing_are_refused(tolerance):
    with pytest.raises(ConfigError, match="tolerance must be a number above 0 and below 1"):
        repulsion(np.zeros((3, 2)), tolerance=tolerance)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"strength": 0.0}, ConfigError, "strength must be > 0, got 0.0"),
        ({"strength": np.inf}, ConfigError, "finite"),
        ({"strength": True}, ConfigError, "valid number"),
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


@pytest.mark.parametrize("dof", [0.5, 1, 2, 10])
@pytest.mark.parametrize("method", ["t-sne", "t-ee"])
def test_objectives_of_any_degrees_of_freedom_are_their_formula(method, dof):
    draws = np.random.default_rng(4)
    positions, weights = draws.normal(size=(40, 2)) * 3, draws.uniform(size=(40, 40)) ** 4
    weights += weights.T
    np.fill_diagonal(weights, 0.0)
    differences = positions[:, None] - positions
    base = 1 + (differences**2).sum(axis=2) / dof
    kernel = base**-dof - np.eye(40)
    p, strength = (weights / weights.sum(), 1.0) if method == "t-sne" else (weights, 0.2)
    push, total = (np.log(kernel.sum()), kernel.sum()) if method == "t-sne" else (kernel.sum(), 1.0)
    expected = (4 * (p - strength * kernel / total) / base)[:, :, None] * differences
    for sums in ("exact", "grid"):
        value, gradient = objective(positions, weights, method, strength, sums, 1e-5, dof=dof)
        assert value == pytest.approx(-(p * np.log(kernel + np.eye(40))).sum() + strength * push, rel=1e-6)
        np.testing.assert_allclose(
            gradient, expected.sum(axis=1), rtol=0, atol=1e-5 * np.abs(expected.sum(axis=1)).max()
        )
    if dof == 1:
        plain = objective(positions, weights, method, strength, "grid", 1e-5)
        assert plain[0] == value
        assert np.array_equal(plain[1], gradient)


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
