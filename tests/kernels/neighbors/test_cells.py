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


def wrong_cells(sketches, centroids, cells):
    """Return how many sketches have a cell whose centroid is farther than the nearest, by float64."""
    distances = cdist(sketches.astype(np.float64), centroids.astype(np.float64))
    found = np.take_along_axis(distances, cells, axis=1)
    nearest = np.sort(distances, axis=1)[:, : cells.shape[1]]
    return np.count_nonzero((found > nearest * (1 + 1e-4)).any(axis=1))


@pytest.mark.parametrize("n_dims", [4, 10, 64])
@pytest.mark.parametrize("far", [1e4, 1e6, 1e10, 1e16])
@pytest.mark.parametrize(("n_cells", "n_far"), [(3, 1), (4, 1), (40, 8), (200, 100)])
def test_centroids_far_from_the_others_mix_up_no_cells(n_cells, n_far, far, n_dims):
    generator = np.random.default_rng(4)
    sketches = generator.normal(size=(900, n_dims)).astype(np.float32)
    sketches[:n_far] *= np.float32(far)
    centroids = sketches[: 4 * n_cells : 4].copy()
    centroids[:n_far] = sketches[:n_far]
    for n_probes in (1, 3):
        assert wrong_cells(sketches, centroids, nearest_cells(sketches, centroids, n_probes)) == 0


@pytest.mark.parametrize("n_dims", [4, 64])
@pytest.mark.parametrize("apart", [1e4, 1e6])
def test_populations_far_from_each_other_keep_their_cells(apart, n_dims):
    """No centre is near to both."""
    sketches = np.random.default_rng(5).normal(size=(1500, n_dims)).astype(np.float32)
    sketches[::2, 0] += np.float32(apart)
    centroids = sketches[:: -(-1500 // 300)].copy()
    whole = nearest_cells(sketches, centroids, 4)
    assert wrong_cells(sketches, centroids, whole) == 0
    np.testing.assert_array_equal(nearest_cells(sketches[700:900], centroids, 4), whole[700:900])


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
