"""Neighbour lists of another library beside the points: certified, completed, and computed anew whatever their form."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, ScalemaniWarning, ShortfallWarning
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_lists
from scalemani.runs.walk import run

N, K = 3000, 15
ASKED = {"perplexity": 5, "random_state": 0}


@pytest.fixture(scope="module")
def points():
    generator = np.random.default_rng(0)
    return (generator.normal(size=(N, 8)) @ generator.normal(size=(8, 8))).astype(np.float32)


@pytest.fixture(scope="module")
def wide(points):
    """(distances, indices) of many neighbours, exact, in float64, the point itself first."""
    return NearestNeighbors(n_neighbors=4 * K).fit(points).kneighbors(points)


@pytest.fixture(scope="module")
def exact(wide):
    return wide[0][:, : K + 1], wide[1][:, : K + 1]


@pytest.fixture(scope="module")
def approximate(wide):
    """Squares in float32, as of an index of cells: a fifth of the neighbours is missed, -1 among them."""
    generator = np.random.default_rng(1)
    distances, indices = wide
    order = np.argsort(np.where(generator.random(indices.shape) < 0.2, np.inf, distances), axis=1, kind="stable")
    kept = order[:, : K + 1]
    distances, indices = (np.take_along_axis(table, kept, axis=1) for table in (distances**2, indices))
    gone = generator.random(indices.shape) < 0.02
    gone[17] = True
    lists = np.where(gone, np.finfo(np.float32).max, distances), np.where(gone, -1, indices)
    return lists[0].astype(np.float32), lists[1].astype(np.int64)


def share_found(indices, true):
    """The share of the true neighbours, without the points themselves, that lists hold."""
    hits = [len({*map(int, row)} & {*map(int, near[1:])}) for row, near in zip(indices, true, strict=True)]
    return sum(hits) / (K * len(true))


@pytest.fixture(scope="module")
def model(points, approximate, tmp_path_factory):
    with pytest.warns(ShortfallWarning, match=r"lists that were passed held 0\.7\d+: search more widely"):
        return sm.LaplacianEigenmaps(**ASKED, store=tmp_path_factory.mktemp("run")).fit(points, graph=approximate)


def test_the_recall_of_the_lists_is_certified_before_and_after_they_are_completed(model, approximate, exact):
    found = model.certificates_["neighbors"]
    truth = share_found(approximate[1], exact[1])
    assert 0.7 < truth < 0.85
    assert abs(found["given_recall"] - truth) < 0.02
    assert abs(found["recall"] - share_found(model.run_.graph.indices[...], exact[1])) < 0.02
    assert found["recall"] > found["given_recall"] + 0.02
    assert found["incomplete_lists"] == np.count_nonzero(((approximate[1] < 0) | own(approximate[1])).sum(axis=1) > 1)
    assert (found["method"], found["rounds"], found["sampled_queries"]) == ("given", 1, 1000)


def own(indices):
    return indices == np.arange(len(indices))[:, None]


def test_distances_are_those_of_the_points_and_every_list_is_complete(model, points, approximate):
    graph = model.run_.graph
    indices, distances = graph.indices[...], graph.distances[...]
    assert indices.shape == (N, K)
    assert not own(indices).any()
    assert all(len(set(row)) == K for row in indices.tolist())
    away = np.linalg.norm(points[:, None].astype(np.float64) - points[indices], axis=2)
    np.testing.assert_allclose(distances, away, rtol=1e-5)
    given, found = approximate[1], [set(row) for row in indices.tolist()]
    whole = ((given >= 0) & ~own(given)).sum(axis=1) >= K
    assert all(set(given[row][:K + 1].tolist()) - {row} >= found[row] for row in np.flatnonzero(whole))  # fmt: skip
    stated = model.certificates_["given_lists"]
    assert stated["distances_given"] == "squared distances"
    assert np.isfinite(model.embedding_).all()


def test_lists_without_a_fault_give_the_embedding_of_the_exact_search(points, exact, tmp_path):
    asked = {**ASKED, "n_neighbors": K, "solver": "exact"}
    expected = sm.LaplacianEigenmaps(**asked).fit(points)
    for given in (exact, exact[::-1]):
        found = sm.LaplacianEigenmaps(**asked).fit(points, graph=given)
        np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=1e-6)
        certified = found.certificates_["neighbors"]
        assert certified["recall"] == certified["given_recall"] == 1.0
        assert (certified["rounds"], certified["incomplete_lists"]) == (0, 0)
    np.testing.assert_array_equal(found.transform(points[:3]).shape, (3, 2))


FORMS = {
    "distances": ("euclidean", lambda away, _: away),
    "squared distances": ("euclidean", lambda away, _: away**2),
    "inner products": ("euclidean", lambda _, products: products),
    "negative inner products": ("euclidean", lambda _, products: -products),
    "half squared distances": ("cosine", lambda away, _: away),  # one less the cosine
    "of another form": ("euclidean", lambda away, _: np.sin(40 * away)),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_the_distances_are_is_said_and_does_not_matter(points, form):
    metric, changed = FORMS[form]
    few = points[:600] + 3
    away, indices = NearestNeighbors(n_neighbors=K + 1, metric=metric).fit(few).kneighbors(few)
    products = np.einsum("ij,ikj->ik", few, few[indices])
    asked = {**ASKED, "metric": metric, "n_neighbors": K, "solver": "exact"}
    found = sm.LaplacianEigenmaps(**asked).fit(few, graph=(indices, changed(away, products).astype(np.float32)))
    assert found.certificates_["given_lists"]["distances_given"] == form
    expected = sm.LaplacianEigenmaps(**asked).fit(few)
    np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=1e-4)


def test_keys_follow_the_lists_and_bits_do_not_follow_blocks(points, approximate, exact, tmp_path):
    params = Parameters().with_values({"neighbors.method": "given", "affinities.perplexity": 5})
    found = {}
    for name, lists, block_rows, workers in (
        ("one", approximate, None, 1),
        ("blocks", approximate, 1024, 2),
        ("other", exact, None, 1),
    ):
        source = with_lists(open_points(points), lists)
        found[name] = run(
            source,
            tmp_path / name,
            "knn-graph",
            params,
            Executor.from_options("threads", workers, None, Progress()),
            block_rows,
        )
    keys = {name: one.keys["neighbors"] for name, one in found.items()}
    assert keys["one"] == keys["blocks"] != keys["other"]
    np.testing.assert_array_equal(found["one"].graph.indices[...], found["blocks"].graph.indices[...])
    np.testing.assert_array_equal(found["one"].graph.distances[...], found["blocks"].graph.distances[...])


def test_lists_of_components_that_are_left_out_go_with_them(points):
    apart = np.concatenate([points[:900], points[900:1100] + 1000])
    away, indices = NearestNeighbors(n_neighbors=K + 1).fit(apart).kneighbors(apart)
    found = sm.LaplacianEigenmaps(**ASKED, disconnected="largest").fit(apart, graph=(away, indices))
    expected = sm.LaplacianEigenmaps(**ASKED, n_neighbors=K).fit(apart[:900])
    assert np.isnan(found.embedding_[900:]).all()
    np.testing.assert_allclose(found.embedding_[:900], expected.embedding_, atol=1e-3)


def test_sparse_points_take_lists():
    counts = sparse.random(700, 60, density=0.2, format="csr", random_state=0, dtype=np.float32)
    away, indices = NearestNeighbors(n_neighbors=K + 1).fit(counts).kneighbors(counts)
    indices[5, 1:] = -1
    model = sm.LaplacianEigenmaps(**ASKED).fit(counts, graph=(away**2, indices))
    assert model.certificates_["neighbors"]["recall"] > 0.99
    assert model.certificates_["given_lists"]["distances_given"] == "squared distances"


def test_the_command_line_takes_a_file_of_lists(points, approximate, tmp_path, scalemani):
    np.save(tmp_path / "points.npy", points)
    np.savez(tmp_path / "lists.npz", indices=approximate[1], distances=approximate[0])
    asked = (tmp_path / "points.npy", tmp_path / "run", "--method", "knn-graph")
    status, said, _ = scalemani("plan", *asked, "--lists", tmp_path / "lists.npz")
    assert status == 0
    assert "given_lists" in said
    for name in ("--lists", "--graph"):
        assert scalemani("embed", *asked, name, tmp_path / "lists.npz")[0] == 0
    certified = sm.open_run(tmp_path / "run").certificates["neighbors"]
    assert 0.7 < certified["given_recall"] < 0.85
    status, _, error = scalemani("append", tmp_path / "run", tmp_path / "points.npy")
    assert status == 2
    assert "neighbour lists of another library" in error


TOO_SHORT = (
    r"perplexity is 5 in place of 30: a third of the 15 neighbours a point in the lists; pass lists of 90 for 30"
)


def test_lists_that_are_too_short_for_the_usual_perplexity_are_a_warning(points, tmp_path, scalemani):
    few = points[:300]
    away, indices = NearestNeighbors(n_neighbors=K + 1).fit(few).kneighbors(few)
    model = sm.LaplacianEigenmaps()
    with pytest.warns(ScalemaniWarning, match=f"^{TOO_SHORT}$"):
        model.fit(few, graph=(away, indices))
    with pytest.warns(ScalemaniWarning, match=f"^{TOO_SHORT}$"):
        clone(model).set_params(metric="precomputed").fit((away, indices))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*in place of")
        for chosen in ({"perplexity": 5}, {"n_neighbors": K}):
            clone(model).set_params(**chosen).fit(few, graph=(away, indices))
    np.save(tmp_path / "points.npy", few)
    np.savez(tmp_path / "lists.npz", indices=indices, distances=away)
    asked = (tmp_path / "points.npy", tmp_path / "run", "--lists", tmp_path / "lists.npz")
    status, said, warned = scalemani("embed", *asked, "--method", "laplacian-eigenmaps")
    assert status == 0
    assert re.search(f"affinities.{TOO_SHORT}\n", said + warned)


def out_of_range(pair):
    return pair[0], np.where(pair[1] == 5, 3000, pair[1])


@pytest.mark.parametrize(
    ("model", "changed", "error", "words"),
    [
        (sm.TSNE(), lambda pair: (pair[0][:-1], pair[1][:-1]), DataError, "each of the 3000 points, .* of 2999"),
        (sm.TSNE(), out_of_range, DataError, r"rows .* list rows outside \[0, 3000\)"),
        (sm.TSNE(n_neighbors=40), lambda pair: pair, ConfigError, "at most 15, the neighbours a point in the lists"),
        (sm.TSNE(deduplicate=True), lambda pair: pair, ConfigError, "equal rows are to be one: leave out graph="),
        (sm.LandmarkPCA(), lambda pair: pair, ConfigError, "has no neighbour graph: leave out graph="),
        (sm.TSNE(metric="precomputed"), lambda pair: pair, (ConfigError, DataError), "."),
        (sm.TSNE(settings={"neighbors.method": "exact"}), lambda pair: pair, ConfigError, "exact computes others"),
    ],
)  # fmt: skip
def test_lists_that_cannot_accompany_points_are_refused(points, exact, model, changed, error, words):
    with pytest.raises(error, match=words):
        model.fit(points, graph=changed(exact))


def test_the_method_without_lists_is_refused(points):
    with pytest.raises(ConfigError, match=r"neighbors\.method=given takes neighbour lists: give them with graph="):
        sm.knn_graph(points, settings={"neighbors.method": "given"})
