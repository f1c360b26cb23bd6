"""Points in files of tables, Parquet and Arrow IPC: read in batches of rows, one file after the other."""

import contextlib
import json
import threading
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources.arrow import PointColumns, point_columns
from scalemani.io.sources.base import Source, check_file, natural_order, optional_module
from scalemani.io.sources.bucket_files import BucketFile
from scalemani.store.objects import read_file

PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
STATE, SPLITS = "state.json", "dataset_dict.json"  # of a data set of Hugging Face, and of a folder of several
MAGIC = b"ARROW1"  # with which an Arrow file begins that can be read from any batch on; others are streams
BATCH_BYTES, BATCH_ROWS = 2**20, 16_384
BUFFER_BYTES = 2**16  # of each column that is read: without a buffer, and with one ahead, all of a row group is held
PAGE_BYTES = 2**20  # that writers of Parquet fill by default
COPIES_OF_PAGES = 4  # as read, decompressed and decoded, and what the allocator keeps; measured

Place = Path | BucketFile


class ParquetReader:
    """A Parquet file by row groups, read by pages, where pyarrow.dataset would read row groups whole."""

    def __init__(self, place: Place) -> None:
        parquet = optional_module("pyarrow.parquet", "parquet")
        file = place.open(BUFFER_BYTES) if isinstance(place, BucketFile) else place
        self.file = parquet.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
        self.schema = self.file.schema_arrow
        self.schema.names  # noqa: B018 - letters that are none come to light here

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield the rows of each part, and about how many bytes are held while it is read."""
        for group in map(self.file.metadata.row_group, range(self.file.metadata.num_row_groups)):
            columns = [group.column(number).total_uncompressed_size for number in range(group.num_columns)]
            yield group.num_rows, COPIES_OF_PAGES * sum(min(PAGE_BYTES, size) for size in columns)

    def batches(self, part: int, names: list[str], n_rows: int) -> Iterator[Any]:
        """Return the record batches of a part, of at most so many rows."""
        return self.file.iter_batches(n_rows, row_groups=[part], columns=names, use_threads=False)


class ArrowReader:
    """An Arrow IPC file by batches, or a stream, which is one part."""

    def __init__(self, path: str, mapped: bool) -> None:
        arrow, ipc = optional_module("pyarrow", "parquet"), optional_module("pyarrow.ipc", "parquet")
        file = arrow.memory_map(path) if mapped else arrow.OSFile(path)
        entered = file.read(len(MAGIC)) == MAGIC
        file.seek(0)
        self.file = ipc.open_file(file) if entered else ipc.open_stream(file)
        self.schema = self.file.schema
        self.n_parts = self.file.num_record_batches if entered else 1
        self.entered = entered

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield the rows of each part, and the bytes of its largest batch; where the file is mapped, little is read."""
        for part in range(self.n_parts):
            sizes = [(len(batch), batch.nbytes) for batch in self._whole_batches(part)]
            yield sum(rows for rows, _ in sizes), max((size for _, size in sizes), default=0)

    def batches(self, part: int, names: list[str], n_rows: int) -> Iterator[Any]:
        """Yield the record batches of a part, cut to at most so many rows."""
        for batch in self._whole_batches(part):
            yield from (batch.slice(start, n_rows) for start in range(0, len(batch), n_rows))

    def _whole_batches(self, part: int) -> Any:
        return [self.file.get_batch(part)] if self.entered else self.file


