"""Units in a process of their own: what they return and raise, how they end, and that they end with the worker."""

import ctypes
import os
import pickle
import subprocess
import sys
import time

import cloudpickle
import numpy as np
import psutil
import pytest

from scalemani.workers.own_process import OwnProcessEndedError, run_in_own_process

MEMORY = 400 * 2**20
PARENT = """
import pickle, sys
from scalemani.workers.own_process import run_in_own_process
run_in_own_process(pickle.loads(bytes.fromhex(sys.argv[1])), sys.argv[2], None)
"""


def in_own_process(function, unit, memory=None):
    return run_in_own_process(cloudpickle.dumps(function), unit, memory)


def noisy_pid(unit):
    print("not the outcome")
    return unit, os.getpid()


def divided(unit):
    return unit // 0


def exits(unit):
    os._exit(unit)


def crashes(unit):
    ctypes.string_at(0)


def grows(unit):
    held = []
    while True:
        held.append(np.ones(2**20))
        time.sleep(0.002)


def sleeps(path):
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(60)


def test_a_unit_is_done_in_another_process_and_prints_what_it_likes():
    unit, process = in_own_process(noisy_pid, 7)
    assert unit == 7
    assert process != os.getpid()


def test_what_the_function_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        in_own_process(divided, 7)


@pytest.mark.parametrize(
    ("function", "said"), [(exits, "with status 7"), (crashes, r"by signal 11 \(SIGSEGV\)"), (grows, "of its worker")]
)
def test_how_a_process_ended_is_told(function, said):
    own = psutil.Process().memory_info().rss
    with pytest.raises(OwnProcessEndedError, match=said) as ended:
        in_own_process(function, 7, own + MEMORY if function is grows else None)
    assert pickle.loads(pickle.dumps(ended.value)).args == ended.value.args


def test_a_unit_ends_with_the_process_above_it(tmp_path):
    path = tmp_path / "pid"
    content = pickle.dumps(cloudpickle.dumps(sleeps)).hex()
    with subprocess.Popen([sys.executable, "-c", PARENT, content, str(path)]) as parent:
        end = time.monotonic() + 60
        while not (path.exists() and path.read_text()) and time.monotonic() < end:
            time.sleep(0.05)
        parent.kill()
    below, end = int(path.read_text()), time.monotonic() + 10
    while psutil.pid_exists(below) and time.monotonic() < end:
        time.sleep(0.05)
    assert not psutil.pid_exists(below)
