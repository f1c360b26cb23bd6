"""A unit that may end its workers, in a process of its own below a worker that lives to tell how it ended.

A worker that is gone tells nothing: it may have been killed from outside. A process that did nothing but this unit, and
ended while the worker above it went on, ended because of the unit.
"""

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import cloudpickle
import psutil
from dask.utils import format_bytes

from scalemani.memory.process import PROCESS
from scalemani.workers.tasks import call_on_unit

PROGRAM = [sys.executable, "-P", "-c", "from scalemani.workers.own_process import serve; serve()"]
POLL_SECONDS = 0.05
MOST_OF_MEMORY = 0.95  # as Dask's nannies
PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


class OwnProcessEndedError(Exception):
    """A process that had one unit to do ended before it was done; the message says how."""


def run_in_own_process(content: bytes, unit: Any, memory: int | None) -> Any:
    """Return function(unit) from a process of its own.

    What this process shares between tasks is freed first, since the other one needs the same.

    Parameters
    ----------
    content : bytes
        The pickled function.
    unit : object
        What it is called on.
    memory : int or None
        Bytes that both processes may take together; None or 0: no limit.

    Raises
    ------
    OwnProcessEndedError
        Where the process ends before the unit is done.
    Exception
        What the function raises.
    """
    PROCESS.free()
    request = pickle.dumps((os.getpid(), sys.path, pickle.dumps((content, unit))))
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        guard = MemoryGuard(process.pid, memory)
        answer, _ = process.communicate(request)
        guard.stop()
        status = process.returncode
    if status != 0:
        raise OwnProcessEndedError(guard.reason or how_ended(status))
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
    """Kills a process that takes more memory, with the one above it, than a worker may have; `reason` then says so."""

    def __init__(self, pid: int, memory: int | None) -> None:
        self.reason = ""
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
        parent = psutil.Process()
        try:
            process = psutil.Process(pid)
            while not self._stopped.wait(POLL_SECONDS):
                taken = process.memory_info().rss + parent.memory_info().rss
                if taken > MOST_OF_MEMORY * memory:
                    self.reason = f"at {format_bytes(taken)} of the {format_bytes(memory)} of its worker"
                    process.kill()
                    return
        except psutil.Error:
            return  # it has ended


def serve() -> None:
    """Do one unit: read it from standard input, write the outcome to standard output, end with the parent process."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the function prints is not the outcome
    parent, sys.path[:], call = pickle.load(sys.stdin.buffer)
    end_with_parent(parent)
    outcome: tuple[bool, Any]
    try:
        content, unit = pickle.loads(call)
        outcome = True, call_on_unit(content, unit)
    except Exception as error:
        outcome = False, error
    answers.write(cloudpickle.dumps(outcome))
    answers.flush()
    os._exit(0)  # what goes wrong from here on says nothing about the unit


def end_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, so that no two work on a unit for long."""
    try:
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    except AttributeError:  # of Linux alone
        threading.Thread(target=follow, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def follow(parent: int) -> None:
    """End this process once its parent is another one."""
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)
