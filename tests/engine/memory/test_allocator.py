"""The allocator is tuned in processes of ours, and left alone in those of others."""

import ctypes
import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is no glibc to tune")

SPY = """
import ctypes, sys
import numpy as np

asked = []

class Spy(ctypes.CDLL):
    def __getattr__(self, name):
        asked.append(name)
        return super().__getattr__(name)

ctypes.CDLL = Spy
folder = sys.argv[1]
points = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
"""
ESTIMATOR = """
import scalemani as sm
sm.LaplacianEigenmaps(n_neighbors=10, perplexity=3, memory="1GB", store=folder + "/run").fit(points)
"""
COMMAND = """
from scalemani.interfaces.cli.process import main
np.save(folder + "/points.npy", points)
chosen = ["--set", "neighbors.n_neighbors=10", "--set", "affinities.perplexity=3"]
sys.argv[1:] = ["embed", folder + "/points.npy", folder + "/run", "--memory", "1GB", *chosen]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
"""
SAID = """
print("asked:", *sorted({"mallopt", "malloc_trim"} & set(asked)))
"""
ARENAS = """
import ctypes, sys, threading
from scalemani.engine.memory.process import (ARENAS, limit_arenas)

if sys.argv[1] == "limited":
    limit_arenas(10**9)
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype, together = ctypes.c_void_p, threading.Barrier(8)

def allocate():
    together.wait()
    for _ in range(1000):
        libc.malloc(1000)
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
"""
TUNING = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")  # with which a machine may limit arenas itself


def said_by(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    untuned = {name: value for name, value in os.environ.items() if name not in TUNING}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=untuned).stdout


@pytest.mark.parametrize(("work", "tuned"), [(ESTIMATOR, False), (COMMAND, True)])
def test_a_budget_tunes_the_allocator_of_the_command_line_and_of_no_other_process(tmp_path, work, tuned):
    found = said_by(SPY + work + SAID, tmp_path).splitlines()[-1]
    assert found == "asked: malloc_trim mallopt" if tuned else found == "asked: malloc_trim"


def test_all_threads_share_two_arenas_once_these_are_limited():
    heaps = {kind: said_by(ARENAS, kind).count("<heap nr=") for kind in ("limited", "free")}
    assert heaps["limited"] <= 2 < heaps["free"]


def test_the_c_library_is_found():
    assert ctypes.CDLL("libc.so.6").mallopt
