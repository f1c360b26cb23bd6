import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from scalemani.kernels.rows.sketches import (
    fit_sketch,
    project,
    pruning_basis,
    rounded_sketches,
    rounding_error,
    rounding_step,
    sketch_points,
    sketch_precisely,
)


def sketch_distances(points, basis):
    return cdist(sketch_points(points, basis).astype(float), sketch_points(points, basis).astype(float)) * basis.scale


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("n_dims", [1, 4, 30])
def test_sketch_distances_are_lower_bounds_and_tight_with_all_directions(scale, offset, n_dims):
    points = (np.random.default_rng(0).normal(size=(200, 12)) + offset) * scale
    basis = fit_sketch(points, n_dims)
    true, lower = cdist(points / scale, points / scale), sketch_distances(points, basis) / scale
    assert basis.axes.shape == (12, min(n_dims, 12))
    assert np.all(lower <= true + 1e-5)
    if n_dims >= 12:
        np.testing.assert_allclose(lower, true, atol=1e-5)


@pytest.mark.parametrize("shape", [(300, 20), (15, 40), (3, 10), (1, 6)])
def test_axes_are_orthonormal_with_fixed_signs(shape):
    points = np.random.default_rng(1).normal(size=shape)
    axes = fit_sketch(points, 8).axes
    assert axes.shape == (shape[1], min(8, shape[1]))
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-6)
    np.testing.assert_array_equal(np.take_along_axis(axes, abs(axes).argmax(axis=0)[None], axis=0) > 0, True)
    np.testing.assert_array_equal(axes, fit_sketch(points, 8).axes)


def test_leading_directions_hold_the_most_variance():
    points = np.random.default_rng(2).normal(size=(500, 30)) * np.geomspace(10, 0.01, 30)
    basis = fit_sketch(points, 5)
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    sketch = sketch_points(points, basis).astype(float) * basis.scale
    np.testing.assert_allclose(np.linalg.svd(sketch, compute_uv=False), values[:5], rtol=1e-4)


def test_axes_of_wide_sparse_points_are_their_singular_vectors():
    points = sp.random_array((40, 3000), density=0.1, format="csr", rng=np.random.default_rng(4)) * 7
    basis = fit_sketch(points, 4)
    centred = points.toarray() - points.toarray().mean(axis=0)
    expected = np.linalg.svd(centred, full_matrices=False)[2][:4]
    np.testing.assert_allclose(np.abs(np.sum(basis.axes.T * expected, axis=1)), 1, atol=1e-6)
    np.testing.assert_allclose(basis.mean, points.toarray().mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("shape", [(200, 2500), (2100, 2500)])
def test_more_dimensions_than_a_covariance_matrix_is_made_for(shape):
    generator = np.random.default_rng(3)
    points = generator.normal(size=(shape[0], 6)) @ generator.normal(size=(6, shape[1]))
    basis = fit_sketch(points, 6)
    np.testing.assert_allclose(sketch_distances(points[:50], basis), cdist(points[:50], points[:50]), atol=1e-3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.float32, np.float64])
