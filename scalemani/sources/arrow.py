"""Points in tables and columns of Arrow in memory, in Arrow IPC files, and in data sets of Hugging Face on disk."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.sources.arrow_columns import list_type, point_columns
from scalemani.sources.base import Source, check_file, natural_order, optional_module
from scalemani.sources.batches import BatchedPoints
from scalemani.sources.tables import check_same
from scalemani.store.objects import read_file
from scalemani.validation import check_shape

STATE, SPLITS = "state.json", "dataset_dict.json"  # of a data set of Hugging Face, and of a folder of several
SUFFIXES = (".arrow", ".feather", ".ipc")
MAGIC = b"ARROW1"  # with which a file begins that can be entered at any batch; others are streams


class ArrowTable(Source):
    """A table or a column of lists of Arrow in memory, or what gives itself as one, as frames of Polars do."""

    def __init__(self, table: Any) -> None:
        arrow, description = optional_module("pyarrow", "parquet"), f"{type(table).__name__} in memory"
        if hasattr(table, "columns"):
            self.table = arrow.table(table)
        else:  # one column
            column = arrow.chunked_array(table)
            if list_type(column.type) is None:
                check_shape((len(column),), description)
            self.table = arrow.table({"points": column})
        self.columns = point_columns(self.table.schema, None, description)
        width = len(self.columns.names) if not self.columns.lists else self.columns.width
        if width is None:
            first = self.table.slice(0, 1).to_batches()
            width = self.columns.rows(first[0], description).shape[1] if first else 0
        super().__init__((self.table.num_rows, width), self.columns.dtype, description)

    @property
    def named(self) -> bool:
        """Whether each coordinate is a column with a name."""
        return not self.columns.lists

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        width = None if self.named else self.shape[1]
        rows, row = np.empty((stop - start, self.shape[1]), self.dtype), start
        for batch in self.table.slice(start, stop - start).to_batches():
            last = row + len(batch)
            rows[row - start : last - start] = self.columns.rows(batch, self.description, row, width)
            row = last
        return rows


class ArrowFiles(BatchedPoints[Path]):
    """Arrow IPC files, one after the other; a part is a batch of a file, and the whole of a stream."""

    def __init__(self, path: Path, columns: tuple[str, ...] | None = None) -> None:
        self.path, self.asked = path, columns
        files = [path] if path.is_file() else arrow_files(path)
        with open_ipc(files[0]) as reader:
            found = point_columns(reader.schema, columns, str(files[0]))
        parts: list[tuple[Path, int]] = []
        starts, width = [0], found.width if found.lists else len(found.names)
        for file in files:
            with open_ipc(file) as reader:
                check_same(point_columns(reader.schema, columns, str(file)), found, file, files[0])
                for number, batch in numbered_batches(reader):
                    if width is None and len(batch):
                        width = found.rows(batch.slice(0, 1), str(file)).shape[1]
                    self.held_bytes = max(self.held_bytes, batch.nbytes)
                    if parts and parts[-1] == (file, number):  # a batch more of a stream
                        starts[-1] += len(batch)
                    else:
                        parts.append((file, number))
                        starts.append(starts[-1] + len(batch))
        super().__init__(found, width or 0, parts, starts, str(path))

    def __reduce__(self) -> tuple[type["ArrowFiles"], tuple[Path, tuple[str, ...] | None]]:
        return ArrowFiles, (self.path, self.asked)

    def batches(self, part: int) -> Iterator[Any]:
        """Yield the record batches of a part, cut where they are long."""
        path, number = self.parts[part]
        with open_ipc(path, mapped=False) as reader:
            for batch in [reader.get_batch(number)] if is_entered(reader) else reader:
                for start in range(0, len(batch), self.batch_rows):
                    yield batch.slice(start, self.batch_rows)


@contextlib.contextmanager
def open_ipc(path: Path, mapped: bool = True) -> Iterator[Any]:
    """Yield the reader of an Arrow IPC file, or say that it is damaged; mapped ones read what is looked at alone."""
    check_file(path)
    arrow, ipc = optional_module("pyarrow", "parquet"), optional_module("pyarrow.ipc", "parquet")
    try:
        with arrow.memory_map(str(path)) if mapped else arrow.OSFile(str(path)) as file:
            entered = file.read(len(MAGIC)) == MAGIC
            file.seek(0)
            with ipc.open_file(file) if entered else ipc.open_stream(file) as reader:
                yield reader
    except (OSError, UnicodeDecodeError, arrow.ArrowException) as error:
        raise DataError(f"{path} is no Arrow IPC file, or is truncated or damaged: {error}; copy it again") from error


def is_entered(reader: Any) -> bool:
    """Return whether a file can be read from any batch on; a stream is read from its beginning."""
    return hasattr(reader, "num_record_batches")


def numbered_batches(reader: Any) -> Iterator[tuple[int, Any]]:
    """Yield the part that each batch of a file belongs to, and the batch."""
    if is_entered(reader):
        yield from ((number, reader.get_batch(number)) for number in range(reader.num_record_batches))
    else:
        yield from ((0, batch) for batch in reader)


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
