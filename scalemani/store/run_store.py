"""A run: one folder with a format marker, a lock, the last plan, and one group a stage and key."""

import contextlib
import fcntl
import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scalemani.errors import StoreError, StoreLockedError, StoreVersionError
from scalemani.store.groups import StageGroup
from scalemani.store.objects import Objects, as_store_error
from scalemani.store.schema import FORMAT, FORMAT_VERSION

MARKER = "scalemani.json"
PLAN = "plan.json"
LOCK = "lock"


class RunStore:
    """The groups of one run below a local folder."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.objects = Objects(self.root)

    def check_free(self) -> None:
        """Refuse a place that holds anything but a run of this format version; nothing is written."""
        if self.objects.get(MARKER) is not None:
            self._check_version()
        elif self.root.is_file() or (self.root.is_dir() and any(self.root.iterdir())):
            raise StoreError(f"{self.root} exists and is not a run of scalemani: choose an empty or a new folder")

    @classmethod
    def create(cls, root: str | Path) -> "RunStore":
        """Open the run at `root`, or start one there; refuse a folder that holds anything else."""
        store = cls(root)
        store.check_free()
        if store.objects.get(MARKER) is None:
            try:
                store.root.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise as_store_error(error, store.root) from error
            store.objects.set_json(MARKER, {"format": FORMAT, "version": FORMAT_VERSION, "run": uuid.uuid4().hex})
        if not os.access(store.root, os.W_OK):
            raise StoreError(f"{store.root} cannot be written: choose a folder that can")
        return store

    @classmethod
    def open(cls, root: str | Path) -> "RunStore":
        """Open the run at `root`, which must be there."""
        store = cls(root)
        if store.objects.get(MARKER) is None:
            raise StoreError(f"{store.root} is not a run of scalemani: give the folder that 'scalemani embed' wrote")
        store._check_version()
        return store

    def _check_version(self) -> None:
        marker = self.objects.get_json(MARKER)
        if not isinstance(marker, dict) or marker.get("format") != FORMAT:
            raise StoreError(f"{self.root / MARKER} does not mark a run of scalemani")
        if marker.get("version") != FORMAT_VERSION:
            raise StoreVersionError(
                f"{self.root} has format version {marker.get('version')}, this scalemani reads {FORMAT_VERSION}: "
                "use the scalemani that wrote it, or a new folder"
            )

    def group(self, stage: str, key: str, block_rows: int) -> StageGroup:
        """Return the group of a stage at a key; nothing is written."""
        return StageGroup(self.root, f"stages/{stage}/{key}", block_rows)

    def save_plan(self, plan: dict[str, Any]) -> None:
        """Keep the plan of the last run: what `info`, `transform`, `plot` and `export` open."""
        self.objects.set_json(PLAN, plan)

    def load_plan(self) -> dict[str, Any]:
        """Return the plan of the last run."""
        plan = self.objects.get_json(PLAN)
        if plan is None:
            raise StoreError(f"no run was ever started in {self.root}: start one with 'scalemani embed'")
        return plan

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for writing; a second run on the same folder is told who holds it, at once.

        The lock is the kernel's (flock): it goes with the process that holds it, however that ends.
        """
        path = self.root / LOCK
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(descriptor, 4096).decode(errors="replace")
                raise StoreLockedError(
                    f"another run is working on {self.root} ({owner or 'owner unknown'}): wait for it, or use another "
                    "folder"
                ) from None
            os.ftruncate(descriptor, 0)
            started = time.strftime("%Y-%m-%d %H:%M:%S")
            os.pwrite(
                descriptor,
                json.dumps({"process": os.getpid(), "host": socket.gethostname(), "started": started}).encode(),
                0,
            )
            yield
        finally:
            os.close(descriptor)
