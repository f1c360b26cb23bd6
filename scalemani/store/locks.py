"""One writer a run: a lock of the kernel on a folder, a lease that is renewed in an object store."""

import contextlib
import email.utils
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from scalemani.errors import StoreError, StoreLockedError
from scalemani.store.buckets import BucketObjects, ConflictError
from scalemani.store.objects import LocalObjects, Objects

LOCK = "lock"
TRIED_EVERY_SECONDS = 1.0
RENEWED_EVERY_SECONDS = 5.0
LEASE_SECONDS = 60.0  # without a renewal; longer than the outages and pauses that a run survives


class Held:
    """A lock that is held; a lease can be lost when the store cannot be reached for long."""

    def __init__(self, root: object) -> None:
        self.root = root
        self.lost = threading.Event()

    def check(self) -> None:
        """Raise StoreLockedError where another run has taken over."""
        if self.lost.is_set():
            raise StoreLockedError(
                f"the lock of {self.root} was lost while the store could not be reached, and another run took over: "
                "wait for it, the same command then goes on"
            )


def owner() -> dict[str, Any]:
    """Return who holds a lock: for people, and for a later run on the same machine."""
    process = psutil.Process()
    return {
        "process": process.pid,
        "host": socket.gethostname(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "process_started": process.create_time(),
        "machine": machine(),
    }


def machine() -> str:
    """Return what tells apart the places in which process numbers mean something: boots and containers."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"


def ended(holder: dict[str, Any]) -> bool:
    """Return whether the process that held a lock is known to be gone: it ran here and does not any more."""
    if holder.get("machine") != machine():
        return False
    with contextlib.suppress(psutil.Error, KeyError, TypeError):
        return bool(psutil.Process(holder["process"]).create_time() != holder["process_started"])
    return True


def already_locked(root: object, holder: str) -> StoreLockedError:
    """Return the error of a run that comes second."""
    return StoreLockedError(
        f"another run is working on {root} ({holder or 'owner unknown'}): wait for it, or use another folder"
    )


def locked(objects: Objects) -> contextlib.AbstractContextManager[Held]:
    """Hold the lock of a run, or raise StoreLockedError."""
    if isinstance(objects, BucketObjects):
        return leased(objects)
    assert isinstance(objects, LocalObjects)
    return file_locked(objects.root)


def entered(stack: contextlib.ExitStack, objects: Objects, wait: float, told: Callable[[str], None] | None) -> Held:
    """Hold the lock of a run within a stack; where another run has it, say so and try again for `wait` seconds."""
    end = time.monotonic() + wait
    while True:
        try:
            return stack.enter_context(locked(objects))
        except StoreLockedError as error:
            if time.monotonic() >= end:
                raise
            if told is not None:
                told(f"waiting up to {wait:g} s: {error}")
                told = None
            time.sleep(TRIED_EVERY_SECONDS)


@contextlib.contextmanager
def file_locked(root: Path) -> Iterator[Held]:
    """Hold a run in a folder; the lock is the kernel's (flock): it goes with the process, however that ends."""
    try:
        descriptor = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(
            f"{root / LOCK} is not a file that this run can lock: {error.strerror}; remove it, or use another folder"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise already_locked(root, os.read(descriptor, 4096).decode(errors="replace")) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner()).encode(), 0)
        yield Held(root)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def leased(objects: BucketObjects) -> Iterator[Held]:
    """Hold a run in a bucket by an object that is created on condition that there is none, and renewed on its ETag."""
    lease = {**owner(), "lease": uuid.uuid4().hex}
    tag = acquired(objects, lease)
    held, stop = Held(objects.root), threading.Event()
    keeper = threading.Thread(target=renew, args=(objects, lease, tag, held, stop), name="lease", daemon=True)
    keeper.start()
    try:
        yield held
    finally:
        stop.set()
        keeper.join()
        with contextlib.suppress(StoreError):
            if not held.lost.is_set() and is_ours(objects, lease):
                objects.delete(LOCK)


def acquired(objects: BucketObjects, lease: dict[str, Any]) -> str:
    """Return the ETag of the lock once it is ours.

    A lock that is there is watched until its holder renews it, which refuses this run, or until nobody has renewed it
    for so long that it counts for nothing.
    """
    seen: str | None = None
    while True:
        content, answer = objects.fetch(LOCK)
        if content is None:
            condition = {"IfNoneMatch": "*"}
        else:
            holder = holder_of(content)
            renewed = seen is not None and answer["ETag"] != seen
            if renewed:
                raise already_locked(objects.root, shown(holder))
            seen = answer["ETag"]
            if not ended(holder) and unrenewed_seconds(answer) < LEASE_SECONDS:
                time.sleep(RENEWED_EVERY_SECONDS / 5)
                continue
            condition = {"IfMatch": str(seen)}
        with contextlib.suppress(ConflictError):
            tag = objects.put(LOCK, encoded(lease), condition)
            refuse_unconditional(objects, lease)
            return tag
        if is_ours(objects, lease):  # the answer to the put was lost, and it was asked again
            return str(objects.fetch(LOCK)[1]["ETag"])
        seen = seen or ""


def renew(objects: BucketObjects, lease: dict[str, Any], tag: str, held: Held, stop: threading.Event) -> None:
    """Renew a lease until told to stop; note where another run has taken it."""
    count = 0
    while not stop.wait(RENEWED_EVERY_SECONDS):
        count += 1
        try:
            tag = objects.put(LOCK, encoded({**lease, "renewed": count}), {"IfMatch": tag}, LEASE_SECONDS)
        except ConflictError:
            with contextlib.suppress(StoreError):
                if is_ours(objects, lease):
                    tag = str(objects.fetch(LOCK)[1]["ETag"])
                    continue
            held.lost.set()
            return
        except StoreError:  # not reached; the next round finds out whether the lease is still ours
            continue


def refuse_unconditional(objects: BucketObjects, lease: dict[str, Any]) -> None:
    """Raise where the server takes a conditional write whose condition does not hold: no lock is safe there."""
    try:
        objects.put(LOCK, encoded(lease), {"IfNoneMatch": "*"})
    except ConflictError:
        return
    raise StoreError(
        f"the server of {objects.root} ignores conditional writes (If-None-Match): use one that knows them"
    )


def unrenewed_seconds(answer: dict[str, Any]) -> float:
    """Return how long ago an object was written, by the clock of its server."""
    now = email.utils.parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    return float((now - answer["LastModified"]).total_seconds())


def is_ours(objects: BucketObjects, lease: dict[str, Any]) -> bool:
    """Return whether the lock is this lease."""
    return holder_of(objects.get(LOCK)).get("lease") == lease["lease"]


def holder_of(content: bytes | None) -> dict[str, Any]:
    """Return the owner in a lock; one that cannot be read is of nobody."""
    with contextlib.suppress(ValueError):
        found = json.loads(content or b"")
        if isinstance(found, dict):
            return found
    return {}


def shown(holder: dict[str, Any]) -> str:
    """Return the owner of a lock, for people."""
    return json.dumps({name: holder[name] for name in ("process", "host", "started") if name in holder})


def encoded(lease: dict[str, Any]) -> bytes:
    """Return a lease as it is stored."""
    return json.dumps(lease).encode()
