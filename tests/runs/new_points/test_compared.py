"""New points of runs whose metric compares rows: neighbours among all stored points, and places by these alone."""

import tracemalloc

import numba
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, ScalemaniWarning
from scalemani.io.sources import open_points
from scalemani.runs.new_points import NewPoints, neighbors, read_placement
from scalemani.runs.new_points.placements import placement_memory
from scalemani.runs.walk import run

N, K, N_CLUSTERS = 2100, 12, 6
FEW = {"neighbors": {"n_neighbors": 20}, "affinities": {"perplexity": 6.0}, "clustering": {"n_clusters": N_CLUSTERS}}
SHORT = {"layout": {"max_iterations": 40, "converged": 0.0}}


@numba.njit
def blunted(one, other):
    total = 0.0
    for d in range(one.size):
        total += min(abs(one[d] - other[d]), 1.0)
    return total


def distances_between(metric, one, other):
    """Return the distances (m, n) of rows by SciPy, or by NumPy where it has none."""
    one, other = one.astype(float), other.astype(float)
    if metric == "wasserstein":
        one, other = (np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1) for rows in (one, other))
    if callable(metric):
        return np.minimum(np.abs(one[:, np.newaxis] - other), 1.0).sum(axis=2)
    name, _, power = metric.partition(":")
    names = {"manhattan": "cityblock", "wasserstein": "cityblock"}
    return cdist(one, other, names.get(name, name), **({"p": float(power)} if power else {}))


@pytest.fixture(scope="module")
def clusters():
    return np.random.default_rng(2).integers(0, N_CLUSTERS, N + 400)


@pytest.fixture(scope="module")
def all_points(clusters):
    draws = np.random.default_rng(1)
    return 1.5 * draws.gamma(1.0, size=(N_CLUSTERS, 8))[clusters] + draws.gamma(1.0, size=(len(clusters), 8))


@pytest.fixture(scope="module")
def points(all_points):
    return all_points[:N]


@pytest.fixture(scope="module")
def new(all_points):
    return all_points[N:]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "minkowski:3", "wasserstein", blunted])
def test_neighbors_of_new_points_are_scipys(points, new, tmp_path, metric, dtype):
    trained, queries = points.astype(dtype), new.astype(dtype)
    graph = sm.knn_graph(trained, K, metric=metric, store=tmp_path / "run").query(queries)
    away = distances_between(metric, queries, trained)
    rounding = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(graph.distances, np.take_along_axis(away, graph.indices, axis=1), rtol=rounding)
    np.testing.assert_allclose(graph.distances, np.sort(away, axis=1)[:, :K], rtol=rounding)
    assert graph.recall == 1.0
    transformer = sm.KNeighborsTransformer(K - 1, metric=metric).fit(trained)
    np.testing.assert_array_equal(transformer.transform(queries).indices.reshape(-1, K), graph.indices)


def test_the_recall_is_that_of_what_the_search_has_listed(points, new, tmp_path, monkeypatch):
    graph, whole = sm.knn_graph(points, K, metric="manhattan", store=tmp_path / "run"), neighbors.compared_neighbors

    def without_some(distance, queries, labels, rows, start, known, limits):
        return known if start == 0 else whole(distance, queries, labels, rows, start, known, limits)

    monkeypatch.setattr(neighbors, "compared_neighbors", without_some)
    monkeypatch.setattr(neighbors.ComparedIndex, "_blocks", by_halves(neighbors.ComparedIndex._blocks))
    away = distances_between("manhattan", new, points)
    found = graph.query(new)
    reached = np.sort(away, axis=1)[:, K - 1, np.newaxis] * (1 + 1e-9)
    true = np.mean(np.take_along_axis(away, found.indices, axis=1) <= reached)
    assert 0.2 < true < 0.8
    assert found.recall == pytest.approx(true, abs=0.1)


