from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.neighbors.cell_index import train_cells
from scalemani.kernels.neighbors.cell_scan import search_cells, search_enough_cells
from scalemani.kernels.neighbors.cells import nearest_cells


def partitioned(n_points, n_dims, n_cells, n_probes, seed=0):
    """Sketches in work order, cell offsets, and the cells each visits."""
    sketches = np.random.default_rng(seed).normal(size=(n_points, n_dims)).astype(np.float32)
    centroids = train_cells(sketches, n_cells, np.random.default_rng(seed))
    probes = nearest_cells(sketches, centroids, n_probes)
    order, offsets = group_by(probes[:, 0], len(centroids))
    return sketches[order], offsets, probes[order]


@pytest.mark.parametrize(
    ("n_dims", "n_cells", "n_probes", "n_candidates"),
    [
        (1, 12, 2, 3),
        (5, 12, 1, 10),
        (10, 12, 4, 25),
        (64, 12, 8, 60),
        (5, 3, 1, 10),
    ],  # the last has cells of several panels
)
def test_candidates_are_the_nearest_rows_of_the_visited_cells(n_dims, n_cells, n_probes, n_candidates):
    sketches, offsets, probes = partitioned(900, n_dims, n_cells, n_probes)
    candidates = search_cells(sketches, offsets, probes, 0, n_candidates)
    squares = cdist(sketches.astype(float), sketches.astype(float)) ** 2
    assert candidates.dtype == np.int32
    for i in range(900):
        visited = np.concatenate([np.arange(offsets[cell], offsets[cell + 1]) for cell in probes[i]])
        found = candidates[i][candidates[i] >= 0]
        assert len(found) >= min(0.8 * n_candidates, len(visited) - 1)
        expected = np.sort(squares[i, visited[visited != i]])[: len(found)]
        assert len(set(found)) == len(found)
        assert i not in found
        assert np.isin(found, visited).all()
        np.testing.assert_allclose(np.sort(squares[i, found]), expected, atol=1e-3)


def test_candidates_do_not_depend_on_the_window():
    sketches, offsets, probes = partitioned(2000, 20, 15, 4)
    whole = search_cells(sketches, offsets, probes, 0, 20)
    for start, stop in pairwise(offsets):
        part = search_cells(sketches, offsets, probes[start:stop], start, 20)
        np.testing.assert_array_equal(part, whole[start:stop])


@pytest.mark.parametrize("share", [0.2, 2.0])
def test_queries_beside_the_table_find_the_nearest_rows_within_their_limits(share):
    sketches, offsets, probes = partitioned(900, 10, 12, 4)
    queries, rng = sketches[::3] + np.float32(0.01), np.random.default_rng(1)
    squares = cdist(queries.astype(float), sketches.astype(float)) ** 2
    limits = (share * np.median(squares, axis=1) * rng.uniform(0.5, 1.5, len(queries))).astype(np.float32)
    given = limits.copy()
    candidates = search_cells(sketches, offsets, probes[::3], len(sketches), 25, queries, limits)
    np.testing.assert_array_equal(limits, given)
    for i in range(len(queries)):
        visited = np.concatenate([np.arange(offsets[cell], offsets[cell + 1]) for cell in probes[3 * i]])
        within = visited[squares[i, visited] < limits[i] - 1e-3]
        found = candidates[i][candidates[i] >= 0]
        assert (squares[i, found] < limits[i] + 1e-3).all()
        assert len(found) >= min(0.8 * 25, len(within))
        expected = np.sort(squares[i, visited])[: len(found)]
        np.testing.assert_allclose(np.sort(squares[i, found]), expected, atol=1e-3)


def test_equal_points_small_cells_and_missing_probes():
    equal = np.ones((700, 4), dtype=np.float32)
    probes = np.zeros((700, 1), dtype=np.int32)
    candidates = search_cells(equal, np.array([0, 700]), probes, 0, 15)
    assert np.all((candidates >= 0) & (candidates != np.arange(700)[:, None]))
    few = search_cells(equal[:5], np.array([0, 2, 2, 5]), np.array([[0, -1], [0, 1], [2, 1], [2, -1], [2, -1]]), 0, 4)
    np.testing.assert_array_equal(
        np.sort(few), [[-1, -1, -1, 1], [-1, -1, -1, 0], [-1, -1, 3, 4], [-1, -1, 2, 4], [-1, -1, 2, 3]]
    )


@pytest.fixture(scope="module")
def scattered():
    """Cells of 1 to 5 points, then two of 200: rows by cell, their offsets, centroids."""
    draws = np.random.default_rng(0)
    sizes = np.concatenate([draws.integers(1, 6, 300), [200, 200]])
    centroids = draws.normal(size=(len(sizes), 8)).astype(np.float32) * 100
    rows = np.repeat(centroids, sizes, axis=0) + draws.normal(size=(sizes.sum(), 8)).astype(np.float32)
    return rows, np.concatenate([[0], np.cumsum(sizes)]), centroids


@pytest.mark.parametrize("start", [0, 7])
def test_every_query_gets_its_candidates_and_those_with_enough_keep_theirs(scattered, start):
    rows, offsets, centroids = scattered
    probes = nearest_cells(rows[start:], centroids, 2)
    found = search_enough_cells(rows, offsets, centroids, probes, start, 30)
    assert ((found >= 0).sum(axis=1) >= 24).all()
    assert all(start + i not in row for i, row in enumerate(found))
    plain = search_cells(rows, offsets, probes, start, 30)
    enough = np.diff(offsets)[probes].sum(axis=1) > 30
    assert 0 < enough.sum() < len(enough)
    np.testing.assert_array_equal(found[enough], plain[enough])


def test_an_answer_does_not_depend_on_the_other_queries(scattered):
    rows, offsets, centroids = scattered
    probes = nearest_cells(rows, centroids, 2)
    whole = np.sort(search_enough_cells(rows, offsets, centroids, probes, 0, 30), axis=1)
    for start in (0, 100, 517):
        part = search_enough_cells(rows, offsets, centroids, probes[start : start + 40], start, 30)
        np.testing.assert_array_equal(np.sort(part, axis=1), whole[start : start + 40])
