"""The mesh that a tolerance asks for."""

import numpy as np
import pytest

from scalemani.errors import ConfigError
from scalemani.kernels.repulsion.particle_mesh import ERRORS, LEAST_CELLS, LEAST_TOLERANCE, MOST_TOLERANCE, mesh_rule

KERNELS = ("student", "gaussian")


def test_finer_tolerances_never_widen_the_mesh():
    for kernel, degree in ERRORS:
        assert np.all(np.diff(ERRORS[kernel, degree]) > 0.0)
        steps = {}
        for tolerance in np.geomspace(1e-6, 1e-1, 60):
            rule = mesh_rule(kernel, tolerance, 10**6, 2)
            steps.setdefault(rule.degree, []).append(rule.step)
        assert all(np.all(np.diff(found) >= 0.0) for found in steps.values())


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tolerance", [1e-6, 1e-4, 1e-2])
def test_fewer_points_never_have_a_wider_mesh(kernel, tolerance):
    steps = {}
    for n_points in (10, 1000, 10**5, 10**7):
        rule = mesh_rule(kernel, tolerance, n_points, 2)
        steps.setdefault(rule.degree, []).append(rule.step)
    assert all(np.all(np.diff(found) >= 0.0) for found in steps.values())


def test_the_step_is_one_at_which_the_error_was_within_the_tolerance():
    for (kernel, degree), errors in ERRORS.items():
        for tolerance in np.geomspace(1e-5, 1e-2, 20):
            rule = mesh_rule(kernel, tolerance, 10**6, 2)
            if rule.degree == degree:
                widths = (0.0625, 0.09, 0.125, 0.18, 0.25, 0.35, 0.5, 0.7, 0.9)
                assert np.interp(np.log(rule.step), np.log(widths), np.log(errors)) < np.log(tolerance)


def test_coarse_tolerances_are_met_in_float32_and_fine_ones_in_float64():
    for kernel in KERNELS:
        assert mesh_rule(kernel, 1e-4, 1000, 2).dtype == np.float32
        assert mesh_rule(kernel, 0.99e-4, 1000, 2).dtype == np.float64


@pytest.mark.parametrize("tolerance", np.geomspace(1e-6, 1e-1, 6))
def test_what_a_gaussian_has_beyond_its_reach_counts_for_nothing(tolerance):
    reach = mesh_rule("gaussian", tolerance, 10**6, 2).reach
    distances = np.linspace(reach, reach + 20.0, 1000)
    largest = np.sqrt(0.5) * np.exp(-0.5)  # of r exp(-r^2)
    assert np.max(distances * np.exp(-(distances**2))) < 0.1 * tolerance * largest
    assert mesh_rule("student", tolerance, 10**6, 2).reach == np.inf


def test_maps_have_cells_enough_for_their_points():
    for n_dims in (2, 3):
        for n_points in (1, 10**4, 10**6, 10**8):
            cells = mesh_rule("student", 1e-3, n_points, n_dims).least_cells
            assert cells >= LEAST_CELLS
            assert (cells + 1) ** n_dims * 16 > n_points


@pytest.mark.parametrize("tolerance", [0.0, 0.99 * LEAST_TOLERANCE, 1.01 * MOST_TOLERANCE, float("nan"), -1e-3])
def test_tolerances_that_were_not_measured_are_refused(tolerance):
    with pytest.raises(ConfigError, match=r"1e-06 to 0\.1; use exact sums"):
        mesh_rule("student", tolerance, 1000, 2)
