"""Sums on a mesh against sums over all pairs, and what must hold whatever the points."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import ConfigError, DataError, NumericalError
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.repulsion.particle_mesh import ParticleMesh, fitted_mesh, mesh_rule

KERNELS = ("student", "gaussian")
LARGE = pytest.mark.large
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
N_SAMPLED = 150


def pair_sums(kernel, sources, targets, charges, skip=None):
    """Return S and its gradient by the definition; `skip` holds the source that each target is, if it is one."""
    values, gradients = np.empty(len(targets)), np.empty(targets.shape)
    for m, target in enumerate(targets):
        offsets = target - sources
        squares = np.square(offsets).sum(axis=1)
        heights = 1.0 / (1.0 + squares) if kernel == "student" else np.exp(-squares)
        slopes = -2.0 * heights**2 if kernel == "student" else -2.0 * heights
        amounts = charges.copy()
        if skip is not None:
            amounts[skip[m]] = 0.0
        values[m] = amounts @ heights
        gradients[m] = (amounts * slopes) @ offsets
    return values, gradients


def clusters(rng, n_points, n_dims, extent, n_clusters=20):
    centres = rng.uniform(-0.4 * extent, 0.4 * extent, (n_clusters, n_dims))
    widths = rng.uniform(0.01 * extent, 0.05 * extent, n_clusters)
    own = rng.integers(0, n_clusters, n_points)
    return centres[own] + widths[own, None] * rng.normal(size=(n_points, n_dims))


def relative(found, true):
    return np.linalg.norm(found - true) / np.linalg.norm(true)


def sampled_errors(kernel, tolerance, points, rng, charges=None):
    """Return the relative errors of S and of its gradient over some of the points, themselves left out."""
    sample = rng.choice(len(points), min(N_SAMPLED, len(points)), replace=False)
    amounts = np.ones(len(points)) if charges is None else charges
    true = pair_sums(kernel, points, points[sample], amounts, sample)
    found = ParticleMesh(kernel, tolerance).field(points, charges=charges)
    return tuple(relative(f[sample], t) for f, t in zip(found, true, strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("extent", [0.3, *(pytest.param(extent, marks=LARGE) for extent in (1e-8, 1e-4, 3.0, 40.0))])
def test_gradients_of_flat_maps_meet_the_tolerance(kernel, tolerance, extent):
    rng = np.random.default_rng(1)
    points = clusters(rng, 3000, 2, extent) + 3.0
    value_error, gradient_error = sampled_errors(kernel, tolerance, points, rng)
    assert gradient_error < tolerance
    assert value_error < tolerance


@LARGE
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tolerance", TOLERANCES[:5])
@pytest.mark.parametrize("extent", [1e-4, 10.0])
def test_gradients_of_maps_in_space_meet_the_tolerance(kernel, tolerance, extent):
    rng = np.random.default_rng(2)
    value_error, gradient_error = sampled_errors(kernel, tolerance, clusters(rng, 2000, 3, extent), rng)
    assert gradient_error < tolerance
    assert value_error < tolerance


@LARGE
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_wide_and_uniform_maps_meet_the_tolerance(kernel, tolerance):
    rng = np.random.default_rng(3)
    for points in (clusters(rng, 20000, 2, 400.0), rng.uniform(-80.0, 80.0, (5000, 2))):
        assert sampled_errors(kernel, tolerance, points, rng)[1] < tolerance


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_dims", [2, pytest.param(3, marks=LARGE)])
def test_charges_of_both_signs_at_other_targets(kernel, n_dims):
    rng = np.random.default_rng(4)
    sources, targets = clusters(rng, 1500, n_dims, 8.0), rng.uniform(-6.0, 6.0, (N_SAMPLED, n_dims))
    charges = rng.normal(size=1500) * 1e5
    true = pair_sums(kernel, sources, targets, charges)
    found = ParticleMesh(kernel, 1e-4).field(sources, targets, charges)
    for f, t in zip(found, true, strict=True):
        assert relative(f, t) < 1e-4
    assert sampled_errors(kernel, 1e-4, sources, rng, charges)[1] < 1e-4


@pytest.mark.parametrize("kernel", KERNELS)
def test_coincident_points_count_all_but_themselves(kernel):
    values, gradients = ParticleMesh(kernel, 1e-3).field(np.full((50, 2), 7.5))
    assert np.array_equal(values, np.full(50, 49.0))
    assert np.array_equal(gradients, np.zeros((50, 2)))
    pair = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    true = pair_sums(kernel, pair, pair, np.ones(3), np.arange(3))
    for found, exact in zip(ParticleMesh(kernel, 1e-6).field(pair), true, strict=True):
        assert np.allclose(found, exact, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_dims", [2, pytest.param(3, marks=LARGE)])
def test_points_on_a_line(kernel, n_dims):
    rng = np.random.default_rng(5)
    points = np.zeros((2000, n_dims))
    points[:, 1] = rng.normal(size=2000) * 10.0
    assert sampled_errors(kernel, 1e-4, points, rng)[1] < 1e-4


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_outlier_is_named_and_not_meshed(kernel):
    points = np.random.default_rng(6).normal(size=(100, 3))
    points[7] = 1e6
    with pytest.raises(NumericalError, match=r"1e\+06.* GB of mesh.*0\.001.*barnes-hut"):
        ParticleMesh(kernel, 1e-3).field(points)
    points[7, 2] = 1e300
    with pytest.raises(NumericalError, match="barnes-hut"):
        ParticleMesh(kernel, 1e-3).field(points)


@LARGE
@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-5])
def test_threads_change_no_bit(n_dims, tolerance):
    rng = np.random.default_rng(7)
    points, charges = clusters(rng, 100_001, n_dims, 12.0), rng.normal(size=100_001)
    alone = ParticleMesh("student", tolerance).field(points, charges=charges)
    for n_threads in (2, 5):
        with ThreadPoolExecutor(n_threads) as pool:
            together = ParticleMesh("student", tolerance, Workspace(pool.map)).field(points, charges=charges)
        for a, b in zip(alone, together, strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_dims", [2, pytest.param(3, marks=LARGE)])
def test_forces_are_the_slope_of_the_energy_on_the_mesh(kernel, n_dims):
    rng = np.random.default_rng(8)
    points, charges = rng.uniform(-5.0, 5.0, (40, n_dims)), rng.normal(size=40)
    points[0], points[1] = -5.0, 5.0  # keep the mesh in place while others move
    mesh = ParticleMesh(kernel, 1e-5)

    def energy(moved):
        return 0.5 * charges @ mesh.field(moved, charges=charges)[0]

    gradients = mesh.field(points, charges=charges)[1]
    step = 1e-5
    for row, axis in ((5, 0), (9, n_dims - 1), (30, 1)):
        ahead, behind = points.copy(), points.copy()
        ahead[row, axis] += step
        behind[row, axis] -= step
        slope = (energy(ahead) - energy(behind)) / (2.0 * step)
        assert slope == pytest.approx(charges[row] * gradients[row, axis], rel=1e-6, abs=1e-7)


@LARGE
@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(-40, 40), st.sampled_from(KERNELS))
def test_whole_steps_change_nothing(seed, n_steps, kernel):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(200, 2)) * 10.0
    rule = mesh_rule(kernel, 1e-5, 200, 2)
    step = fitted_mesh(points.min(axis=0), points.max(axis=0), rule).step
    mesh = ParticleMesh(kernel, 1e-5)
    here, there = mesh.field(points)[1], mesh.field(points + n_steps * step)[1]
    assert relative(there, here) < 1e-6


@LARGE
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.sampled_from([2, 3]),
    st.floats(-12.0, 1.5),
    st.floats(-5.0, 5.0),
    st.sampled_from(KERNELS),
)
def test_pairs_are_never_off_by_more_than_the_tolerance(seed, n_points, n_dims, log_extent, offset, kernel):
    rng = np.random.default_rng(seed)
    extent = 10.0**log_extent
    points = extent * rng.uniform(size=(n_points, n_dims)) + offset
    charges = rng.normal(size=n_points)
    values, gradients = ParticleMesh(kernel, 1e-3).field(points, charges=charges)
    true = pair_sums(kernel, points, points, charges, np.arange(n_points))
    assert np.isfinite(values).all()
    assert np.isfinite(gradients).all()
    bound = 1e-3 * np.abs(charges).sum()
    assert np.abs(values - true[0]).max() <= bound
    assert np.abs(gradients - true[1]).max() <= bound * min(1.0, 2.0 * extent)


def test_float32_points_and_calls_of_changing_size():
    rng = np.random.default_rng(9)
    mesh = ParticleMesh("student", 1e-3)
    for n_points, extent in ((2000, 20.0), (300, 3.0), (5000, 30.0), (2000, 20.0)):
        points = clusters(rng, n_points, 2, extent).astype(np.float32)
        found = mesh.field(points)
        fresh = ParticleMesh("student", 1e-3).field(points.astype(np.float64))
        for a, b in zip(found, fresh, strict=True):
            assert a.dtype == np.float64
            assert np.array_equal(a, b)


def test_no_points_no_charge_no_force():
    mesh = ParticleMesh("gaussian", 1e-2)
    values, gradients = mesh.field(np.empty((0, 2)))
    assert values.shape == (0,)
    assert gradients.shape == (0, 2)
    values, gradients = mesh.field(np.empty((0, 3)), np.ones((4, 3)))
    assert not values.any()
    assert gradients.shape == (4, 3)
    values, gradients = mesh.field(np.random.default_rng(0).normal(size=(5, 2)), charges=np.zeros(5))
    assert not values.any()
    assert not gradients.any()


def test_charges_of_any_size_scale_the_sums():
    rng = np.random.default_rng(10)
    points, charges = clusters(rng, 500, 2, 5.0), rng.normal(size=500)
    values, gradients = ParticleMesh("student", 1e-3).field(points, charges=charges)
    for power in (-900, -60, 60, 900):
        scale = 2.0**power
        found = ParticleMesh("student", 1e-3).field(points, charges=scale * charges)
        assert relative(found[0] / scale, values) < 1e-6
        assert relative(found[1] / scale, gradients) < 1e-6


def test_what_cannot_be_used_is_refused():
    with pytest.raises(ConfigError, match="'student'"):
        ParticleMesh("studnet", 1e-2)
    for tolerance in (1e-9, 0.5, float("nan"), -1.0):
        with pytest.raises(ConfigError, match=r"1e-06 to 0\.1"):
            ParticleMesh("student", tolerance)
    mesh = ParticleMesh("student", 1e-2)
    with pytest.raises(DataError, match="d = 2 or 3"):
        mesh.field(np.zeros((4, 5)))
    with pytest.raises(DataError, match="d = 2"):
        mesh.field(np.zeros((4, 2)), np.zeros((4, 3)))
    with pytest.raises(DataError, match="finite"):
        mesh.field(np.array([[0.0, 1.0], [np.nan, 2.0]]))
    with pytest.raises(DataError, match="finite"):
        mesh.field(np.array([[0.0, 1.0], [np.inf, 2.0]]))
    with pytest.raises(DataError, match="one finite number a source"):
        mesh.field(np.zeros((4, 2)), charges=np.ones(3))
    with pytest.raises(DataError, match="one finite number a source"):
        mesh.field(np.zeros((4, 2)), charges=np.array([1.0, np.nan, 0.0, 0.0]))


def test_a_potential_is_the_field_at_targets_in_any_order():
    sources = np.random.default_rng(11).normal(size=(3000, 2)) * 8
    targets = np.random.default_rng(12).uniform(-30, 30, (500, 2))
    potential = ParticleMesh("student", 1e-4).potential(sources, 20.0)
    inside = potential.inside(targets)
    assert 100 < inside.sum() <= 500
    values, gradients = potential.field(targets[inside])
    offsets = targets[inside][:, None] - sources[None]
    kernel = 1 / (1 + (offsets**2).sum(axis=2))
    np.testing.assert_allclose(values, kernel.sum(axis=1), rtol=1e-3)
    exact = -2 * np.einsum("mn,mnd->md", kernel**2, offsets)
    assert np.linalg.norm(gradients - exact) <= 1e-3 * np.linalg.norm(exact)
    again, slopes = potential.field(targets[inside][::-1][:37])
    np.testing.assert_array_equal(again, values[::-1][:37])
    np.testing.assert_array_equal(slopes, gradients[::-1][:37])
