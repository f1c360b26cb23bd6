"""The end of a process that is told to stop while compiled code is at work."""

import os
import signal
import subprocess
import sys
import time

import pytest

from scalemani.kernels.machine.plain import PLAIN

# The other thread, which the interpreter would wait for, gives the GIL up; LAPACK called by SciPy holds it.
IN_THREADS = """
import threading
from scalemani.cli.ending import ending_in_time
with ending_in_time():
    threading.Thread(target=threading.Event().wait, args=[120]).start()
    print("at work", flush=True)
    threading.Event().wait(120)
"""
IN_LAPACK = """
import numpy as np
import scipy.linalg
from scalemani.cli.ending import WATCH, ending_in_time
with ending_in_time():
    matrix = np.random.default_rng(0).random((6500, 6500))
    WATCH.wait_compiled()
    print("at work", flush=True)
    scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False)
"""
COMPILED = pytest.mark.skipif(PLAIN, reason="the wait without the interpreter is compiled")
SECONDS_INTO_WORK = 2.0
LONGEST_SECONDS = 10.0  # three of grace where nothing else runs, and half a minute of LAPACK


@pytest.mark.parametrize(
    ("program", "number"),
    [
        pytest.param(IN_THREADS, signal.SIGTERM, id="threads"),
        pytest.param(IN_LAPACK, signal.SIGINT, id="LAPACK, SIGINT", marks=COMPILED),
        pytest.param(IN_LAPACK, signal.SIGTERM, id="LAPACK, SIGTERM", marks=COMPILED),
    ],
)
def test_a_process_deep_in_compiled_code_ends_in_time(program, number):
    heeded = f"import signal; signal.signal({int(number)}, signal.SIG_DFL)\n"  # a shell may have it ignored
    command = [sys.executable, "-c", heeded + program]
    with subprocess.Popen(
        command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(SECONDS_INTO_WORK)
        started = time.monotonic()
        process.send_signal(number)
        try:
            assert process.wait(60) == 128 + number
            assert time.monotonic() - started < LONGEST_SECONDS
        finally:
            process.kill()
