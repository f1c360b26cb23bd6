"""Graphs in pieces: lists, distances, affinities and points, by every method that embeds or joins pieces."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import kneighbors_graph

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError, ScalemaniWarning
from scalemani.io.sources import open_lists
from scalemani.runs.walk import run

SIZES = (1100, 300, 90, 40)
K = 15
ASKED = {"perplexity": 5, "n_neighbors": K}
DESCENTS = [sm.TSNE, sm.ElasticEmbedding, sm.SymmetricSNE]


def mixed(sizes, seed=0):
    """Points of clusters far apart in any order, and the cluster of each."""
    rng = np.random.default_rng(seed)
    clusters = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centers = 80.0 * np.arange(len(sizes))[:, np.newaxis] * np.eye(5)[np.arange(len(sizes)) % 5]
    return rng.normal(size=(len(clusters), 5)) * [3, 2, 1, 1, 1] + centers[clusters], clusters


@pytest.fixture(scope="module")
def cells():
    return mixed(SIZES)


@pytest.fixture(scope="module")
def lists(cells):
    return sm.knn_graph(cells[0], K, "exact")


@pytest.fixture(scope="module")
def affinities(cells):
    away = kneighbors_graph(cells[0], K, mode="distance")
    away.data = np.exp(-away.data)
    return (away + away.T).tocsr()


def quietly(model, *given):
    """Fit a model, and return it with the texts of its warnings but those of descents that end early."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(*given)
    return model, [str(one.message) for one in told if "not converged" not in str(one.message)]


def given_ways(lists, affinities):
    return {
        "lists": ({"metric": "precomputed", "perplexity": 5}, lists),
        "affinities": ({"affinity": "precomputed"}, affinities),
    }


def by_piece(weights, labels, count):
    """The eigenvalues and vectors (n, count) of every piece of W by LAPACK, the trivial one left out."""
    found = {}
    for piece in np.unique(labels):
        own = weights[labels == piece][:, labels == piece].toarray().astype(np.float64)
        degrees = own.sum(axis=1)
        values, vectors = scipy.linalg.eigh(np.diag(degrees) - own, np.diag(degrees), subset_by_index=[0, count])
        found[int(piece)] = values[1:], vectors[:, 1:], degrees
    return found


@pytest.mark.parametrize("way", ["lists", "affinities"])
@pytest.mark.parametrize("solver", ["refine", "exact"])
def test_each_piece_has_its_own_eigenvectors(cells, lists, affinities, way, solver, tmp_path):
    options, given = given_ways(lists, affinities)[way]
    target = {"residual": 1e-7} if solver == "refine" else {}
    model, told = quietly(sm.LaplacianEigenmaps(**options, solver=solver, **target, store=tmp_path / "run"), given)
    weights = model.run_.affinities.tocsr()
    count, labels = connected_components(weights, directed=False)
    assert count == len(SIZES)
    assert len(told) == 1
    assert f"{count} pieces that no edge joins (largest: {list(SIZES)})" in told[0]
    exact = by_piece(weights, labels, 2)
    for piece, (_, vectors, degrees) in exact.items():
        own = model.embedding_[labels == piece]
        np.testing.assert_allclose(np.abs(np.einsum("ij,i,ij->j", own, degrees, vectors)), 1, atol=1e-5)
    largest = labels[np.argmax(cells[1] == 0)]
    np.testing.assert_allclose(model.eigenvalues_, exact[int(largest)][0], rtol=1e-5)
    found = model.certificates_["embedding"]
    assert (found["pieces"], found["near_zero_eigenvalues"], found["small_piece_points"]) == (4, 4, 0)
    assert found["largest_pieces"] == list(SIZES)


def test_diffusion_maps_scale_each_piece_by_its_own_eigenvalues(affinities, tmp_path):
    model, _ = quietly(
        sm.DiffusionMaps(affinity="precomputed", solver="exact", alpha=0, time=3, store=tmp_path / "run"), affinities
    )
    labels = connected_components(affinities, directed=False)[1]
    for piece, (values, vectors, _) in by_piece(affinities, labels, 2).items():
        own = model.embedding_[labels == piece]
        np.testing.assert_allclose(np.abs(own), np.abs(vectors) * np.abs(1 - values) ** 3, atol=1e-6)


