"""Stored sparse rows: read by block, gathered by number, and in tables of all of them, in memory or in files."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from scalemani.engine.memory.process import PROCESS, Key
from scalemani.engine.memory.rows_in_file import RowsInFile, Table
from scalemani.kernels.rows.compressed import copy_rows
from scalemani.store.groups import StageGroup, block_unit

INDPTR, INDICES, VALUES = "indptr", "indices", "values"  # the parts of a block


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
        """As `read_once`, in files without names: rows are copied out of them as they are asked for."""
        folder = self.group.objects.scratch_folder
        return PROCESS.once(Key.of(table_of, (self.step, True), self.group), functools.partial(table_of, self, folder))

    def gather(self, rows: np.ndarray, cache_bytes: int = 0) -> sp.csr_matrix:
        """Return rows at row numbers (n,) int, in any order; `cache_bytes` of decoded blocks stay for the next."""
        lengths = np.zeros(len(rows), np.int64)
        for block, places in self._by_block(rows):
            local = rows[places] - block * self.group.block_rows
            lengths[places] = np.diff(self.read_bounds(block))[local]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        columns, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self.dtype)
        for block, places in self._by_block(rows):
            held = PROCESS.blocks.read(self.group, self.step, block, cache_bytes, self.read_block)
            local = rows[places] - block * self.group.block_rows
            copy_rows((held.indptr, held.indices, held.data), local, (indptr, columns, values), places)
        return sparse_matrix(indptr, columns, values, self.n_features)

    def count(self, rows: np.ndarray) -> int:
        """Return the nonzeros of rows by numbers (n,)."""
        local = ((block, rows[places] - block * self.group.block_rows) for block, places in self._by_block(rows))
        return int(sum(np.diff(self.read_bounds(block))[numbers].sum() for block, numbers in local))

    def _by_block(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the blocks that rows (n,) lie in, and which of the rows these are: (m,) int64."""
        blocks = rows // self.group.block_rows
        order = np.argsort(blocks, kind="stable")
        for block, part in itertools.groupby(order, key=blocks.__getitem__):
            yield int(block), np.fromiter(part, np.int64)


class SparseTable:
    """All sparse rows (N, D) of a group, looked up by row as a table is: copies of rows come as a sparse matrix."""

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
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        columns, values = taken_runs(self._columns, starts, lengths), taken_runs(self._values, starts, lengths)
        return sparse_matrix(indptr, columns, values, self._n_features)


def taken_runs(table: Table, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return runs of entries of a table (m,), one behind the other; they begin at `starts`, ascending."""
    if isinstance(table, RowsInFile):
        return table.take_runs(starts, lengths)
    ends = np.cumsum(lengths)
    return table[np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)]


def table_of(reader: SparseRowsReader, folder: Path | None = None) -> SparseTable:
    """Return a table of all rows that a group holds: in memory, or in files in a folder."""
    bounds = [reader.read_bounds(block) for block in reader.blocks]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.diff(part) for part in bounds]))])
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
