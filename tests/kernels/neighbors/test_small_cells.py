import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.cell_scan import search_cells
from scalemani.kernels.neighbors.cells import nearest_cells
from scalemani.kernels.neighbors.small_cells import cells_that_hold, search_enough_cells


@pytest.fixture(scope="module")
def scattered():
    """Cells of 1 to 5 points, then two of 200: rows by cell, their offsets, centroids."""
    draws = np.random.default_rng(0)
    sizes = np.concatenate([draws.integers(1, 6, 300), [200, 200]])
    centroids = draws.normal(size=(len(sizes), 8)).astype(np.float32) * 100
    rows = np.repeat(centroids, sizes, axis=0) + draws.normal(size=(sizes.sum(), 8)).astype(np.float32)
    return rows, np.concatenate([[0], np.cumsum(sizes)]), centroids


def test_cells_are_the_nearest_and_hold_just_enough(scattered):
    rows, offsets, centroids = scattered
    sizes = np.diff(offsets)
    found = cells_that_hold(40, rows[:100], centroids, sizes)
    order = np.argsort(cdist(rows[:100], centroids), axis=1)
    for cells, expected in zip(found, order, strict=True):
        visited = cells[cells >= 0]
        np.testing.assert_array_equal(visited, expected[: len(visited)])
        assert sizes[visited].sum() >= 40 > sizes[visited[:-1]].sum()


def test_all_cells_are_visited_where_even_they_hold_too_few(scattered):
    rows, offsets, centroids = scattered
    assert (cells_that_hold(10**6, rows[:3], centroids, np.diff(offsets)) >= 0).all()


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
