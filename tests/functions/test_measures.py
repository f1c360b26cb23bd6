"""`scalemani.measures`: values by hand, error bars against repeated samples, and what is refused."""

import doctest

import numpy as np
import pytest
import sklearn.manifold
import sklearn.metrics
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

import scalemani as sm
from scalemani.errors import ConfigError, DataError

N = 900


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(N, 6))


@pytest.fixture(scope="module")
def embedding(points):
    return points[:, :2] + 0.2 * np.random.default_rng(1).normal(size=(N, 2))


@pytest.fixture(scope="module")
def labels(points):
    return np.array(["left", "right"])[(points[:, 0] > 0).astype(int)]


def test_the_examples_run():
    assert doctest.testmod(sm.measures, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
    assert sorted(sm.measures.__all__) == sm.measures.__all__


def test_all_points_give_what_peers_give_and_no_error_bar(points, embedding, labels):
    trust = sm.measures.trustworthiness(points, embedding, 10, n_sampled=None)
    assert trust.value == pytest.approx(sklearn.manifold.trustworthiness(points, embedding, n_neighbors=10), rel=1e-10)
    assert (trust.error, trust.n_sampled) == (0.0, N)
    accuracy = sm.measures.knn_accuracy(embedding, labels, 1, n_sampled=None)
    others = [KNeighborsClassifier(1).fit(np.delete(embedding, i, 0), np.delete(labels, i)) for i in range(0, N, 45)]
    hits = [one.predict(embedding[i : i + 1])[0] == labels[i] for i, one in zip(range(0, N, 45), others, strict=True)]
    some = sm.measures.knn_accuracy(embedding[::1], labels, n_sampled=N + 5)
    assert accuracy == some
    assert accuracy.value == pytest.approx(np.mean(hits), abs=0.2)


def test_recall_is_the_share_of_true_neighbours(points):
    true = NearestNeighbors(n_neighbors=9).fit(points).kneighbors(points, return_distance=False)[:, 1:]
    assert sm.measures.recall(true, points, n_sampled=None) == (1.0, 0.0, N)
    worse, draws = true.copy(), np.random.default_rng(2)
    spoilt = draws.choice(N, 300, replace=False)
    far = np.argmax(((points[spoilt][:, None] - points) ** 2).sum(axis=2), axis=1)
    worse[spoilt, 0] = far
    assert sm.measures.recall(worse, points, n_sampled=None).value == pytest.approx(1 - 300 / (8 * N))
    graph = sm.knn_graph(points, 8, method="exact")
    assert sm.measures.recall(graph.indices, points.astype(np.float32)).value == 1.0


def test_preservation_of_the_data_by_itself_is_one_and_by_noise_is_chance(points):
    assert sm.measures.neighbor_preservation(points, 3 * points, 12).value == 1.0
    noise = np.random.default_rng(3).normal(size=(N, 2))
    assert sm.measures.neighbor_preservation(points, noise, 12, n_sampled=None).value == pytest.approx(
        12 / (N - 1), abs=0.01
    )


@pytest.mark.parametrize(
    "measured",
    [
        lambda points, embedding, labels, **how: sm.measures.trustworthiness(points, embedding, **how),
        lambda points, embedding, labels, **how: sm.measures.neighbor_preservation(points, embedding, **how),
        lambda points, embedding, labels, **how: sm.measures.knn_accuracy(embedding, labels, **how),
    ],
)
def test_error_bars_are_the_spread_of_samples(measured, points, embedding, labels):
    whole = measured(points, embedding, labels, n_sampled=None).value
    drawn = [measured(points, embedding, labels, n_sampled=150, random_state=seed) for seed in range(60)]
    spread = np.std([one.value for one in drawn])
    assert np.mean([one.error for one in drawn]) == pytest.approx(spread, rel=0.35)
    away = np.abs([one.value - whole for one in drawn]) / [one.error for one in drawn]
    assert np.mean(away < 2) > 0.85
    assert {one.n_sampled for one in drawn} == {150}
    again = measured(points, embedding, labels, n_sampled=150, random_state=7)
    assert again == drawn[7]


def test_one_point_has_no_error_bar(embedding, labels):
    assert np.isnan(sm.measures.knn_accuracy(embedding, labels, n_sampled=1).error)


def test_shapes_alone_count(embedding):
    turned = 3 * embedding @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 5
    assert sm.measures.procrustes_error(turned, embedding) < 1e-7
    assert sm.measures.subspace_angle(embedding @ np.array([[2.0, 1.0], [0.0, 1.0]]), embedding) < 1e-12
    assert sm.measures.clustering_error([3, 3, 1], ["a", "a", "b"]) == 0.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m, x: m.trustworthiness(x, x[:-1]), DataError, "embedding has 899 rows, points 900"),
        (lambda m, x: m.trustworthiness(x, x, N // 2), ConfigError, "less than half of the points"),
        (lambda m, x: m.neighbor_preservation(x, x, N), ConfigError, "the number of other points"),
        (lambda m, x: m.neighbor_preservation(x, np.where(x > 2, np.nan, x)), DataError, "embedding must be finite"),
        (lambda m, x: m.knn_accuracy(x, np.zeros(5)), DataError, r"labels must be one class for each point, \(900,\)"),
        (lambda m, x: m.knn_accuracy(x, x[:, 0]), DataError, "must be classes"),
        (lambda m, x: m.knn_accuracy(x, np.zeros(N), n_sampled=0), ConfigError, "n_sampled must be >= 1"),
        (lambda m, x: m.knn_accuracy(x, np.zeros(N), random_state=-1), ConfigError, "random_state"),
        (lambda m, x: m.recall(np.zeros((N, 2)), x), DataError, "integers"),
        (lambda m, x: m.recall(np.zeros((5, 2), int), x), DataError, "N = 900"),
        (lambda m, x: m.recall(np.full((N, 1), N), x), DataError, r"rows of points in \[0, 900\)"),
        (lambda m, x: m.recall(np.arange(N)[:, None], x), DataError, "row 0 does not"),
        (lambda m, x: m.recall(np.arange(N)[:, None] + np.array([[1, 1]]) - N // 2, x), DataError, "rows of points"),
        (lambda m, x: m.procrustes_error(x, x[:, :3]), DataError, "must have one shape"),
        (lambda m, x: m.clustering_error([1, 2], [1]), DataError, r"\(2,\), got shape \(1,\)"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, error, words, points):
    with pytest.raises(error, match=words):
        call(sm.measures, points)


@pytest.mark.parametrize("seed", range(5))
def test_clusterings_are_compared_as_peers_compare_them(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    other[:30] = one[:30]
    nmi, ari = sm.measures.normalized_mutual_information(one, other), sm.measures.adjusted_rand_index(one, other)
    assert nmi == pytest.approx(sklearn.metrics.normalized_mutual_info_score(one, other), rel=1e-10)
    assert ari == pytest.approx(sklearn.metrics.adjusted_rand_score(one, other), rel=1e-10)


def test_equal_and_trivial_clusterings_agree():
    for labels in ([0, 0, 1, 1, 2], [3, 3, 3, 3, 3], [0, 1, 2, 3, 4]):
        names = [f"class {label}" for label in labels]
        assert sm.measures.normalized_mutual_information(labels, names) == pytest.approx(1.0)
        assert sm.measures.adjusted_rand_index(labels, names) == 1.0
