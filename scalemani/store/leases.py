"""The lock of a run in an object store: a lease that its holder renews, on the condition that it is still its own."""

import contextlib
import email.utils
import json
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from scalemani.errors import StoreError
from scalemani.store.locks import LOCK, RunLock, already_locked, ended, owner

RENEWED_EVERY_SECONDS = 5.0
LEASE_SECONDS = 60.0  # without a renewal; longer than the outages and pauses that a run survives


class ConflictError(Exception):
    """The condition of a write does not hold: somebody else was there first."""


class LeasedObjects(Protocol):
    """Objects that are written on a condition."""

    root: str

    def get(self, key: str) -> bytes | None:
        """Return the content of `key`, or None where there is none."""

    def fetch(self, key: str) -> tuple[bytes | None, dict[str, Any]]:
        """Return the content of `key` and what the server says of it, or None and nothing."""

    def put(self, key: str, content: bytes, condition: Mapping[str, str], give_up_seconds: float = ...) -> str:
        """Write under a condition and return the ETag; parameters and errors are those of `BucketObjects.put`."""

    def delete(self, key: str) -> None:
        """Remove `key` if it is there."""


@contextlib.contextmanager
def hold_lease(objects: LeasedObjects) -> Iterator[RunLock]:
    """Hold a run in a bucket by an object that is created on condition that there is none, and renewed on its ETag."""
    lease = {**owner(), "lease": uuid.uuid4().hex}
    tag = acquire_lease(objects, lease)
    lock, stop = RunLock(objects.root), threading.Event()
    keeper = threading.Thread(target=renew, args=(objects, lease, tag, lock, stop), name="lease", daemon=True)
    keeper.start()
    try:
        yield lock
    finally:
        stop.set()
        keeper.join()
        with contextlib.suppress(StoreError):
            if not lock.lost.is_set() and is_ours(objects, lease):
                objects.delete(LOCK)


def acquire_lease(objects: LeasedObjects, lease: dict[str, Any]) -> str:
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
            holder = read_holder(content)
            renewed = seen is not None and answer["ETag"] != seen
            if renewed:
                raise already_locked(objects.root, describe_holder(holder))
            seen = answer["ETag"]
            if not ended(holder) and unrenewed_seconds(answer) < LEASE_SECONDS:
                time.sleep(RENEWED_EVERY_SECONDS / 5)
                continue
            condition = {"IfMatch": str(seen)}
        with contextlib.suppress(ConflictError):
            tag = objects.put(LOCK, encode(lease), condition)
            refuse_unconditional(objects, lease)
            return tag
        if is_ours(objects, lease):  # the answer to the put was lost, and it was asked again
            return str(objects.fetch(LOCK)[1]["ETag"])
        seen = seen or ""


def renew(objects: LeasedObjects, lease: dict[str, Any], tag: str, lock: RunLock, stop: threading.Event) -> None:
    """Renew a lease until told to stop; note where another run has taken it.

    Parameters
    ----------
    objects : where the lease is.
    lease : what it says.
    tag : the ETag of the lock as it was written last.
    lock : notes that the lease was lost.
    stop : ends the renewing.
    """
    count = 0
    while not stop.wait(RENEWED_EVERY_SECONDS):
        count += 1
        try:
            tag = objects.put(LOCK, encode({**lease, "renewed": count}), {"IfMatch": tag}, LEASE_SECONDS)
        except ConflictError:
            with contextlib.suppress(StoreError):
                if is_ours(objects, lease):
                    tag = str(objects.fetch(LOCK)[1]["ETag"])
                    continue
            lock.lost.set()
            return
        except StoreError:  # not reached; the next round finds out whether the lease is still ours
            continue


def refuse_unconditional(objects: LeasedObjects, lease: dict[str, Any]) -> None:
    """Raise where the server takes a conditional write whose condition does not hold: no lock is safe there."""
    try:
        objects.put(LOCK, encode(lease), {"IfNoneMatch": "*"})
    except ConflictError:
        return
    raise StoreError(
        f"the server of {objects.root} ignores conditional writes (If-None-Match): use one that knows them"
    )


def unrenewed_seconds(answer: dict[str, Any]) -> float:
    """Return how long ago an object was written, by the clock of its server."""
    now = email.utils.parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    return float((now - answer["LastModified"]).total_seconds())


def is_ours(objects: LeasedObjects, lease: dict[str, Any]) -> bool:
    """Return whether the lock is this lease."""
    return read_holder(objects.get(LOCK)).get("lease") == lease["lease"]


def read_holder(content: bytes | None) -> dict[str, Any]:
    """Return the owner in a lock; one that cannot be read is of nobody."""
    with contextlib.suppress(ValueError):
        found = json.loads(content or b"")
        if isinstance(found, dict):
            return found
    return {}


def describe_holder(holder: dict[str, Any]) -> str:
    """Return the owner of a lock, for people."""
    return json.dumps({name: holder[name] for name in ("process", "host", "started") if name in holder})


def encode(lease: dict[str, Any]) -> bytes:
    """Return a lease as it is stored."""
    return json.dumps(lease).encode()
