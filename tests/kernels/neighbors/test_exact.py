"""Exact search: the neighbours of brute force to the last bit, whatever tiles, sketches and float32 lose."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors import exact as search
from scalemani.kernels.neighbors.exact import (
    Lists,
    Search,
    SketchedRows,
    crossed_neighbors,
    is_beyond,
    lowered_squares,
    multiplied,
    nearest_among,
    paired_neighbors,
    reach_of_lists,
    squared_lengths,
    tiles_of,
)
from scalemani.kernels.neighbors.rerank import merge_neighbors, no_neighbors
from scalemani.kernels.rows import byte_products
from scalemani.kernels.rows.byte_products import multiply_bytes
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points
from tests.kernels.oracles import brute_force


def sketched(points, n_dims=64):
    basis = fit_sketch(points, n_dims)
    return SketchedRows(points, sketch_points(points, basis), basis.scale)


def exact(points, k, n_dims=64, block=None, limits=None):
    queries, lists, block = sketched(points, n_dims), no_neighbors(len(points), k), block or len(points)
    limits = np.full(len(points), np.inf) if limits is None else limits
    for start in range(0, len(points), block):
        rows = queries.part(slice(start, start + block))
        lists = nearest_among(queries, np.arange(len(points)), rows, start, lists, limits)
    return lists


def in_tiles(n_rows):
    """Cut points into tiles of so many rows."""
    return patch.object(search, "tile_rows", lambda n_points: n_rows)


@contextmanager
def multiplied_by(way):
    """Multiply float32 vectors, or bytes in one way."""
    with ExitStack() as stack:
        if way == "vectors":
            stack.enter_context(patch.object(search, "MOST_LEFT", -1))
        for name in ("lanes", "tiles"):
            if way != name:
                stack.enter_context(patch.object(byte_products, f"has_{name}", lambda: False))
        yield


def assert_same(lists, others):
    np.testing.assert_array_equal(lists.indices, others.indices)
    np.testing.assert_array_equal(lists.distances, others.distances)


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
@given(difficult_points(), st.integers(1, 12), st.integers(1, 24), st.integers(1, 60), st.integers(1, 60))
def test_exact_neighbors_are_those_of_brute_force(points, k, n_dims, block, n_rows):
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
    with in_tiles(n_rows):
        in_blocks = exact(points, k, n_dims, block)
        by_pairs = paired_neighbors(sketched(points, n_dims), no_neighbors(len(points), k))
        with multiplied_by("float32"):
            by_blas = paired_neighbors(sketched(points, n_dims), no_neighbors(len(points), k))
    for lists in (in_blocks, by_pairs, by_blas):
        np.testing.assert_array_equal(lists.indices, indices)
        np.testing.assert_array_equal(lists.distances, distances)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("width", [70, 3000])
def test_neighbours_are_the_same_by_tiles_by_lanes_and_in_float32(dtype, width):
    rng = np.random.default_rng(1)
    points = (100 + 20 * rng.normal(size=(400, 8)) @ rng.normal(size=(8, width)) / 3).clip(0, 255).astype(dtype)
    rows, lists = sketched(points), []
    for way in ("tiles", "lanes", "float32", "vectors"):
        with multiplied_by(way), in_tiles(128):
            lists.append(paired_neighbors(rows, no_neighbors(400, 9)))
    for other in lists[1:]:
        assert_same(lists[0], other)
    squares = ((points[:, None].astype(float) - points.astype(float)) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    np.testing.assert_array_equal(lists[0].indices, np.argsort(squares, axis=1, kind="stable")[:, :9])


@pytest.mark.parametrize(("spread", "in_bytes"), [(1.0, True), (1e6, False)])
def test_bytes_are_multiplied_where_they_leave_few_pairs(spread, in_bytes):
    """Points of two clusters are nearer to each other than steps of the way between these tell."""
    points = np.random.default_rng(7).normal(size=(2048, 30)) + spread * (np.arange(2048) % 2)[:, np.newaxis]
    rows = sketched(points)
    limits = np.full(len(points), np.inf)
    filled = Search(rows, rows, 0, Lists.of(np.arange(len(points)), no_neighbors(len(points), 5), limits))
    tile = tiles_of(rows, filled.frame)[0]
    filled.join(tile, tile, both=True)
    filled.choose(tile, tile)
    assert filled.by_bytes == (in_bytes and byte_products.has_byte_products())


@pytest.mark.parametrize("n_rows", [64, 100])
def test_pairs_side_by_side_have_the_bits_of_one_after_the_other(n_rows):
    points = np.random.default_rng(2).integers(0, 4, (900, 5)).astype(np.uint8)
    with in_tiles(n_rows), ThreadPoolExecutor(4) as pool:
        side_by_side = paired_neighbors(sketched(points), no_neighbors(900, 7), pool.map)
    assert_same(side_by_side, paired_neighbors(sketched(points), no_neighbors(900, 7)))
    assert_same(side_by_side, exact(points, 7))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from([10, 1000, 60_000]), st.sampled_from([0.0, 1.0, 1e3]))
def test_bounds_lie_below_the_distances_and_not_far_below(seed, features, offset):
    vectors = (np.random.default_rng(seed).normal(size=(6, features)) + offset).astype(np.float32)
    squares = lowered_squares(vectors)
    bounds = squares[:, None] + squares - 2 * multiplied(vectors, vectors)
    lengths = squared_lengths(vectors)
    distances = np.array([[np.sum((a - b) ** 2) for b in vectors.astype(float)] for a in vectors.astype(float)])
    assert np.all(bounds <= distances)
    assert np.all(bounds >= distances - 1.5e-4 * (lengths[:, None] + lengths))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from([10, 1000]), st.sampled_from([0.0, 3.0]), st.sampled_from([0, 5]))
def test_what_bytes_leave_holds_all_rows_within_a_limit_and_few_more(seed, features, offset, far):
    points = np.random.default_rng(seed).normal(size=(60, features)) + offset
    points[:far] *= 50  # whose coordinates are clipped
    rows = sketched(points.astype(np.float32))
    held = Search(rows, rows, 0, Lists.of(np.arange(60), no_neighbors(60, 5), np.full(60, np.inf)))
    (tile,) = tiles_of(rows, held.frame)
    coded, bounds = tile.in_bytes
    wide = points.astype(np.float32).astype(float)
    distances = np.sqrt(((wide[:, None] - wide) ** 2).sum(axis=2))
    limits = np.sort(distances, axis=1)[:, 10]
    reaches = reach_of_lists(limits, bounds)[:60, np.newaxis]
    left = multiply_bytes(coded, coded)[:, :60] + reaches >= bounds.halves[:60, np.newaxis]
    assert left[distances <= limits[:, np.newaxis]].all()
    off = bounds.unit * bounds.off  # of two rows, with some room for the share
    near = distances <= 1.03 * (limits + off)[:, np.newaxis] + 8 * off
    assert (near | ~left)[far:, far:].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [1e-3, 1e-7, 1e-9, 1e-14, 1e-19])
def test_rows_that_round_to_the_same_bytes_have_all_their_neighbours(dtype, spread):
    draws = np.random.default_rng(1).normal(size=(500, 7))
    points = np.concatenate([draws * spread, draws[:20]]).astype(dtype)
    lists = paired_neighbors(sketched(points), no_neighbors(520, 10))
    away = cdist(points.astype(float), points.astype(float))
    np.fill_diagonal(away, np.inf)
    np.testing.assert_allclose(lists.distances, np.sort(away, axis=1)[:, :10], rtol=1e-9)
    assert (lists.indices >= 0).all()
    assert_same(lists, exact(points, 10, block=100))


def test_far_rows_of_many_columns_are_found():
    """Sums of their products would not fit 32 bits."""
    points = np.random.default_rng(2).integers(0, 4, (300, 130_000)).astype(np.uint8)
    points[:2] += 250
    lists = paired_neighbors(sketched(points, 8), no_neighbors(300, 5))
    np.testing.assert_array_equal(lists.indices[:2, 0], [1, 0])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 40, 3000]), st.sampled_from([1e-25, 1e-3, 1.0, 1e19]))
def test_float32_rejects_no_row_within_a_limit_and_most_beyond(seed, features, scale):
    a, b = (scale * np.random.default_rng(seed).normal(size=(2, features))).astype(np.float32)
    table = np.stack([a, b])
    square = float(((a.astype(float) - b.astype(float)) ** 2).sum())
    assert not is_beyond(table, 0, table, 1, square)
    if 1e-30 < square < 1e36:
        assert is_beyond(table, 0, table, 1, 0.999 * square)


def test_sparse_points_have_the_neighbours_of_dense_ones():
    points = np.random.default_rng(5).poisson(0.3, (200, 40)).astype(np.float32)
    rows = sketched(points)
    held = SketchedRows(sparse.csr_matrix(points), rows.sketches, rows.scale)
    lists = nearest_among(held, np.arange(200), held, 0, no_neighbors(200, 5), np.full(200, np.inf))
    assert_same(lists, exact(points, 5))


def test_ties_go_to_the_smaller_index():
    points = np.array([[0, 0], [1, 0], [0, 1], [255, 255], [1, 0], [0, 1]], dtype=np.uint8)
    np.testing.assert_array_equal(exact(points, 4).indices[0], [1, 2, 4, 5])


def test_limits_keep_lists_complete_up_to_them():
    points = np.random.default_rng(0).normal(size=(300, 10))
    full = exact(points, 8)
    cut = exact(points, 8, limits=full.distances[:, 4])
    np.testing.assert_array_equal(cut.indices[:, :5], full.indices[:, :5])


def test_queries_from_elsewhere_have_no_self():
    rows = sketched(np.random.default_rng(0).normal(size=(50, 3)))
    lists = nearest_among(rows, np.full(50, -1), rows, 0, no_neighbors(50, 1), np.full(50, np.inf))
    np.testing.assert_array_equal(lists.indices[:, 0], np.arange(50))
    np.testing.assert_array_equal(lists.distances, 0.0)


def test_too_few_rows_leave_places_empty():
    lists = exact(np.arange(3.0)[:, None], 4)
    np.testing.assert_array_equal(lists.indices[:, 2:], -1)
    np.testing.assert_array_equal(lists.distances[:, 2:], np.inf)


def test_merging_blocks_equals_the_whole():
    points = np.random.default_rng(3).integers(0, 4, (150, 4)).astype(float)
    whole = exact(points, 9)
    queries = sketched(points)
    parts = [
        nearest_among(
            queries, np.arange(150), queries.part(part), part.start, no_neighbors(150, 9), np.full(150, np.inf)
        )
        for part in (slice(0, 40), slice(40, 150))
    ]
    for a, b in (parts, parts[::-1]):
        merged = merge_neighbors(a, b, 9)
        assert_same(merged, whole)
    again = merge_neighbors(whole, parts[0], 9)
    np.testing.assert_array_equal(again.indices, whole.indices)


@pytest.mark.parametrize("n_rows", [127, 128, 129, 300])
def test_a_far_row_in_any_tile_hides_no_neighbour(n_rows):
    points = np.random.default_rng(4).normal(size=(n_rows, 6))
    points[n_rows // 2] *= 1e9
    indices, distances = exact(points, 5, n_dims=2)
    expected_indices, expected = brute_force(points, 5)
    np.testing.assert_array_equal(indices, expected_indices)
    np.testing.assert_allclose(distances, expected, rtol=1e-12)


def test_squared_lengths_are_summed_in_float64():
    sketches = np.full((2, 5000), 0.1, dtype=np.float32)
    sketches[1] = 0.0
    np.testing.assert_allclose(squared_lengths(sketches), [5000 * np.float64(np.float32(0.1)) ** 2, 0.0], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("first", [1, 130, 333])
def test_halves_searched_in_themselves_and_in_each_other_have_all_neighbors(dtype, first):
    points = (np.random.default_rng(first).normal(size=(400, 6)) * 20 + 90).astype(dtype)
    points[::37] = points[0]
    rows, k = sketched(points), 9
    halves = slice(0, first), slice(first, len(points))
    lists = [paired_neighbors(rows.part(half), no_neighbors(half.stop - half.start, k)) for half in halves]
    lists = [
        one._replace(indices=np.where(one.indices < 0, -1, one.indices + half.start))
        for one, half in zip(lists, halves, strict=True)
    ]
    inside = lists[0]._replace(
        **{name: np.concatenate([getattr(one, name) for one in lists]) for name in lists[0]._fields}
    )
    crossed = crossed_neighbors(rows, first, no_neighbors(len(points), k), inside.distances[:, -1])
    indices, distances = brute_force(points, k)
    merged = merge_neighbors(inside, crossed, k)
    np.testing.assert_array_equal(merged.indices, indices)
    np.testing.assert_allclose(merged.distances, distances.astype(np.float64), rtol=1e-14)
