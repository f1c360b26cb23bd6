"""The stage `components`: pieces and bridges of a graph that brute force builds, counted by SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DisconnectedGraphError
from scalemani.io.sources import open_points
from scalemani.runs.walk import run
from scalemani.stages.arrays.graph import StoredNeighbors

K = 6
SIZES = [1500, 60, 50, 40, 30]
CENTERS = np.array([[0, 0, 0], [30, 0, 0], [30, 25, 0], [-40, 0, 5], [0, 90, 0]], float)


def pieces(n_pieces):
    """Return points in so many clusters, mixed in their order."""
    draws = np.random.default_rng(n_pieces)
    points = np.repeat(CENTERS[:n_pieces], SIZES[:n_pieces], axis=0)
    return draws.permutation(points + draws.normal(size=points.shape)).astype(np.float32)


def brute_force(points):
    """Return the number of components of the k-nearest-neighbour graph, the label of each point, and all distances."""
    away = cdist(points.astype(np.float64), points.astype(np.float64))
    np.fill_diagonal(away, np.inf)
    nearest = np.argsort(away, axis=1)[:, :K]
    rows = np.repeat(np.arange(len(points)), K)
    edges = sp.csr_matrix((np.ones(rows.size), (rows, nearest.ravel())), shape=away.shape)
    return edges, *connected_components(edges, directed=False), away


def test_components_of_blocks_that_are_joined_in_two_ranges_are_those_of_scipy(tmp_path):
    points = np.random.default_rng(8).permutation(np.repeat(CENTERS * 20, 13_400, axis=0))
    points = (points + np.random.default_rng(9).normal(size=points.shape)).astype(np.float32)
    values = {"neighbors": {"n_neighbors": K, "recall": 0.5}, "affinities": {"perplexity": 2}}
    values |= {
        "embedding": {"solver": "lll"},
        "landmarks": {"n_landmarks": 50},
        "landmark_embedding": {"n_components": 1},
    }
    finished = run(
        open_points(points), tmp_path / "run", "laplacian-eigenmaps", Parameters().with_values(values), Executor(), 1024
    )
    lists = StoredNeighbors(finished.group("neighbors"))
    nearest = lists.indices(lists.final_step).read()
    rows = np.repeat(np.arange(len(points)), nearest.shape[1])
    edges = sp.csr_matrix((np.ones(rows.size), (rows, nearest.ravel())), shape=(len(points), len(points)))
    count, labels = connected_components(edges, directed=False)
    agreement = sp.coo_matrix((np.ones(len(points)), (labels, finished.group("components").read("labels")))).tocsr()
    assert finished.certificates["components"]["components"] == count == agreement.nnz >= 5
    assert finished.certificates["components"]["largest_components"][0] == np.bincount(labels).max()


@pytest.mark.parametrize("n_pieces", [1, 2, 5])
def test_components_and_bridges_are_those_of_the_graph_by_brute_force(tmp_path, n_pieces):
    points = pieces(n_pieces)
    values = {"neighbors": {"n_neighbors": K, "method": "exact"}, "affinities": {"perplexity": 2}}
    values["components"] = {"queries_per_component": 2000}  # all: bridges are closest pairs, not of samples
    params = Parameters().with_values({**values, "embedding": {"residual": 0.5, "max_passes": 2}})
    finished = run(open_points(points), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    edges, count, labels, away = brute_force(points)
    certificates, group = finished.certificates["components"], finished.group("components")
    assert certificates["components"] == count >= n_pieces
    assert certificates["largest_components"] == sorted(np.bincount(labels).tolist(), reverse=True)[:10]
    assert certificates["bridges"] == count - 1
    order = finished.group("work_points").read("input_rows")
    agreement = sp.coo_matrix((np.ones(len(points)), (labels[order], group.read("labels")))).tocsr()
    assert agreement.nnz == count  # one label of ours for each of SciPy's
    bridges = order[group.read("bridge_rows")]
    np.testing.assert_allclose(group.read("bridge_distances"), away[bridges[:, 0], bridges[:, 1]], rtol=1e-5)
    between = np.array([[away[labels == a][:, labels == b].min() for b in range(count)] for a in range(count)])
    shortest = minimum_spanning_tree(np.where(np.isfinite(between), between, 0)).sum()
    assert group.read("bridge_distances").sum() == pytest.approx(shortest, rel=1e-5)
    joined = edges + sp.csr_matrix((np.ones(len(bridges)), bridges.T), shape=edges.shape)
    assert connected_components(joined, directed=False)[0] == 1


def capped(one, other):
    """Return the sum of differences, each at most 60: no norm."""
    total = 0.0
    for d in range(one.size):
        total += min(abs(one[d] - other[d]), 60.0)
    return total


COMPARED = {
    "manhattan": ("manhattan", {"metric": "cityblock"}),
    "chebyshev": ("chebyshev", {"metric": "chebyshev"}),
    "braycurtis": ("braycurtis", {"metric": "braycurtis"}),
    "minkowski:3": ("minkowski:3", {"metric": "minkowski", "p": 3}),
    "function": (f"{__file__}::capped", {"metric": lambda one, other: np.minimum(np.abs(one - other), 60.0).sum()}),
}


def compared_run(points, folder, metric, executor, block_rows, **values):
    """Return a finished run of points in a metric that compares rows, whose bridges are closest pairs of all rows."""
    given = {"points": {"metric": metric}, "neighbors": {"n_neighbors": K}, "affinities": {"perplexity": 2}}
    given = {**given, "components": {"queries_per_component": 2000}, "embedding": {"residual": 0.5, "max_passes": 2}}
    params = Parameters().with_values({**given, **values})
    return run(open_points(points), folder, "laplacian-eigenmaps", params, executor, block_rows)


def closest_between(away, labels):
    """Return the closest distance of every two components."""
    count = labels.max() + 1
    between = np.array([[away[np.ix_(labels == a, labels == b)].min() for b in range(count)] for a in range(count)])
    return between * (1 - np.eye(count))


@pytest.mark.parametrize("name", COMPARED)
def test_bridges_in_a_metric_that_compares_rows_are_closest_pairs_by_scipy(tmp_path, name):
    points = (pieces(5) + 60).astype(np.float32)
    metric, of_scipy = COMPARED[name]
    finished = compared_run(points, tmp_path / "run", metric, Executor(workers=2), 1024)
    certificates, group = finished.certificates["components"], finished.group("components")
    order, labels = finished.group("work_points").read("input_rows"), group.read("labels")
    away = cdist(points[order].astype(float), points[order].astype(float), **of_scipy)
    assert certificates["components"] == labels.max() + 1 > 1
    assert certificates["bridges"] == labels.max()
    bridges, lengths = group.read("bridge_rows"), group.read("bridge_distances")
    np.testing.assert_allclose(lengths, away[bridges[:, 0], bridges[:, 1]], rtol=1e-12)
    assert lengths.sum() == pytest.approx(minimum_spanning_tree(closest_between(away, labels)).sum(), rel=1e-12)
    assert connected_components(finished.affinities.tocsr(), directed=False)[0] == 1


def test_bridges_in_a_metric_that_compares_rows_are_the_same_for_all_blocks_and_schedulers(tmp_path, monkeypatch):
    points = pieces(5).astype(np.float64)
    asked = {"components": {"queries_per_component": 20}}
    runs = [compared_run(points, tmp_path / "threads", "manhattan", Executor(workers=2), 1024, **asked)]
    runs.append(
        compared_run(points, tmp_path / "processes", "manhattan", Executor("processes", workers=2), 2048, **asked)
    )
    rows, lengths = (runs[0].group("components").read(f"bridge_{name}") for name in ("rows", "distances"))
    labels = runs[0].group("components").read("labels")
    assert len(rows) == labels.max() >= 4
    # Each is the nearest of other components to one of its ends, in one of the rounds.
    order = runs[0].group("work_points").read("input_rows")
    away = cdist(points[order], points[order], "cityblock")
    away[labels[:, np.newaxis] == labels] = np.inf
    nearest = np.minimum(away[rows[:, 0]].min(axis=1), away[rows[:, 1]].min(axis=1))
    assert (lengths[:-1] >= nearest[:-1] * (1 - 1e-12)).all()
    for other in runs[1:]:
        for name in ("labels", "bridge_rows", "bridge_distances", "bridge_weights"):
            np.testing.assert_array_equal(other.group("components").read(name), runs[0].group("components").read(name))


def test_a_bridge_weighs_the_mean_over_its_ends_of_the_affinity_of_the_farthest_neighbour(tmp_path):
    draws = np.random.default_rng(4)
    points = np.concatenate([draws.normal(size=(300, 2)), 40 + 5 * draws.normal(size=(200, 2)) ** 3])
    values = {"neighbors": {"n_neighbors": K}, "affinities": {"perplexity": 3}}
    params = Parameters().with_values({**values, "embedding": {"residual": 0.5, "max_passes": 2}})
    finished = run(open_points(points), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    group, affinities = finished.group("components"), finished.group("affinities").read("values").astype(float)
    ends = group.read("bridge_rows")
    farthest = np.maximum(affinities.min(axis=1), 1e-3 * affinities.mean(axis=1))[ends]
    assert len(ends) > 0
    assert (farthest.max(axis=1) > 1.2 * farthest.min(axis=1)).any()
    np.testing.assert_allclose(group.read("bridge_weights"), farthest.mean(axis=1), rtol=1e-12)
    weights, order = finished.affinities.tocsr(), finished.group("work_points").read("input_rows")
    found = np.asarray(weights[order[ends[:, 0]], order[ends[:, 1]]]).ravel()
    np.testing.assert_allclose(found, farthest.mean(axis=1), rtol=1e-6)


CHAIN = np.column_stack([1000 * np.sort(np.random.default_rng(3).uniform(size=1500)), np.zeros(1500)])
NARROW = {"neighbors": {"n_neighbors": K}, "affinities": {"perplexity": 2}}


@pytest.mark.parametrize("rows", [1024, 2048])
def test_edges_that_rounding_loses_join_nothing_and_bridges_over_them_count(tmp_path, rows):
    params = Parameters().with_values({**NARROW, "embedding": {"residual": 0.5, "max_passes": 2}})
    finished = run(open_points(CHAIN), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), rows)
    n_points, group = len(CHAIN), finished.group("components")
    indices = finished.group("neighbors").read(final_indices(finished))
    affinities = finished.group("affinities").read("values").astype(float)
    directed = np.zeros((n_points, n_points))
    np.put_along_axis(directed, indices, affinities, axis=1)
    weights = directed + directed.T
    roots = np.sqrt(weights.sum(axis=1))
    joined = directed / np.outer(roots, roots) >= np.finfo(np.float32).eps
    count, labels = connected_components(sp.csr_matrix(joined), directed=False)
    assert count > connected_components(sp.csr_matrix(directed > 0), directed=False)[0]
    assert finished.certificates["components"]["components"] == count
    np.testing.assert_array_equal(group.read("labels"), labels)
    ends, bridges = group.read("bridge_rows").T, group.read("bridge_weights")
    assert (2 * bridges / (roots[ends[0]] * roots[ends[1]]) > np.finfo(np.float32).eps).all()

    def eigenvalues(matrix):
        degrees = matrix.sum(axis=1)
        return 1 - np.linalg.eigvalsh(matrix / np.sqrt(np.outer(degrees, degrees)))[::-1]

    bridged = weights.copy()
    bridged[ends[0], ends[1]] += 2 * bridges
    bridged[ends[1], ends[0]] += 2 * bridges
    assert np.count_nonzero(eigenvalues(weights) < 1e-11) > 1
    assert np.count_nonzero(eigenvalues(bridged) < 1e-11) == 1


def test_the_largest_of_pieces_that_rounding_separates_is_kept_alone(tmp_path):
    params = Parameters().with_values({**NARROW, "components": {"disconnected": "largest"}})
    finished = run(open_points(CHAIN), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    kept = np.asarray(finished.input_rows)
    assert len(kept) < len(CHAIN)
    assert (np.diff(kept) == 1).all()  # a stretch of the chain
    assert finished.certificates["components"]["components"] == 1


@pytest.mark.parametrize(
    ("method", "affinities", "remedy"),
    [
        ("laplacian-eigenmaps", {"perplexity": 3}, "raise neighbors.n_neighbors or affinities.perplexity, or set"),
        (
            "laplacian-eigenmaps",
            {"kind": "gaussian", "sigma": 1.0},
            "raise neighbors.n_neighbors or affinities.sigma, or set",
        ),
        (
            "laplacian-eigenmaps",
            {"kind": "self-tuning", "bandwidth_neighbor": 5},
            "raise neighbors.n_neighbors, or set",
        ),
        ("isomap", {}, "raise neighbors.n_neighbors, or set"),
    ],
)
def test_a_graph_in_pieces_is_refused_with_parameters_that_the_method_has(tmp_path, method, affinities, remedy):
    values = {"neighbors": {"n_neighbors": K}, "components": {"disconnected": "error"}, "affinities": affinities}
    params = Parameters().with_values({**values, "landmarks": {"n_landmarks": 50}})
    with pytest.raises(DisconnectedGraphError, match=remedy):
        run(open_points(pieces(2)), tmp_path / "run", method, params, Executor(), 2048)


def final_indices(finished):
    return f"{StoredNeighbors(finished.group('neighbors')).final_step}/indices"