def test_columns_that_a_small_piece_has_no_vector_for_are_zero():
    pair, ring = np.array([[0, 1], [1, 0]]), np.ones((12, 12)) - np.eye(12)
    model, _ = quietly(
        sm.LaplacianEigenmaps(4, affinity="precomputed"), sp.block_diag([ring, pair, pair, ring]).tocsr()
    )
    assert (model.embedding_[12:14, 1:] == 0).all()
    assert (model.embedding_[12:14, 0] != 0).all()
    assert model.certificates_["embedding"]["small_piece_points"] == 4
    np.testing.assert_allclose(model.eigenvalues_, 12 / 11)


@pytest.mark.parametrize("way", ["lists", "affinities"])
@pytest.mark.parametrize("descent", DESCENTS)
def test_descents_take_pieces_with_one_warning_and_keep_them_apart(cells, lists, affinities, way, descent):
    options, given = given_ways(lists, affinities)[way]
    model, told = quietly(descent(**options, max_iter=60), given)
    assert len(told) == 1
    assert "side by side" in told[0]
    positions, clusters = model.embedding_, cells[1]
    assert np.isfinite(positions).all()
    nearest = np.argsort(cdist(positions, positions), axis=1)[:, 1:4]
    assert (clusters[nearest] == clusters[:, np.newaxis]).mean() > 0.99


@pytest.fixture(scope="module", params=[(300, 150), (20 + 3 * np.arange(30)).tolist()], ids=["two", "thirty"])
def neighbours_of_scanpy(request):
    """An AnnData of cells in so many pieces, with the neighbours that scanpy finds, and the piece of each."""
    scanpy = pytest.importorskip("scanpy", exc_type=ImportError)
    points, pieces = mixed(request.param)
    found = scanpy.AnnData(points.astype(np.float32))
    scanpy.pp.neighbors(found, n_neighbors=K, use_rep="X")
    n_pieces, _ = connected_components(found.obsp["distances"])
    assert n_pieces == len(request.param)
    return found, pieces


@pytest.mark.filterwarnings("ignore")  # scanpy's own
@pytest.mark.parametrize("options", [{"metric": "precomputed", "perplexity": 4}, {"affinity": "precomputed"}])
def test_neighbours_of_scanpy_in_pieces_are_embedded_with_one_warning(neighbours_of_scanpy, options):
    given, pieces = neighbours_of_scanpy
    model, told = quietly(sm.TSNE(**options, max_iter=100), given)
    assert len(told) == 1
    nearest = np.argsort(cdist(model.embedding_, model.embedding_), axis=1)[:, 1]
    assert (pieces[nearest] == pieces).mean() > 0.99
    model, told = quietly(sm.LaplacianEigenmaps(**options), given)
    assert len(told) == 1
    assert model.certificates_["embedding"]["pieces"] == len(set(pieces))
    for piece in set(pieces):  # its own eigenvectors, none constant
        assert (np.ptp(model.embedding_[pieces == piece], axis=0) > 0).all()
    model, told = quietly(sm.SpectralClustering(len(set(pieces)), **options), given)
    assert len(told) == 1
    assert len(set(zip(model.labels_.tolist(), pieces.tolist(), strict=True))) == len(set(pieces))


@pytest.mark.parametrize(("n_clusters", "n_cut"), [(4, 1), (2, 1), (6, 3)])
@pytest.mark.parametrize("way", ["lists", "affinities"])
def test_clusters_are_pieces_groups_of_them_or_cuts_of_the_largest(cells, lists, affinities, way, n_clusters, n_cut):
    options, given = given_ways(lists, affinities)[way]
    model, told = quietly(sm.SpectralClustering(n_clusters, **options), given)
    labels, pieces = model.labels_, cells[1]
    assert set(labels) == set(range(n_clusters))
    for piece in range(1, 4):
        assert len(set(labels[pieces == piece])) == 1
    assert len(set(labels[pieces == 0])) == n_cut
    if n_clusters >= 4:
        assert not set(labels[pieces == 0]) & set(labels[pieces > 0])
    if n_clusters == 2:
        np.testing.assert_array_equal(labels, np.where(pieces == 0, 0, 1))
    found = model.certificates_["clustering"]
    assert (found["pieces"], found["clusters_of_largest_piece"]) == (4, n_cut)
    assert found["sizes"] == np.bincount(labels).tolist()
    assert len(told) == 1 + (n_clusters != 4)
    assert n_clusters == 4 or f"4 pieces for {n_clusters} clusters" in told[1]


def test_the_largest_piece_is_cut_where_it_is_thin():
    """Two cliques with a weak link, and one clique apart: three clusters."""
    clique = np.ones((30, 30)) - np.eye(30)
    weights = sp.block_diag([clique, clique, clique]).tolil()
    weights[29, 30] = weights[30, 29] = 0.5
    model, _ = quietly(sm.SpectralClustering(3, affinity="precomputed"), weights.tocsr())
    assert adjusted_rand_score(model.labels_, np.repeat([0, 1, 2], 30)) == 1


