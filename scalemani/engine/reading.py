"""The ways to read an array of a group: anew, by block, by row, once a process, mapped."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, TypeVar, overload

import numpy as np
import scipy.sparse as sp
import zarr

from scalemani.engine.memory.arrays import gather_into, gather_rows, keep_in_file, read_large, read_once
from scalemani.engine.memory.rows_in_file import RowsInFile, Table
from scalemani.engine.memory.sparse_rows import SparseRowsReader
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.store.groups import StageGroup
from scalemani.store.schema import SPARSE_INDEX, ArrayDescription, DtypeRule, Kind


@dataclass(frozen=True)
class ArrayReader:
    """A row array or whole array of a group."""

    group: StageGroup
    path: str

    def read(self, empty: Empty = np.empty) -> np.ndarray:
        """Return all of it, in a new array made by `empty`."""
        return read_large(self.group, self.path, empty)

    def read_block(self, block: int) -> np.ndarray:
        """Return one block of its rows."""
        return self.group.read_block(self.path, block)

    def read_rows(self, rows: slice) -> np.ndarray:
        """Return consecutive rows, from `rows.start` to `rows.stop`."""
        return self.group.read_rows(self.path, rows.start, rows.stop)

    def read_once(self) -> np.ndarray:
        """Return all of it, read once a process and shared until the stage ends; it cannot be written to."""
        return read_once(self.group, self.path)

    def keep_in_file(self) -> RowsInFile:
        """As `read_once`, in a file without a name: rows are copied out of it as they are asked for."""
        return keep_in_file(self.group, self.path)

    def gather(self, rows: np.ndarray, cache_bytes: int = 0) -> np.ndarray:
        """Return its rows at row numbers (n,) int, in any order; `cache_bytes` of decoded blocks stay for the next."""
        return gather_rows(self.group, self.path, rows, cache_bytes)

    def gather_into(self, table: Table, rows: np.ndarray, cache_bytes: int = 0) -> None:
        """As `gather`, into a table (n, columns...)."""
        gather_into(table, self.group, self.path, rows, cache_bytes)

    def zarr(self) -> zarr.Array:
        """Return it as a zarr array, whose chunks are checked as they are read."""
        return self.group.array(self.path)


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


Reader = TypeVar("Reader")


class Declared(Generic[Reader]):
    """An array of a stage: its description where the class of the stage is asked, its reader where a group is.

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
        self.name, self._dims, self._dtype, self._units = name, tuple(dims.split()), dtype, units
        self._meaning, self._folders = meaning, folders

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
        return ArrayDescription(
            stage, self.name, self.kind, self._dims, self._dtype, self._units, self._meaning, self._folders
        )

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
        """Return a stored number, which is a unit by its own name.

        Stores of format version 2 may lack it: the stage's certificates then say it.
        """
        if self.group.committed(counted.path):
            return int(counted.read_once())
        return self.group.certificate(certificate, int)


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


def landmark_matrix(stage: str, name: str, kind: Kind, folders: tuple[str, ...], meaning: str) -> MatrixDescription:
    """Return the description of a matrix (L, L) float64 in CSR form."""

    def described(part: str, dim: str, dtype: str | DtypeRule, units: str, says: str) -> ArrayDescription:
        return ArrayDescription(stage, f"{name}_{part}", kind, (dim,), dtype, units, says, folders)

    entries = f"{name}_nonzero"
    return MatrixDescription(
        described("indptr", "landmark_bound", SPARSE_INDEX, "nonzero", f"where each row of {meaning} begins and ends"),
        described("indices", entries, SPARSE_INDEX, "landmark", f"the column of each nonzero of {meaning}"),
        described("values", entries, "float64", "1", f"the nonzeros of {meaning}"),
    )
