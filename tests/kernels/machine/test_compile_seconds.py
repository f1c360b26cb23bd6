"""Compiling is told apart from computing: what is compiled counts once, what is compiled before does not count."""

import numba
import pytest

from scalemani.kernels.machine.compile import COMPILING, PLAIN

pytestmark = pytest.mark.skipif(PLAIN, reason="nothing is compiled")


def test_a_first_call_counts_and_a_second_one_does_not():
    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) * 2

    before = COMPILING.total
    assert outer(1) == 4
    compiled = COMPILING.total - before
    assert compiled > 0
    assert outer(2) == 6
    assert COMPILING.total - before == compiled