@pytest.mark.parametrize("method", ["spectral-clustering", "t-sne"])
def test_the_same_bits_whatever_the_blocks_threads_and_memory(tmp_path, method):
    """Of pieces in several blocks, of which the largest is solved by coarse graphs, and cut."""
    points, clusters = mixed((3000, 1500, 200), seed=3)
    graph, found = sm.knn_graph(points, K, "exact"), []
    values = {
        "points": {"metric": "precomputed"},
        "affinities": {"perplexity": 5},
        "clustering": {"n_clusters": 5},
        "layout": {"max_iterations": 8},
    }
    for rows, executor in ((1024, Executor(workers=1)), (2048, Executor(workers=2)), (8192, Executor(workers=2))):
        asked, source = Parameters().with_values(values), open_lists(graph)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(run(source, tmp_path / str(rows), method, asked, executor, rows))
    for other in found[1:]:
        assert other.keys == found[0].keys
        np.testing.assert_array_equal(found[0].embedding[...], other.embedding[...])
    if method == "spectral-clustering":
        labels = [one.labels[...] for one in found]
        np.testing.assert_array_equal(labels[0], labels[1])
        np.testing.assert_array_equal(labels[0], labels[2])
        assert [len(set(labels[0][clusters == piece])) for piece in range(3)] == [3, 1, 1]


def test_all_distances_join_pieces_by_closest_pairs(tmp_path):
    points, clusters = mixed((150, 120, 60))
    away = pairwise_distances(points)
    model, told = quietly(sm.TSNE(metric="precomputed", **ASKED, max_iter=5, store=tmp_path / "run"), away)
    assert not told
    assert model.certificates_["components"]["bridges"] == 2
    assert connected_components(model.run_.affinities.tocsr(), directed=False)[0] == 1
    closest = np.array([[away[clusters == a][:, clusters == b].min() for b in range(3)] for a in range(3)])
    np.fill_diagonal(closest, 0)
    found = model.run_.group("components").read("bridge_distances")
    np.testing.assert_allclose(np.sort(found), np.sort(sp.csgraph.minimum_spanning_tree(closest).data), rtol=1e-6)
    # Lists alone do not know them, and the same lists of other distances are no input of the same results.
    farther = np.where(clusters[:, None] == clusters, away, away + 50)
    other = sm.TSNE(metric="precomputed", **ASKED, max_iter=5, store=tmp_path / "other").fit(farther)
    assert other.run_.keys["neighbors"] == model.run_.keys["neighbors"]
    assert other.run_.keys["components"] != model.run_.keys["components"]


def test_pieces_that_only_rounding_joins_are_joined_by_the_edges_of_their_lists():
    """Of 40 points each, 60 neighbours lead into the other piece, with affinities that float32 rounds off."""
    points, _ = mixed((40, 40))
    asked = {"metric": "precomputed", "perplexity": 10, "n_neighbors": 60}
    for given in (pairwise_distances(points), sm.knn_graph(points, 60)):
        model, told = quietly(sm.LaplacianEigenmaps(**asked), given)
        assert not told
        assert model.certificates_["components"]["components"] == 2
        assert model.certificates_["components"]["bridges"] == 1
        assert model.certificates_["embedding"]["near_zero_eigenvalues"] == 1
    apart, told = quietly(sm.LaplacianEigenmaps(**asked, disconnected="separate"), given)
    assert len(told) == 1
    assert apart.certificates_["embedding"]["pieces"] == 2
    alone, _ = quietly(sm.LaplacianEigenmaps(**asked, disconnected="largest"), given)
    assert np.isfinite(alone.embedding_).all(axis=1).sum() == 40


@pytest.mark.parametrize("model", [sm.LaplacianEigenmaps, sm.TSNE, sm.SpectralClustering])
def test_the_largest_piece_of_lists_is_embedded_as_if_it_were_all_there_is(cells, lists, model, tmp_path):
    points, clusters = cells
    few = {"max_iter": 10} if model is sm.TSNE else {}
    asked = {"metric": "precomputed", "perplexity": 5, **few}
    part, told = quietly(model(**asked, disconnected="largest", store=tmp_path / "run"), lists)
    assert "the largest, 1100 of 1530 points, is embedded" in told[0]
    alone, _ = quietly(
        model(**asked, disconnected="largest", store=tmp_path / "own"), sm.knn_graph(points[clusters == 0], K, "exact")
    )
    assert part.run_.keys == alone.run_.keys
    whole, own = (one.labels_ if model is sm.SpectralClustering else one.embedding_ for one in (part, alone))
    np.testing.assert_array_equal(whole[clusters == 0], own)
    rest = whole[clusters > 0]
    assert (rest == -1).all() if model is sm.SpectralClustering else np.isnan(rest).all()


