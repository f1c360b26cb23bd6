"""What every way to sum over pairs keeps to, whichever it is."""

from typing import get_args

import numpy as np
import pytest

from scalemani.config.objectives import OBJECTIVES, Kernel
from scalemani.config.params import LayoutParams
from scalemani.descents.repulsion import chosen_method, make_repulsion
from scalemani.errors import ConfigError
from scalemani.kernels.repulsion.pair_sums import KERNELS, ExactSums, pair_arguments

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
    values, gradients = sums.potential(sources)(targets)
    expected = ExactSums(kernel).field(sources, targets)
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


@pytest.mark.parametrize("shapes", [((3, 2), (3, 3), (3,)), ((3, 2), (1, 2), (4,)), ((3,), (3,), (3,))])
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ConfigError, match="do not fit"):
        pair_arguments(*map(np.ones, shapes))
