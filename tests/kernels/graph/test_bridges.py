import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from scalemani.kernels.graph.components import (
    Cells,
    Ends,
    boruvka_round,
    chosen_rows,
    nearer,
    nearest_compared,
    nearest_in_cells,
    nearest_outside,
    no_spans,
    pass_labels,
    radii_of_cells,
    reach,
    widen_spans,
)
from scalemani.kernels.rows.metrics import METRICS


def bridge_queries(labels, n_per_component=64):
    """Return the rows that look for a bridge."""
    chosen = chosen_rows(np.bincount(labels), n_per_component)
    pass_labels(chosen, labels, 0)
    return chosen.ends.rows


def spans_of(labels, cells, size):
    """Return the components that the rows of cells are in, passed in blocks of `size`."""
    spans = no_spans(len(cells.radii))
    for start in range(0, len(labels), size):
        widen_spans(spans, cells.offsets, labels[start : start + size], start)
    return spans


def test_queries_spread_over_all_but_the_largest():
    labels = np.repeat([0, 1, 2], [10, 1000, 200])
    queries = bridge_queries(labels, 64)
    assert np.bincount(labels[queries], minlength=3).tolist() == [10, 0, 64]
    assert queries[10] == 1010
    assert queries[-1] == 1209
    assert len(bridge_queries(np.zeros(5, int))) == 0


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(0, 99), st.sampled_from([1.0, 1e-6, 1e6]), st.sampled_from([0.0, 1e5]), st.integers(1, 1300))
def test_nearest_outside_is_exact_for_any_blocks(seed, scale, offset, size):
    rng = np.random.default_rng(seed)
    points = (rng.normal(size=(1300, 5)) * scale + offset * scale).astype(np.float32)
    labels = rng.integers(0, 3, 1300)
    queries = np.arange(0, 1300, 37)
    best = (np.full(len(queries), -1), np.full(len(queries), np.inf))
    for start in range(0, 1300, size):
        rows = slice(start, start + size)
        best = nearer(best, nearest_outside(points[queries], labels[queries], points[rows], labels[rows], start))
    distances = cdist(points[queries].astype(np.float64), points.astype(np.float64))
    distances[labels[queries][:, None] == labels[None, :]] = np.inf
    np.testing.assert_allclose(best[1], distances.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(distances[np.arange(len(queries)), best[0]], distances.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "canberra", "minkowski:3"])
@pytest.mark.parametrize("size", [1, 129, 1300])
def test_the_nearest_that_a_function_compares_is_scipys_for_any_blocks(metric, size):
    rng = np.random.default_rng(size)
    points, labels, queries = rng.gamma(1.0, size=(1300, 7)), rng.integers(0, 3, 1300), np.arange(0, 1300, 37)
    points[700:720] = points[:20]  # ties go to the first row
    best = (np.full(len(queries), -1), np.full(len(queries), np.inf))
    for start in range(0, 1300, size):
        rows, distance = slice(start, start + size), METRICS[metric].distance
        found = nearest_compared(distance, points[queries], labels[queries], points[rows], labels[rows], start)
        best = nearer(best, found)
    name, _, power = metric.partition(":")
    of_scipy = {"manhattan": "cityblock"}.get(name, name)
    distances = cdist(points[queries], points, of_scipy, **({"p": float(power)} if power else {}))
    distances[labels[queries][:, None] == labels[None, :]] = np.inf
    np.testing.assert_allclose(best[1], distances.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(distances[np.arange(len(queries)), best[0]], distances.min(axis=1), rtol=1e-12)
    twins = np.isin(best[0], np.arange(700, 720))
    assert (labels[best[0][twins] - 700] == labels[queries[twins]]).all()


def test_rows_that_are_infinitely_far_or_have_no_distance_are_no_answer():
    points = np.array([[1.0], [np.inf], [np.nan]])
    rows, distances = nearest_compared(
        METRICS["manhattan"].distance, np.zeros((1, 1)), np.zeros(1, int), points[1:], np.ones(2, int), 1
    )
    assert rows.tolist() == [-1]
    assert np.isinf(distances).all()


def test_a_block_of_the_same_label_has_no_answer():
    rows, distances = nearest_outside(np.zeros((1, 2)), np.zeros(1, int), np.ones((4, 2)), np.zeros(4, int), 0)
    assert rows.tolist() == [-1]
    assert np.isinf(distances).all()


def test_rounds_of_bridges_are_the_minimum_spanning_tree_of_the_components():
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(12), 8)
    points = rng.normal(size=(96, 2)) + 8 * rng.normal(size=(12, 2))[labels]
    between = np.full((12, 12), np.inf)
    distances = cdist(points, points)
    for i in range(12):
        for j in range(12):
            if i != j:
                between[i, j] = distances[np.ix_(labels == i, labels == j)].min()
    total, current, rounds = 0.0, labels, 0
    while current.max() > 0:
        queries = bridge_queries(current)
        found = nearest_outside(points[queries], current[queries], points, current, 0)
        ends = Ends(queries, current[queries]), Ends(found[0], current[found[0]])
        bridges, numbers = boruvka_round(current.max() + 1, *ends, found[1])
        total += bridges.distances.sum()
        assert numbers.max() == current.max() - len(bridges.rows)
        current, rounds = numbers[current], rounds + 1
    expected = minimum_spanning_tree(np.where(np.isinf(between), 0, between)).sum()
    np.testing.assert_allclose(total, expected, rtol=1e-12)
    assert rounds <= 4


