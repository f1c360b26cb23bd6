"""One group a stage: row arrays in the blocks of the run, small whole arrays, ragged parts.

A *unit* (a block, a set of small arrays) is *committed* once its manifest entry is stored: the digests of all objects
that it wrote. A *group* is *complete* once all units of the stage are committed and `complete.json` says so. Below a
group, `arrays/` is an ordinary zarr v3 hierarchy and `marks/` holds the entries, which `complete.json` gathers with the
stage's record. `FORMAT.md` is the specification.
"""

import math
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import zarr

from scalemani.errors import ScalemaniError, StoreError, UnsafeStoreError
from scalemani.kernels.arrays.tiles import slices
from scalemani.store.arrays import (
    Digests,
    VerifiedStore,
    chunk_key,
    create_array,
    has_whole_rows,
    open_array,
    read_chunks,
    write_chunk,
)
from scalemani.store.objects import RECORD_BYTES, checked_key, damaged_object, digest, side_by_side
from scalemani.store.places import open_objects
from scalemani.store.schema import ArrayDescription, Kind, RowArray, below, check_described, whole_chunks

CODECS = {"bytes", "blosc"}
MOST_EXPANSION = 300  # of a chunk when it is decoded: a byte of lz4 stands for at most 255


def check_size(array: zarr.Array, lengths: Sequence[int], where: str) -> None:
    """Refuse a finished array that says it is larger than its committed chunks, of so many bytes each, can be."""
    codecs = {codec.to_dict()["name"] for codec in getattr(array.metadata, "codecs", ())}
    if codecs != CODECS:
        raise UnsafeStoreError(
            f"{where} asks for codecs {sorted(codecs)}, arrays of a run have {sorted(CODECS)}: it is no run of this "
            "library, or was changed; run the same command in another folder"
        )
    if math.prod(array.shape) == 0:
        return
    chunk_bytes = math.prod(array.chunks) * array.dtype.itemsize
    if math.prod(array.cdata_shape) > len(lengths) or chunk_bytes > MOST_EXPANSION * max(lengths, default=0):
        raise damaged_object(where, f"shape {array.shape} in chunks {array.chunks} is more than was written")


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


def refuse_non_finite(values: np.ndarray, where: str) -> None:
    """Raise where a value to be stored is NaN or infinite: a sum is enough to tell, and reads at memory speed."""
    if values.dtype.kind != "f" or values.size == 0:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # finite values may have a sum that is not
        total = values.sum(dtype=np.float64)
    if not np.isfinite(total):
        finite = np.isfinite(values)
        if not finite.all():
            raise StoreError(
                f"{where}: {finite.size - np.count_nonzero(finite)} values are not finite; nothing was stored"
            )


SCHEMA_UNIT = "schema"
WHOLE_UNIT = "whole"

