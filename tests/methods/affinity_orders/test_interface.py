"""Orders over a whole set against loops and SciPy, and affinities that start along them."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.errors import ConfigError, DataError

N_POINTS, K, PERPLEXITY = 1500, 12, 4.0  # more rows than a tile
POINTS = np.random.default_rng(0).normal(size=(N_POINTS, 3)) * [3, 1, 0.3]
AWAY = cdist(POINTS, POINTS) + np.diag(np.full(N_POINTS, np.inf))
INDICES = np.argsort(AWAY, axis=1)[:, :K]
DISTANCES = np.take_along_axis(AWAY, INDICES, axis=1)


def entropy(squares, beta):
    shares = np.exp(-beta * (squares - squares[0]))
    shares /= shares.sum()
    return -(shares * np.log(np.maximum(shares, 1e-300))).sum()


def plain_beta(row):
    squares = row**2
    return brentq(lambda beta: entropy(squares, beta) - np.log(PERPLEXITY), 1e-6, 1e6, xtol=1e-14, rtol=1e-14)


@pytest.fixture(scope="module")
def betas():
    return np.array([plain_beta(row) for row in DISTANCES])


@pytest.mark.parametrize("method", ["density", "mst", "path", "raster", "random"])
def test_affinities_do_not_depend_on_the_order(betas, method):
    order = sm.affinity_order(DISTANCES, method, indices=INDICES)
    found = sm.affinities_in_order(DISTANCES, order, PERPLEXITY)
    np.testing.assert_allclose(found.beta, betas, rtol=1e-8)
    assert (np.abs(found.residuals) < 1e-10).all()
    assert ((found.bounds[:, 0] <= betas) & (betas <= found.bounds[:, 1])).all()


def test_a_row_starts_from_beta_itself_of_the_row_that_it_names():
    """Equal rows need no step; one of twice the distances does, though its beta times their spread is the same."""
    rows = DISTANCES[[0, 0, 0, 0]] * np.array([[1], [1], [2], [2]])
    steps = sm.affinities_in_order(rows, [3, 0, 3, -1], PERPLEXITY).iterations
    assert (steps[3] > 0, steps[2] == 0, steps[0] > 0, steps[1] == 0) == (True,) * 4
    assert sm.entropic_affinities(rows, PERPLEXITY, order="raster").iterations[1:].max() == 0


def test_the_better_an_order_by_the_sum_of_steps_in_log_beta_the_fewer_iterations(betas):
    sequence = np.argsort(betas)
    oracle = np.full(N_POINTS, -1)
    oracle[sequence[1:]] = sequence[:-1]
    orders = {
        "oracle": oracle,
        "density": sm.affinity_order(DISTANCES, kappa=4),
        "random": sm.affinity_order(DISTANCES, "random"),
    }
    lengths = {name: sm.order_lengths(order, betas).log_beta for name, order in orders.items()}
    steps = {
        name: sm.affinities_in_order(DISTANCES, order, PERPLEXITY).iterations.mean() for name, order in orders.items()
    }
    assert sorted(lengths, key=lengths.get) == sorted(steps, key=steps.get) == list(orders)


@pytest.mark.parametrize("kappa", [3, K])
def test_the_tree_is_the_least_one_over_kappa_neighbours(kappa):
    order = sm.affinity_order(DISTANCES, "mst", indices=INDICES, kappa=kappa)
    rows = np.repeat(np.arange(N_POINTS), kappa)
    forest = minimum_spanning_tree(
        csr_array((DISTANCES[:, :kappa].ravel(), (rows, INDICES[:, :kappa].ravel())))
    ).tocoo()
    expected = {frozenset(edge) for edge in zip(forest.row.tolist(), forest.col.tolist(), strict=True)}
    edges = {frozenset((row, parent)) for row, parent in enumerate(order.tolist()) if parent >= 0}
    assert expected <= edges
    assert len(edges) == N_POINTS - 1  # roots start from the root before them


def test_a_path_goes_on_to_the_nearest_of_kappa_neighbours_that_is_left():
    order = sm.affinity_order(DISTANCES, "path", indices=INDICES, kappa=3)
    following = np.full(N_POINTS, -1)
    following[order[order >= 0]] = np.flatnonzero(order >= 0)
    row, visited = int(np.flatnonzero(order < 0)[0]), set()
    while row >= 0:
        visited.add(row)
        left = [other for other in INDICES[row, :3].tolist() if other not in visited]
        if left:
            assert following[row] == left[0]
        row = int(following[row])
    assert len(visited) == N_POINTS


def test_a_raster_goes_to_and_fro_and_density_by_the_distance_to_a_neighbour():
    assert sm.affinity_order(DISTANCES[:6], "raster", image_columns=3).tolist() == [-1, 0, 1, 4, 5, 2]
    assert sm.affinity_order(DISTANCES[:3], "raster").tolist() == [-1, 0, 1]
    order = sm.affinity_order(DISTANCES, kappa=5)
    rows = np.flatnonzero(order >= 0)
    assert (DISTANCES[rows, 4] >= DISTANCES[order[rows], 4]).all()


def test_lengths_of_orders_are_sums_over_rows_and_those_that_they_start_from(betas):
    order = sm.affinity_order(DISTANCES, "mst", indices=INDICES)
    pairs = [(row, parent) for row, parent in enumerate(order) if parent >= 0]
    found = sm.order_lengths(order, betas, POINTS)
    assert found.log_beta == pytest.approx(sum(abs(np.log(betas[one] / betas[other])) for one, other in pairs))
    assert found.points == pytest.approx(sum(((POINTS[one] - POINTS[other]) ** 2).sum() for one, other in pairs))


def test_bounds_are_those_of_the_theorem(betas):
    """Of squared distances less the least, which leaves beta as it is."""
    squares = DISTANCES**2 - DISTANCES[:, :1] ** 2
    target = np.log(min(np.sqrt(2 * K), PERPLEXITY))
    share = brentq(lambda p: 2 * (1 - p) * np.log(K / (2 * (1 - p))) - target, 0.75, 1 - 1e-15)
    ratio = np.log(K / PERPLEXITY)
    lower = np.maximum(K / (K - 1) * ratio / squares[:, -1], np.sqrt(ratio / squares[:, -1] ** 2))
    upper = np.log(share / (1 - share) * (K - 1)) / squares[:, 1]
    found = sm.entropic_affinities(DISTANCES, PERPLEXITY)
    np.testing.assert_allclose(found.bounds, np.column_stack([lower, upper]), rtol=1e-9)
    assert ((found.bounds[:, 0] < betas) & (betas < found.bounds[:, 1])).all()
    ties = sm.entropic_affinities([[1.0, 1.0, 1.0, 2.0]], 2.0)
    assert (ties.bounds == np.finfo(float).max).all()


def test_orders_that_are_none_are_refused():
    with pytest.raises(DataError, match="row 1 of an order starts from itself"):
        sm.affinities_in_order(DISTANCES[:3], [-1, 2, 1], PERPLEXITY)
    with pytest.raises(DataError, match="an order has a row from -1 to 2"):
        sm.affinities_in_order(DISTANCES[:3], [-1, 0, 3], PERPLEXITY)
    with pytest.raises(ConfigError, match="follows the graph"):
        sm.affinity_order(DISTANCES, "mst")
