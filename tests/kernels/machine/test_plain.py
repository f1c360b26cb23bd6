"""The switch to plain kernels, and arrays by their address."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from scalemani.kernels.machine.compile import numbers_at

PROGRAM = """
import inspect, json, types
from scalemani.kernels.machine.compile import PLAIN
from scalemani.kernels.machine import instructions, vector_math
from scalemani.kernels.repulsion import splines
from scalemani.kernels.affinities import root_finders

chosen = (instructions.compress_lanes, instructions.prefetch_line, instructions.prefetch_row, vector_math.exp_in_range,
          vector_math.log_positive, splines.spread_group, splines.gather_group,
          root_finders.derivative_step)
kinds = (types.FunctionType, types.BuiltinFunctionType)
print(json.dumps([PLAIN, [isinstance(function, kinds) for function in chosen]]))
"""


@pytest.mark.parametrize(
    ("variables", "plain"),
    [
        ({}, False),
        ({"SCALEMANI_PLAIN": "0"}, False),
        ({"SCALEMANI_PLAIN": ""}, False),
        ({"SCALEMANI_PLAIN": "1"}, True),
        ({"SCALEMANI_PLAIN": "1", "NUMBA_DISABLE_JIT": "1"}, True),
        ({"NUMBA_DISABLE_JIT": "1"}, True),
    ],
)
def test_kernels_are_python_functions_where_the_environment_says_so(variables, plain):
    kept = {k: v for k, v in os.environ.items() if k not in ("SCALEMANI_PLAIN", "NUMBA_DISABLE_JIT")}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=kept | variables)
    assert json.loads(done.stdout) == [plain, [plain] * 8]


@pytest.mark.parametrize("value", ["no", "false", "2"])
def test_other_words_than_0_and_1_are_refused_in_one_line(value):
    command = [sys.executable, "-m", "scalemani", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SCALEMANI_PLAIN": value})
    assert done.returncode == 2
    assert done.stderr == f"error: SCALEMANI_PLAIN in the environment must be 0 or 1, got {value!r}\n"


STEPPED = """
import inspect, pdb
from scalemani.kernels.affinities.root_finders import derivative_step
debugger = pdb.Pdb()
kernel = inspect.unwrap(derivative_step)
lines, first = inspect.getsourcelines(kernel)
debugger.set_break(inspect.getsourcefile(kernel), first + len(lines) - 1)
debugger.runcall(derivative_step, 0, 0.5, -1.0, 0.1)
"""


def test_a_debugger_steps_through_a_kernel():
    command = [sys.executable, "-c", STEPPED]
    steps = "continue\np newton\nup\nstep\nstep\ncontinue\n"
    environment = {**os.environ, "SCALEMANI_PLAIN": "1"}
    done = subprocess.run(command, input=steps, capture_output=True, text=True, check=True, env=environment)
    assert "-> return newton" in done.stdout
    assert "(Pdb) 0.5" in done.stdout


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_numbers_at_an_address_are_those_of_the_array_that_lies_there(dtype):
    array = np.arange(24).astype(dtype).reshape(2, 3, 4)
    same = numbers_at(array.ctypes.data, (2, 3, 4), dtype)
    np.testing.assert_array_equal(same, array)
    part = numbers_at(array[1:, 1:, 1:].ctypes.data, (1, 2, 2), dtype, array.strides)
    np.testing.assert_array_equal(part, array[1:, 1:, 1:3])
    part[0, 1, 1] = 99
    assert array[1, 2, 2] == 99
    assert same[1, 2, 2] == 99
