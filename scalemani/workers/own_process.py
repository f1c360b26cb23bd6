"""A unit that may end its workers, in a process of its own below a worker that lives to tell how it ended.

A worker that is gone tells nothing: it may have been killed from outside. A process that did nothing but this unit, and
ended while the worker above it went on, ended because of the unit.
"""

import ctypes
import functools
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle
import psutil
from dask.utils import format_bytes

from scalemani.errors import PoisonTaskError, WorkersLostError
from scalemani.memory.process import PROCESS
from scalemani.workers.blas import BLAS

PROGRAM = [sys.executable, "-c", "from scalemani.workers.own_process import serve; serve()"]
LOOKS_APART_SECONDS = 0.05
MOST_OF_MEMORY = 0.95  # as Dask's nannies
PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


class EndedApartError(Exception):
    """A process that had one unit to do ended before it was done; the message says how."""


@functools.lru_cache(maxsize=4)
def unpacked(content: bytes) -> Callable[[Any], Any]:
    """Return the function of a map, unpacked once a process."""
    return pickle.loads(content)


def run_alone(content: bytes, unit: Any) -> Any:
    """Return function(unit), with BLAS at one thread for good."""
    function = unpacked(content)
    BLAS.set_to_one()
    return function(unit)


def run_apart(content: bytes, unit: Any, memory: int | None) -> Any:
    """Return function(unit) from a process of its own that may take `memory` bytes together with this one.

    What this process keeps at hand is dropped first, since the other one needs the same. Raises EndedApartError where
    that process ends, and what the function raises.
    """
    PROCESS.free()
    request = pickle.dumps((os.getpid(), sys.path, pickle.dumps((content, unit))))
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        guard = MemoryGuard(process.pid, memory)
        answer, _ = process.communicate(request)
        guard.stop()
        status = process.returncode
    if status != 0:
        raise EndedApartError(guard.said or how_ended(status))
    succeeded, outcome = pickle.loads(answer)
    if not succeeded:
        raise outcome
    return outcome


def how_ended(status: int) -> str:
    """Return the words for the status of a process that failed."""
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"by signal {-status}"


class MemoryGuard:
    """Ends a process that takes more memory, with the one above it, than a worker may have."""

    def __init__(self, pid: int, memory: int | None) -> None:
        self.said = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(pid, memory), daemon=True)
        if memory:
            self._thread.start()

    def stop(self) -> None:
        """Look no longer."""
        self._stopped.set()
        if self._thread.ident:
            self._thread.join()

    def _watch(self, pid: int, memory: int) -> None:
        above = psutil.Process()
        try:
            process = psutil.Process(pid)
            while not self._stopped.wait(LOOKS_APART_SECONDS):
                taken = process.memory_info().rss + above.memory_info().rss
                if taken > MOST_OF_MEMORY * memory:
                    self.said = f"at {format_bytes(taken)} of the {format_bytes(memory)} of its worker"
                    process.kill()
                    return
        except psutil.Error:
            return  # it has ended


def serve() -> None:
    """Do one unit: read it from standard input, write the outcome to standard output, end with the process above."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the function prints is not the outcome
    above, sys.path[:], call = pickle.load(sys.stdin.buffer)
    end_with(above)
    outcome: tuple[bool, Any]
    try:
        content, unit = pickle.loads(call)
        outcome = True, run_alone(content, unit)
    except Exception as error:
        outcome = False, error
    answers.write(cloudpickle.dumps(outcome))
    answers.flush()
    os._exit(0)  # what goes wrong from here on says nothing about the unit


def end_with(above: int) -> None:
    """Have this process killed when the one above it ends, so that no two work on a unit for long."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != above:
        os._exit(1)


def poison_error(stage: str, unit: Any, ended: int, last: str) -> PoisonTaskError:
    """Return the error of a unit that ends the processes that work on it."""
    return PoisonTaskError(
        f"stage {stage}, block {named(unit)}: {ended} processes ended while they worked on it; the last had nothing "
        f"else to do and ended {last}: it needs more memory than there is, or compiled code crashed; give workers more "
        "memory, or start a new run with smaller blocks (--block-rows)"
    )


def unlucky_error(stage: str, unit: Any, lost: int) -> WorkersLostError:
    """Return the error of a unit whose workers are ended by something else."""
    return WorkersLostError(
        f"stage {stage}, block {named(unit)}: {lost} workers went while they had it, though it ended no process of its "
        "own: something ends workers sooner than blocks get done (a limit of the batch system or of a container, "
        "preemption: their logs say more); the same command goes on where this one ended"
    )


def named(unit: Any) -> str:
    """Return the number of a block, or the numbers of a run of blocks."""
    return ", ".join(map(str, unit)) if isinstance(unit, list) else str(unit)