Certified = TypeVar("Certified")
Described = Mapping[ArrayDescription, np.ndarray]


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
        self._lock = threading.Lock()
        self._arrays: dict[str, zarr.Array] = {}
        self._entries: dict[str, Digests] = {}  # of the manifest as last read, by unit
        self._expected: Digests = {}  # of all committed objects, by key
        self._complete: dict[str, Any] | None = None
        self._store = VerifiedStore(self.objects.below("arrays"), self._expected, {})
        self.revision = ""
        self.refresh()

    def refresh(self) -> None:
        """Read new entries, which other processes may have committed; known entries stay."""
        complete = self.objects.intact("complete.json", RECORD_BYTES)
        gathered = None if complete is None else entries_of(complete.get("units"))
        self._complete = None if gathered is None else complete
        if gathered is not None:
            entries = gathered
        else:
            names = [name.removesuffix(".json") for name in self.objects.names("marks")]
            unknown = [unit for unit in names if unit not in self._entries]
            entries_read = self.objects.many_intact([f"marks/{unit}.json" for unit in unknown])
            entries = {unit: self._entries[unit] for unit in names if unit in self._entries}
            for unit, entry in zip(unknown, entries_read, strict=True):
                entries |= entries_of({unit: entry}) or {}
        with self._lock:
            self._entries = entries
            self._expected.clear()  # the store that checks reads holds on to it
            for entry in entries.values():
                self._expected.update(entry)
        self.revision = uuid.uuid4().hex

    @property
    def stage(self) -> str:
        """The stage whose arrays these are."""
        return self.path.split("/")[1]

    def __reduce__(self) -> tuple[Any, tuple[str, str, int, str]]:
        # The revision makes what is sent differ once more was committed: processes keep what they unpacked.
        return reopened, (self.root, self.path, self.block_rows, self.revision)

    # Writing

    def create(self, n_rows: int, arrays: Sequence[RowArray], step: str = "") -> None:
        """Create the row arrays of the group or of one of its steps, or keep them where they were created before."""
        unit = below(step, SCHEMA_UNIT).replace("/", "-")
        if unit in self._entries:
            return
        for array in arrays:
            array.description.check(self.stage, below(step, array.name), "rows", array.dtype, 1 + len(array.columns))
            shape, chunks = (n_rows, *array.columns), (self.block_rows, *array.columns)
            self._create(below(step, array.name), shape, array.dtype, chunks, array.description.attributes)
        self._commit(unit, [f"{below(step, array.name)}/zarr.json" for array in arrays])

    def write_block(self, block: int, arrays: Described, step: str = "") -> None:
        """Write one block of rows of every array given, then commit the block."""
        start = block * self.block_rows
        check_described(self.stage, step, "rows", arrays)

        def write(described: tuple[ArrayDescription, np.ndarray]) -> str:
            path, rows = below(step, described[0].name), described[1]
            target = self.array(path)
            stop = min(start + self.block_rows, target.shape[0])
            taken = (stop - start, *target.shape[1:]), target.dtype
            if (rows.shape, rows.dtype) != taken:
                raise StoreError(f"block {block} of {path} takes {taken}, got {(rows.shape, rows.dtype)}")
            refuse_non_finite(rows, f"{self.path}/{path}, block {block}")
            write_chunk(self._store, path, target, block, rows)
            return chunk_key(path, target, block)

        self._commit(block_unit(block, step), side_by_side(write, list(arrays.items())))

    def take_block(self, block: int, other: "StageGroup") -> bool:
        """Commit a block as another group of the store holds it, undecoded; return whether that is intact and fits."""
        unit, entries = block_unit(block), {}
        if unit not in other._entries:
            return False
        for key, committed in other._entries[unit].items():
            array, source = self.array(key.partition("/c/")[0]), other.array(key.partition("/c/")[0])
            if (array.chunks, array.dtype) != (source.chunks, source.dtype):
                return False
            entry = self._store.objects.take(key, other._store.objects, committed)
            if entry is None:
                return False
            entries[key] = entry
        self._commit_entry(unit, entries)
        return True

    def write_whole(self, arrays: Described, unit: str = WHOLE_UNIT, folder: str = "") -> None:
        """Write arrays of any length, in chunks of rows that memory always holds, then commit them as a unit."""
        self._write_chunked(arrays, "whole", unit, folder)

    def write_parts(self, block: int, arrays: Described, step: str = "") -> None:
        """Write the ragged arrays of one block (a part of a sparse matrix), then commit the block."""
        self._write_chunked(arrays, "part", block_unit(block, step), block_unit(block, step))

    def mark_complete(self, record: Mapping[str, Any]) -> None:
        """Mark all units as committed, with the stage's record: key, parameters, certificates, seconds, memory."""
        self._complete = {**record, "units": dict(self._sorted_entries())}
        self.objects.set_json("complete.json", self._complete)

    # Reading

    @property
    def complete(self) -> bool:
        """Whether all units of the stage are committed."""
        return self._complete is not None

    def check_mark(self) -> None:
        """Refuse a damaged record: its stage was finished, and must not look as if it never was."""
        self.objects.get_json("complete.json", RECORD_BYTES)

    @property
    def record(self) -> dict[str, Any]:
        """The stage's record, without the digests."""
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
        lines = sorted(f"{key} {value[1]}" for _, entry in self._sorted_entries() for key, value in entry.items())
        return digest("\n".join(lines).encode())

    @property
    def committed_bytes(self) -> int:
        """The bytes of all objects committed so far."""
        return sum(length for _, entry in self._sorted_entries() for length, *_ in entry.values())

    @property
    def units(self) -> list[str]:
        """The units that are committed, sorted."""
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

    def holds(self, name: str) -> bool:
        """Return whether an array is there, by the entries read so far."""
        return f"{name}/zarr.json" in self._expected

    def array(self, name: str) -> zarr.Array:
        """Return a row array or whole array; every chunk read from it is checked against its digest."""
        with self._lock:
            if name not in self._arrays:
                try:
                    array = open_array(self._store, name)
                except FileNotFoundError as error:
                    raise StoreError(
                        f"no array {name!r} in {self.path} below {self.root}: it has none of this name"
                    ) from error
                except (ScalemaniError, OSError):
                    raise
                except Exception as error:  # zarr's own are of many kinds, and all mean the same here
                    raise damaged_object(f"{self.objects.root}/arrays/{name}/zarr.json", str(error)) from error
                if self._complete is not None:
                    lengths = [entry[0] for key, entry in self._expected.items() if key.startswith(f"{name}/c")]
                    check_size(array, lengths, f"{self.objects.root}/arrays/{name}/zarr.json")
                self._arrays[name] = array
            return self._arrays[name]

    def read_block(self, name: str, block: int) -> np.ndarray:
        """Return one block of rows of an array."""
        start = block * self.block_rows
        return self.read_rows(name, start, start + self.block_rows)

    def read(self, name: str) -> np.ndarray:
        """Return a whole array."""
        return self.read_rows(name)

    def read_part(self, name: str, block: int, step: str = "") -> np.ndarray:
        """Return one ragged array of a block."""
        return self.read_rows(f"{block_unit(block, step)}/{name}")

    def read_rows(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return rows [start, stop) of an array, by default all of it; chunks of whole rows are decoded into place."""
        array = self.array(name)
        if not has_whole_rows(array):
            return np.asarray(array[start:stop] if array.ndim else array[...])
        stop = array.shape[0] if stop is None else min(stop, array.shape[0])
        if start >= stop:
            return np.empty((0, *array.shape[1:]), array.dtype)
        return read_chunks(self._store, name, array, start, stop)

    # Damage

    def damaged_units(self, workers: int = 1) -> list[str]:
        """Return the units of which an object is gone or is not what was committed."""
        damaged = self._store.objects.damaged(self._expected, workers) if self._expected else set()
        return [unit for unit, entry in self._sorted_entries() if not damaged.isdisjoint(entry)]

    def forget(self, units: Iterable[str]) -> None:
        """Remove the entries of units: these are not committed any more, and the group is not complete."""
        self.objects.delete("complete.json")
        self._complete, self.revision = None, uuid.uuid4().hex
        forgotten = set(units)
        for unit, entry in self._sorted_entries():
            if unit not in forgotten:
                self.objects.set_json(f"marks/{unit}.json", entry)
        for unit in forgotten:
            self.objects.delete(f"marks/{unit}.json")
            for key in self._remove(unit):
                if key.endswith("zarr.json"):
                    self._arrays.pop(key.removesuffix("/zarr.json"), None)
                    self.objects.delete(f"arrays/{key}")

    def remove_step(self, step: str) -> None:
        """Remove what a step of an incomplete group has written, its entries first."""
        for unit in self.units:
            if unit.startswith(f"{step}-"):
                self.objects.delete(f"marks/{unit}.json")
                self._remove(unit)
                self.objects.delete_below(f"arrays/{unit}")  # where it is a part
        with self._lock:
            within = (f"{step}/", f"{step}-")
            self._arrays = {name: array for name, array in self._arrays.items() if not name.startswith(within)}
        self.objects.delete_below(f"arrays/{step}")
        self.revision = uuid.uuid4().hex

    # Within

    def _write_chunked(self, given: Described, kind: Kind, unit: str, folder: str) -> None:
        arrays = {description: np.asarray(values) for description, values in given.items()}
        check_described(self.stage, folder, kind, arrays)

        def write(described: tuple[ArrayDescription, np.ndarray]) -> str:
            path, values = below(folder, described[0].name), described[1]
            chunks = whole_chunks(values)
            refuse_non_finite(values, f"{self.path}/{path}")
            self._create(path, values.shape, values.dtype, chunks, described[0].attributes)
            target = self.array(path)
            if values.ndim == 0:
                target[...] = values
            elif values.size:
                for number, rows in enumerate(slices(len(values), chunks[0])):
                    write_chunk(self._store, path, target, number, values[rows])
            return f"{path}/"

        self._commit(unit, side_by_side(write, list(arrays.items())))

    def _create(
        self, name: str, shape: tuple[int, ...], dtype: Any, chunks: tuple[int, ...], attributes: Mapping[str, Any]
    ) -> None:
        # Metadata of a run that was killed before it committed are replaced; chunks stay.
        # Metadata that were committed are no longer expected: a unit may be written again.
        self._expected.pop(f"{name}/zarr.json", None)
        array = create_array(self._store, name, shape, dtype, chunks, attributes)
        with self._lock:
            self._arrays[name] = array

    def _commit(self, unit: str, keys: Sequence[str]) -> None:
        """Commit what was written under `keys`; one that ends in a slash stands for all below it."""
        written, folders, exact = self._store.written, tuple(key for key in keys if key.endswith("/")), set(keys)
        with self._lock:
            entry = {key: written.pop(key) for key in list(written) if key in exact or key.startswith(folders)}
        self._commit_entry(unit, entry)

    def _commit_entry(self, unit: str, entry: Digests) -> None:
        self.objects.set_json(f"marks/{unit}.json", entry)
        self._add(unit, entry)
        self.revision = uuid.uuid4().hex

    def _sorted_entries(self) -> list[tuple[str, Digests]]:
        return sorted(self._entries.items())

    def _add(self, unit: str, entry: Digests) -> None:
        with self._lock:
            self._entries[unit] = entry
            self._expected.update(entry)

    def _remove(self, unit: str) -> Digests:
        """Remove and return the entry of a unit, empty where there is none."""
        with self._lock:
            entry = self._entries.pop(unit, {})
            for key in entry:
                self._expected.pop(key, None)
            return entry


def reopened(root: str, path: str, block_rows: int, revision: str) -> StageGroup:
    """Return a group that came from another process."""
    return StageGroup(root, path, block_rows)
