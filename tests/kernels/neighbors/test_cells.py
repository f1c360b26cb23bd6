import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.neighbors.cells import cells_that_hold, locality_order, nearest_cells, nearest_nearby_cells


@pytest.mark.parametrize(("n_cells", "n_dims"), [(1, 3), (5, 1), (128, 7), (300, 64)])
def test_nearest_cells_are_those_of_all_distances(n_cells, n_dims):
    generator = np.random.default_rng(0)
    sketches = (generator.normal(size=(1100, n_dims)) + 30).astype(np.float32)
    centroids = (generator.normal(size=(n_cells, n_dims)) + 30).astype(np.float32)
    cells = nearest_cells(sketches, centroids, 4)
    distances = cdist(sketches.astype(float), centroids.astype(float))
    expected = np.sort(distances, axis=1)[:, : min(4, n_cells)]
    assert cells.dtype == np.int32
    np.testing.assert_allclose(np.take_along_axis(distances, cells, axis=1), expected, atol=1e-3)
    assert all(len(set(row)) == cells.shape[1] for row in cells)


def test_a_cell_depends_on_its_own_sketch_only():
    generator = np.random.default_rng(1)
    sketches, centroids = generator.normal(size=(2, 700, 30)).astype(np.float32)
    whole = nearest_cells(sketches, centroids, 6)
    for start, stop in ((0, 1), (1, 514), (514, 700)):
        np.testing.assert_array_equal(nearest_cells(sketches[start:stop], centroids, 6), whole[start:stop])


def test_nearby_cells_are_the_nearest_of_those_near_the_own_cell():
    generator = np.random.default_rng(2)
    sketches, centroids = (generator.normal(size=(n, 8)).astype(np.float32) for n in (1500, 60))
    order, offsets = group_by(nearest_cells(sketches, centroids, 1)[:, 0], 60)
    sketches = sketches[order]
    everywhere = nearest_cells(centroids, centroids, 60)
    np.testing.assert_array_equal(
        nearest_nearby_cells(sketches, offsets, centroids, everywhere, 5),
        nearest_cells(sketches, centroids, 5),
    )
    nearby = everywhere[:, :20]
    whole = nearest_nearby_cells(sketches, offsets, centroids, nearby, 5)
    distances = cdist(sketches.astype(float), centroids.astype(float))
    for i in range(1500):
        near = nearby[np.searchsorted(offsets, i, side="right") - 1]
        np.testing.assert_array_equal(whole[i], near[np.argsort(distances[i, near])[:5]])
    for start, stop in ((0, 1), (1, 700), (700, 1500)):
        own = np.clip(offsets, start, stop) - start
        part = nearest_nearby_cells(sketches[start:stop], own, centroids, nearby, 5)
        np.testing.assert_array_equal(part, whole[start:stop])


def test_locality_order_is_a_permutation_with_short_steps():
    points = np.random.default_rng(3).random((500, 2)).astype(np.float32)
    order = locality_order(points)
    np.testing.assert_array_equal(np.sort(order), np.arange(500))
    steps = np.linalg.norm(np.diff(points[order], axis=0), axis=1).mean()
    assert steps < 0.25 * np.linalg.norm(np.diff(points, axis=0), axis=1).mean()
    line = np.random.default_rng(4).permutation(100)[:, None].astype(np.float32)
    np.testing.assert_array_equal(abs(np.diff(line[locality_order(line), 0])), 1.0)
    assert locality_order(points[:0]).size == 0


def test_cells_that_hold_enough_are_the_nearest_and_no_more_of_them():
    draws = np.random.default_rng(0)
    sizes = np.concatenate([draws.integers(1, 6, 300), [200, 200]])
    centroids = draws.normal(size=(len(sizes), 8)).astype(np.float32) * 100
    rows = np.repeat(centroids, sizes, axis=0)[:100] + draws.normal(size=(100, 8)).astype(np.float32)
    answer = cells_that_hold(40, rows, centroids, sizes)
    order = np.argsort(cdist(rows, centroids), axis=1)
    for cells, expected in zip(answer, order, strict=True):
        visited = cells[cells >= 0]
        np.testing.assert_array_equal(visited, expected[: len(visited)])
        assert sizes[visited].sum() >= 40 > sizes[visited[:-1]].sum()
    assert (cells_that_hold(10**6, rows[:3], centroids, sizes) >= 0).all()
