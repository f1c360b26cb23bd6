"""Compiling is told apart from computing: what is compiled counts once, what is compiled before does not count."""

import threading

import numba
import pytest

from scalemani.kernels.machine.compile import COMPILING, PLAIN, CompileSeconds

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


def test_threads_that_compile_side_by_side_count_once():
    now = [0.0]
    clock = CompileSeconds(lambda: now[0])
    clock.on_start(None)
    now[0] = 1.0
    for step in (clock.on_start, clock.on_end):
        thread = threading.Thread(target=step, args=(None,))
        thread.start()
        thread.join()
    now[0] = 3.0
    assert clock.total == 3
    clock.on_end(None)
    now[0] = 9.0
    assert clock.total == 3
