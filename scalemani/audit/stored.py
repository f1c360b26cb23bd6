"""A run as its recipient reads it: objects, digests and zarr arrays, by `FORMAT.md`.

A run may be damaged or forged: sizes and paths are checked before anything is read by them.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import LocalStore, ObjectStore

from scalemani.errors import StoreError
from scalemani.store.buckets import SCHEMES, open_bucket
from scalemani.store.schema import FORMAT, FORMAT_VERSION

DIGEST_CHARACTERS = 32
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
CODECS = {"bytes", "blosc"}
MOST_CHUNK_BYTES = 2**31  # a chunk is compressed in memory, of less than 2 GiB
Item = TypeVar("Item")
Result = TypeVar("Result")


class Committed(NamedTuple):
    """What a mark says of an object: its bytes, and the digest of its content."""

    length: int
    digest: str


def digest(content: bytes) -> str:
    """Return the first 32 hexadecimal digits of the SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def description_digest(value: Mapping[str, Any]) -> str:
    """Return the digest of a description: of its other fields, as JSON with sorted keys and no spaces."""
    fields = {name: field for name, field in value.items() if name != "digest"}
    return digest(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode())


class Place:
    """Where a run is: a folder, or the objects below a URL of a bucket."""

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)
        self.store: Any = (
            ObjectStore(open_bucket(self.root), read_only=True)
            if self.root.startswith(SCHEMES)
            else LocalStore(Path(self.root).resolve(), read_only=True)
        )

    @property
    def folder(self) -> Path | None:
        """The folder of the run, None for a bucket."""
        return self.store.root if isinstance(self.store, LocalStore) else None

    def read(self, key: str) -> bytes | None:
        """Return the content of an object, None where there is none or its path leads out of the run."""
        if not all(NAME.fullmatch(part) for part in key.split("/")):
            return None
        if self.folder is not None:
            path = self.folder / key
            inside = path.is_file() and path.resolve().is_relative_to(self.folder)
            return path.read_bytes() if inside else None
        content = sync(self.store.get(key, default_buffer_prototype()))
        return None if content is None else content.to_bytes()

    def describe(self, key: str) -> dict[str, Any] | None:
        """Return a description whose digest fits; None for one that is not there or does not."""
        try:
            value = json.loads(self.read(key) or b"null")
        except (ValueError, RecursionError):
            return None
        intact = isinstance(value, dict) and value.get("digest") == description_digest(value)
        return value if intact else None

    def write(self, name: str, content: bytes) -> str:
        """Write an object into the run, whole; return where it is."""
        if self.folder is None:
            self.store.store.put(name, content)
            return f"{self.root.rstrip('/')}/{name}"
        path, unfinished = self.folder / name, self.folder / f"{name}.partial"
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
        return str(path)


