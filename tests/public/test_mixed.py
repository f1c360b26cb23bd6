"""One W of several groups of columns: against dense sums, by its properties, and from a table to clusters and a map."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import scalemani as sm

N, K = 240, 8
HOW = ("mean", "product", "union")


def frame(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of numbers, texts and counts, each of which tells two halves apart, and the eighth of each row."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 2, (3, n))
    counts = 1 + rng.poisson(np.where(c[:, None] == 0, [8, 1, 1, 2], [1, 8, 2, 1]))
    table = pd.DataFrame({"height": a * 6 + rng.normal(size=n), "weight": rng.normal(size=n)})
    table["job"] = np.where(b == 0, "nurse", "cook")
    table["shift"] = pd.Categorical(np.where(b == 0, "early", "late"))
    return table.join(pd.DataFrame(counts, columns=[f"word_{name}" for name in range(4)])), a * 4 + b * 2 + c


def groups_of(table: pd.DataFrame) -> list:
    counts = [name for name in table if name.startswith("word")]
    return [table[["height", "weight"]], (table[["job", "shift"]], "hamming"), (table[counts], "hellinger")]


@pytest.fixture(scope="module")
def continuous() -> list[np.ndarray]:
    """Three groups of numbers without ties."""
    rng = np.random.default_rng(1)
    return [rng.normal(size=(N, width)) * scale for width, scale in ((2, 1.0), (3, 50.0), (1, 0.01))]


def squared(points: np.ndarray) -> np.ndarray:
    found = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(found, np.inf)
    return found


def gaussian(squares: np.ndarray, perplexity: float, among: int) -> np.ndarray:
    """Return exp(-beta (d^2 - d_1^2)) of all columns at the perplexity of the nearest `among`, by bisection."""
    beyond = squares - squares.min()
    near = np.sort(beyond)[:among]
    low, high = 1e-12, 1e12
    for _ in range(200):
        beta = np.sqrt(low * high)
        p = np.exp(-beta * near) / np.exp(-beta * near).sum()
        entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
        low, high = (beta, high) if entropy > np.log(perplexity) else (low, beta)
    return np.exp(-beta * beyond)


def dense(groups: list[np.ndarray], how: str, weights: np.ndarray) -> np.ndarray:
    """Return W by the formulas of the docstring, over dense matrices."""
    among, every = 3 * K, [squared(points) for points in groups]
    together = sum(squares / points.var(axis=0).sum() for squares, points in zip(every, groups, strict=True))
    near = np.zeros((N, N), dtype=bool)
    for squares in (*every, together):
        np.put_along_axis(near, np.argsort(squares, axis=1)[:, :among], True, axis=1)
    P = np.zeros((N, N))
    for row in range(N):
        mu = [np.where(near[row], gaussian(squares[row], K, among), 0.0) for squares in every]
        mean = sum(weight * one / one.sum() for weight, one in zip(weights, mu, strict=True)) / weights.sum()
        v = weights * len(weights) / weights.sum()
        with np.errstate(divide="ignore"):
            away = -sum(weight * np.log(one) for weight, one in zip(v, mu, strict=True))
        product = gaussian(away, K, among)
        product[np.argsort(away, kind="stable")[among:]] = 0
        found = {
            "mean": mean,
            "product": 0.999 * product / product.sum() + 0.001 * mean,
            "union": 1 - np.prod([(1 - one) ** weight for weight, one in zip(v, mu, strict=True)], axis=0),
        }[how]
        P[row] = found / found.sum()
    return (P + P.T) / 2


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (2.0, 1.0, 0.5)])
@pytest.mark.parametrize("how", HOW)
def test_a_combination_is_that_of_dense_matrices(continuous, how, weights):
    found = sm.mixed_affinities(continuous, how, K, weights=weights).toarray()
    expected = dense(continuous, how, np.array(weights))
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-5 * expected.max())
    assert ((found > 0) <= (expected > 0)).all()


@pytest.mark.parametrize("how", ["mean", "product"])
def test_a_group_with_itself_is_the_graph_of_that_group(how):
    points = np.random.default_rng(1).normal(size=(2500, 3))  # more than are worked on at once
    graph = sm.knn_graph(points, 3 * K)
    alone = sm.symmetric_affinities(graph.indices, sm.entropic_affinities(graph.distances, K).values)
    assert abs(sm.mixed_affinities([points, points], how, K) - alone).max() < 1e-6


@pytest.mark.parametrize("how", HOW)
def test_the_order_of_groups_and_the_scale_of_weights_do_not_matter(how):
    groups, weights = groups_of(frame(N)[0]), np.array([1.0, 2.0, 3.0])
    one = sm.mixed_affinities(groups, how, K, weights=weights)
    other = sm.mixed_affinities(groups[::-1], how, K, weights=7 * weights[::-1])
    assert abs(one - other).max() < 1e-6
    assert abs(one - one.T).max() == 0
    assert not one.diagonal().any()
    assert one.data.min() > 0
    assert one.sum(axis=1).min() > 0.499


def test_texts_are_compared_as_bits_of_their_values(continuous):
    rng, numbers = np.random.default_rng(2), continuous[0]
    texts = np.array(["001", "1", "b"])[rng.integers(0, 3, (N, 7))]
    bits = np.hstack([texts == value for value in ("001", "1", "b")])
    kinds = [texts, pd.DataFrame(texts), pd.DataFrame(texts).astype("category"), bits, sp.csr_matrix(bits * 1.0)]
    found = [sm.mixed_affinities([numbers, (kind, "hamming")], "mean", K) for kind in kinds]
    for other in found[1:]:
        assert abs(found[0] - other).max() < 1e-6


@pytest.mark.parametrize("how", ["product", "union"])
def test_clusters_that_no_group_shows_alone_are_found_in_python(how):
    table, truth = frame(800)
    W = sm.mixed_affinities(groups_of(table), how, 30)
    found = sm.SpectralClustering(8, affinity="precomputed").fit(W).labels_
    assert sm.measures.clustering_error(found, truth) < 0.03
    for points in (table[["height", "weight"]], table[["word_0", "word_1"]]):
        alone = sm.SpectralClustering(8).fit(points).labels_
        assert sm.measures.clustering_error(alone, truth) > 0.3


def test_clusters_and_a_map_from_the_command_line(command, tmp_path):
    table, truth = frame(800)
    table.to_parquet(tmp_path / "table.parquet")
    columns = {"height,weight": "", "job,shift": "=hamming", "word_*": "=hellinger"}
    groups = [
        part for name, metric in columns.items() for part in ("--group", f"{tmp_path}/table.parquet::{name}{metric}")
    ]
    status, _, told = command("mix", tmp_path / "w.npz", *groups, "--how", "product", "--perplexity", 20)
    assert (status, told) == (0, "")
    expected = sm.mixed_affinities(groups_of(table), "product", 20)
    assert abs(sp.load_npz(tmp_path / "w.npz") - expected).max() == 0
    given = "--set", "affinities.kind=precomputed", "--quiet"
    of_clusters = "--method", "spectral-clustering", "--set", "clustering.n_clusters=8"
    assert command("embed", tmp_path / "w.npz", tmp_path / "clusters", *of_clusters, *given)[0] == 0
    labels = np.asarray(sm.open_run(tmp_path / "clusters").labels[...])
    assert sm.measures.clustering_error(labels, truth) < 0.03
    assert command("embed", tmp_path / "w.npz", tmp_path / "map", "--method", "t-sne", *given)[0] == 0
    assert sm.measures.knn_accuracy(sm.open_run(tmp_path / "map").embedding[...], truth).value > 0.95


X = np.random.default_rng(0).normal(size=(40, 2))
TEXTS = np.array(["a", "b"] * 20, dtype=object)
REFUSED = {
    "one": ([X], {}, "two or more.*got list"),
    "no list": (X, {}, "two or more.*ndarray"),
    "rows": ([X, X[:39]], {}, "40, 39 rows"),
    "few": ([X[:3], X[:3]], {}, "at least 4, got 3, 3 rows"),
    "combination": ([X, X], {"combine": "sum"}, "unknown.*mean"),
    "metric": ([X, (X, "hammin")], {}, "hamming"),
    "precomputed": ([X, (X, "precomputed")], {}, "table of points"),
    "sets": ([X, (X > 0, "jaccard")], {}, "no metric of a group"),
    "weights": ([X, X], {"weights": [1]}, "2 numbers above zero"),
    "zero": ([X, X], {"weights": [1, 0]}, "2 numbers above zero"),
    "constant": ([X, (np.full(40, "a"), "hamming")], {}, "group 2 has the same values"),
    "gap": ([X, (np.where(np.arange(40) == 7, None, TEXTS), "hamming")], {}, "no category in 1 rows, the first row 7"),
    "nan": ([X, np.where(X > 2, np.nan, X)], {}, "NaN"),
    "texts": ([X, pd.DataFrame({"job": TEXTS})], {}, "job"),
    "numbers": ([X, (X, "hamming")], {}, "no bits"),
    "negative": ([X, (X, "hellinger")], {}, "no frequencies"),
    "perplexity": ([X, X], {"perplexity": 50}, "perplexity"),
    "neighbors": ([X, X], {"n_neighbors": 41}, "n_neighbors"),
    "seed": ([X, X], {"random_state": "a"}, "random_state"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_set_of_groups_is_refused_in_one_sentence(name):
    groups, given, message = REFUSED[name]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        sm.mixed_affinities(groups, **given)


def test_the_command_line_refuses_what_it_cannot_write_or_read(command, tmp_path):
    np.save(tmp_path / "x.npy", X)
    points = "--group", tmp_path / "x.npy", "--group", f"{tmp_path}/x.npy"
    for out, message in (("w.npy", ".npz"), ("x.npy", "is the input")):
        status, _, told = command("mix", tmp_path / out, *points)
        assert (status, message in told) == (2, True), told
