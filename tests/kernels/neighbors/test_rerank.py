import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.exact import SketchedRows, exact_neighbors
from scalemani.kernels.neighbors.rerank import (
    Neighbors,
    merge_neighbors,
    no_neighbors,
    recall_at_k,
    refine_neighbors,
)
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points


def brute_force(points, k):
    """Neighbours by direct difference in the widest type, ties by index."""
    wide = points.astype(np.longdouble)
    squares = np.array([[np.sum((a - b) ** 2) for b in wide] for a in wide])
    np.fill_diagonal(squares, np.inf)
    squares = np.sqrt(squares).astype(np.float64)
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(squares, order, axis=1)


def exact(points, k, n_dims=64, block=None, limits=None):
    basis = fit_sketch(points, n_dims)
    sketched = SketchedRows(points, sketch_points(points, basis), basis.scale)
    lists, block = no_neighbors(len(points), k), block or len(points)
    limits = np.full(len(points), np.inf) if limits is None else limits
    for start in range(0, len(points), block):
        rows = SketchedRows(points[start : start + block], sketched.sketches[start : start + block], basis.scale)
        lists = exact_neighbors(sketched, np.arange(len(points)), rows, start, lists, limits)
    return lists


def refined(points, candidates, known):
    labels = np.arange(len(points))
    return refine_neighbors(points, points, labels, candidates.astype(np.int32), known)


@st.composite
def difficult_points(draw):
    """Few or many points, ties, duplicates, huge and tiny scales, far offsets."""
    n_points, n_dims = draw(st.integers(2, 60)), draw(st.integers(1, 20))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "grid", "duplicates", "equal", "uint8", "clusters"]))
    if kind == "uint8":
        return generator.integers(0, 256, (n_points, n_dims)).astype(np.uint8)
    points = generator.normal(size=(n_points, n_dims))
    if kind == "grid":
        points = np.rint(points)
    if kind == "duplicates":
        points = points[generator.integers(0, max(1, n_points // 4), n_points)]
    if kind == "equal":
        points[:] = points[0]
    if kind == "clusters":
        points += 1e6 * generator.integers(0, 3, (n_points, 1))
    points = (points + draw(st.sampled_from([0.0, 1.0, 1e8]))) * draw(st.sampled_from([1e-140, 1e-3, 1.0, 1e140]))
    return (
        points.astype(draw(st.sampled_from([np.float64, np.float64, np.float32])))
        if abs(points).max() < 1e30 and abs(points).max() > 1e-30
        else points
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(difficult_points(), st.integers(1, 12), st.integers(1, 24), st.integers(1, 60))
def test_exact_neighbors_are_those_of_brute_force(points, k, n_dims, block):
    k = min(k, len(points) - 1)
    indices, distances = exact(points, k, n_dims)
    expected_indices, expected_distances = brute_force(points, k)
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-12)
    # neighbours may change places only where rounding of the last bit decides
    differ = indices != expected_indices
    at_found = np.sqrt(
        np.sum((points[indices].astype(np.longdouble) - points[:, None].astype(np.longdouble)) ** 2, axis=2)
    )
    np.testing.assert_allclose(at_found[differ].astype(float), expected_distances[differ], rtol=1e-12)
    assert not np.any(indices == np.arange(len(points))[:, None])
    in_blocks = exact(points, k, n_dims, block)
    np.testing.assert_array_equal(in_blocks.indices, indices)
    np.testing.assert_array_equal(in_blocks.distances, distances)


def test_ties_go_to_the_smaller_index():
    points = np.array([[0, 0], [1, 0], [0, 1], [255, 255], [1, 0], [0, 1]], dtype=np.uint8)
    np.testing.assert_array_equal(exact(points, 4).indices[0], [1, 2, 4, 5])
    shuffled = np.array([[5, 3, 4, 2, 1, -1]])
    neighbors, fresh = refine_neighbors(points[:1], points, np.arange(6), shuffled.astype(np.int32), no_neighbors(1, 4))
    np.testing.assert_array_equal(neighbors.indices[0], [1, 2, 4, 5])
    assert fresh.all()


def test_limits_keep_lists_complete_up_to_them():
    points = np.random.default_rng(0).normal(size=(300, 10))
    full = exact(points, 8)
    cut = exact(points, 8, limits=full.distances[:, 4])
    np.testing.assert_array_equal(cut.indices[:, :5], full.indices[:, :5])


def test_queries_from_elsewhere_have_no_self():
    points = np.random.default_rng(0).normal(size=(50, 3))
    basis = fit_sketch(points)
    sketched = SketchedRows(points, sketch_points(points, basis), basis.scale)
    unlabelled = np.full(50, -1)
    lists = exact_neighbors(sketched, unlabelled, sketched, 0, no_neighbors(50, 1), np.full(50, np.inf))
    np.testing.assert_array_equal(lists.indices[:, 0], np.arange(50))
    np.testing.assert_array_equal(lists.distances, 0.0)


def test_too_few_rows_leave_places_empty():
    lists = exact(np.arange(3.0)[:, None], 4)
    np.testing.assert_array_equal(lists.indices[:, 2:], -1)
    np.testing.assert_array_equal(lists.distances[:, 2:], np.inf)


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
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 90), st.integers(2, 256), st.booleans())
def test_refined_lists_are_the_sorted_union(seed, k, n_candidates, spread, partly_known):
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
    candidates = np.concatenate([candidates, np.full(3, -1, dtype=np.int32)])[np.newaxis]
    found, fresh = refine_neighbors(points[:1], points, labels, candidates, known)
    expected = filled(nearest(drawn[: n_known + n_candidates]))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)
    np.testing.assert_array_equal(fresh, (found.indices >= 0) & ~np.isin(found.indices, known.indices))


def test_merging_blocks_equals_the_whole():
    points = np.random.default_rng(3).integers(0, 4, (150, 4)).astype(float)
    whole = exact(points, 9)
    basis = fit_sketch(points)
    sketches = sketch_points(points, basis)
    queries = SketchedRows(points, sketches, basis.scale)
    parts = [
        exact_neighbors(
            queries,
            np.arange(150),
            SketchedRows(points[start:stop], sketches[start:stop], basis.scale),
            start,
            no_neighbors(150, 9),
            np.full(150, np.inf),
        )
        for start, stop in ((0, 40), (40, 150))
    ]
    for a, b in (parts, parts[::-1]):
        merged = merge_neighbors(a, b, 9)
        np.testing.assert_array_equal(merged.indices, whole.indices)
        np.testing.assert_array_equal(merged.distances, whole.distances)
    again = merge_neighbors(whole, parts[0], 9)
    np.testing.assert_array_equal(again.indices, whole.indices)


def test_recall_counts_ties_as_found():
    true = np.array([[1.0, 2.0, 2.0], [1.0, 1.0, 3.0]])
    assert recall_at_k(true, true) == 1.0
    assert recall_at_k(np.array([[1.0, 2.0, 2.0], [1.0, 3.1, np.inf]]), true) == pytest.approx(4 / 6)
    assert recall_at_k(true.astype(np.float32), true) == 1.0
    assert recall_at_k(np.empty((0, 3)), np.empty((0, 3))) == 1.0
