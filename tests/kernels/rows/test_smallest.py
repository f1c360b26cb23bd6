import numpy as np
import pytest

from scalemani.kernels.rows.smallest import POOL_MARGIN, append_within, insert_neighbor, keep_smallest


def pool(values, room):
    """Rows of values with room behind them, and labels that tell them apart."""
    held = np.full((len(values), values.shape[1] + room), -7.0, dtype=np.float32)
    held[:, : values.shape[1]] = values
    return held, np.arange(held.size, dtype=np.int32).reshape(held.shape)


@pytest.mark.parametrize("n_kept", [1, 2, 7])
def test_a_list_holds_the_least_of_what_was_inserted_by_distance_and_then_by_index(n_kept):
    rng = np.random.default_rng(4)
    distances, indices = rng.integers(0, 9, size=60) / 4, rng.permutation(60)
    listed, at = np.full((3, n_kept), 60, np.int32), np.full((3, n_kept), np.inf, np.float32)
    for n_inserted, (index, distance) in enumerate(zip(indices, distances, strict=True), 1):
        insert_neighbor(listed, at, 1, index, distance)
        order = np.lexsort((indices[:n_inserted], distances[:n_inserted]))[:n_kept]
        np.testing.assert_array_equal(listed[1, : len(order)], indices[order])
        np.testing.assert_array_equal(at[1, : len(order)], distances[order])
    assert np.all(listed[[0, 2]] == 60)
    assert np.all(np.isinf(at[[0, 2]]))


@pytest.mark.parametrize("n_values", [20, 33, 400])
@pytest.mark.parametrize("known_bound", [True, False])
def test_the_smallest_are_kept_with_their_labels(n_values, known_bound):
    values = np.random.default_rng(0).random((3, n_values)).astype(np.float32)
    held, labels = pool(values, POOL_MARGIN)
    named = labels.copy()
    for i in range(3):
        kept, bound = keep_smallest(held, labels, i, n_values, 1.0 if known_bound else np.inf, 20)
        assert 16 <= kept <= 20
        np.testing.assert_array_equal(np.sort(held[i, :kept]), np.sort(values[i])[:kept])
        np.testing.assert_array_equal(values[i, labels[i, :kept] - named[i, 0]], held[i, :kept])
        assert held[i, :kept].max() <= bound
        assert kept == n_values or np.sort(values[i])[kept] >= bound
    if known_bound:
        again = keep_smallest(held, labels, 2, kept, bound, kept)
        assert again[0] <= kept


@pytest.mark.parametrize("far", [1e10, 1e32])
@pytest.mark.parametrize("n_far", [1, 30])
@pytest.mark.parametrize("known_bound", [True, False])
def test_a_few_values_far_above_the_others_do_not_keep_these_from_being_told_apart(far, n_far, known_bound):
    values = np.random.default_rng(2).random((1, 400)).astype(np.float32)
    values[0, 5 : 5 + n_far] = far
    held, labels = pool(values, POOL_MARGIN)
    kept, bound = keep_smallest(held, labels, 0, 400, far if known_bound else np.inf, 20)
    assert 16 <= kept <= 20
    np.testing.assert_array_equal(np.sort(held[0, :kept]), np.sort(values[0])[:kept])
    assert held[0, :kept].max() <= bound < 1


def test_ties_of_nothing_beside_far_values_are_cut():
    values = np.zeros((1, 60), np.float32)
    values[0, 50:] = 1e30
    held, labels = pool(values, POOL_MARGIN)
    kept, bound = keep_smallest(held, labels, 0, 60, np.inf, 10)
    assert kept == 10
    assert 0 <= bound < 1e30
    assert not held[0, :10].any()


def test_ties_are_cut_and_other_rows_stay():
    held, labels = pool(np.ones((3, 50), dtype=np.float32), POOL_MARGIN)
    before = held.copy()
    kept, bound = keep_smallest(held, labels, 1, 50, np.inf, 10)
    assert (kept, bound) == (10, 1.0)
    assert len(set(labels[1, :10])) == 10
    np.testing.assert_array_equal(held[[0, 2]], before[[0, 2]])


@pytest.mark.parametrize("bound", [-1.0, 0.0, 0.02, 0.5, 2.0, np.inf])
def test_what_is_within_the_bound_is_appended_in_order(bound):
    found = np.random.default_rng(1).random((4, 128)).astype(np.float32)
    found[2, 5], found[2, 100] = 0.0, np.inf
    numbers = np.arange(1000, 1128, dtype=np.int32)
    values, labels = np.full((2, 300), -7.0, dtype=np.float32), np.full((2, 300), -7, dtype=np.int32)
    appended = append_within(found, 2, bound, numbers, values, labels, 300 + 9)
    within = np.isfinite(found[2]) & (found[2] <= bound)
    assert appended == within.sum()
    np.testing.assert_array_equal(values[1, 9 : 9 + appended], found[2, within])
    np.testing.assert_array_equal(labels[1, 9 : 9 + appended], numbers[within])
    for array in (values, labels):
        assert np.all(array[0] == -7)
        assert np.all(array[1, :9] == -7)
        assert np.all(array[1, 9 + appended + POOL_MARGIN :] == -7)
