"""Points in Parquet files: every column a coordinate, the files of a directory one after the other."""

import threading
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError
from scalemani.sources.base import Source, check_file, natural_order, optional_module

BATCH_ROWS = 16_384


class ParquetPoints(Source):
    """A Parquet file, or the files of a directory in natural order of their names (part.2 before part.10).

    The index column that pandas may have stored is left out. Ascending blocks go on in the open file; going back starts
    at the row group that holds the first row asked for.
    """

    sequential = True

    def __init__(self, path: Path, columns: tuple[str, ...] | None = None) -> None:
        self.path = path
        self.asked = columns
        self.files = [path] if path.is_file() else parquet_files(path)
        self._lock = threading.Lock()
        self._batches: Iterator[np.ndarray] | None = None
        self._row = 0
        self._left: np.ndarray | None = None
        self.columns, dtype = checked_columns(self.files[0], columns)
        self.groups: list[tuple[int, int]] = []  # file and row group of each run of rows
        self.starts = [0]
        for number, file in enumerate(self.files):
            found = checked_columns(file, columns)
            if found != (self.columns, dtype):
                raise DataError(
                    f"all files must have the same columns: {file} has {len(found[0])} that read as {found[1]} "
                    f"({', '.join(found[0][:5])}), {self.files[0]} has {len(self.columns)} that read as {dtype} "
                    f"({', '.join(self.columns[:5])})"
                )
            metadata = open_parquet(file).metadata
            for group in range(metadata.num_row_groups):
                self.groups.append((number, group))
                self.starts.append(self.starts[-1] + metadata.row_group(group).num_rows)
        super().__init__((self.starts[-1], len(self.columns)), dtype, str(path))

    def __reduce__(self) -> tuple[type["ParquetPoints"], tuple[Path, tuple[str, ...] | None]]:
        return ParquetPoints, (self.path, self.asked)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        with self._lock:
            first_group = bisect_right(self.starts, start) - 1
            batches = self._batches
            if batches is None or start < self._row or self.starts[first_group] > self._row:
                batches = self._read_from(first_group)
                self._row = self.starts[first_group]
                self._left = None
            self._batches = None  # until these rows are read: what fails half-way is not gone on with
            while self._row < stop:
                batch = self._left if self._left is not None else next(batches)
                end = self._row + len(batch)
                first, last = max(self._row, start), min(end, stop)
                if first < last:
                    rows[first - start : last - start] = batch[first - self._row : last - self._row]
                self._left = batch[stop - self._row :] if end > stop else None
                self._row = min(end, stop)
            self._batches = batches
        return rows

    def _read_from(self, first_group: int) -> Iterator[np.ndarray]:
        for number, group in self.groups[first_group:]:
            file = open_parquet(self.files[number])
            try:
                for batch in file.iter_batches(
                    BATCH_ROWS, row_groups=[group], columns=list(self.columns), use_threads=False
                ):
                    yield joined_columns(batch, self.files[number])
            except OSError as error:
                raise DataError(f"{self.files[number]} is truncated or damaged: {error}; copy it again") from error


def columns_of(member: str | None) -> tuple[str, ...] | None:
    """Return the columns named after `::`, separated by commas."""
    return tuple(name.strip() for name in member.split(",")) if member else None


def joined_columns(batch: Any, path: Path) -> np.ndarray:
    """Return the columns of a batch side by side: (rows, D)."""
    missing = [
        f"{name} ({column.null_count})"
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if column.null_count
    ]
    if missing:
        raise DataError(f"{path} has missing values in {', '.join(missing[:5])}: fill them or remove their rows")
    return np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files below a directory; names that start with a dot or underscore are no data."""
    files = [
        path
        for path in folder.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    for path in files:
        check_file(path)
    if not files:
        raise ConfigError(f"{folder} holds no .parquet file")
    return sorted(files, key=natural_order)


def open_parquet(path: Path) -> Any:
    """Open a Parquet file, or say that it is damaged."""
    parquet = optional_module("pyarrow.parquet", "parquet")
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise DataError(f"{path} is no Parquet file, or is truncated or damaged: {error}") from error


def checked_columns(path: Path, asked: tuple[str, ...] | None) -> tuple[tuple[str, ...], np.dtype]:
    """Return the columns of a file that are coordinates and the dtype that holds all of them."""
    schema = open_parquet(path).schema_arrow
    if asked is not None and (missing := [name for name in asked if name not in schema.names]):
        raise ConfigError(f"{path} has no column {', '.join(missing)}; it has {', '.join(schema.names)}")
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if repeated:
        raise DataError(f"{path} has more than one column {', '.join(repeated[:5])}: give each a name of its own")
    names = asked or tuple(name for name in schema.names if not name.startswith("__index_level_"))
    types = {
        name: str(schema.field(name).type).replace("halffloat", "float16").replace("double", "float64")
        for name in names
    }
    types = {name: "float32" if kind == "float" else kind for name, kind in types.items()}
    others = [
        f"{name} ({kind})" for name, kind in types.items() if not kind.startswith(("int", "uint", "float", "bool"))
    ]
    if others:
        raise DataError(
            f"{path} has columns that are no numbers: {', '.join(others[:5])}; choose columns as in {path.name}::x,y,z"
        )
    return names, np.result_type(*(np.dtype(kind) for kind in types.values())) if types else np.dtype(np.float64)
