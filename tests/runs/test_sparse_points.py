"""Sparse points stay sparse: what a run makes of them is what it makes of the same points dense, and costs less."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise_distances

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DataError, ScalemaniWarning
from scalemani.interfaces.functions.run_measures import measure_run
from scalemani.io.sources import open_points
from scalemani.runs.walk import plan_run, run

N, D, K = 1500, 3000, 10


def made_counts(n, seed):
    """Counts of 3,000 words in short texts of twelve topics: 1 % of them are not zero."""
    topics = np.random.default_rng(0).gamma(0.05, 1.0, (12, D))
    rng = np.random.default_rng(seed)
    shares = topics[rng.integers(0, 12, n)] + 0.01 * topics.mean(axis=0)
    return sparse.csr_matrix(rng.poisson(60 * shares / shares.sum(axis=1, keepdims=True)).astype(np.uint8))


@pytest.fixture(scope="module")
def counts():
    return made_counts(N, 1)


def graph_of(points, **asked):
    return sm.knn_graph(points, K, **asked)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "hellinger"])
def test_the_graph_is_that_of_brute_force_and_of_the_same_points_dense(counts, metric):
    table = counts.toarray().astype(float)
    if metric == "hellinger":
        roots = np.sqrt(table / table.sum(axis=1, keepdims=True))
        away = pairwise_distances(roots) / np.sqrt(2)
    else:
        away = pairwise_distances(table, metric=metric)
    np.fill_diagonal(away, np.inf)
    found, dense = graph_of(counts, metric=metric), graph_of(counts.toarray(), metric=metric)
    np.testing.assert_allclose(found.distances, np.sort(away, axis=1)[:, :K], atol=2e-6)
    assert found.recall == 1.0
    if metric == "euclidean":  # sums of integers are exact
        np.testing.assert_array_equal(found.indices, dense.indices)
        np.testing.assert_array_equal(found.distances, dense.distances)
    np.testing.assert_allclose(found.distances, dense.distances, rtol=3e-7)


def test_a_search_by_candidates_reaches_the_recall_asked_for(counts):
    found, exact = graph_of(counts, method="partition", metric="cosine"), graph_of(counts, metric="cosine")
    reached = (found.distances <= exact.distances[:, -1:] * (1 + 1e-6)).mean()
    assert reached > 0.94
    assert found.recall == pytest.approx(reached, abs=0.01)


def test_bits_depend_on_neither_blocks_nor_memory_nor_tasks(counts, tmp_path):
    asked = Parameters().with_values({"neighbors": {"n_neighbors": K, "method": "partition"}})
    graphs = []
    for number, (block_rows, executor) in enumerate(
        [(1024, Executor(workers=2)), (2048, Executor(workers=1)), (1024, Executor(workers=1, memory=900 * 10**6))]
    ):
        done = run(open_points(counts), tmp_path / str(number), "knn-graph", asked, executor, block_rows)
        graphs.append((np.asarray(done.graph.indices[...]), np.asarray(done.graph.distances[...])))
    for indices, distances in graphs[1:]:
        np.testing.assert_array_equal(indices, graphs[0][0])
        np.testing.assert_array_equal(distances, graphs[0][1])


def test_the_store_and_the_plan_follow_the_nonzeros(counts, tmp_path):
    done = run(open_points(counts), tmp_path / "run", "knn-graph", Parameters(), Executor(), 1024)
    assert done.dimensions.nonzeros == counts.nnz
    size = sum(path.stat().st_size for path in (tmp_path / "run").glob("stages/*points/**/*") if path.is_file())
    assert size < 2 * (5 * counts.nnz + 4 * 64 * N) < N * D / 2
    plans = [
        plan_run(open_points(points), tmp_path / "new", "knn-graph", Parameters(), Executor(), 1024)
        for points in (counts, counts.toarray())
    ]
    assert plans[0].disk < plans[1].disk
    needs = [{stage.stage.name: stage.memory for stage in plan.stages} for plan in plans]
    assert all(needs[0][stage] < needs[1][stage] for stage in ("points", "work_points", "neighbors"))


def test_a_plan_of_words_in_documents_fits_what_a_laptop_has(tmp_path):
    """As many documents, words and nonzeros as the TF-IDF of 20 Newsgroups has: dense they take 6.5 GB."""
    rng = np.random.default_rng(0)
    shape, entries = (18_846, 43_374), 2_460_000
    documents = np.r_[np.arange(shape[0]), rng.integers(0, shape[0], entries - shape[0])]  # none is empty
    words = (shape[1] * rng.random(entries) ** 4).astype(int)
    table = sparse.csr_matrix((rng.random(entries, np.float32) + 0.1, (documents, words)), shape)
    asked = Parameters().with_values({"points": {"metric": "cosine"}})
    for memory in (None, 4 * 10**9):
        executor = Executor(workers=2, memory=memory)
        plan = plan_run(open_points(table), tmp_path / "run", "t-sne", asked, executor)
        plan.check()
        assert max(stage.memory for stage in plan.stages) < 4 * 10**9
    graph = plan_run(open_points(table), tmp_path / "run", "knn-graph", asked, executor)
    assert graph.disk < 4 * shape[0] * shape[1] / 20


def test_equal_matrices_have_one_digest_and_dense_ones_another(counts, tmp_path):
    untidy = counts.tocoo()
    untidy = sparse.csr_matrix(
        (np.r_[untidy.data, 0, 0], (np.r_[untidy.row, 3, 9], np.r_[untidy.col, 7, 7])), shape=counts.shape
    )
    shuffled = untidy.copy()
    for row in range(N):
        part = slice(shuffled.indptr[row], shuffled.indptr[row + 1])
        shuffled.indices[part], shuffled.data[part] = shuffled.indices[part][::-1], shuffled.data[part][::-1]
    shuffled.has_sorted_indices = False
    before = shuffled.indices.copy()
    keys = {
        plan_run(open_points(points), tmp_path / "run", "knn-graph", Parameters(), Executor()).stages[0].key
        for points in (counts, untidy, shuffled)
    }
    assert len(keys) == 1
    np.testing.assert_array_equal(shuffled.indices, before)  # what was given stays as it is
    dense = plan_run(open_points(counts.toarray()), tmp_path / "run", "knn-graph", Parameters(), Executor())
    assert dense.stages[0].key not in keys


def test_rows_that_a_metric_cannot_take_are_named(counts):
    bad = counts.astype(np.float64).tolil()
    bad[1100] = 0
    with pytest.raises(DataError, match=r"nothing but zeros.*first rows 1100"):
        graph_of(bad.tocsr(), metric="cosine")
    bad[1100, 5] = -2
    with pytest.raises(DataError, match=r"negative values.*first rows 1100"):
        graph_of(bad.tocsr(), metric="hellinger")
    bad[1100, 5] = np.inf
    with pytest.raises(DataError, match="row 1100, column 5"):
        graph_of(bad.tocsr())


def test_a_metric_that_leaves_no_zeros_says_what_dense_points_take(counts):
    with pytest.warns(
        ScalemaniWarning, match=r"correlation leaves no zeros.*becomes dense: 18.00 MB; euclidean, cosine"
    ):
        found = graph_of(counts, metric="correlation")
    np.testing.assert_array_equal(found.distances, graph_of(counts.toarray(), metric="correlation").distances)


def test_points_find_themselves_among_those_of_a_fit_and_new_ones_their_neighbors(counts):
    model = sm.KNeighborsTransformer(5, metric="cosine").fit(counts)
    own = model.transform(counts[:20])
    np.testing.assert_array_equal(own.indices.reshape(20, 6)[:, 0], np.arange(20))
    new = made_counts(40, 2)
    away = np.sort(pairwise_distances(new, counts, metric="cosine"), axis=1)[:, :6]
    for given in (new, new.toarray()):
        np.testing.assert_allclose(model.transform(given).data.reshape(40, 6), away, atol=2e-6)


def test_new_points_are_placed_as_in_a_map_of_dense_points(counts):
    asked = {"n_neighbors": 30, "perplexity": 10, "max_iter": 260, "n_landmarks": 50, "metric": "cosine"}
    model = sm.TSNE(**asked).fit(counts)
    np.testing.assert_array_equal(model.transform(counts[:15]), model.embedding_[:15])
    assert np.isfinite(model.transform(made_counts(10, 3))).all()
    assert model.certificates_["neighbors"]["recall"] == 1.0


def test_the_largest_component_of_sparse_points_is_as_sparse(counts, tmp_path):
    apart = sparse.block_diag([counts[:1200], 200 * counts[1200:1300]], format="csr")
    model = sm.LaplacianEigenmaps(
        n_neighbors=10, perplexity=4, disconnected="largest", n_landmarks=50, store=tmp_path / "run"
    )
    with pytest.warns(ScalemaniWarning):
        model.fit(apart)
    assert np.isnan(model.embedding_).any(axis=1).sum() >= 100
    assert model.run_.dimensions.nonzeros < apart.nnz


def test_measures_are_those_of_the_same_points_dense(counts, tmp_path):
    values = {"neighbors": {"n_neighbors": 30}, "affinities": {"perplexity": 10}, "landmarks": {"n_landmarks": 50}}
    asked = Parameters().with_values(values)
    sparse_run = run(open_points(counts), tmp_path / "sparse", "laplacian-eigenmaps", asked, Executor())
    dense_run = run(open_points(counts.toarray()), tmp_path / "dense", "laplacian-eigenmaps", asked, Executor())
    np.testing.assert_allclose(sparse_run.eigenvalues, dense_run.eigenvalues, rtol=1e-3)
    found, expected = (measure_run(done, n_sampled=300) for done in (sparse_run, dense_run))
    assert found["recall"].value == expected["recall"].value == 1.0
    assert found["trustworthiness"].value == pytest.approx(expected["trustworthiness"].value, abs=0.01)
