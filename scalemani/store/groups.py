"""One group a stage: row arrays in the blocks of the run, small whole arrays, ragged parts.

A *unit* (a block, a set of small arrays) is *committed* once its manifest entry is stored: the digests of all objects
that it wrote. A *group* is *complete* once all units of the stage are committed and `complete.json` says so. Below a
group, `arrays/` is an ordinary zarr v3 hierarchy and `marks/` holds the entries, which `complete.json` gathers with the
stage's record. `FORMAT.md` is the specification.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import zarr

from scalemani.errors import StoreError, UnsafeStoreError
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.machine.forks import new_lock
from scalemani.store.arrays import (
    METADATA,
    Digests,
    VerifiedStore,
    check_size,
    chunk_key,
    create_array,
    open_array,
    read_rows,
    write_rows,
)
from scalemani.store.objects import RECORD_BYTES, Committed, checked_key, damaged_object, digest, side_by_side
from scalemani.store.places import open_objects
from scalemani.store.schema import ArrayDescription, Kind, RowArray, below, check_described, whole_chunks

SCHEMA_UNIT = "schema"
WHOLE_UNIT = "whole"

Certified = TypeVar("Certified")


@dataclass(frozen=True)
class TakenBlock:
    """What a group has of a block, in the folder of a step: another group of the store takes it undecoded."""

    group: "StageGroup"
    step: str = ""


Described = Mapping[ArrayDescription, np.ndarray]
BlockRows = Mapping[ArrayDescription, np.ndarray | TakenBlock]


def entries_of(units: Any) -> dict[str, Digests] | None:
    """Return the manifest entries in a JSON object by unit, None where it holds anything else."""
    try:
        return {
            unit: {
                checked_key(key): (int(length), str(content), str(tag)) for key, (length, content, tag) in entry.items()
            }
            for unit, entry in units.items()
        }
    except (AttributeError, TypeError, ValueError, OverflowError, UnsafeStoreError):
        return None


def union(entries: Iterable[Digests]) -> Digests:
    """Return the objects that several manifest entries commit as one entry; of equal keys the last counts."""
    return {key: committed for entry in entries for key, committed in entry.items()}


def refuse_non_finite(values: np.ndarray, where: str) -> None:
    """Raise where a value to be stored is NaN or infinite: a sum shows it, at memory speed."""
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):  # finite values may have a sum that is not
        total = values.sum(dtype=np.float64)
    bad = 0 if np.isfinite(total) else np.count_nonzero(~np.isfinite(values))
    if bad:
        raise StoreError(f"{where}: {bad} values are not finite; nothing was stored")


def block_unit(block: int, step: str = "") -> str:
    """Return the name of a row block's unit; a stage that goes over the rows several times names its steps."""
    return f"{step}-block-{block:06d}" if step else f"block-{block:06d}"


