"""Systems other than Linux, as far as taking away what they lack tells: this runs on none of them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
# What the libraries below ask of the system stays with them: they have their own ways on other systems.
LIBRARIES = """
import builtins, contextlib, errno, faulthandler, importlib, mmap, multiprocessing, os, pkgutil, signal, sys
import dask, distributed, numba, numpy, psutil, sklearn, threadpoolctl, typer, zarr
"""
NO_PROC = """
def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc/"):
        frame = sys._getframe(1)
        while frame is not None and os.path.basename(frame.f_code.co_filename) == "pathlib.py":
            frame = frame.f_back
        if frame is not None and f"{os.sep}scalemani{os.sep}" in frame.f_code.co_filename:
            raise FileNotFoundError(errno.ENOENT, "no such file", arguments[0])
sys.addaudithook(refuse)
"""
MACOS = f"""{LIBRARIES}{NO_PROC}
del os.posix_fallocate, os.sched_getaffinity
"""
WINDOWS = f"""{LIBRARIES}{NO_PROC}
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("posix_fallocate", "sched_getaffinity", "sysconf", "getuid", "geteuid", "getloadavg", "O_NOFOLLOW",
             "O_NONBLOCK", "O_CLOEXEC", "pwrite", "pread", "fchmod", "killpg", "setsid"):
    delattr(os, name)
del signal.SIGHUP, signal.SIGUSR1, faulthandler.register, mmap.MADV_DONTNEED
"""
EVERY_MODULE = """
import scalemani
for found in pkgutil.walk_packages(scalemani.__path__, "scalemani."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
"""
FIT = """
import scalemani as sm
points = numpy.random.default_rng(0).normal(size=(300, 4))
"""
FIT_HERE = f"{LIBRARIES}{FIT}"


def child(program: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=600, cwd=ROOT, check=False
    )


@pytest.mark.parametrize("system", [MACOS, WINDOWS], ids=["macos", "windows"])
def test_every_module_is_imported_without_what_linux_has(system):
    told = child(f"{system}{EVERY_MODULE}")
    assert told.returncode == 0, told.stderr


def test_a_run_without_proc_gives_the_same_bits(tmp_path):
    program = f"{FIT}numpy.save(sys.argv[1], sm.LaplacianEigenmaps(perplexity=8, workers=1).fit(points).embedding_)"
    for name, system in (("here", LIBRARIES), ("there", MACOS)):
        told = child(f"{system}{program}", str(tmp_path / f"{name}.npy"))
        assert told.returncode == 0, told.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "here.npy"), np.load(tmp_path / "there.npy"))


def test_a_run_without_locks_is_refused_by_one_message():
    told = child(f"{WINDOWS}{FIT}sm.LaplacianEigenmaps(perplexity=8).fit(points)")
    assert told.stderr.splitlines()[-1].endswith(
        "does not have: use Linux or macOS; on Windows, the Windows Subsystem for Linux"
    )


def test_steps_in_memory_and_finished_runs_need_no_locks(tmp_path):
    told = child(f"{FIT_HERE}sm.LaplacianEigenmaps(perplexity=8, store=sys.argv[1]).fit(points)", str(tmp_path))
    assert told.returncode == 0, told.stderr
    told = child(
        f"""{WINDOWS}{FIT}
assert sm.open_run(sys.argv[1]).embedding[...].shape == (300, 2)
assert sm.entropic_affinities(numpy.sort(numpy.abs(points)), perplexity=2).values.shape == (300, 4)
assert len(sm.select_landmarks(points, 20).points) == 20
""",
        str(tmp_path),
    )
    assert told.returncode == 0, told.stderr


def test_memory_and_boots_are_told_without_proc():
    told = child(
        f"""{MACOS}
from scalemani.engine.memory.peak import anonymous_bytes
from scalemani.store.locks import machine
before = anonymous_bytes()
filled = numpy.ones(25_000_000)
assert 190e6 < anonymous_bytes() - before < 250e6
psutil.boot_time = lambda: 1_700_000_000.2
assert machine().endswith(" 1700000000")
"""
    )
    assert told.returncode == 0, told.stderr


def test_mapped_files_take_their_room_without_fallocate(tmp_path):
    told = child(
        f"""{MACOS}
from pathlib import Path
from scalemani.engine.memory.files import (mapped_file, take_space)
made = mapped_file(Path(sys.argv[1]), 9_000_000)
assert len(made) == 9_000_000 and not any(made[::4096])
with open(Path(sys.argv[1]) / "file", "w+b") as file:
    take_space(file, 9_000_000)
    assert os.fstat(file.fileno()).st_blocks * 512 >= 9_000_000
""",
        str(tmp_path),
    )
    assert told.returncode == 0, told.stderr
