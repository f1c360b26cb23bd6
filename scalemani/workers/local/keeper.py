"""The process that worker processes are forked from: it has loaded what tasks call, and replaces workers that end.

A worker that is started from nothing imports for two seconds of a processor before its first task; one that is forked
is there in a twentieth of that. The process has one thread, so that whatever it has loaded is whole in those it forks.
"""

import asyncio
import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import time
from typing import Any, NamedTuple

import dask
from distributed import Worker

from scalemani.kernels.machine.compile import load_compiler
from scalemani.workers.own_process import end_with_parent

LOAD = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer)"  # this library may lie on a path of the driver
PROGRAM = [sys.executable, "-P", "-c", f"{LOAD}; from scalemani.workers.local.keeper import serve; serve()"]
SHORT_LIFE_SECONDS = 1.0  # of a worker; after one, its place is left empty for as long


class Request(NamedTuple):
    """What the driver asks for: modules to load, Dask's settings, how many workers, and the arguments of each."""

    modules: list[str]
    settings: dict[str, Any]
    workers: int
    worker: dict[str, Any]


def serve() -> None:
    """Keep as many workers alive as standard input asks for, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the driver decides what ends
    request: Request = pickle.load(sys.stdin.buffer)
    dask.config.set(request.settings)
    for module in request.modules:
        importlib.import_module(module)
    load_compiler()
    gc.collect()
    gc.freeze()  # what is never looked at again stays in the pages that all workers share
    Keeper(request.workers, request.worker).run()


class Keeper:
    """Forks workers and waits for their ends.

    Parameters
    ----------
    count : how many there are to be
    worker : the arguments of each
    """

    def __init__(self, count: int, worker: dict[str, Any]) -> None:
        self._count, self._worker = count, worker
        self._begun: dict[int, float] = {}  # when each was forked, by its process
        self._next = 0.0  # the moment at which workers may be forked again
        self._wakes, self._woken = socket.socketpair()

    def run(self) -> None:
        """Keep the workers until standard input is closed, then kill them."""
        self._woken.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        closed = False
        while not closed:
            wait = self._next - time.monotonic()
            while wait <= 0 and len(self._begun) < self._count:
                self._fork()
            missing = len(self._begun) < self._count
            ready, _, _ = select.select([self._wakes, sys.stdin.fileno()], [], [], wait if missing else None)
            if self._wakes in ready:
                self._wakes.recv(4096)
                self._reap()
            closed = sys.stdin.fileno() in ready
        for process in self._begun:
            os.kill(process, signal.SIGKILL)
        for process in self._begun:  # the driver removes their scratch next
            os.waitpid(process, 0)

    def _fork(self) -> None:
        keeper, process = os.getpid(), os.fork()
        if process:
            self._begun[process] = time.monotonic()
            return
        try:
            end_with_parent(keeper)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._wakes.close()
            self._woken.close()
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, sys.stdin.fileno())
            os.close(nothing)
            asyncio.run(work(self._worker))
        finally:
            os._exit(0)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitpid(-1, os.WNOHANG)[0]:
                now = time.monotonic()
                if now - self._begun.pop(ended) < SHORT_LIFE_SECONDS:
                    self._next = now + SHORT_LIFE_SECONDS


async def work(arguments: dict[str, Any]) -> None:
    """Be a worker until the scheduler ends it."""
    async with Worker(**arguments) as worker:
        await worker.finished()