def test_points_are_connected_by_default_and_separate_where_that_is_asked_for(cells, lists):
    points, _ = cells
    connected, told = quietly(sm.LaplacianEigenmaps(**ASKED), points)
    assert connected.certificates_["components"]["bridges"] == 3
    assert not any("pieces" in text for text in told)
    apart, told = quietly(sm.LaplacianEigenmaps(**ASKED, disconnected="separate", solver="exact"), points)
    assert apart.certificates_["components"]["bridges"] == 0
    expected, _ = quietly(sm.LaplacianEigenmaps(metric="precomputed", perplexity=5, solver="exact"), lists)
    np.testing.assert_allclose(np.abs(apart.embedding_), np.abs(expected.embedding_), atol=1e-5)
    assert len(told) == 1


def test_new_points_are_placed_by_descents_and_refused_by_coordinates_of_pieces(cells, tmp_path):
    points, clusters = cells
    asked = {**ASKED, "disconnected": "separate"}
    model, _ = quietly(sm.TSNE(**asked, max_iter=60), points)
    placed = model.transform(points[:50] + 1e-3)
    nearest = np.argmin(cdist(placed, model.embedding_), axis=1)
    np.testing.assert_array_equal(clusters[nearest], clusters[:50])
    for kind in (sm.LaplacianEigenmaps(**asked), sm.SpectralClustering(4, **asked), sm.DiffusionMaps(**asked)):
        fitted, _ = quietly(kind, points)
        with pytest.raises(ConfigError, match="no place in coordinates of several pieces"):
            fitted.predict(points) if isinstance(fitted, sm.SpectralClustering) else fitted.transform(points)


def test_appended_points_find_their_piece_or_a_new_one(cells, tmp_path):
    points, clusters = cells
    quietly(sm.LaplacianEigenmaps(**ASKED, disconnected="separate", store=tmp_path / "run"), points)
    new = np.concatenate([points[clusters == 3] + 0.01, points[clusters == 3] * 0.5 - 300])
    with pytest.warns(ScalemaniWarning, match="5 pieces"):
        grown = sm.append(tmp_path / "run", new).run
    assert grown.certificates["embedding"]["largest_pieces"] == [1100, 300, 90, 80, 40]
    weights = grown.affinities.tocsr()
    labels = connected_components(weights, directed=False)[1]
    for piece, (_, vectors, degrees) in by_piece(weights, labels, 2).items():
        own = grown.embedding[...][labels == piece]
        np.testing.assert_allclose(np.abs(np.einsum("ij,i,ij->j", own, degrees, vectors)), 1, atol=1e-3)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (sm.LaplacianEigenmaps, {"solver": "lll"}),
        (sm.SpectralClustering, {"solver": "lll+refine"}),
        (sm.TSNE, {"settings": {"embedding.solver": "lll"}}),
        (sm.LandmarkIsomap, {}),
        (sm.LandmarkKernelPCA, {}),
    ],
)
def test_separate_is_refused_before_work_where_pieces_cannot_be_solved(cells, model, options, tmp_path):
    with pytest.raises(ConfigError, match="embeds each piece from eigenvectors of its own"):
        model(**options, disconnected="separate", store=tmp_path / "run").fit(cells[0])
    assert not (tmp_path / "run").exists()


def test_a_refusal_of_lists_in_pieces_advises_what_lists_have(lists):
    with pytest.raises(DisconnectedGraphError, match="give more neighbours a point, or set") as refused:
        sm.TSNE(metric="precomputed", perplexity=5, disconnected="error").fit(lists)
    assert "disconnected=connect" not in str(refused.value)


def test_more_clusters_than_points_are_refused_in_terms_of_points():
    with pytest.raises((ConfigError, DataError), match="at most the number of points, N=20, got 21"):
        sm.SpectralClustering(21, perplexity=5).fit(np.random.default_rng(0).normal(size=(20, 3)))


def test_measured_memory_stays_below_the_projection(lists, tmp_path):
    model, _ = quietly(sm.LaplacianEigenmaps(metric="precomputed", perplexity=5, store=tmp_path / "run"), lists)
    record = model.run_.group("embedding").record
    assert record["peak_memory"] - record["memory_before"] <= record["projected_memory"]
