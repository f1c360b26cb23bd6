"""The ways to read an array of a group, or its sparse rows: anew, by block, by row, once a process, mapped."""

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar, overload

import numpy as np
import scipy.sparse as sp
import zarr

from scalemani.engine.memory.files import RowsInFile, Table
from scalemani.engine.memory.process import PROCESS, Key
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.rows.compressed import copy_rows, dense_rows
from scalemani.kernels.rows.sketches import SketchBasis, sketch_points
from scalemani.store.groups import StageGroup, block_unit
from scalemani.store.invariants import Invariant
from scalemani.store.invariants.matrices import bounds, columns_ascend, up_to_diagonal
from scalemani.store.invariants.values import FINITE
from scalemani.store.objects import damaged_object
from scalemani.store.schema import SPARSE_INDEX, ArrayDescription, DtypeRule, Kind

COPIED_BYTES = 2**18  # of rows that are gathered, at a time: the second-level cache holds them
INDPTR, INDICES, VALUES = "indptr", "indices", "values"  # the parts of a block of sparse rows


@dataclass(frozen=True)
class ArrayReader:
    """A row array or whole array of a group."""

    group: StageGroup
    path: str

    def read(self, empty: Empty = np.empty) -> np.ndarray:
        """Return all of it, in a new array made by `empty`."""
        return self.group.read(self.path, empty)

    def read_block(self, block: int) -> np.ndarray:
        """Return one block of its rows."""
        return self.group.read_block(self.path, block)

    def read_rows(self, rows: slice) -> np.ndarray:
        """Return consecutive rows, from `rows.start` to `rows.stop`."""
        return self.group.read_rows(self.path, rows.start, rows.stop)

    def read_once(self) -> np.ndarray:
        """Return all of it, read once a process and shared until the stage ends; it cannot be written to."""
        return PROCESS.once(Key.of(read_only, (self.path,), self.group), functools.partial(read_only, self))

    def keep_in_file(self) -> RowsInFile:
        """As `read_once`, in a file without a name: rows are copied out of it as they are requested."""
        return PROCESS.once(Key.of(copy_to_file, (self.path,), self.group), functools.partial(copy_to_file, self))

    def gather(self, rows: np.ndarray, cache_bytes: int = 0) -> np.ndarray:
        """Return its rows at row numbers (n,) int, in any order; `cache_bytes` of decoded blocks stay for the next."""
        array = self.zarr()
        gathered = np.empty((len(rows), *array.shape[1:]), dtype=array.dtype)
        self.gather_into(gathered, rows, cache_bytes)
        return gathered

    def gather_into(self, table: Table, rows: np.ndarray, cache_bytes: int = 0) -> None:
        """As `gather`, into a table (n, columns...); each block that holds one of the rows is read once."""
        n_rows = self.zarr().shape[0]
        for block, places, local in by_block(rows, self.group.block_rows):
            first, last = block * self.group.block_rows + local[[0, -1]]
            if not 0 <= first <= last < n_rows:
                place = f"{self.group.root}/{self.group.path}/{self.path}"
                raise damaged_object(place, f"row {first if first < 0 else last} of {n_rows} is requested")
            values = PROCESS.blocks.read(self.group, self.path, block, cache_bytes)
            for part in slices(len(local), max(1, COPIED_BYTES // max(1, values[:1].nbytes))):
                table[places[part]] = values[local[part]]

    def zarr(self) -> zarr.Array:
        """Return it as a zarr array, whose chunks are checked as they are read."""
        return self.group.array(self.path)


def by_block(rows: np.ndarray, block_rows: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the blocks that rows (n,) lie in, which of the rows these are (m,), and their numbers there, ascending."""
    order = np.argsort(rows, kind="stable")
    ascending = rows[order]
    blocks, starts = np.unique(ascending // block_rows, return_index=True)
    for block, (start, stop) in zip(blocks, itertools.pairwise([*starts, len(rows)]), strict=True):
        yield int(block), order[start:stop], ascending[start:stop] - block * block_rows


def read_only(array: ArrayReader) -> np.ndarray:
    """Read a whole array that cannot be written to."""
    values = array.read()
    values.flags.writeable = False
    return values


def copy_to_file(array: ArrayReader) -> RowsInFile:
    """Copy a whole array to a file, chunk by chunk."""
    stored = array.zarr()
    rows = RowsInFile(array.group.objects.scratch_folder, stored.shape, stored.dtype)
    for part in slices(len(rows), stored.chunks[0]):
        rows[part] = array.read_rows(part)
    return rows


@dataclass(frozen=True)
class SparseRowsReader:
    """The sparse rows (N, D) of a group, a set of CSR parts for every block; it has the methods of `ArrayReader`."""

    group: StageGroup
    n_features: int
    step: str = ""

    def read_block(self, block: int) -> sp.csr_matrix:
        """Return one block of rows."""
        indices, values = (self.group.read_part(part, block, self.step) for part in (INDICES, VALUES))
        return sparse_matrix(self.read_bounds(block), indices, values, self.n_features)

    def read_bounds(self, block: int) -> np.ndarray:
        """Return where each row of a block begins and ends among its nonzeros: (n + 1,) int64."""
        return self.group.read_part(INDPTR, block, self.step)

    @property
    def blocks(self) -> range:
        """The blocks that are stored, without a gap."""
        units = (block_unit(block, self.step) for block in itertools.count())
        return range(sum(1 for _ in itertools.takewhile(self.group.committed, units)))

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return np.dtype(self.group.array(f"{block_unit(0, self.step)}/{VALUES}").dtype)

    def read(self) -> sp.csr_matrix:
        """Return all rows."""
        return sp.vstack([self.read_block(block) for block in self.blocks], format="csr")

    def read_once(self) -> "SparseTable":
        """Return all rows, read once a process and shared until the stage ends."""
        return PROCESS.once(Key.of(table_of, (self.step, False), self.group), functools.partial(table_of, self))

    def keep_in_file(self) -> "SparseTable":
        """As `read_once`, in files without names: rows are copied out of them as they are requested."""
        folder = self.group.objects.scratch_folder
        return PROCESS.once(Key.of(table_of, (self.step, True), self.group), functools.partial(table_of, self, folder))

    def gather(self, rows: np.ndarray, cache_bytes: int = 0) -> sp.csr_matrix:
        """Return rows at row numbers (n,) int, in any order; `cache_bytes` of decoded blocks stay for the next."""
        lengths = np.zeros(len(rows), np.int64)
        for block, places, local in by_block(rows, self.group.block_rows):
            lengths[places] = np.diff(self.read_bounds(block))[local]
        indptr = bounds_of(lengths)
        columns, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self.dtype)
        for block, places, local in by_block(rows, self.group.block_rows):
            held = PROCESS.blocks.read(self.group, self.step, block, cache_bytes, self.read_block)
            copy_rows((held.indptr, held.indices, held.data), local, (indptr, columns, values), places)
        return sparse_matrix(indptr, columns, values, self.n_features)

    def count(self, rows: np.ndarray) -> int:
        """Return the nonzeros of rows by numbers (n,)."""
        parts = by_block(rows, self.group.block_rows)
        return int(sum(np.diff(self.read_bounds(block))[local].sum() for block, _, local in parts))


class SparseTable:
    """All sparse rows (N, D) of a group, with random access by row as of a table: copies are a sparse matrix."""

    def __init__(self, indptr: np.ndarray, columns: Table, values: Table, n_features: int) -> None:
        self._indptr, self._columns, self._values, self._n_features = indptr, columns, values, n_features

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def __getitem__(self, rows: slice | np.ndarray) -> sp.csr_matrix:
        """Return a copy of a slice of rows, or of rows by ascending numbers (n,)."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            bounds = self._indptr[start : max(start, stop) + 1]
            entries = slice(int(bounds[0]), int(bounds[-1]))
            return sparse_matrix(bounds - bounds[0], self._columns[entries], self._values[entries], self._n_features)
        starts, lengths = self._indptr[rows], self._indptr[rows + 1] - self._indptr[rows]
        indptr = bounds_of(lengths)
        columns, values = taken_runs(self._columns, starts, lengths), taken_runs(self._values, starts, lengths)
        return sparse_matrix(indptr, columns, values, self._n_features)


def bounds_of(lengths: np.ndarray) -> np.ndarray:
    """Return where each of some runs (n,) begins and ends, one behind the other: (n + 1,) int64."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def taken_runs(table: Table, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return runs of entries of a table (m,), one behind the other; they begin at `starts`, ascending."""
    if isinstance(table, RowsInFile):
        return table.take_runs(starts, lengths)
    ends = np.cumsum(lengths)
    return table[np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)]


def table_of(reader: SparseRowsReader, folder: Path | None = None) -> SparseTable:
    """Return a table of all rows that a group holds: in memory, or in files in a folder."""
    indptr = bounds_of(np.concatenate([np.diff(reader.read_bounds(block)) for block in reader.blocks]))
    shape, columns_dtype = (int(indptr[-1]),), reader.group.array(f"{block_unit(0, reader.step)}/{INDICES}").dtype
    columns, values = (
        np.empty(shape, dtype) if folder is None else RowsInFile(folder, shape, dtype)
        for dtype in (columns_dtype, reader.dtype)
    )
    first = 0
    for block in reader.blocks:
        for part, table in ((INDICES, columns), (VALUES, values)):
            held = reader.group.read_part(part, block, reader.step)
            table[first : first + len(held)] = held
        first += len(held)
    return SparseTable(indptr, columns, values, reader.n_features)


def sparse_matrix(indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, n_features: int) -> sp.csr_matrix:
    """Return sparse rows of these parts, whose columns ascend in each row and come once."""
    rows = sp.csr_matrix((values, columns.astype(np.int32, copy=False), indptr), shape=(len(indptr) - 1, n_features))
    rows.has_sorted_indices = rows.has_canonical_format = True
    return rows


@dataclass(frozen=True)
class RowsOfArray:
    """So many stored rows that are indexed by row numbers, as an array in memory is; sparse ones become dense."""

    array: ArrayReader | SparseRowsReader
    n_rows: int
    cache_bytes: int = 0

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return dense_rows(self.array.gather(rows, self.cache_bytes))


@dataclass(frozen=True)
class SketchesOfRows:
    """The sketches (N, s) float32 of dense rows, made as they are looked up: rows of bytes take a quarter of the room.

    Parameters
    ----------
    rows_of : returns consecutive rows (n, D)
    n_rows : N
    block_rows : the rows of a block
    """

    rows_of: Callable[[slice], np.ndarray]
    n_rows: int
    basis: SketchBasis
    block_rows: int

    def __len__(self) -> int:
        return self.n_rows

    @property
    def shape(self) -> tuple[int, int]:
        """(N, s)."""
        return self.n_rows, self.basis.axes.shape[1]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.gather(rows) if isinstance(rows, np.ndarray) else self.read_rows(rows)

    def read_rows(self, rows: slice) -> np.ndarray:
        """Return the sketches of consecutive rows; whole tiles are made, since bits depend on them."""
        first = rows.start // TILE_ROWS * TILE_ROWS
        last = min(self.n_rows, -(-rows.stop // TILE_ROWS) * TILE_ROWS)
        return sketch_points(self.rows_of(slice(first, last)), self.basis)[rows.start - first : rows.stop - first]

    def read_block(self, block: int) -> np.ndarray:
        """Return the sketches of a block."""
        return self.read_rows(slice(block * self.block_rows, min(self.n_rows, (block + 1) * self.block_rows)))

    def read(self) -> np.ndarray:
        """Return all sketches."""
        return self.read_rows(slice(0, self.n_rows))

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return the sketches of rows (n,) int in any order."""
        sketches = np.empty((len(rows), self.shape[1]), np.float32)
        for block, places, local in by_block(rows, self.block_rows):
            sketches[places] = self.read_block(block)[local]
        return sketches


Reader = TypeVar("Reader")


class Declared(Generic[Reader]):
    """An array of a stage: its description as an attribute of the stage's class, its reader as one of an instance.

    The parameters are those of `ArrayDescription`; dimensions are words, the name is by default that of the attribute.
    """

    kind: ClassVar[Kind]

    def __init__(
        self,
        dims: str,
        dtype: str | DtypeRule,
        meaning: str,
        units: str = "1",
        *,
        folders: tuple[str, ...] = ("",),
        name: str = "",
    ) -> None:
        self.name = name
        self._described = ArrayDescription("", "", self.kind, tuple(dims.split()), dtype, units, meaning, folders)

    def with_invariants(self, *invariants: Invariant) -> Self:
        """Say what holds of the values in every run."""
        self._described = replace(self._described, invariants=invariants)
        return self

    def of_any_numbers(self, reason: str) -> Self:
        """Say why nothing can be checked of the values alone but that they are finite."""
        self._described = replace(self._described, invariants=(FINITE,), no_invariant=reason)
        return self

    def __set_name__(self, owner: type["StoredStage"], name: str) -> None:
        self.name = self.name or name

    @overload
    def __get__(self, stored: None, owner: type["StoredStage"]) -> ArrayDescription: ...

    @overload
    def __get__(self, stored: "StoredStage", owner: type["StoredStage"]) -> Reader: ...

    def __get__(self, stored: "StoredStage | None", owner: type["StoredStage"]) -> ArrayDescription | Reader:
        return self.description(owner.STAGE) if stored is None else self.open(stored.group)

    def description(self, stage: str) -> ArrayDescription:
        """Return what the format says of the array in the groups of a stage."""
        return replace(self._described, stage=stage, name=self.name)

    def open(self, group: StageGroup) -> Reader:
        """Return what reads the array of a group."""
        raise NotImplementedError


class Whole(Declared[ArrayReader]):
    """An array in one piece, however long."""

    kind: ClassVar[Kind] = "whole"

    def open(self, group: StageGroup) -> ArrayReader:
        """Return its reader."""
        return ArrayReader(group, self.name)


class Rows(Whole):
    """An array that is cut along its rows by the blocks of the run."""

    kind = "rows"


class WholeInFolders(Declared[Callable[[str], ArrayReader]]):
    """Arrays of one name in several folders, each in one piece: the reader of one is `stored.name(folder)`."""

    kind: ClassVar[Kind] = "whole"

    def open(self, group: StageGroup) -> Callable[[str], ArrayReader]:
        """Return what gives the reader of a folder."""
        return lambda folder: ArrayReader(group, f"{folder}/{self.name}")


class RowsInFolders(WholeInFolders):
    """The same of arrays that are cut by the blocks of the run."""

    kind = "rows"


class Parts(Declared[Callable[[int], np.ndarray]]):
    """An array a block, of the length that the block happens to have: that of one is `stored.name(block)`."""

    kind = "part"

    def __init__(self, dims: str, dtype: str | DtypeRule, meaning: str, units: str = "1") -> None:
        super().__init__(dims, dtype, meaning, units, folders=("block-N",))

    def open(self, group: StageGroup) -> Callable[[int], np.ndarray]:
        """Return what reads the array of a block."""
        return functools.partial(group.read_part, self.name)


@dataclass(frozen=True)
class StoredStage:
    """The group of a stage, read by what its arrays hold. Subclasses name the stage and declare the arrays.

    `ARRAYS` are the descriptions of all of them, in the order of their declaration: of `Declared` attributes, and of
    tuples of descriptions.
    """

    group: StageGroup

    STAGE: ClassVar[str]
    ARRAYS: ClassVar[tuple[ArrayDescription, ...]]

    def __init_subclass__(cls, stage: str = "") -> None:
        super().__init_subclass__()
        if stage:
            cls.STAGE = stage
            named = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
            cls.ARRAYS = tuple(one for value in named.values() for one in descriptions(stage, value))

    def __post_init__(self) -> None:
        if self.group.stage != self.STAGE:
            raise ValueError(f"{type(self).__name__} reads groups of {self.STAGE}, got one of {self.group.stage}")

    def reader(self, described: ArrayDescription) -> ArrayReader:
        """Return the reader of a row array or whole array by its description."""
        return ArrayReader(self.group, described.name)

    def read_count(self, counted: ArrayReader, certificate: str) -> int:
        """Return a stored number, which is a separate unit.

        Stores of format version 2 may lack it: the stage's certificates then say it.
        """
        if self.group.committed(counted.path):
            return int(counted.read_once())
        return self.group.certificate(certificate, int)


Stored = TypeVar("Stored", bound=StoredStage)


def descriptions(stage: str, value: object) -> tuple[ArrayDescription, ...]:
    """Return the descriptions of the arrays that an attribute of the class of a stage declares."""
    if isinstance(value, Declared):
        return (value.description(stage),)
    return tuple(one for one in value if isinstance(one, ArrayDescription)) if isinstance(value, tuple) else ()


class MatrixDescription(NamedTuple):
    """The three arrays of a square sparse matrix in CSR form."""

    indptr: ArrayDescription
    indices: ArrayDescription
    values: ArrayDescription

    def arrays(self, matrix: sp.csr_matrix) -> dict[ArrayDescription, np.ndarray]:
        """Return a matrix as it is stored."""
        return {self.indptr: matrix.indptr, self.indices: matrix.indices, self.values: matrix.data}

    def matrix(self, read: Callable[[ArrayDescription], np.ndarray]) -> sp.csr_matrix:
        """Return the matrix whose arrays `read` gives."""
        values, indices, indptr = read(self.values), read(self.indices), read(self.indptr)
        size = len(indptr) - 1
        return sp.csr_matrix((values, indices, indptr), shape=(size, size))


def landmark_matrix(
    stage: str, name: str, kind: Kind, folders: tuple[str, ...], meaning: str, *holds: Invariant
) -> MatrixDescription:
    """Return the description of a lower triangle of a matrix (L, L) float64 in CSR form; `holds` of its values."""

    def described(part: str, dim: str, dtype: str | DtypeRule, says: str, *invariants: Invariant) -> ArrayDescription:
        units = {"indptr": "nonzero", "indices": "landmark", "values": "1"}[part]
        return ArrayDescription(stage, f"{name}_{part}", kind, (dim,), dtype, units, says, folders, invariants)

    entries, indptr, indices, values = (
        f"{name}_nonzero",
        *(f"{name}_{part}" for part in ("indptr", "indices", "values")),
    )
    begins, columns = f"where each row of {meaning} begins and ends", f"the column of each nonzero of {meaning}"
    return MatrixDescription(
        described("indptr", "landmark_bound", SPARSE_INDEX, begins, bounds(indices, values)),
        described("indices", entries, SPARSE_INDEX, columns, columns_ascend(indptr), up_to_diagonal(indptr)),
        described("values", entries, "float64", f"the nonzeros of {meaning}", *holds),
    )
