"""What every way to sum over pairs keeps to, whichever it is."""

from typing import get_args

import numpy as np
import pytest

from scalemani.config.objectives import OBJECTIVES, Kernel
from scalemani.config.params import LayoutParams
from scalemani.descents.repulsion import chosen_method, make_repulsion
from scalemani.errors import ConfigError
from scalemani.kernels.repulsion.convolution import MESH_KERNELS
from scalemani.kernels.repulsion.pair_sums import (
    KERNELS,
    ExactSums,
    checked_tolerance,
    derivatives,
    kernel_number,
    pair_arguments,
    respond,
    weigh,
)

WAYS = [
    ("exact", "epanechnikov"),
    *((method, kernel) for method in ("exact", "barnes-hut", "grid") for kernel in ("student", "gaussian")),
    ("fgt", "gaussian"),
]
METHODS = get_args(LayoutParams.__dataclass_fields__["repulsion"].type)


@pytest.mark.parametrize(("method", "kernel"), WAYS)
def test_a_potential_is_the_field_of_its_sources_wherever_it_can_be_asked(method, kernel):
    draws = np.random.default_rng(0)
    sources, targets = 3 * draws.normal(size=(1200, 2)), 6 * draws.normal(size=(300, 2))
    sums = make_repulsion(method, kernel, 1e-4)
    potential = sums.potential(sources, margin=2.0)
    within = ((targets >= sources.min(axis=0) - 2) & (targets <= sources.max(axis=0) + 2)).all(axis=1)
    assert potential.inside(targets)[within].all()
    values, gradients = potential.field(targets[within])
    expected = ExactSums(kernel).field(sources, targets[within])
    assert np.linalg.norm(gradients - expected[1]) <= 2e-4 * np.linalg.norm(expected[1])
    assert np.linalg.norm(values - expected[0]) <= 2e-4 * np.linalg.norm(expected[0])


@pytest.mark.parametrize(("method", "kernel"), WAYS)
def test_sums_that_call_themselves_exact_are(method, kernel):
    positions = 3 * np.random.default_rng(1).normal(size=(1500, 2))
    sums = make_repulsion(method, kernel, 1e-2)
    assert sums.kernel == kernel
    found, expected = sums.field(positions)[0], ExactSums(kernel).field(positions)[0]
    assert np.allclose(found, expected, rtol=1e-13) == sums.exact


def test_every_way_that_can_be_asked_for_is_there_and_no_other():
    """`params` cannot read the table of `embeddings`, which lies above it."""
    served = {chosen_method(method, "gaussian", 5000, 2) for method in METHODS}
    assert served == {*METHODS} - {"auto"}
    for method in served:
        make_repulsion(method, "gaussian", 1e-3)
    with pytest.raises(ConfigError, match="unknown repulsion"):
        chosen_method("fft", "gaussian", 5000, 2)


def test_kernels_have_one_name_in_the_table_of_objectives_and_in_compiled_code():
    assert set(get_args(Kernel)) == set(KERNELS)
    assert {objective.kernel for objective in OBJECTIVES.values()} <= set(KERNELS)
    assert len(set(map(kernel_number, KERNELS))) == len(KERNELS)


@pytest.mark.parametrize("dof", [0.0, 0.05, 101.0, -1.0, np.nan, np.inf])
def test_degrees_of_freedom_are_neither_few_nor_many(dof):
    assert kernel_number(1.0, of_any_dof=True) == kernel_number("student")
    with pytest.raises(ConfigError, match="degrees of freedom must be in"):
        ExactSums(dof)


@pytest.mark.parametrize("kernel", [*KERNELS, 0.5, 10.0])
def test_all_compiled_functions_have_the_same_kernel_by_its_number(kernel):
    """One that lacks a branch for a new kernel would take another kernel for it."""
    number, squares, step = kernel_number(kernel, of_any_dof=True), np.array([0.1, 0.6, 2.5]), 1e-5
    values, slopes = np.transpose([respond(number, square) for square in squares])
    differences = [[respond(number, square + sign * step) for square in squares] for sign in (1, -1)]
    value_slopes, slope_slopes = ((differences[0] - np.array(differences[1])) / (2 * step)).T
    np.testing.assert_allclose(slopes, value_slopes, atol=1e-8)
    negated, second = np.transpose([derivatives(number, square) for square in squares])
    np.testing.assert_allclose(-negated, slopes, rtol=1e-12)
    np.testing.assert_allclose(second, slope_slopes, atol=1e-8)
    found = np.empty(3)
    assert weigh(number, squares, np.array([1.0, 2.0, 3.0]), found) == pytest.approx(values @ [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found, slopes * [1.0, 2.0, 3.0], rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_auto_takes_the_mesh_for_its_own_kernels_alone(kernel):
    assert chosen_method("auto", kernel, 10**6, 2) == ("grid" if kernel in MESH_KERNELS else "exact")


@pytest.mark.parametrize("shapes", [((3, 2), (3, 3), (3,)), ((3, 2), (1, 2), (4,)), ((3,), (3,), (3,))])
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ConfigError, match="do not fit"):
        pair_arguments(*map(np.ones, shapes))


@pytest.mark.parametrize("tolerance", [0.0, -1e-3, float("nan")])
def test_a_tolerance_that_is_not_above_zero_is_refused(tolerance):
    with pytest.raises(ConfigError, match="tolerance must be > 0"):
        checked_tolerance(tolerance)