class StageGroup:
    """The arrays of one stage. Safe to share between threads and to send to other processes."""

    def __init__(self, root: str | Path, path: str, block_rows: int) -> None:
        self.root = str(root)
        self.path = path
        self.block_rows = block_rows
        self.objects = open_objects(root).below(path)
        self._lock = new_lock()
        self._arrays: dict[str, zarr.Array] = {}
        self._entries: dict[str, Digests] = {}  # of the manifest as last read, by unit
        self._complete: dict[str, Any] | None = None
        self._store = VerifiedStore(self.objects.below("arrays"), {})
        self.refresh()

    def refresh(self) -> None:
        """Read new entries, which other processes may have committed; known entries stay."""
        complete = self.objects.intact("complete.json", RECORD_BYTES)
        entries = None if complete is None else entries_of(complete.get("units"))
        self._complete = None if entries is None else complete
        if entries is None:
            names = [name.removesuffix(".json") for name in self.objects.names("marks")]
            entries = {unit: self._entries[unit] for unit in names if unit in self._entries}
            unknown = [unit for unit in names if unit not in entries]
            entries_read = self.objects.many_intact([f"marks/{unit}.json" for unit in unknown])
            for unit, entry in zip(unknown, entries_read, strict=True):
                entries |= entries_of({unit: entry}) or {}
        self._set_entries(entries)

    @property
    def stage(self) -> str:
        """The name of the stage whose arrays these are, by the path."""
        return self.path.split("/")[1]

    def __reduce__(self) -> tuple[Any, tuple[str, str, int, str]]:
        # What is sent differs each time: processes keep what they unpacked, and more may have been committed since.
        return reopened, (self.root, self.path, self.block_rows, uuid.uuid4().hex)

    # Writing

    def create(self, n_rows: int, arrays: Iterable[RowArray], step: str = "") -> None:
        """Create the row arrays of the group or of one of its steps, or keep them where they were created before."""
        unit = below(step, SCHEMA_UNIT).replace("/", "-")
        if unit in self._entries:
            return
        entry: Digests = {}
        for array in arrays:
            described, path = array.description, below(step, array.name)
            described.check(self.stage, path, "rows", array.dtype, 1 + len(array.columns))
            shape, chunks = (n_rows, *array.columns), (self.block_rows, *array.columns)
            entry |= self._create(path, described, shape, array.dtype, chunks)
        self._commit(unit, entry)

    def write_block(self, block: int, arrays: BlockRows, step: str = "") -> None:
        """Write what one block has of every array passed, then commit the block.

        These are its rows, as they are or as another group has them, or parts (of a sparse matrix) that are as long as
        the block happens to have them.
        """
        unit = block_unit(block, step)
        if any(described.kind == "part" for described in arrays):
            self._write("part", unit, unit, arrays)
        else:
            self._write("rows", unit, step, arrays, block)

    def write_whole(self, arrays: Described, unit: str = WHOLE_UNIT, folder: str = "") -> None:
        """Write arrays of any length, in chunks of rows that memory always holds, then commit them as a unit."""
        self._write("whole", unit, folder, arrays)

    def take_block(self, block: int, other: "StageGroup") -> bool:
        """Commit a block as another group of the store holds it, undecoded; return whether that is intact and fits."""
        unit, entry = block_unit(block), {}
        if unit not in other._entries:
            return False
        for key, committed in other._entries[unit].items():
            array, source = (group.array(key.partition("/c/")[0]) for group in (self, other))
            fits = (array.chunks, array.dtype) == (source.chunks, source.dtype)
            taken = self._store.objects.take(key, other._store.objects, committed) if fits else None
            if taken is None:
                return False
            entry[key] = taken
        self._commit(unit, entry)
        return True

    def mark_complete(self, record: Mapping[str, Any]) -> None:
        """Mark all units as committed, with the stage's record: key, parameters, certificates, seconds, memory."""
        self._complete = {**record, "units": dict(self._entries)}
        self.objects.set_json("complete.json", self._complete)

    # Reading

    @property
    def complete(self) -> bool:
        """Whether the stage was marked as finished when entries were last read."""
        return self._complete is not None

    def check_mark(self) -> None:
        """Refuse a damaged record: its stage was finished, and must not look as if it never was."""
        self.objects.get_json("complete.json", RECORD_BYTES)

    @property
    def record(self) -> dict[str, Any]:
        """The stage's record without the digests of units; StoreError where the stage is not finished."""
        if self._complete is None:
            raise StoreError(f"{self.path} below {self.root} is not complete: run the same command again")
        return {name: value for name, value in self._complete.items() if name != "units"}

    def certificate(self, name: str, kind: type[Certified]) -> Certified:
        """Return one of the stage's certificates; CorruptChunkError where it is missing or not of type `kind`."""
        certificates = self.record.get("certificates")
        value = certificates.get(name) if isinstance(certificates, dict) else None
        if not isinstance(value, kind):
            raise damaged_object(f"{self.objects.root}/complete.json", f"certificate {name} is {value!r}")
        return value

    @property
    def content_digest(self) -> str:
        """One digest over everything committed in the group, independent of the order of the commits."""
        lines = sorted(f"{key} {content}" for key, (_, content, _) in self._store.expected.items())
        return digest("\n".join(lines).encode())

    @property
    def committed_bytes(self) -> int:
        """The bytes of all objects that are committed, by the entries read so far."""
        return sum(length for length, *_ in self._store.expected.values())

    @property
    def units(self) -> list[str]:
        """The names of the units that are committed, sorted, by the entries read so far."""
        return sorted(self._entries)

    def committed(self, unit: str) -> bool:
        """Return whether a unit is committed, by the entries read so far."""
        return unit in self._entries

    def committed_by_now(self, unit: str) -> bool:
        """As `committed`, by the store: another process may have committed the unit."""
        entries = entries_of({unit: self.objects.intact(f"marks/{unit}.json")})
        if entries is None:
            return False
        self._add(unit, entries[unit])
        return True

    def find(self, units: Iterable[str]) -> None:
        """Read the entries of units that other processes may have committed, where they are not known."""
        for unit in units:
            if unit not in self._entries:
                self.committed_by_now(unit)

    def holds(self, name: str) -> bool:
        """Return whether an array is there, by the entries read so far."""
        return f"{name}/{METADATA}" in self._store.expected

    def array(self, name: str) -> zarr.Array:
        """Return a row array or whole array; every chunk read from it is checked against its digest."""
        with self._lock:
            if name not in self._arrays:
                array = open_array(self._store, name)
                if self._complete is not None:
                    check_size(array, self._store.expected)
                self._arrays[name] = array
            return self._arrays[name]

    def read_block(self, name: str, block: int) -> np.ndarray:
        """Return the rows of one block of a row array, in its stored dtype; the last block may have fewer."""
        start = block * self.block_rows
        return self.read_rows(name, start, start + self.block_rows)

    def read(self, name: str, empty: Empty = np.empty) -> np.ndarray:
        """Return a whole array, in a new one made by `empty`."""
        return read_rows(self.array(name), empty=empty)

    def read_part(self, name: str, block: int, step: str = "") -> np.ndarray:
        """Return the array `name` of one block of ragged arrays, whole, of a step of the stage where it has several."""
        return self.read_rows(f"{block_unit(block, step)}/{name}")

    def read_rows(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return rows [start, stop) of an array, to its end where `stop` is None."""
        return read_rows(self.array(name), start, stop)

    # Damage

    def damaged_units(self, workers: int = 1) -> list[str]:
        """Return the units of which an object is gone or is not what was committed."""
        expected = self._store.expected
        damaged = self._store.objects.damaged(expected, workers) if expected else set()
        return [unit for unit in self.units if not damaged.isdisjoint(self._entries[unit])]

    def forget(self, units: Iterable[str]) -> None:
        """Remove the entries of units: these are not committed any more, and the group is not complete."""
        self.objects.delete("complete.json")
        self._complete, forgotten = None, set(units)
        entries = {unit: self._entries[unit] for unit in self.units if unit not in forgotten}
        for unit, entry in entries.items():
            self.objects.set_json(f"marks/{unit}.json", entry)
        for unit in forgotten:
            self.objects.delete(f"marks/{unit}.json")
            for key in self._entries.get(unit, {}):
                if key.endswith(METADATA):
                    self.objects.delete(f"arrays/{key}")
        self._set_entries(entries)

    def remove_step(self, step: str) -> None:
        """Remove what a step of an incomplete group has written, its entries first."""
        removed = {unit for unit in self._entries if unit.startswith(f"{step}-")}
        for unit in removed:
            self.objects.delete(f"marks/{unit}.json")
        self._set_entries({unit: entry for unit, entry in self._entries.items() if unit not in removed})
        for folder in (*removed, step):  # of parts, and of row arrays
            self.objects.delete_below(f"arrays/{folder}")

    # Within

    def _write(self, kind: Kind, unit: str, folder: str, described_values: BlockRows, block: int = 0) -> None:
        """Write arrays side by side, then commit them as a unit: all of each, or a block of those that were created."""
        taken = {one: rows for one, rows in described_values.items() if isinstance(rows, TakenBlock)}
        arrays = {one: np.asarray(values) for one, values in described_values.items() if one not in taken}
        check_described(self.stage, folder, kind, arrays)

        def write(described: tuple[ArrayDescription, np.ndarray]) -> Digests:
            path, values = below(folder, described[0].name), described[1]
            refuse_non_finite(values, f"{self.path}/{path}, {unit}")
            if kind != "rows":
                entry = self._create(path, described[0], values.shape, values.dtype, whole_chunks(values))
                return entry | write_rows(self.array(path), values)
            target = self.array(path)
            taken = (min(self.block_rows, target.shape[0] - block * self.block_rows), *target.shape[1:]), target.dtype
            if (values.shape, values.dtype) != taken:
                raise StoreError(f"block {block} of {path} takes {taken}, got {(values.shape, values.dtype)}")
            return write_rows(target, values, block)

        entries = [self._take_rows(folder, one.name, rows, block) for one, rows in taken.items()]
        self._commit(unit, union([*entries, *side_by_side(write, list(arrays.items()))]))

    def _take_rows(self, folder: str, name: str, source: TakenBlock, block: int) -> Digests:
        """Store a block of an array as another group has it, which has to be intact there."""
        array, other = self.array(below(folder, name)), source.group.array(below(source.step, name))
        if (array.chunks, array.dtype) != (other.chunks, other.dtype):
            place = f"{self.path}/{array.path}"
            raise StoreError(f"block {block} of {place} must have the chunks and dtype of {source.group.path}")
        key, committed = chunk_key(array, block), source.group._committed_chunk(other, block, source.step)
        here, there = (
            group._store.objects.below(step) if step else group._store.objects
            for group, step in ((self, folder), (source.group, source.step))
        )
        taken = None if committed is None else here.take(key.removeprefix(f"{folder}/"), there, committed)
        if taken is None:
            raise damaged_object(f"{there.root}/{key}", "its content is not what was committed")
        return {key: taken}

    def _committed_chunk(self, array: zarr.Array, block: int, step: str) -> Committed | None:
        """Return what commits the chunk of a block of an array of a step; None where the block is not committed."""
        return self._entries.get(block_unit(block, step), {}).get(chunk_key(array, block))

    def content_of_block(self, name: str, block: int, step: str = "") -> str | None:
        """Return the digest of a block of a row array; None where it is not committed."""
        committed = self._committed_chunk(self.array(below(step, name)), block, step)
        return None if committed is None else committed[1]

    def _create(
        self, path: str, described: ArrayDescription, shape: tuple[int, ...], dtype: Any, chunks: tuple[int, ...]
    ) -> Digests:
        """Create an array, and return what commits its metadata.

        Metadata of a run that was killed before it committed are replaced; chunks stay.
        """
        array, entry = create_array(self._store, path, shape, dtype, chunks, described.attributes)
        with self._lock:
            self._arrays[path] = array
        return entry

    def _commit(self, unit: str, entry: Digests) -> None:
        self.objects.set_json(f"marks/{unit}.json", entry)
        self._add(unit, entry)

    def _add(self, unit: str, entry: Digests) -> None:
        with self._lock:
            self._entries[unit] = entry
            self._store.expected.update(entry)

    def _set_entries(self, entries: dict[str, Digests]) -> None:
        """Take these for what is committed; other arrays are not held open."""
        with self._lock:
            self._entries = entries
            self._store.expected = union(entries.values())
            self._arrays = {name: array for name, array in self._arrays.items() if self.holds(name)}


def reopened(root: str, path: str, block_rows: int, revision: str) -> StageGroup:
    """Return a group as unpickled; `revision` only makes what is sent differ each time."""
    return StageGroup(root, path, block_rows)
