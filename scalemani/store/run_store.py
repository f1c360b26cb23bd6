"""A run: one place with a format marker, a lock, the last plan, and one group a stage and key."""

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scalemani.errors import StoreError, StoreLockedError, StoreVersionError, UnreachableStoreError
from scalemani.store.arrays import check_settings
from scalemani.store.groups import StageGroup
from scalemani.store.locks import RunLock
from scalemani.store.objects import sync
from scalemani.store.places import open_objects
from scalemani.store.schema import FORMAT, FORMAT_VERSION

MARKER = "scalemani.json"
PLAN = "plan.json"
COLUMNS = "columns"  # in a plan: the names of the columns of the points, where they have some
TRIED_EVERY_SECONDS = 1.0  # while another run holds the lock
PLAN_FIELDS = {"method", "params", "dimensions", "keys"}


class RunStore:
    """The groups of one run, in a folder or below s3://bucket/name."""

    def __init__(self, root: str | Path) -> None:
        check_settings()
        self.objects = open_objects(root)
        self.root = self.objects.root

    def check_free(self) -> None:
        """Refuse a place that holds anything but a run of this format version; nothing is written."""
        if self.is_marked:
            return
        taken = (isinstance(self.root, Path) and self.root.is_file()) or self.objects.names()
        if taken and not self.is_marked:  # which another that began at once may have done since
            raise StoreError(f"{self.root} exists and is not a run of scalemani: choose an empty or a new folder")

    @classmethod
    def create(cls, root: str | Path) -> "RunStore":
        """Open the run at `root`, or start one there; refuse a place that holds anything else."""
        store = cls(root)
        store.check_free()
        store.objects.prepare()
        store.mark()
        return store

    def mark(self) -> None:
        """Write the marker where there is none that is whole."""
        if self.objects.intact(MARKER) is None:
            self.objects.set_json(MARKER, {"format": FORMAT, "version": FORMAT_VERSION, "run": uuid.uuid4().hex})
            if isinstance(self.root, Path):
                sync(self.root)  # after a power cut a folder without its marker is no run, with any other content

    @classmethod
    def open(cls, root: str | Path) -> "RunStore":
        """Open the run at `root`; StoreError where there is none, StoreVersionError where it has another version."""
        store = cls(root)
        if not store.is_marked:
            raise StoreError(f"{store.root} is not a run of scalemani: give the folder that 'scalemani embed' wrote")
        return store

    @property
    def is_marked(self) -> bool:
        """Whether a run of this format version is here, by its marker, or by its plan where the marker is damaged."""
        content = self.objects.get(MARKER)
        # Another version may say by other means that it is whole: what it is comes first.
        try:
            marker = json.loads(content or b"null")
        except (ValueError, RecursionError):
            marker = None
        known = isinstance(marker, dict) and marker.get("format") == FORMAT
        if known and marker.get("version") != FORMAT_VERSION:
            raise StoreVersionError(
                f"{self.root} has format version {marker.get('version')}, this scalemani reads {FORMAT_VERSION}: "
                "use the scalemani that wrote it, or a new folder"
            )
        plan = self.objects.intact(PLAN) if self.objects.intact(MARKER) is None else None
        if plan is not None and plan.keys() >= PLAN_FIELDS:  # plans of earlier versions have no digest
            return True
        if content is not None and marker is None and isinstance(self.root, str):
            raise UnreachableStoreError(
                f"{self.root}/{MARKER} was damaged where it lies or on the way: run the same command again, or choose "
                "another name if that does not help"
            )
        if content is not None and not known:
            raise StoreError(f"{self.root}/{MARKER} does not mark a run of scalemani: choose an empty or a new folder")
        return known and self.objects.get_json(MARKER) is not None

    def remove_empty(self) -> None:
        """Remove the marker of a run in which nothing was done yet, and its folder."""
        if self.objects.names() != [MARKER]:
            return
        self.objects.delete(MARKER)
        if isinstance(self.root, Path):
            with contextlib.suppress(OSError):  # somebody else has begun a run there
                self.root.rmdir()

    def group(self, stage: str, key: str, block_rows: int) -> StageGroup:
        """Return the group of a stage under a key, there or not; its entries are read, and nothing is written."""
        return StageGroup(self.root, f"stages/{stage}/{key}", block_rows)

    def save_plan(self, plan: dict[str, Any]) -> None:
        """Store the plan of the last run, which `info`, `transform`, `plot` and `export` open."""
        self.objects.set_json(PLAN, plan)

    def load_plan(self) -> dict[str, Any]:
        """Return the plan of the last run; StoreError where none was ever started here."""
        plan = self.objects.get_json(PLAN)
        if plan is None:
            raise StoreError(f"no run was ever started in {self.root}: start one with 'scalemani embed'")
        return plan

    @contextlib.contextmanager
    def locked(self, wait: float = 0.0, notify: Callable[[str], None] | None = None) -> Iterator[RunLock]:
        """Hold the run for writing; retry for `wait` seconds while another one holds it, and say so once.

        StoreLockedError is raised after these.
        """
        end = time.monotonic() + wait
        with contextlib.ExitStack() as stack:
            lock: RunLock | None = None
            while lock is None:
                try:
                    lock = stack.enter_context(self.objects.lock())
                except StoreLockedError as error:
                    if time.monotonic() >= end:
                        raise
                    if notify is not None:
                        notify(f"waiting up to {wait:g} s: {error}")
                        notify = None
                    time.sleep(TRIED_EVERY_SECONDS)
            yield lock