class TableFiles(Source):
    """A Parquet or Arrow file, or the files of a folder, each in parts at which reading can start.

    Ascending blocks continue in the open file; going back starts at the part of the first requested row.
    """

    sequential = True

    def __init__(self, path: Place, requested: tuple[str, ...] | None = None) -> None:
        self.path, self.requested, self.remote = path, requested, isinstance(path, BucketFile)
        self.parts: list[tuple[Place, int]] = []
        self._lock = threading.Lock()
        self._batches: Iterator[np.ndarray] | None = None
        self._row = 0
        self._left: np.ndarray | None = None
        files, columns, lengths = table_files(path), None, []
        for file in files:
            with opened(file, mapped=True) as table:
                own = point_columns(table.schema, requested, str(file))
                columns = columns or own
                check_same(own, columns, file, files[0])
                for part, (n_rows, n_bytes) in enumerate(table.sizes()):
                    self.parts.append((file, part))
                    lengths.append(n_rows)
                    self.held_bytes = max(self.held_bytes, n_bytes)
        assert columns is not None  # of at least one file
        self.columns, self.starts = columns, [0, *accumulate(lengths)]
        super().__init__((self.starts[-1], self._width()), columns.dtype, str(path))

    def __reduce__(self) -> tuple[type["TableFiles"], tuple[Place, tuple[str, ...] | None]]:
        return TableFiles, (self.path, self.requested)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        with self._lock:
            part = bisect_right(self.starts, start) - 1
            batches, self._batches = self._batches, None  # what fails half-way is not resumed
            if batches is None or start < self._row or self.starts[part] > self._row:
                batches, self._row, self._left = self._read_from(part, self.shape[1]), self.starts[part], None
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

    def _read_from(self, first_part: int, width: int | None) -> Iterator[np.ndarray]:
        names = list(self.columns.names)
        n_rows = min(BATCH_ROWS, max(1, BATCH_BYTES // (width * self.columns.dtype.itemsize))) if width else 1
        listed_width = width if self.columns.lists else None
        for (file, part), row in zip(self.parts[first_part:], self.starts[first_part:-1], strict=True):
            with opened(file) as table:
                for batch in table.batches(part, names, n_rows):
                    yield self.columns.rows(batch, str(file), row, listed_width)
                    row += len(batch)

    def _width(self) -> int:
        """Return the number of coordinates, that of the first list where the type does not tell it."""
        if self.columns.width is not None:
            return self.columns.width
        return next((rows.shape[1] for rows in self._read_from(0, None) if len(rows)), 0)


@contextlib.contextmanager
def opened(place: Place, mapped: bool = False) -> Iterator[ParquetReader | ArrowReader]:
    """Yield the reader of a file, or refuse a damaged one; `mapped` Arrow files are read as they are accessed."""
    arrow = optional_module("pyarrow", "parquet")
    ipc = isinstance(place, Path) and place.suffix.lower() in ARROW_SUFFIXES
    try:
        yield ArrowReader(str(place), mapped) if ipc else ParquetReader(place)
    except (OSError, UnicodeDecodeError, arrow.ArrowException) as error:
        kind = "Arrow IPC" if ipc else "Parquet"
        raise DataError(f"{place} is no {kind} file, or is truncated or damaged: {error}; copy it again") from error


def columns_of(member: str | None) -> tuple[str, ...] | None:
    """Return the columns named after `::`, separated by commas."""
    return tuple(name.strip() for name in member.split(",")) if member else None


def check_same(columns: PointColumns, expected: PointColumns, path: Place, first: Place) -> None:
    """Refuse a file whose columns are not the expected ones, those of the first file."""
    if columns != expected:
        raise DataError(
            f"all files must have the same columns: {path} has {len(columns.names)} that read as {columns.dtype} "
            f"({', '.join(columns.names[:5])}), {first} has {len(expected.names)} that read as {expected.dtype} "
            f"({', '.join(expected.names[:5])})"
        )


def table_files(path: Place) -> list[Place]:
    """Return the files of a path: itself, or those of a folder, in order; pipes and devices are refused."""
    if isinstance(path, BucketFile) or path.is_file():
        return [path]
    files = arrow_files(path) if is_arrow_folder(path) else parquet_files(path)
    for file in files:
        check_file(file)
    return list(files)


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files below a directory, part.2 before part.10; hidden ones and _metadata are no data."""
    files = [
        path
        for path in folder.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise ConfigError(f"{folder} holds no .parquet file: give a folder with some, or one file")
    return sorted(files, key=natural_order)


def is_arrow_folder(folder: Path) -> bool:
    """Return whether a folder is a data set of Hugging Face, several of these, or holds Arrow files."""
    return any((folder / name).exists() for name in (STATE, SPLITS)) or any(folder.glob("*.arrow"))


def arrow_files(folder: Path) -> list[Path]:
    """Return the Arrow files of a folder in the order of its state, or in natural order of their names."""
    if (folder / SPLITS).exists():
        splits = sorted(path.name for path in folder.iterdir() if path.is_dir())
        raise ConfigError(f"{folder} holds several data sets, {', '.join(splits)}: name one, as {folder}/{splits[0]}")
    if not (folder / STATE).exists():
        return sorted(folder.glob("*.arrow"), key=natural_order)
    try:
        state = json.loads(read_file(folder / STATE))
        names = [str(entry["filename"]) for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / STATE} is damaged: {error!r}; save the data set again") from error
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise DataError(
            f"{folder} was saved with its rows in another order: dataset.flatten_indices().save_to_disk(FOLDER)"
        )
    missing = [name for name in names if Path(name).name != name or not (folder / name).is_file()]
    if missing or not names:
        raise StoreError(f"{folder} is no complete data set: it has no {', '.join(missing) or 'data'}; copy it again")
    return [folder / name for name in names]