def cells_of(draws, points, n_cells, size):
    """Return points sorted into cells, and the cells as balls that were measured in blocks of `size` rows."""
    centers = points[draws.choice(len(points), n_cells, replace=False)]
    numbers = cdist(points, centers).argmin(axis=1)
    order = np.argsort(numbers, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=n_cells + 2))])
    centers = np.concatenate([centers, centers[:2] + 100]).astype(np.float32)  # two cells without rows at the end
    points = points[order]
    starts = range(0, len(points), size)
    parts = [radii_of_cells(points[start : start + size], start, offsets, centers) for start in starts]
    return points, order, Cells(offsets, centers, functools.reduce(np.maximum, parts))


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(0, 99), st.sampled_from([1.0, 1e4]), st.integers(1, 60), st.integers(40, 1300))
def test_cells_that_are_ruled_out_change_no_bit(seed, offset, n_cells, size):
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, 6, 1300)
    points = (draws.normal(size=(1300, 3)) + 4 * draws.normal(size=(6, 3))[labels] + offset).astype(np.float32)
    points, order, cells = cells_of(draws, points, n_cells, size)
    labels = labels[order]
    queries = bridge_queries(labels, 20)
    given = points[queries], labels[queries]
    within = reach(*given, spans_of(labels, cells, size), cells)
    parts = [
        nearest_in_cells(*given, within, points[start : start + size], labels[start : start + size], start, cells)
        for start in range(0, 1300, size)
    ]
    rows, distances = functools.reduce(nearer, parts)
    expected_rows, expected = nearest_outside(*given, points, labels, 0)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(distances, expected)
    assert (within >= expected).all()


def test_most_cells_are_ruled_out_where_components_lie_apart():
    draws = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 400)
    points = (draws.normal(size=(4000, 2)) + 30 * draws.normal(size=(10, 2))[labels]).astype(np.float32)
    points, order, cells = cells_of(draws, points, 100, 4000)
    labels = labels[order]
    queries = bridge_queries(labels, 10)
    within = reach(points[queries], labels[queries], spans_of(labels, cells, 4000), cells)
    balls = cdist(points[queries], cells.centers[:100]) - cells.radii[:100]
    others = labels[queries][:, None] != labels[cells.offsets[:100]]
    assert np.mean((balls <= within[:, None])[others]) < 0.15


def test_radii_hold_all_rows_of_a_cell():
    draws = np.random.default_rng(1)
    points, _, cells = cells_of(draws, draws.normal(size=(500, 4)).astype(np.float32), 12, 77)
    for cell, (first, last) in enumerate(zip(cells.offsets[:-1], cells.offsets[1:], strict=True)):
        away = np.linalg.norm(points[first:last].astype(float) - cells.centers[cell], axis=1)
        assert np.isinf(cells.radii[cell]) if first == last else np.isclose(cells.radii[cell], away.max())
