import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.rerank import Neighbors, merge_neighbors, no_neighbors, recall_by_row, refine_neighbors
from scalemani.kernels.rows.reduced import COORDINATES
from tests.kernels.oracles import brute_force


def refined(points, candidates, known):
    labels = np.arange(len(points))
    return refine_neighbors(COORDINATES, points, points, labels, candidates.astype(np.int32), known)


def test_ties_go_to_the_smaller_index():
    points = np.array([[0, 0], [1, 0], [0, 1], [255, 255], [1, 0], [0, 1]], dtype=np.uint8)
    shuffled = np.array([[5, 3, 4, 2, 1, -1]], dtype=np.int32)
    neighbors, fresh = refine_neighbors(COORDINATES, points[:1], points, np.arange(6), shuffled, no_neighbors(1, 4))
    np.testing.assert_array_equal(neighbors.indices[0], [1, 2, 4, 5])
    assert fresh.all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.int32])
def test_refining_with_all_candidates_is_exact(dtype):
    points = (np.random.default_rng(1).normal(size=(120, 9)) * 20 + 100).astype(dtype)
    everyone = np.array([[j for j in range(120) if j != i] for i in range(120)])
    half, fresh = refined(points, everyone[:, ::2], no_neighbors(120, 7))
    assert fresh.all()
    neighbors, fresh = refined(points, everyone[:, 1::2], half)
    squares = cdist(points.astype(float), points.astype(float))
    np.fill_diagonal(squares, np.inf)
    order = np.argsort(squares, axis=1, kind="stable")[:, :7]
    np.testing.assert_allclose(neighbors.distances, np.take_along_axis(squares, order, axis=1), rtol=1e-12)
    was_known = np.array(
        [[index in known for index in row] for row, known in zip(neighbors.indices, half.indices, strict=True)]
    )
    np.testing.assert_array_equal(fresh, ~was_known)


def test_lists_kept_in_float32_stay_ascending_with_ties_by_index():
    points = np.random.default_rng(2).integers(0, 3, (200, 6)).astype(np.float32)
    known = Neighbors(np.full((200, 10), -1, dtype=np.int32), np.full((200, 10), np.inf, dtype=np.float32))
    everyone = np.array([np.random.default_rng(i).permutation(np.delete(np.arange(200), i)) for i in range(200)])
    neighbors, _ = refined(points, everyone, known)
    assert neighbors.distances.dtype == np.float32
    np.testing.assert_array_equal(neighbors.indices, brute_force(points, 10)[0])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(0, 90),
    st.integers(2, 256),
    st.booleans(),
    st.booleans(),
)
def test_refined_lists_are_the_sorted_union(seed, k, n_candidates, spread, partly_known, repeating):
    """Small spreads make many ties; labels are shuffled so that their order is not that of the rows."""
    generator = np.random.default_rng(seed)
    points = generator.integers(0, spread, (120, 2)).astype(np.uint8)
    labels = generator.permutation(120).astype(np.int32)
    drawn = generator.permutation(np.arange(1, 120))
    n_known = generator.integers(0, k + 1) if partly_known else 0
    away = np.sqrt(((points.astype(float) - points[0]) ** 2).sum(axis=1)).astype(np.float32)

    def nearest(places):
        return sorted((away[place], labels[place]) for place in places)[:k]

    def filled(pairs):
        missing = k - len(pairs)
        indices = np.array([[label for _, label in pairs] + [-1] * missing], dtype=np.int32)
        return Neighbors(indices, np.array([[distance for distance, _ in pairs] + [np.inf] * missing], dtype="f4"))

    known = filled(nearest(drawn[:n_known]))
    candidates = drawn[n_known : n_known + n_candidates].astype(np.int32)
    candidates = np.concatenate([candidates, np.full(3, -1, dtype=np.int32)])
    if repeating:  # some of them twice, and known ones
        again = generator.permutation(np.concatenate([candidates, drawn[:n_known]]))[:20].astype(np.int32)
        candidates = generator.permutation(np.concatenate([candidates, again]))
    candidates = candidates[np.newaxis]
    found, fresh = refine_neighbors(COORDINATES, points[:1], points, labels, candidates, known)
    expected = filled(nearest(drawn[: n_known + n_candidates]))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)
    np.testing.assert_array_equal(fresh, (found.indices >= 0) & ~np.isin(found.indices, known.indices))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(0, 9), st.integers(0, 9))
def test_merged_lists_are_the_sorted_union_without_repeats(seed, k, n_first, n_second):
    generator = np.random.default_rng(seed)
    away = generator.integers(0, 4, 15).astype(float)

    def drawn(n_listed):
        rows = [generator.permutation(15)[:n_listed] for _ in range(3)]
        rows = [row[np.lexsort((row, away[row]))] for row in rows]
        indices = np.full((3, 10), -1, dtype=np.int32)
        indices[:, :n_listed] = rows
        return Neighbors(indices, np.where(indices >= 0, away[indices], np.inf))

    one, other = drawn(n_first), drawn(n_second)
    merged = merge_neighbors(one, other, k)
    for i in range(3):
        union = {*one.indices[i], *other.indices[i]} - {-1}
        expected = sorted((away[index], index) for index in union)[:k]
        assert merged.indices[i].tolist() == [index for _, index in expected] + [-1] * (k - len(expected))
        assert merged.distances[i].tolist() == [distance for distance, _ in expected] + [np.inf] * (k - len(expected))


def test_neighbours_as_far_as_the_true_last_one_count_as_found():
    true, rows = np.array([[1.0, 2.0, 2.0], [1.0, 1.0, 3.0]]), np.array([[4, 1, 7], [3, 0, 2]])
    assert recall_by_row(Neighbors(rows, true), true).tolist() == [1.0, 1.0]
    found = Neighbors(np.array([[4, 1, 7], [3, 0, -1]]), np.array([[1.0, 2.0, 2.0], [1.0, 3.1, np.inf]]))
    np.testing.assert_allclose(recall_by_row(found, true), [1.0, 1 / 3])
    assert recall_by_row(Neighbors(rows, true.astype(np.float32)), true).tolist() == [1.0, 1.0]


def test_a_neighbour_that_is_listed_twice_counts_once():
    true = np.array([[1.0, 2.0, 2.0, 3.0]])
    found = Neighbors(np.array([[5, 8, 8, 5]]), np.array([[1.0, 2.0, 2.0, 1.0]]))
    assert recall_by_row(found, true).tolist() == [0.5]
