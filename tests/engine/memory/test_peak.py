"""What the peak of memory counts: this process, those below it at any depth, and nothing that has ended."""

import os
import resource
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from distributed import system

from scalemani.engine.memory import peak
from scalemani.engine.memory.files import MappedArrays

HELD = 50_000_000
SECONDS = 240  # on a machine that does much else
# Holds memory, starts one more of itself below it where it is told so, says that it is ready, and waits.
HOLDER = f"""
import subprocess, sys
held = bytearray(b"1") * {HELD}
if sys.argv[1:] == ["twice"]:
    subprocess.Popen(sys.orig_argv[:-1])
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_process_that_can_open_no_more_files_is_measured_without_an_error():
    kept, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with peak.PeakMemory() as measured:
        before = measured.bytes
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
        try:
            assert peak.anonymous_bytes() >= 0
            time.sleep(5 * peak.SECONDS_BETWEEN_SAMPLES)
            assert measured._thread.is_alive()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (kept, most))
    assert measured.bytes >= before > 0


@pytest.fixture
def family():
    """A process that holds memory, below it another one, and their numbers."""
    command = [sys.executable, "-c", HOLDER, "twice"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        yield [process.pid, *(child.pid for child in psutil.Process(process.pid).children())]
        process.stdin.close()


@pytest.mark.parametrize("listed", [peak.CHILDREN_ARE_LISTED, False])
def test_processes_below_this_one_count_at_any_depth(family, listed):
    assert len(family) == 2
    below = {child.pid for child in psutil.Process().children(recursive=True)}
    assert set(family) <= below
    assert list(peak.family_of(family[0], listed)) == family
    assert set(peak.family_of(os.getpid(), listed)) >= {os.getpid(), *family}
    each = [peak.anonymous_bytes_of(process) for process in (os.getpid(), *family)]
    assert peak.anonymous_bytes() > sum(each) - HELD / 2


def test_the_memory_of_a_process_is_that_which_the_system_shows_less_pages_of_files(family):
    def shown(process):
        memory = psutil.Process(process).memory_info()
        assert memory.shared > 0
        return memory.rss - memory.shared

    for process in family:  # which may still grow
        before, counted, after = shown(process), peak.anonymous_bytes_of(process), shown(process)
        assert min(before, after) <= counted <= max(before, after)
        assert counted > HELD


def test_pages_of_a_mapped_file_do_not_count(tmp_path):
    array, before = MappedArrays(tmp_path).empty((HELD // 8,), np.float64), peak.anonymous_bytes_of(os.getpid())
    array[:] = 1
    assert psutil.Process().memory_info().shared > HELD
    assert peak.anonymous_bytes_of(os.getpid()) < before + HELD // 2


def test_a_process_that_has_ended_counts_nothing():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert peak.anonymous_bytes_of(process.pid) == 0
    assert list(peak.family_of(process.pid)) == [process.pid]


def test_the_peak_is_kept_when_the_memory_is_gone():
    with peak.PeakMemory() as found:
        before = found.before
        held, deadline = np.ones(HELD // 8), time.monotonic() + SECONDS
        while found.bytes <= before + HELD // 2:
            assert time.monotonic() < deadline
            time.sleep(peak.SECONDS_BETWEEN_SAMPLES)
        assert held.sum() > 0
        del held
    assert found.bytes > before + HELD // 2


def test_the_limit_is_what_dask_finds(monkeypatch):
    assert peak.memory_limit() == system.memory_limit()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (-1, 10**9))
    assert peak.memory_limit() == system.memory_limit() == 10**9
