import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.neighbors.exact import SketchedRows, exact_neighbors, squared_lengths
from scalemani.kernels.neighbors.rerank import merge_neighbors, no_neighbors
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


@pytest.mark.parametrize("n_rows", [127, 128, 129, 300])
def test_a_far_row_in_any_panel_hides_no_neighbour(n_rows):
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
