"""Points with weights are the set in which each is repeated: affinities, W, eigenvectors, objectives, forces."""

import numpy as np
import pytest

from scalemani.config.objectives import OBJECTIVES
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.functions.nonlinear import objective, repulsion
from scalemani.interfaces.functions.spectral import entropic_affinities, symmetric_affinities
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps

PERPLEXITY = 25.0


class Repeated:
    """Some 60 points of weights 1 to 9, the same points each repeated as often, and complete graphs of both."""

    def __init__(self):
        random = np.random.default_rng(0)
        self.points = random.normal(size=(60, 3))
        self.weights = random.integers(1, 10, 60)
        self.rows = np.repeat(np.arange(60), self.weights)
        self.indices, self.distances = complete_graph(self.points)
        self.found = entropic_affinities(
            self.distances, PERPLEXITY, indices=self.indices, sample_weight=self.weights, tol=1e-13
        )
        self.W = symmetric_affinities(
            self.indices, self.found.values, sample_weight=self.weights, twins=self.found.twins
        )
        self.expanded_indices, distances = complete_graph(self.points[self.rows])
        self.expanded = entropic_affinities(distances, PERPLEXITY, tol=1e-13)
        self.expanded_W = symmetric_affinities(self.expanded_indices, self.expanded.values)

    def dense(self, indices, values, n_points):
        table = np.zeros((n_points, n_points))
        np.put_along_axis(table, indices, values, axis=1)
        return table

    def summed(self, of_copies):
        """Return the sums over the copies of each point of rows of the repeated set."""
        sums = np.zeros((len(self.weights), *of_copies.shape[1:]))
        np.add.at(sums, self.rows, of_copies)
        return sums


def complete_graph(points):
    distances = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    order = np.argsort(distances + np.where(np.eye(len(points), dtype=bool), -1.0, 0.0), axis=1, kind="stable")[:, 1:]
    return order, np.take_along_axis(distances, order, axis=1)


@pytest.fixture(scope="module")
def repeated():
    return Repeated()