def test_constant_points_and_columns(dtype):
    equal = np.full((20, 5), 7, dtype)
    sketch = sketch_points(equal, fit_sketch(equal, 3))
    np.testing.assert_array_equal(sketch, 0.0)
    equal[:, 1] = np.arange(20)
    varied = sketch_distances(equal, fit_sketch(equal, 3))
    np.testing.assert_allclose(varied, abs(np.arange(20.0)[:, None] - np.arange(20.0)), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_the_same_bits_for_any_cut_at_tiles(dtype):
    points = (np.random.default_rng(4).random((5000, 50)) * 200).astype(dtype)
    basis = fit_sketch(points, 16)
    whole = sketch_points(points, basis)
    assert whole.dtype == np.float32
    for block in (1024, 3072):
        parts = [sketch_points(points[start : start + block], basis) for start in range(0, 5000, block)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert sketch_points(points[:0], basis).shape == (0, 16)


@pytest.mark.parametrize("far", [1e20, 1e45, -1e300])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_rows_out_of_sight_have_finite_sketches_and_leave_those_of_others_alone(far, make):
    points = np.random.default_rng(0).normal(size=(1500, 9))
    basis, spoilt = fit_sketch(points, 4), points.copy()
    spoilt[[3, 1400], [0, 5]] = far
    sketches = sketch_points(make(spoilt), basis)
    with np.errstate(over="raise"):
        assert np.isfinite(np.square(sketches).sum())
    others = np.delete(np.arange(1500), [3, 1400])
    np.testing.assert_array_equal(sketches[others], sketch_points(make(points), basis)[others])
    assert (np.abs(sketches[[3, 1400]]).max(axis=1) > 1e14).all()


@pytest.mark.parametrize(
    ("far", "n_features", "make"),
    [
        *((far, 9, make) for far in (1e10, -1e30, 1e300) for make in (np.asarray, sp.csr_matrix)),
        (1e300, 2100, np.asarray),
        (-1e30, 2100, sp.csr_matrix),
    ],
)
def test_a_few_far_rows_of_a_sample_do_not_move_the_basis_of_the_others(far, n_features, make):
    draws = np.random.default_rng(0)
    points = draws.normal(size=(400, n_features)) + 5
    points[:, :4] *= 20
    spoilt = points.copy()
    spoilt[[3, 101, 390], [0, 5, 8]] = far
    basis = fit_sketch(make(spoilt), 4)
    assert np.abs(basis.mean - points.mean(axis=0)).max() < 0.5
    others = np.delete(np.arange(400), [3, 101, 390])[:100]
    found = sketch_distances(points[others], basis)
    np.testing.assert_allclose(found, sketch_distances(points[others], fit_sketch(make(points), 4)), rtol=0.05, atol=1)
    assert found.max() > 50


def test_most_rows_may_be_equal():
    points = np.zeros((300, 3))
    points[:40] = np.random.default_rng(0).normal(size=(40, 3))
    points[7] = 1e30
    basis = fit_sketch(points)
    np.testing.assert_allclose(sketch_distances(points[8:40], basis), cdist(points[8:40], points[8:40]), atol=1e-5)


def test_rounded_sketches_keep_distances_but_for_a_few_far_coordinates():
    sketches = (np.random.default_rng(5).normal(size=(3000, 64)) * 0.3).astype(np.float32)
    sketches[7, 3], sketches[9, 0] = 1e6, -1e6
    step = rounding_step(sketches)
    rounded = rounded_sketches(sketches, step)
    assert rounded.dtype == np.int8
    np.testing.assert_array_equal(rounded, np.rint(sketches / step).clip(-127, 127))
    assert 1.0 < 127 * step < 2.0
    clipped = np.any(abs(sketches) > 127 * step, axis=1)
    assert 2 <= clipped.sum() < 30
    kept, steps = sketches[~clipped].astype(float), rounded[~clipped] * step
    pairs = np.random.default_rng(6).integers(0, len(kept), (2, 5000))
    off = (kept - steps)[pairs[0]] - (kept - steps)[pairs[1]]
    np.testing.assert_allclose(np.sqrt(np.mean(np.sum(off**2, axis=1))), rounding_error(step, 64), rtol=0.05)


@pytest.mark.parametrize("shape", [(200, 3), (200, 64), (200, 65), (200, 400), (3000, 70), (1, 100)])
@pytest.mark.parametrize("scale", [1.0, 1e150])
def test_pruning_sketches_are_lower_bounds_to_the_precision_they_promise(shape, scale):
    points = (np.random.default_rng(0).normal(size=shape) + 5) * scale
    basis = pruning_basis(points, 24)
    assert basis.direct == (shape[1] <= 64)
    assert basis.axes.shape == (shape[1], shape[1] if basis.direct else 24)
    np.testing.assert_allclose(basis.axes.T.astype(float) @ basis.axes, np.eye(basis.axes.shape[1]), atol=2**-20)
    away = np.linalg.norm((points - basis.mean) / scale, axis=1)
    exact = (points - basis.mean) / scale @ basis.axes.astype(float)
    np.testing.assert_allclose(project(points, basis) / scale, exact, atol=1e-12 * away.max())
    sketches = sketch_precisely(points, basis._replace(scale=scale))
    assert sketches.dtype == np.float32
    assert np.all(np.linalg.norm(sketches - exact, axis=1) <= 2**-18 * away)
    short, full = cdist(sketches[:50].astype(float), sketches.astype(float)), cdist(points[:50], points) / scale
    assert np.all(short <= full + 2**-17 * away.max())


def test_rows_beyond_float32_have_infinite_sketches():
    points = np.zeros((100, 5))
    points[3] = 1e60
    sketches = sketch_precisely(points, pruning_basis(points[:3], 4))
    assert np.isinf(sketches[3]).all()
    assert np.isfinite(np.delete(sketches, 3, axis=0)).all()


def test_a_large_sample_is_read_at_evenly_spread_rows():
    points = np.arange(4095.0)[:, np.newaxis]
    assert pruning_basis(points, 1).mean.tolist() == [points[::2].mean()]
