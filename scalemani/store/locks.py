"""One writer a run: the state of all locks, and the lock of a folder (flock)."""

import contextlib
import json
import os
import platform
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from scalemani.errors import StoreError, StoreLockedError, UnreachableStoreError, is_lasting, remedy_of

LOCK = "lock"
# Flags of os.open, on systems that have them: not to wait for a pipe, all bytes as they are; not to follow a link.
AS_IT_IS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class RunLock:
    """The lock of a run while it is held; a lease can be lost while the store is unreachable."""

    def __init__(self, root: object) -> None:
        self.root = root
        self.lost = threading.Event()

    def check(self) -> None:
        """Raise StoreLockedError where another run has taken the lock."""
        if self.lost.is_set():
            raise StoreLockedError(
                f"the lock of {self.root} was lost while the store could not be reached, and another run took over: "
                "wait for it, the same command then resumes"
            )


def owner() -> dict[str, Any]:
    """Return the owner of a lock, for people and for later runs on the same machine."""
    process = psutil.Process()
    return {
        "process": process.pid,
        "host": socket.gethostname(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "process_started": process.create_time(),
        "machine": machine(),
    }


def machine() -> str:
    """Return an identifier of the boot and, on Linux, the container: within both, process numbers are unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} {psutil.boot_time():.0f}"


def ended(holder: dict[str, Any]) -> bool:
    """Return whether the process that held a lock is known to have ended on this machine."""
    if holder.get("machine") != machine():
        return False
    with contextlib.suppress(psutil.Error, KeyError, TypeError):
        return bool(psutil.Process(holder["process"]).create_time() != holder["process_started"])
    return True


def already_locked(root: object, holder: str) -> StoreLockedError:
    """Return the error that another run holds `root`; `holder` describes its owner, empty where unknown."""
    return StoreLockedError(
        f"another run is working on {root} ({holder or 'owner unknown'}): wait for it, or use another folder"
    )


def lock_file(descriptor: int) -> None:
    """Lock an open file until it is closed, however its process ends; BlockingIOError where another one holds it."""
    try:
        import fcntl
    except ImportError as error:
        raise StoreError(
            f"runs hold their folder by locks of files (flock), which {platform.system()} does not have: "
            "use Linux or macOS; on Windows, the Windows Subsystem for Linux"
        ) from error
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def lock_folder(root: Path) -> Iterator[RunLock]:
    """Hold a run in a folder by flock, which ends with the process, however that ends."""
    refusal = f"{root / LOCK} is not a file that this run can lock"
    try:
        root.mkdir(parents=True, exist_ok=True)  # a run that ended and had done nothing may have removed it
        descriptor = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | AS_IT_IS | NO_LINK, 0o600)
    except OSError as error:
        if is_lasting(error):
            raise StoreError(f"{refusal}: {error.strerror}; remove it, or use another folder") from error
        raise UnreachableStoreError(f"cannot open {root / LOCK}: {error.strerror}; {remedy_of(error)}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StoreError(f"{refusal}: it is a pipe or a device; remove it, or use another folder")
        try:
            lock_file(descriptor)
        except BlockingIOError:
            raise already_locked(root, os.read(descriptor, 4096).decode(errors="replace")) from None
        except OSError as error:
            without = f"cannot lock {root / LOCK}, by which one run at a time writes there: {error.strerror}"
            if is_lasting(error):
                raise StoreError(f"{without}; use a folder on a disk that has locks of files (flock)") from error
            raise UnreachableStoreError(
                f"{without}; run the same command again, or use a folder on a disk that has locks of files (flock)"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner()).encode(), 0)
        yield RunLock(root)
    finally:
        os.close(descriptor)
