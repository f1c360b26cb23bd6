import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.cell_index import FEW_CELLS, group_cells, nearest_cells_in_groups
from scalemani.kernels.neighbors.cells import nearest_cells


def clustered(n_rows, n_dims, seed):
    """Return rows around fifty centres, of a tenth as many directions as there are dimensions, or all of few."""
    draws = np.random.default_rng(seed)
    centers = np.random.default_rng(99).normal(size=(50, n_dims)) * 3
    within = max(3, n_dims // 10)
    spread = np.zeros((n_rows, n_dims))
    spread[:, :within] = draws.normal(size=(n_rows, within))
    return (centers[draws.integers(0, 50, n_rows)] + spread).astype(np.float32)


@pytest.mark.parametrize(("n_dims", "agreeing"), [(3, 0.999), (64, 0.97)])
def test_the_cells_found_are_nearly_always_the_nearest_of_all(n_dims, agreeing):
    centroids, sketches = clustered(FEW_CELLS + 1000, n_dims, 0), clustered(3000, n_dims, 1)
    groups = group_cells(centroids)
    assert len(groups.centers) == round(np.sqrt(len(centroids)))
    found = nearest_cells_in_groups(sketches, groups, 1)[:, 0]
    distances = cdist(sketches, centroids)
    assert np.mean(found == distances.argmin(axis=1)) > agreeing
    chosen = distances[np.arange(len(sketches)), found]
    assert (chosen / distances.min(axis=1)).mean() < 1.01


def test_groups_of_far_populations_keep_their_cells_apart():
    centroids, sketches = clustered(900, 20, 8), clustered(900, 20, 9)
    for rows in (centroids, sketches):
        rows[::3, 0] += np.float32(1e6)
        rows[1::3] *= np.float32(1e12)
    found = nearest_cells_in_groups(sketches, group_cells(centroids, few=100), 1)[:, 0]
    distances = cdist(sketches, centroids)
    chosen = distances[np.arange(len(sketches)), found]
    # Of some points the nearest cell is in a group that is not visited.
    assert np.mean(chosen <= distances.min(axis=1) * (1 + 1e-4)) > 0.9


def test_as_many_cells_as_are_asked_for_are_found_nearest_first():
    centroids = clustered(FEW_CELLS + 500, 20, 2)
    sketches = clustered(200, 20, 3)
    found = nearest_cells_in_groups(sketches, group_cells(centroids), 300)
    assert found.shape == (200, 300)
    assert all(len(set(row)) == 300 and row.min() >= 0 for row in found)
    distances = np.take_along_axis(cdist(sketches, centroids), found, axis=1)
    assert (np.diff(distances, axis=1) > -1e-3).all()
    exact = nearest_cells(sketches, centroids, 300)
    assert np.mean([len(set(one) & set(other)) / 300 for one, other in zip(found, exact, strict=True)]) > 0.9


def test_a_cell_found_in_groups_depends_on_its_own_sketch_only():
    centroids, sketches = clustered(FEW_CELLS + 500, 8, 4), clustered(700, 8, 5)
    groups = group_cells(centroids)
    whole = nearest_cells_in_groups(sketches, groups, 3)
    for start, stop in ((0, 1), (1, 514), (514, 700)):
        np.testing.assert_array_equal(nearest_cells_in_groups(sketches[start:stop], groups, 3), whole[start:stop])


def test_every_cell_is_in_one_group():
    groups = group_cells(clustered(FEW_CELLS + 500, 5, 6))
    np.testing.assert_array_equal(np.sort(groups.cells), np.arange(FEW_CELLS + 500))
    assert groups.offsets[-1] == FEW_CELLS + 500


def test_of_few_cells_all_are_looked_at():
    centroids, sketches = clustered(300, 6, 7), clustered(500, 6, 8)
    found = nearest_cells_in_groups(sketches, group_cells(centroids), 4)
    np.testing.assert_array_equal(found, nearest_cells(sketches, centroids, 4))


def test_equal_centroids_and_empty_groups_do_no_harm():
    centroids = np.zeros((FEW_CELLS + 1, 4), dtype=np.float32)
    centroids[-10:] = 1
    found = nearest_cells_in_groups(np.ones((5, 4), dtype=np.float32), group_cells(centroids), 2)
    assert (centroids[found] == 1).all()


def test_the_centre_of_the_last_group_is_the_mean_of_all_its_cells_where_those_behind_are_empty():
    n_cells = FEW_CELLS + 1
    centroids, tried = np.zeros((n_cells, 2), dtype=np.float32), round(np.sqrt(n_cells))
    middle = int(np.linspace(0, n_cells - 1, tried)[tried // 2])
    centroids[middle - 2 : middle + 3] = 1  # all centres that are tried but one are zero, and all zeros go to the first
    groups = group_cells(centroids)
    np.testing.assert_array_equal(np.unique(groups.centers), [0, 1])
