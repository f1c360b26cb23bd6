"""`scalemani.measures`: values by hand, error bars against repeated samples, and what is refused."""

import doctest

import numpy as np
import pytest
import scipy.stats
import sklearn.manifold
from scipy import sparse
from sklearn.metrics import pairwise_distances
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


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_sets_are_measured_by_their_jaccard_distance(kind):
    rng = np.random.default_rng(6)
    rows = (rng.random((300, 40)) < 0.2).astype(np.float32)
    rows[:3] = 0
    position = rng.normal(size=(300, 2))
    away = pairwise_distances(rows > 0, metric="jaccard")
    np.fill_diagonal(away, np.inf)
    near = NearestNeighbors(n_neighbors=8).fit(position).kneighbors(return_distance=False)
    closer = (away[:, None, :] < np.take_along_axis(away, near, axis=1)[:, :, None] - 1e-9).sum(axis=2)
    found = sm.measures.neighbor_preservation(kind(rows), position, 8, metric="tanimoto", n_sampled=None)
    assert found.value == pytest.approx(np.mean(closer < 8), abs=1e-12)
    assert sm.measures.recall(near, kind(rows), metric="jaccard", n_sampled=None).value == found.value


@pytest.mark.parametrize("metric", ["cosine", "hellinger", "hamming", "jaccard"])
def test_sparse_points_are_measured_as_dense_ones_by_each_metric(metric):
    rng = np.random.default_rng(4)
    rows = np.where(rng.random((300, 60)) < 0.15, rng.integers(1, 5, (300, 60)), 0)
    rows[:, 0] = 1  # no row is empty
    if metric in ("hamming", "jaccard"):
        rows = (rows > 0).astype(int)
        rows = rows[np.unique(rows, axis=0, return_index=True)[1]]
    thin, position = sparse.csr_matrix(rows.astype(np.float64)), rng.normal(size=(len(rows), 2))
    graph = sm.knn_graph(thin, 6, metric=metric, recall=0.5)
    measured = {
        "of dense": rows.astype(np.float64),
        "of sparse": thin,
        "of columns": sparse.csc_array(thin),
    }
    found = {
        name: [
            sm.measures.recall(graph.indices, given, metric=metric, n_sampled=120),
            sm.measures.trustworthiness(given, position, 7, metric=metric, n_sampled=120),
            sm.measures.neighbor_preservation(given, position, 7, metric=metric, n_sampled=120),
        ]
        for name, given in measured.items()
    }
    assert found["of sparse"] == found["of columns"]
    np.testing.assert_allclose(found["of sparse"], found["of dense"], rtol=1e-12)
    roots = np.sqrt(rows / rows.sum(axis=1, keepdims=True))
    away = pairwise_distances(roots) if metric == "hellinger" else pairwise_distances(rows, metric=metric)
    every = sm.measures.neighbor_preservation(thin, position, 7, metric=metric, n_sampled=None)
    np.fill_diagonal(away, np.inf)
    true = np.sort(away, axis=1)[:, 6]
    near = NearestNeighbors(n_neighbors=7).fit(position).kneighbors(return_distance=False)
    expected = np.mean(np.take_along_axis(away, near, axis=1) <= true[:, None] * (1 + 1e-9))
    assert every.value == pytest.approx(expected, rel=1e-12)


def test_sparse_points_are_never_made_dense():
    """A table of 2,000 x 4,000,000 values would take 64 GB; its rows are measured in seconds."""
    rng = np.random.default_rng(5)
    entries = (rng.random(20_000), (np.repeat(np.arange(2000), 10), rng.integers(0, 4_000_000, 20_000)))
    points = sparse.csr_matrix(entries, shape=(2000, 4_000_000))
    positions = rng.normal(size=(2000, 2))
    assert sm.measures.trustworthiness(points, positions, n_sampled=50).value == pytest.approx(0.5, abs=0.2)
    assert sm.measures.neighbor_preservation(points, positions, n_sampled=50).value == pytest.approx(
        15 / 1999, abs=0.02
    )
    assert sm.measures.recall(np.roll(np.arange(2000), 1)[:, None], points, n_sampled=50).value <= 0.2


def test_a_graph_by_another_metric_is_another_truth(points):
    graph = sm.knn_graph(points + 3, 8, metric="cosine")
    assert sm.measures.recall(graph.indices, points + 3, metric="cosine").value == 1.0
    assert sm.measures.recall(graph.indices, points + 3).value < 0.8


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
        (lambda m, x: m.recall(np.zeros((N, 2), int), x, metric="precomputed"), ConfigError, "give points and their"),
        (lambda m, x: m.trustworthiness(x, x, metric="cosinus"), ConfigError, "got 'cosinus'"),
        (lambda m, x: m.neighbor_preservation(0 * x, x, metric="cosine"), DataError, "nothing but zeros"),
        (
            lambda m, x: m.recall(np.zeros((N, 2), int), sparse.csr_array(x) * np.nan),
            DataError,
            "points must be finite",
        ),
        (lambda m, x: m.recall(np.zeros((5, 2), int), x), DataError, "N = 900"),
        (lambda m, x: m.recall(np.full((N, 1), N), x), DataError, r"rows of points in \[0, 900\)"),
        (lambda m, x: m.recall(np.arange(N)[:, None], x), DataError, "900 points list themselves"),
        (lambda m, x: m.recall(np.arange(N)[:, None] + np.array([[1, 1]]) - N // 2, x), DataError, "rows of points"),
        (lambda m, x: m.procrustes_error(x, x[:, :3]), DataError, "must have one shape"),
        (lambda m, x: m.clustering_error(["a", None], [None, 1]), DataError, "0 of 2 points have a label"),
        (lambda m, x: m.knn_accuracy(x, np.array([{1}, {}] * 450)), DataError, "must be classes of one type"),
        (lambda m, x: m.adjusted_rand_index([1, "1", 2], [1, 1, 2]), DataError, "have the same text"),
        (lambda m, x: m.clustering_error([1, 2], [1]), DataError, r"\(2,\), got shape \(1,\)"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, error, words, points):
    with pytest.raises(error, match=words):
        call(sm.measures, points)


@pytest.mark.parametrize("seed", range(5))
def test_clusterings_are_compared_by_pairs_and_entropies(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    other[:30] = one[:30]
    nmi, ari = sm.measures.normalized_mutual_information(one, other), sm.measures.adjusted_rand_index(one, other)
    both, first, second = (
        scipy.stats.entropy(np.unique(rows, axis=0, return_counts=True)[1])
        for rows in (np.column_stack([one, other]), one, other)
    )
    assert nmi == pytest.approx(2 * (first + second - both) / (first + second), rel=1e-10)
    pairs = np.triu_indices(60, 1)
    same_one, same_other = (each[pairs[0]] == each[pairs[1]] for each in (one, other))
    expected = same_one.mean() * same_other.mean()
    most = (same_one.mean() + same_other.mean()) / 2
    assert ari == pytest.approx(((same_one & same_other).mean() - expected) / (most - expected), rel=1e-10)


def test_equal_and_trivial_clusterings_agree():
    objects = np.array(["b", "b", "a", "a", "c"], object)
    for labels in ([0, 0, 1, 1, 2], [3, 3, 3, 3, 3], [0, 1, 2, 3, 4], objects, np.array([1, 1, 2, 2, 5], object)):
        names = [f"class {label}" for label in labels]
        assert sm.measures.normalized_mutual_information(labels, names) == pytest.approx(1.0)
        assert sm.measures.adjusted_rand_index(labels, names) == 1.0