class StoredGroup:
    """The group of a stage: its record, what its marks commit, and its arrays."""

    def __init__(self, place: Place, stage: str, key: str) -> None:
        self.place, self.stage, self.key = place, stage, key
        self.path = f"stages/{stage}/{key}"

    @cached_property
    def record(self) -> dict[str, Any]:
        """The record of the stage; empty where it is not finished, or damaged."""
        return self.place.describe(f"{self.path}/complete.json") or {}

    @property
    def certificates(self) -> dict[str, Any]:
        """The certificates in the record, by name; empty where there are none or the record is damaged."""
        certificates = self.record.get("certificates")
        return certificates if isinstance(certificates, dict) else {}

    @cached_property
    def units(self) -> dict[str, dict[str, Committed]]:
        """What each unit commits, by the path of the object below `arrays/`."""
        try:
            return {
                unit: {key: Committed(int(length), str(content)) for key, (length, content, *_) in entry.items()}
                for unit, entry in self.record.get("units", {}).items()
            }
        except (AttributeError, TypeError, ValueError):
            return {}

    @cached_property
    def committed(self) -> dict[str, Committed]:
        """Length and digest of every committed object, by its path below `arrays/`."""
        return {key: committed for entry in self.units.values() for key, committed in entry.items()}

    @property
    def content_digest(self) -> str:
        """The digest of the content of the group, of which the groups made from it say that they read it."""
        lines = sorted(f"{key} {committed.digest}" for key, committed in self.committed.items())
        return digest("\n".join(lines).encode())

    @cached_property
    def names(self) -> list[str]:
        """The paths of its arrays below `arrays/`, sorted."""
        return sorted(key.removesuffix("/zarr.json") for key in self.committed if key.endswith("/zarr.json"))

    def holds(self, name: str) -> bool:
        """Return whether an array is committed, by its path below `arrays/`."""
        return f"{name}/zarr.json" in self.committed

    def array(self, name: str) -> zarr.Array:
        """Return an array of the group.

        Raises
        ------
        StoreError
            Where there is none, or it is none of a run: of other codecs, or larger than what was committed can hold.
        """
        where = f"{self.path}/arrays/{name}"
        if not self.holds(name):
            raise StoreError(f"{where} is not there: the format says that it must be")
        try:
            array = zarr.open_array(self.place.store, path=where, mode="r", zarr_format=3)
        except Exception as error:  # those of zarr are of many kinds
            raise StoreError(f"{where} cannot be opened: {error}") from error
        codecs = {codec.to_dict()["name"] for codec in getattr(array.metadata, "codecs", ())}
        chunks = sum(1 for key in self.committed if key.startswith(f"{name}/c"))
        chunk_bytes = math.prod(array.chunks) * array.dtype.itemsize
        if codecs != CODECS or (array.size and math.prod(array.cdata_shape) != chunks):
            raise StoreError(
                f"{where} has codecs {sorted(codecs)} and {chunks} chunks, which must be those of the format and of "
                "its shape"
            )
        if chunk_bytes > MOST_CHUNK_BYTES:
            raise StoreError(f"{where} has chunks of {chunk_bytes} bytes, at most {MOST_CHUNK_BYTES} are written")
        return array

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return rows [start, stop) of an array, by default all of it."""
        array = self.array(name)
        return np.asarray(array[...] if array.ndim == 0 else array[start:stop])

    def number(self, name: str) -> float | None:
        """Return a stored number; None where it is not stored."""
        return float(self.read(name)) if self.holds(name) else None


class StoredRun:
    """A run: its plan, and the groups of the stages that the plan names."""

    def __init__(self, root: str | Path) -> None:
        self.place = Place(root)
        marker = self.place.describe("scalemani.json")
        if marker is None or marker.get("format") != FORMAT or marker.get("version") != FORMAT_VERSION:
            raise StoreError(
                f"{root} holds no intact run of format version {FORMAT_VERSION}: give the folder that 'scalemani "
                "embed' wrote"
            )
        plan = self.place.describe("plan.json")
        if plan is None:
            raise StoreError(f"{root}/plan.json is missing or damaged: run the same command again")
        try:
            self.method, self.params = str(plan["method"]), dict(plan["params"])
            self.keys = {str(stage): str(key) for stage, key in plan["keys"].items()}
            dimensions = plan["dimensions"]
            self.n_points, self.n_features = int(dimensions["n_points"]), int(dimensions["n_features"])
            self.block_rows, self.dtype = int(dimensions["block_rows"]), np.dtype(dimensions["dtype"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{root}/plan.json is no plan: {error!r}") from error
        if min(self.n_points, self.n_features, self.block_rows) < 1:
            raise StoreError(f"{root}/plan.json says {dimensions}, which must be at least 1")
        self.plan = plan
        self.groups = {stage: StoredGroup(self.place, stage, key) for stage, key in self.keys.items()}

    def param(self, stage: str, name: str, default: Any = None) -> Any:
        """Return a parameter; a default where it was left open."""
        value = self.params.get(stage, {}).get(name)
        return default if value is None else value

    def has(self, stage: str) -> bool:
        """Return whether the plan has a stage whose record is there and intact."""
        return stage in self.groups and bool(self.groups[stage].record)

    @property
    def seed(self) -> int:
        """The seed of the run's random draws, 0 where the plan has none."""
        return int(self.params.get("seed", 0))

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """The first row of each block, and the row behind its last."""
        starts = range(0, self.n_points, self.block_rows)
        return [(start, min(start + self.block_rows, self.n_points)) for start in starts]


def block_folder(block: int, step: str = "") -> str:
    """Return the folder of a block's ragged arrays below `arrays/`, of a step of the stage where it has some."""
    return f"{step}-block-{block:06d}" if step else f"block-{block:06d}"


def side_by_side(act: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return act(item) of all items by as many threads as there are processors, in their order."""
    items = list(items)
    if len(items) < 2:
        return [act(item) for item in items]
    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(act, items))


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
