"""The ways to read an array of a group: anew, by block, by row, once a process, mapped."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import zarr

from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.memory.arrays import gather_into, gather_rows, keep_in_file, read_large, read_once
from scalemani.memory.rows_in_file import RowsInFile, Table
from scalemani.memory.sparse_rows import SparseRowsReader
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


@dataclass(frozen=True)
class StoredStage:
    """The group of a stage, read by what its arrays hold. Subclasses describe the arrays and say how to read them."""

    group: StageGroup

    STAGE: ClassVar[str]
    ARRAYS: ClassVar[tuple[ArrayDescription, ...]]

    def __post_init__(self) -> None:
        if self.group.stage != self.STAGE:
            raise ValueError(f"{type(self).__name__} reads groups of {self.STAGE}, got one of {self.group.stage}")

    def reader(self, described: ArrayDescription, folder: str = "") -> ArrayReader:
        """Return the reader of a row array or whole array."""
        return ArrayReader(self.group, f"{folder}/{described.name}" if folder else described.name)

    def read_count(self, described: ArrayDescription, certificate: str) -> int:
        """Return a stored number, which is a unit by its own name.

        Stores of format version 2 may lack it: the stage's certificates then say it.
        """
        if self.group.committed(described.name):
            return int(self.reader(described).read_once())
        return self.group.certificate(certificate, int)

    def read_part(self, described: ArrayDescription, block: int, step: str = "") -> np.ndarray:
        """Return the ragged array of one block."""
        return self.group.read_part(described.name, block, step)


@dataclass(frozen=True)
class MatrixDescription:
    """The three arrays of a square sparse matrix in CSR form."""

    indptr: ArrayDescription
    indices: ArrayDescription
    values: ArrayDescription

    @property
    def all(self) -> tuple[ArrayDescription, ...]:
        """The three arrays."""
        return self.indptr, self.indices, self.values

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