def test_affinities_are_those_between_copies(repeated):
    own = repeated.dense(repeated.indices, repeated.found.values, 60)
    np.fill_diagonal(own, repeated.found.twins)
    between = own[np.ix_(repeated.rows, repeated.rows)]
    np.fill_diagonal(between, 0.0)
    n_copies = len(repeated.rows)
    expected = repeated.dense(repeated.expanded_indices, repeated.expanded.values, n_copies)
    np.testing.assert_allclose(between, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(repeated.found.beta[repeated.rows], repeated.expanded.beta, rtol=1e-11)


@pytest.mark.parametrize("solver", ["newton", "euler", "bisection", "brent", "ridder"])
@pytest.mark.parametrize("order", ["density", "bounds", "mst", "path"])
def test_every_solver_and_order_finds_the_same_affinities(repeated, solver, order):
    given = {"indices": repeated.indices, "sample_weight": repeated.weights, "tol": 1e-13}
    found = entropic_affinities(repeated.distances, PERPLEXITY, solver=solver, order=order, **given)
    np.testing.assert_allclose(found.values, repeated.found.values, rtol=0, atol=1e-12)


def test_points_with_many_copies_saturate_as_the_repeated_set_does(repeated):
    weights = repeated.weights * 4
    found = entropic_affinities(repeated.distances, PERPLEXITY, indices=repeated.indices, sample_weight=weights)
    assert np.array_equal(found.saturated, weights - 1 >= PERPLEXITY)
    assert 0 < found.saturated.sum() < 60
    np.testing.assert_allclose(found.twins[found.saturated], 1 / (weights[found.saturated] - 1))
    assert not found.values[found.saturated].any()


def test_the_perplexity_may_exceed_the_distinct_neighbours(repeated):
    found = entropic_affinities(
        repeated.distances, 150.0, indices=repeated.indices, sample_weight=repeated.weights * 1.0, tol=1e-13
    )
    shares, weights = found.values, repeated.weights
    entropies = -(weights[repeated.indices] * shares * np.log(shares)).sum(axis=1)
    entropies -= (weights - 1) * found.twins * np.log(np.where(found.twins > 0, found.twins, 1))
    np.testing.assert_allclose(np.exp(entropies), 150.0, rtol=1e-11)


def test_weights_of_one_change_nothing(repeated):
    given, ones = repeated.distances, np.ones(60)
    plain = entropic_affinities(given, 10.0)
    found = entropic_affinities(given, 10.0, indices=repeated.indices, sample_weight=ones, tol=1e-13)
    np.testing.assert_allclose(found.values, plain.values, rtol=0, atol=1e-10)
    assert not found.twins.any()
    W = symmetric_affinities(repeated.indices, plain.values, sample_weight=ones, twins=np.zeros(60))
    assert (symmetric_affinities(repeated.indices, plain.values) != W).nnz == 0


def test_weights_need_not_be_whole(repeated):
    weights = repeated.weights + np.linspace(0, 0.99, 60)
    found = entropic_affinities(repeated.distances, PERPLEXITY, indices=repeated.indices, sample_weight=weights)
    total = (weights[repeated.indices] * found.values).sum(axis=1) + (weights - 1) * found.twins
    np.testing.assert_allclose(total, 1.0, rtol=1e-13)
    assert np.abs(found.residuals).max() <= 1e-10


def test_w_sums_the_affinities_of_all_copies(repeated):
    of_rows = repeated.summed(repeated.expanded_W.toarray())
    expected = repeated.summed(of_rows.T)
    np.testing.assert_allclose(repeated.W.toarray(), expected, rtol=0, atol=1e-11)
    assert (repeated.W != repeated.W.T).nnz == 0


def test_w_follows_the_classes_of_all_copies(repeated):
    labels = np.random.default_rng(3).integers(-1, 3, 60)
    counts = {"sample_weight": repeated.weights, "twins": repeated.found.twins}
    W = symmetric_affinities(
        repeated.indices, repeated.found.values, **counts, labels=labels, target_weight=0.75
    ).toarray()
    expanded = symmetric_affinities(
        repeated.expanded_indices, repeated.expanded.values, labels=labels[repeated.rows], target_weight=0.75
    )
    np.testing.assert_allclose(W, repeated.summed(repeated.summed(expanded.toarray()).T), rtol=0, atol=1e-11)
    between = (labels[:, None] != labels) & (labels[:, None] >= 0) & (labels >= 0)
    np.testing.assert_allclose(W, repeated.W.toarray() * np.where(between, 0.25, 1.0), rtol=1e-15)


def test_labels_and_a_target_weight_go_together(repeated):
    given, labels = (repeated.indices, repeated.found.values), np.arange(60) % 2
    for asked in ({"labels": labels}, {"target_weight": 0.5}):
        with pytest.raises(ConfigError, match="labels and a target_weight above 0 go together"):
            symmetric_affinities(*given, **asked)
    for weight in (1.0, -0.5, "half", True, float("nan")):
        with pytest.raises(ConfigError, match="target_weight must be"):
            symmetric_affinities(*given, labels=labels, target_weight=weight)
    with pytest.raises(DataError, match="has 59 labels for 60 points"):
        symmetric_affinities(*given, labels=labels[1:], target_weight=0.5)


def test_the_spectral_embedding_is_that_of_the_repeated_set(repeated):
    found, expected = exact_eigenmaps(repeated.W, 3), exact_eigenmaps(repeated.expanded_W, 3)
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.embedding[repeated.rows], expected.embedding, rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", OBJECTIVES)
def test_objectives_and_their_gradients_are_those_of_the_repeated_set(repeated, method):
    positions = np.random.default_rng(1).normal(size=(60, 2))
    given = {"strength": 0.7, "repulsion": "exact"}
    value, gradient = objective(positions, repeated.W, method, sample_weight=repeated.weights, **given)
    expected, of_copies = objective(positions[repeated.rows], repeated.expanded_W, method, **given)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, repeated.summed(of_copies), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "method"),
    [
        ("student", "exact"),
        ("epanechnikov", "exact"),
        ("student", "grid"),
        ("gaussian", "grid"),
        ("student", "barnes-hut"),
        ("gaussian", "barnes-hut"),
        ("gaussian", "fgt"),
    ],
)
def test_every_method_sums_masses(kernel, method):
    random = np.random.default_rng(2)
    positions, weights = random.normal(size=(600, 2)) * 4, random.integers(1, 10, 600)
    rows = np.repeat(np.arange(600), weights)
    sums, gradient = repulsion(positions, kernel, method, tolerance=1e-3, sample_weight=weights)
    expected_sums, expected = repulsion(positions[rows], kernel, "exact")
    tolerance = 1e-12 if method == "exact" else 1e-3
    assert np.linalg.norm(gradient[rows] - expected) <= tolerance * np.linalg.norm(expected)
    assert np.linalg.norm(sums[rows] - expected_sums) <= tolerance * np.linalg.norm(expected_sums)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 0.0, 2.0], r"row\(s\) 1; the first is 0.0"),
        ([1.0, 2.0, -3.0], r"row\(s\) 2; the first is -3.0"),
        ([np.nan, 2.0, np.inf], r"row\(s\) 0, 2; the first is nan"),
        ([1.0, 0.5, 1.0], r"row\(s\) 1; the first is 0.5"),
        ([1.0, 2.0], r"one weight a point, \(3,\), got shape \(2,\)"),
        (["a", "b", "c"], "real numbers"),
    ],
)
def test_weights_that_count_nothing_are_refused_by_row(weights, message):
    indices, distances = complete_graph(np.arange(3.0)[:, None])
    with pytest.raises(DataError, match=message):
        entropic_affinities(distances, 1.5, indices=indices, sample_weight=weights)
    with pytest.raises(DataError, match=message):
        repulsion(np.zeros((3, 2)), sample_weight=weights)
    with pytest.raises(DataError, match=message):
        symmetric_affinities(indices, np.ones((3, 2)), sample_weight=weights, twins=np.zeros(3))
    with pytest.raises(DataError, match=message):
        objective(np.zeros((3, 2)), np.ones((3, 3)), sample_weight=weights)


def test_what_weights_need_beside_them_is_asked_for():
    indices, distances = complete_graph(np.arange(4.0)[:, None])
    with pytest.raises(ConfigError, match=r"sample_weight follows the graph: give indices=graph\.indices$"):
        entropic_affinities(distances, 1.5, sample_weight=np.ones(4))
    with pytest.raises(DataError, match=r"indices must be rows of points in \[0, 4\), got 9 in row 0"):
        entropic_affinities(distances, 1.5, indices=indices + 8, sample_weight=np.ones(4))
    with pytest.raises(ConfigError, match=r"perplexity must be below 6, the sum of the 3 smallest weights"):
        entropic_affinities(distances, 6.0, indices=indices, sample_weight=[1, 1, 1, 4])
    with pytest.raises(ConfigError, match="sample_weight and twins go together"):
        symmetric_affinities(indices, distances, sample_weight=np.ones(4))
    with pytest.raises(DataError, match=r"twins must be finite and not negative, got -1\.0 in row 2"):
        symmetric_affinities(indices, distances, sample_weight=np.ones(4), twins=[0.0, 0.0, -1.0, 0.0])
