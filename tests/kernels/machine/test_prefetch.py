import numba
import numpy as np
import pytest

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.plain import PLAIN
from scalemani.kernels.machine.prefetch import prefetch_line, prefetch_row


@compiled
def hint(address):
    prefetch_line(address)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 15), (3, 64), (5, 1000), (4, 0)])
def test_hints_change_no_value(dtype, shape):
    matrix = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    before = matrix.copy()
    for row in range(shape[0]):
        prefetch_row(matrix, row)
    np.testing.assert_array_equal(matrix, before)


def test_rows_that_are_not_there_do_no_harm():
    matrix = np.zeros((3, 40))
    for row in (-1, 3, 10**9):
        prefetch_row(matrix, row)
    for address in (0, 1, matrix.ctypes.data):
        hint(address)


@pytest.mark.skipif(PLAIN, reason="plain kernels give no hints")
def test_hints_are_instructions_of_the_processor():
    kernel = numba.njit(hint.py_func)  # compiled here: what comes from the cache has no listing
    kernel(0)
    assert all("llvm.prefetch" in listing for listing in kernel.inspect_llvm().values())