def by_halves(blocks):
    def halves(index):
        for start, rows in blocks(index):
            yield start, rows[: N // 2]
            yield start + N // 2, rows[N // 2 :]

    return halves


def entropic(distances, perplexity):
    """Return rows p (m, n) of which the entropy is that of a perplexity, by Brent's method."""

    def shares(squares, beta):
        values = np.exp(-beta * (squares - squares.min()))
        return values / values.sum()

    def excess(log_beta, squares):
        p = shares(squares, np.exp(log_beta))
        return -(p * np.log(np.maximum(p, 1e-300))).sum() - np.log(perplexity)

    squares = distances**2
    return np.array([shares(row, np.exp(brentq(excess, -30, 30, args=(row,)))) for row in squares])


@pytest.mark.parametrize(("method", "alpha"), [("laplacian-eigenmaps", 0.0), ("diffusion-maps", 0.7)])
def test_eigenvectors_go_on_to_new_points_as_nystroms_formula_says(points, new, tmp_path, method, alpha):
    """u(x) = sum p(x, n) u_n / mu, p by neighbours, over densities to the power alpha."""
    asked = Parameters().with_values({"points.metric": "canberra", **FEW, "normalized_affinities.alpha": alpha})
    found = run(open_points(points), tmp_path / "run", method, asked, Executor(), 1024)
    placed = NewPoints(read_placement(found), open_points(new)).read_all()
    away = distances_between("canberra", new, points)
    near = np.argsort(away, axis=1, kind="stable")[:, :20]
    affinities = entropic(np.take_along_axis(away, near, axis=1), 6.0)
    degrees = np.asarray(found.affinities.rows(0, N).sum(axis=1)).ravel()
    affinities = affinities / degrees[near] ** alpha
    affinities /= affinities.sum(axis=1, keepdims=True)
    embedding = np.asarray(found.embedding[...])
    expected = np.einsum("mk,mkd->md", affinities, embedding[near]) / (1 - found.eigenvalues)
    np.testing.assert_allclose(placed, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


def test_weights_are_copies_of_points_where_new_ones_are_placed(points, new, tmp_path):
    """Eigenvectors of weighted points, and of these in as many copies, place new points alike."""
    copies = np.random.default_rng(0).integers(1, 4, 300)
    few, near = points[:300], new[:50]
    shared = {"metric": "manhattan", "perplexity": 30.0, "alpha": 1.0, "settings": {"embedding.residual": 1e-9}}
    weighted = sm.DiffusionMaps(2, n_neighbors=299, **shared)
    weighted.fit(few, sample_weight=copies)
    repeated = np.repeat(few, copies, axis=0)
    plain = sm.DiffusionMaps(2, n_neighbors=len(repeated) - 1, **shared).fit(repeated)
    one, other = weighted.transform(near), plain.transform(near)
    signs = np.sign((one * other).sum(axis=0))
    np.testing.assert_allclose(
        one / np.linalg.norm(one, axis=0), signs * other / np.linalg.norm(other, axis=0), atol=2e-3
    )


@pytest.mark.parametrize("method", ["t-sne", "spectral-clustering", "elastic-embedding"])
def test_new_points_lie_among_points_of_their_cluster(points, new, clusters, tmp_path, method):
    asked = Parameters().with_values({"points.metric": "braycurtis", **FEW, **SHORT})
    found = run(open_points(points), tmp_path / "run", method, asked, Executor(), 1024)
    placement = read_placement(found)
    placed = NewPoints(placement, open_points(new)).read_all()
    nearest = cdist(placed, np.asarray(found.embedding[...])).argmin(axis=1)
    away = distances_between("braycurtis", new, points)
    by_distance = np.mean(clusters[away.argmin(axis=1)] == clusters[N:])
    assert np.mean(clusters[nearest] == clusters[N:]) > by_distance - 0.05
    again = NewPoints(placement, open_points(points[:9])).read_all()
    np.testing.assert_array_equal(again, np.asarray(found.embedding[:9]))


def test_the_command_places_points_by_a_function_in_blocks_and_processes(points, new, tmp_path, scalemani):
    metric, run_folder = f"{__file__}::blunted", tmp_path / "run"
    many = np.concatenate([new, new + 0.01, new + 0.02])
    np.save(tmp_path / "points.npy", points)
    np.save(tmp_path / "new.npy", many)
    settings = ["affinities.perplexity=6", "neighbors.n_neighbors=20", f"clustering.n_clusters={N_CLUSTERS}"]
    given = ["--method", "spectral-clustering", "--metric", metric, *(f"--set={one}" for one in settings)]
    assert scalemani("embed", tmp_path / "points.npy", run_folder, *given)[0] == 0
    placed = NewPoints(read_placement(sm.open_run(run_folder)), open_points(many)).read_all()
    for number, how in enumerate((["--workers", "1"], ["--scheduler", "processes", "--workers", "2"])):
        out = tmp_path / f"placed-{number}.npy"
        status, told, error = scalemani("transform", run_folder, tmp_path / "new.npy", out, *how)
        assert status == 0, error
        assert "recall" in told
        np.testing.assert_array_equal(np.load(out), placed)
        assert len(np.unique(np.load(out.with_suffix(".labels.npy")))) == N_CLUSTERS


def test_new_points_are_compared_with_all_others_block_by_block_within_the_projected_memory(tmp_path):
    many = np.random.default_rng(3).gamma(1.0, size=(16_000, 64))
    asked = Parameters().with_values({"points.metric": "manhattan", **FEW})
    found = run(open_points(many), tmp_path / "run", "laplacian-eigenmaps", asked, Executor(), 1024)
    rows = many[:1024] + 0.01
    projected = placement_memory(found, Dimensions(1024, 64, "float64", 1024), 1024)
    read_placement(found, n_threads=1).place(rows[:2])  # what is imported and compiled once
    tracemalloc.start()
    read_placement(found, n_threads=1).place(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < projected.total() < many.nbytes


@pytest.mark.parametrize("metric", ["manhattan", blunted])
def test_new_points_have_a_place_next_to_their_cluster_of_three_that_bridges_join(points, new, metric):
    """Columns are constant on clusters that lie far from each other."""
    far, cluster = np.array([0.0, 90.0, 300.0]), np.arange(600) % 3
    model = sm.LaplacianEigenmaps(2, metric=metric).fit(points[:600] + far[cluster, np.newaxis])
    assert model.certificates_["components"]["bridges"] == 2
    of_new = np.arange(len(new)) % 3
    placed = model.transform(new + far[of_new, np.newaxis])
    middles = np.array([model.embedding_[cluster == one].mean(axis=0) for one in range(3)])
    np.testing.assert_allclose(placed, middles[of_new], atol=0.05 * np.abs(middles).max())
    assert cdist(middles, middles)[np.triu_indices(3, 1)].min() > 0.5 * np.abs(middles).max()


def test_points_have_no_place_in_pieces_that_are_infinitely_far(points):
    apart = np.concatenate([points[:200], points[200:400] + 1e150])  # whose third power is no float64
    model = sm.LaplacianEigenmaps(2, metric="minkowski:3")
    with pytest.warns(ScalemaniWarning, match="2 pieces"):
        model.fit(apart)
    with pytest.raises(ConfigError, match=r"coordinates of several pieces.*disconnected=.largest"):
        model.transform(apart[:5])
    largest = sm.LaplacianEigenmaps(2, metric="minkowski:3", disconnected="largest").fit(apart)
    assert np.isfinite(largest.transform(apart[:5])).all()


@pytest.mark.parametrize(
    "model",
    [
        sm.LaplacianEigenmaps(2, metric="minkowski:3"),
        sm.LaplacianEigenmaps(2, metric="minkowski:3", affinity="self-tuning"),
        sm.TSNE(metric="minkowski:3", max_iter=20, settings={"layout.converged": 0.0}),
    ],
)
@pytest.mark.filterwarnings("ignore:.* still moving")
def test_points_that_are_infinitely_far_have_no_place(points, new, model):
    far = new[:20].copy()
    far[7] = 1e200  # whose third power is no float64
    model.fit(points)
    with pytest.warns(ScalemaniWarning, match="^1 new points have no coordinates, first rows 7: "):
        placed = model.transform(far)
    np.testing.assert_array_equal(np.isnan(placed).all(axis=1), np.arange(20) == 7)
    others = np.arange(20) != 7
    np.testing.assert_array_equal(placed[others], model.transform(far[others]))
