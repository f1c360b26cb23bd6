"""The memory that this process may use, and the peak that it and its children hold, sampled while a stage runs.

Of the peak, pages of files, those of libraries and mapped arrays among them, are not counted: the system can drop
them.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil

from scalemani.kernels.machine.control_groups import PROCESS, ROOT, memory_limits

SECONDS_BETWEEN_SAMPLES = 0.05
CHILDREN_ARE_LISTED = Path("/proc/thread-self/children").exists()  # not by every kernel


def memory_limit(process: Path = PROCESS, root: Path = ROOT) -> int:
    """Return the bytes that this process may use: those of the machine, or of what its container or group has.

    `process` and `root` are where the system describes control groups. Dask's function of the name reads those at the
    root alone; its module loads the client, in 0.4 s.
    """
    limits = [psutil.virtual_memory().total, *memory_limits(process, root)]
    with contextlib.suppress(ImportError):  # of Windows
        import resource

        limits.append(resource.getrlimit(resource.RLIMIT_RSS)[1])
    return min(limit for limit in limits if limit > 0)


def anonymous_bytes() -> int:
    """Return the anonymous memory of this process and of all processes below it."""
    return sum(anonymous_bytes_of(process) for process in family_of(os.getpid()))


def anonymous_bytes_of(process: int) -> int:
    """Return the anonymous memory of a process by its number, all resident memory where the system is not Linux.

    Nothing where the process has ended, or this one can open no more files.
    """
    with contextlib.suppress(psutil.Error, OSError):
        memory = psutil.Process(process).memory_info()._asdict()
        return int(memory["rss"] - memory.get("shared", 0))
    return 0


def family_of(process: int, listed: bool = CHILDREN_ARE_LISTED) -> Iterator[int]:
    """Yield the number of a process and those of all processes below it."""
    yield process
    for child in children_of(process, listed):
        yield from family_of(child, listed)


def children_of(process: int, listed: bool) -> list[int]:
    """Return the numbers of the processes that the threads of a process have started.

    Each thread lists its children. psutil looks at all processes of the machine instead, which holds the interpreter
    for milliseconds or more.
    """
    children: list[int] = []
    with contextlib.suppress(OSError, psutil.Error):  # it may end while it is looked at, and so may its threads
        if not listed:
            return [child.pid for child in psutil.Process(process).children()]
        for thread in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):
                children += map(int, (thread / "children").read_text().split())
    return children


class PeakMemory:
    """Samples anonymous memory between entering and leaving; `bytes` is the largest sample, `before` the first."""

    def __init__(self) -> None:
        self.bytes = self.before = anonymous_bytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            self.bytes = max(self.bytes, anonymous_bytes())
            if self._stop.wait(SECONDS_BETWEEN_SAMPLES):
                return
