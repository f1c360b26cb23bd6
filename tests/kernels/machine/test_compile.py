"""What the compile decorators promise of sums, products and threads."""

import ast
import threading
from pathlib import Path

import numba
import numpy as np
import pytest

import scalemani
from scalemani.kernels.machine.compile import PLAIN, compiled, compiled_fused, compiled_sums, inlined_sums

MILLISECONDS = 60_000  # that a kernel waits at least
_usleep = numba.types.ExternalFunction("usleep", numba.types.intc(numba.types.uint32))
DECORATORS = [compiled, compiled_sums, compiled_fused, inlined_sums]


def total_of(numbers):
    total = 0.0
    for i in range(np.uint64(len(numbers))):
        total += numbers[i]
    return total


@pytest.mark.parametrize("decorator", DECORATORS)
def test_nan_and_infinity_stay_what_they_are(decorator):
    @decorator
    def looked_at(x):
        return np.isnan(x), x == x, x - x

    assert looked_at(np.nan)[:2] == (True, False)
    assert looked_at(1.0) == (False, True, 0.0)
    assert np.isnan(looked_at(np.inf)[2])


@pytest.mark.parametrize("decorator", DECORATORS)
def test_a_division_by_zero_is_infinite(decorator):
    @decorator
    def inverse(numbers):
        return 1.0 / numbers[0]

    assert inverse(np.zeros(1)) == np.inf


def test_sums_keep_their_order_but_where_they_may_change_it():
    sets = np.random.default_rng(0).normal(size=(20, 1000))
    in_order = np.array([total_of(numbers.tolist()) for numbers in sets])
    found = {decorator: np.array([decorator(total_of)(numbers) for numbers in sets]) for decorator in DECORATORS}
    np.testing.assert_array_equal(found[compiled], in_order)
    np.testing.assert_array_equal(found[compiled_fused], in_order)
    np.testing.assert_allclose(found[compiled_sums], in_order, rtol=1e-11)
    assert PLAIN or np.any(found[compiled_sums] != in_order)  # sums are vectorised


def test_products_are_rounded_but_where_they_may_be_fused():
    def product_and_sum(x, y, z):
        return x * y + z

    tiny = 2.0**-30
    arguments = (1.0 + tiny, 1.0 - tiny, -1.0)  # the product is 1 - 2^-60, which rounds to 1
    assert compiled(product_and_sum)(*arguments) == 0.0
    for decorator in (compiled_sums, compiled_fused):
        assert decorator(product_and_sum)(*arguments) in (0.0, -(2.0**-60))


@pytest.mark.skipif(PLAIN, reason="Python holds its lock")
@pytest.mark.parametrize("decorator", DECORATORS)
def test_kernels_run_while_other_threads_do(decorator):
    @decorator
    def wait(flags):
        turns = 0
        while flags[0] == 0 and turns < MILLISECONDS:
            _usleep(1000)  # after a call of the system the flag is read again
            turns += 1
            flags[1] = turns
        return turns

    wait(np.ones(2, dtype=np.int64))  # compiles
    flags = np.zeros(2, dtype=np.int64)
    turns = []
    kernel = threading.Thread(target=lambda: turns.append(wait(flags)))
    kernel.start()
    while flags[1] == 0:
        assert kernel.is_alive()
    flags[0] = 1
    kernel.join(240)
    assert not kernel.is_alive()
    assert turns[0] < MILLISECONDS  # the flag was set while the kernel ran


def decorated_functions():
    """Yield the functions of the package that a compile decorator is on: its name, and their syntax tree."""
    for path in Path(scalemani.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
                for name in names & {"compiled", "compiled_sums", "compiled_fused", "inlined_sums"}:
                    yield name, node


def test_sums_that_kernels_call_are_inlined():
    kernels = list(decorated_functions())
    in_any_order = {node.name for name, node in kernels if name == "compiled_sums"}
    called = {
        call.func.id
        for _, node in kernels
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    assert len(in_any_order) > 10
    assert not called & in_any_order


def test_what_kernels_choose_by_type_is_inlined():
    chosen = {
        f"{path.stem}.{node.name}": [ast.unparse(option) for option in decorator.keywords]
        for path in Path(scalemani.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "overload"
    }
    assert len(chosen) > 5
    for options in chosen.values():
        assert options in (["jit_options=INLINED"], ["jit_options=INLINED_SUMS"])


def test_kernels_raise_no_float_to_a_power():
    # Numba compiles `**` once a process, as the first kernel permits: bits would depend on the order of kernels.
    powers = {
        f"{node.name}: {ast.unparse(power)}"
        for _, node in decorated_functions()
        for power in ast.walk(node)
        if isinstance(power, ast.BinOp | ast.AugAssign) and isinstance(power.op, ast.Pow)
    }
    assert powers == {"spread: 2 ** 63", "_write_keys: 2.0 ** levels"}  # of integers, and exact
