"""Points in tables: columns of frames of pandas, tables of Arrow in memory, files of Parquet and Arrow IPC."""

import contextlib
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.config.validation import (
    LARGEST_EXACT,
    check_dtype,
    check_exact,
    check_shape,
    is_wide_integer,
    lost_digits,
    with_nan,
)
from scalemani.errors import ConfigError, DataError, ObjectsError, StoreError
from scalemani.io.sources.base import (
    ARROW_SUFFIXES,
    CSV_SUFFIXES,
    Source,
    as_damage,
    check_file,
    first_few,
    natural_order,
    optional_module,
)
from scalemani.io.sources.bucket_files import BucketFile, Place
from scalemani.io.sources.csv_files import CsvReader
from scalemani.kernels.machine.forks import new_lock
from scalemani.store.objects import read_file

INDEX = ("__index_level_", "__null_dask_index__")  # how columns begin that are an index without a name, of pandas, Dask
EXCLUDE = "!"  # before the name of a column that is no coordinate
PANDAS = b"pandas"  # the key of what pandas says of a table in the metadata of its schema
STATE, SPLITS = "state.json", "dataset_dict.json"  # of a data set of Hugging Face, and of a folder of several
MAGIC = b"ARROW1"  # with which an Arrow file begins that can be read from any batch on; others are streams
BATCH_BYTES, BATCH_ROWS = 2**20, 16_384
LOOKED_AT, LEAST_LOOKED_AT = 1000, 100  # rows, by which a column of classes is told from one of counts
FEW_VALUES = 10
BUFFER_BYTES = 2**16  # of each column that is read: without a buffer, and with one ahead, all of a row group is held
PAGE_BYTES = 2**20  # that writers of Parquet fill by default
COPIES_OF_PAGES = 4  # as read, decompressed and decoded, and what the allocator keeps; measured


def with_numbers(frame: Any, where: str, gaps: bool = False) -> Any:
    """Return a frame of pandas with float64 columns for those that are nullable or hold Python objects.

    The first column that does not convert is refused by its name and row, as are integers that would lose digits;
    missing values are NaN where there may be `gaps`.
    """
    if np.asarray(frame.iloc[:0]).dtype.kind in "biufc":  # what all columns make together
        return frame
    converted = frame.copy(deep=False)
    for position, (name, dtype) in enumerate(frame.dtypes.items()):
        if not (isinstance(dtype, np.dtype) and dtype.kind in "iufc"):
            converted.isetitem(position, column_of_numbers(frame.iloc[:, position], name, where, gaps))
    return converted


def column_of_numbers(column: Any, name: Any, where: str, with_gaps: bool) -> np.ndarray:
    """Return a column (n,) of a frame of pandas in float64; see `with_numbers`."""
    values, gaps = np.asarray(column), np.flatnonzero(column.isna())
    if values.dtype.kind in "Mm" or getattr(column.dtype, "type", None) is str:
        raise DataError(f"{where} has a column that is no number: {name} ({column.dtype}); leave it out")
    remedy = "fill it in, or leave out the row or the column"
    if len(gaps) and with_gaps:
        values = values.astype(object)
        values[gaps] = np.nan
    elif len(gaps):
        raise DataError(f"column {name} of {where} has no value in {len(gaps)} rows, the first row {gaps[0]}: {remedy}")
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        row, refusal = first_unconvertible(values), ObjectsError if isinstance(error, TypeError) else DataError
        raise refusal(f"column {name} of {where} has {values[row]!r} in row {row}, no number: {remedy}") from error
    refuse_wide(numbers, values.__getitem__, name, where)
    return numbers


def refuse_wide(
    numbers: np.ndarray, value_at: Callable[[int], Any], name: str, where: str, first_row: int = 0, width: int = 1
) -> None:
    """Refuse values that `value_at` returns as integers, of which float64 `numbers` lose digits."""
    large = np.flatnonzero(np.abs(numbers) >= LARGEST_EXACT)
    wide = [entry // width for entry in large.tolist() if is_wide_integer(value_at(entry))]
    if wide:
        raise lost_digits(where, np.unique(wide), (first_row, first_row + len(numbers) // width), name)


def first_unconvertible(values: np.ndarray) -> int:
    """Return the row of the first of Python objects (n,) that float() does not take, which is there."""
    row = 0
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        while True:
            float(values[row])
            row += 1
    return row


@dataclass(frozen=True)
class PointColumns:
    """The columns of a table that are coordinates, and the dtype that holds all of them.

    `lists` says that there is one, which holds a list of coordinates in each row; `width` is the number of coordinates,
    None where the type of the column does not fix it.
    """

    names: tuple[str, ...]
    dtype: np.dtype
    width: int | None
    lists: bool = False

    def __str__(self) -> str:
        return f"{len(self.names)} that read as {self.dtype} ({', '.join(self.names[:5])})"

    def rows(
        self, batch: Any, where: str, first_row: int = 0, width: int | None = None, gaps: bool = False
    ) -> np.ndarray:
        """Return the coordinates (n, D) of a record batch; refuse lists of different lengths.

        Missing values are refused, or NaN where there may be `gaps`.
        """
        if self.lists:
            return listed_rows(batch.column(self.names[0]), self.names[0], where, first_row, width)
        columns = [numbers_of(batch.column(name), name, where, first_row, gaps=gaps) for name in self.names]
        return np.column_stack([column.astype(self.dtype) if column.dtype == object else column for column in columns])


class Table(Source):
    """Points in columns of a table; where their type does not fix the width, the first list does."""

    def __init__(self, columns: PointColumns, n_rows: int, first_rows: Iterator[np.ndarray], description: str) -> None:
        self.columns, width = columns, columns.width
        if width is None:
            width = next((rows.shape[1] for rows in first_rows if len(rows)), 0)
        super().__init__((n_rows, width), columns.dtype, description)
        self.column_names = () if columns.lists else columns.names

    def accept_gaps(self) -> None:
        """Read gaps as NaN; columns of integers then become floats."""
        super().accept_gaps()
        self.columns = replace(self.columns, dtype=with_nan(self.columns.dtype))
        self.dtype = check_dtype(self.columns.dtype)


class ArrowTable(Table):
    """A table or a column of lists of Arrow in memory, or what gives itself as one, as frames of Polars do."""

    def __init__(self, table: Any) -> None:
        arrow, self.description = optional_module("pyarrow", "parquet"), f"{type(table).__name__} in memory"
        if hasattr(table, "columns"):
            self.table = arrow.table(table)
        else:  # one column
            column = arrow.chunked_array(table)
            if list_type(column.type) is None:
                check_shape((len(column),), self.description)
            self.table = arrow.table({"points": column})
        columns = point_columns(self.table.schema, None, self.description, in_memory=True)
        super().__init__(columns, self.table.num_rows, self._read(0, 1, None), self.description)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of `dtype`, put together from the batches that hold them."""
        rows, row = np.empty((stop - start, self.shape[1]), self.dtype), 0
        for part in self._read(start, stop, self.shape[1]):
            rows[row : row + len(part)] = part
            row += len(part)
        return rows

    def _read(self, start: int, stop: int, width: int | None) -> Iterator[np.ndarray]:
        for batch in self.table.slice(start, stop - start).to_batches():
            yield self.columns.rows(batch, self.description, start, width, self.gaps)
            start += len(batch)


def point_columns(schema: Any, requested: tuple[str, ...] | None, where: str, in_memory: bool = False) -> PointColumns:
    """Return the columns of a table that are coordinates.

    `requested` are names, with * for any letters; by default the only column of lists of numbers, else all columns. The
    index of a frame is none of them, unless its name is requested.
    """
    index = index_columns(schema)
    if requested is None:
        check_names(where, (), schema.names)
        if index and len(index) == len(schema.names):
            raise DataError(f"{where} has no columns but an index, {', '.join(schema.names)}: reset the index")
    else:
        requested = matched_columns(schema.names, requested, where, index)
    names = requested or tuple(name for name in schema.names if name not in index)
    lists = [name for name in names if list_type(schema.field(name).type) is not None]
    if lists:
        if len(lists) > 1 or (requested is not None and len(requested) > 1):
            how = f"select it, as in table.select([{lists[0]!r}])" if in_memory else f"name it as in FILE::{lists[0]}"
            raise DataError(f"{where} has columns of lists {', '.join(lists)}: one of these is taken at a time, {how}")
        kind = list_type(schema.field(lists[0]).type)
        return PointColumns((lists[0],), number_dtype(kind.value_type), getattr(kind, "list_size", None), lists=True)
    kinds = {name: schema.field(name).type for name in names}
    others = [f"{name} ({kind})" for name, kind in kinds.items() if not is_number(kind)]
    if others:
        no_numbers = [name for name, kind in kinds.items() if not is_number(kind)]
        signed = ",".join(f"{EXCLUDE}{name}" for name in no_numbers)
        how = f", with --exclude {','.join(no_numbers)} or as '{where}::{signed}', or choose columns as in FILE::x,y,z"
        how = "" if in_memory else how
        raise DataError(f"{where} has columns that are no numbers: {', '.join(others[:5])}; leave these out{how}")
    dtype = np.result_type(*map(number_dtype, kinds.values())) if kinds else np.dtype(np.float64)
    return PointColumns(names, dtype, len(names))


def index_columns(schema: Any) -> frozenset[str]:
    """Return the names of columns of a table that are the index of the frame it was made of, by pandas, Dask or R.

    A column without a name is one that was written as text.
    """
    named: Any = ()
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):  # of what no pandas has written
        named = json.loads((schema.metadata or {})[PANDAS])["index_columns"]
    listed = (
        {name for name in named if isinstance(name, str)} if isinstance(named, list) else set()
    )  # ranges: no column
    return frozenset(name for name in schema.names if name in listed or not name or name.startswith(INDEX))


def index_of_files(path: Path) -> frozenset[str]:
    """Return the names of index columns of a Parquet file, or of the first file of a folder."""
    with opened(table_files(path)[0]) as reader:
        return index_columns(reader.schema)


def check_names(where: Place | str, missing: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a table where some of the requested columns are missing, or with two columns of one name."""
    if missing:
        raise ConfigError(f"{where} has no column {', '.join(missing)}; it has {', '.join(names)}")
    check_distinct_names(names, where)


def check_distinct_names(names: Sequence[Any], where: Place | str) -> None:
    """Refuse two columns of one name; those that are no texts are numbers of columns, and name none."""
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1 and isinstance(name, str)):
        raise DataError(f"{where} has more than one column {', '.join(repeated[:5])}: give each another name")


def matched_columns(
    names: list[str], requested: tuple[str, ...], where: str, index: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the requested columns; those of a pattern, with * for any letters, in the order of the table.

    A name after an exclamation mark is left out of the others, of all where there are none. Columns of an index fit a
    pattern where nothing else does.
    """
    matched: list[str] = []
    missing = []
    existing, chosen = set(names), set()
    excluded = [one.removeprefix(EXCLUDE) for one in requested if one.startswith(EXCLUDE) and one not in existing]
    if excluded:
        left_out = matched_columns(names, tuple(excluded), where)
        others = tuple(one for one in requested if not one.startswith(EXCLUDE) or one in existing)
        taken = matched_columns(names, others, where, index) if others else [one for one in names if one not in index]
        if not set(taken) - set(left_out):
            raise ConfigError(f"{where} has no columns but those that are left out: {', '.join(left_out)}")
        return tuple(name for name in taken if name not in left_out)
    for one in requested:
        fitting = [one]
        if one not in existing:  # without a star nothing fits it either
            pattern = re.compile(".*".join(map(re.escape, one.split("*"))), re.DOTALL)
            fitting = list(filter(pattern.fullmatch, names))
            fitting = [name for name in fitting if name not in index] or fitting
        missing += [] if fitting else [one]
        matched += [name for name in fitting if name not in chosen or name == one]
        chosen.update(fitting)
    check_names(where, missing, names)
    return tuple(matched)


def list_type(kind: Any) -> Any:
    """Return the type of a column of lists of numbers, that below an extension such as a tensor's; None of others."""
    arrow = optional_module("pyarrow", "parquet")
    kind = getattr(kind, "storage_type", kind)
    lists = (arrow.types.is_list, arrow.types.is_large_list, arrow.types.is_fixed_size_list)
    return kind if any(test(kind) for test in lists) and is_number(kind.value_type) else None


def is_number(kind: Any) -> bool:
    """Return whether a type of Arrow is one of real numbers or of truth values."""
    return re.fullmatch(r"u?int\d+|bool|halffloat|float|double|decimal.*", str(kind)) is not None


def number_dtype(kind: Any) -> np.dtype:
    """Return the NumPy dtype of a type of Arrow's numbers; float64 for decimals."""
    return np.dtype(np.float64 if str(kind).startswith("decimal") else kind.to_pandas_dtype())


def listed_rows(column: Any, name: str, where: str, first_row: int, width: int | None) -> np.ndarray:
    """Return a column of lists of `width` numbers, by default as many as in the first row, as a table (n, D)."""
    column = getattr(column, "storage", column)
    compute = optional_module("pyarrow.compute", "parquet")
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    width = int(lengths[0]) if width is None and len(lengths) and not column.null_count else width
    wrong = np.flatnonzero(lengths != width)  # of a missing list the length is NaN
    if len(wrong):
        raise DataError(
            f"column {name} of {where} must have {width or 'as many'} numbers in every row, and has not in "
            f"{len(wrong)} of rows [{first_row}, {first_row + len(lengths)}), the first of them row "
            f"{first_few(first_row + wrong)}: fill or remove these rows"
        )
    numbers = numbers_of(column.flatten(), name, where, first_row, int(width or 1))
    return numbers.reshape(len(lengths), int(width or 0))


def numbers_of(column: Any, name: str, where: str, first_row: int, width: int = 1, gaps: bool = False) -> np.ndarray:
    """Return the numbers of a column of Arrow, decimals as float64, as an array; a row has `width` of them.

    Missing ones are refused, or NaN or None where there may be `gaps`; refused are also integers that lose digits in
    float64.
    """
    if column.null_count and not gaps:
        row = first_row + int(np.argmax(np.asarray(column.is_null()))) // width
        raise DataError(
            f"{where} has missing values in {name} ({column.null_count}), the first in row {row}: fill them or remove "
            "their rows"
        )
    kind = str(column.type)
    if kind.startswith("decimal"):
        decimals, column = column, column.cast("float64")
        filled = column.fill_null(0).to_numpy(zero_copy_only=False)
        refuse_wide(filled, lambda entry: decimals[entry].as_py(), name, where, first_row, width)
    elif kind in ("int64", "uint64"):  # before columns become one type
        integers = column.fill_null(0).to_numpy(zero_copy_only=False).reshape(-1, width)
        check_exact(integers, first_row, where, (name,) if width == 1 else None)
    numbers: np.ndarray = column.to_numpy(zero_copy_only=False)
    return numbers


class ParquetReader:
    """A Parquet file by row groups, read by pages, where pyarrow.dataset would read row groups whole."""

    def __init__(self, place: Place) -> None:
        parquet = optional_module("pyarrow.parquet", "parquet")
        file = place.open(BUFFER_BYTES) if isinstance(place, BucketFile) else place
        self.file = parquet.ParquetFile(
            file, buffer_size=BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
        )
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
        self.entered = entered

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield the rows of each part, and the bytes of its largest batch; where the file is mapped, little is read."""
        for part in range(self.file.num_record_batches if self.entered else 1):
            sizes = [(len(batch), batch.nbytes) for batch in self._whole_batches(part)]
            yield sum(rows for rows, _ in sizes), max((size for _, size in sizes), default=0)

    def batches(self, part: int, names: list[str], n_rows: int) -> Iterator[Any]:
        """Yield the record batches of a part, cut to at most so many rows."""
        for batch in self._whole_batches(part):
            yield from (batch.slice(start, n_rows) for start in range(0, len(batch), n_rows))

    def _whole_batches(self, part: int) -> Any:
        return [self.file.get_batch(part)] if self.entered else self.file


class TableFiles(Table):
    """A Parquet or Arrow file, or the files of a folder, each in parts at which reading can start.

    Ascending blocks continue in the open file; going back starts at the part of the first requested row.
    """

    sequential = True

    def __init__(self, path: Place, requested: tuple[str, ...] | None = None) -> None:
        self.reopening, self.remote = (TableFiles, (path, requested)), isinstance(path, BucketFile)
        self.parts: list[tuple[Place, int]] = []
        self._lock = new_lock()
        # A row, what is left of the batch that it is in, and the batches that follow.
        self._open: tuple[int, np.ndarray, Iterator[np.ndarray]] | None = None
        files, lengths, kinds = table_files(path), [], []
        for file in files:
            with opened(file, mapped=True) as table:
                kinds.append(point_columns(table.schema, requested, str(file)))
                check_same(kinds[-1], kinds[0], file, files[0])
                for part, (n_rows, n_bytes) in enumerate(table.sizes()):
                    self.parts.append((file, part))
                    lengths.append(n_rows)
                    self.held_bytes = max(self.held_bytes, n_bytes)
        self.starts = [0, *accumulate(lengths)]
        super().__init__(kinds[0], self.starts[-1], self._read_from(0, None), str(path))
        if classes := self._whole_columns(files[0]):
            self.remark = (
                f"{path} has few different whole numbers in {', '.join(classes[:5])}, next to measured columns: "
                f"they are coordinates; leave classes out with --exclude or as {path}::{EXCLUDE}{classes[0]}"
            )

    def _whole_columns(self, file: Place) -> list[str]:
        """Return the columns of integers with few values in the first rows of a file, where others have fractions."""
        if self.columns.lists or self.columns.dtype.kind != "f":
            return []
        with opened(file) as table:
            whole = [name for name in self.columns.names if "int" in str(table.schema.field(name).type)]
            rows = next(table.batches(0, whole, LOOKED_AT), None) if 0 < len(whole) < len(self.columns.names) else None
            if rows is None or len(rows) < LEAST_LOOKED_AT:
                return []
            return [name for name in whole if len(rows.column(name).unique()) <= FEW_VALUES]

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop); resumes in the batch where the last call ended, unless that is past `start`."""
        rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        with self._lock:
            part = bisect_right(self.starts, start) - 1
            opened, self._open = self._open, None  # what fails half-way is not resumed
            if opened is None or not self.starts[part] <= opened[0] <= start:
                opened = self.starts[part], rows[:0], self._read_from(part, self.shape[1])
            row, left, batches = opened
            while row < stop:
                batch = left if len(left) else next(batches)
                taken, left = batch[max(start - row, 0) : stop - row], batch[stop - row :]
                first = max(row - start, 0)
                rows[first : first + len(taken)] = taken
                row = min(row + len(batch), stop)
            self._open = row, left, batches
        return rows

    def _read_from(self, first_part: int, width: int | None) -> Iterator[np.ndarray]:
        names = list(self.columns.names)
        n_rows = min(BATCH_ROWS, max(1, BATCH_BYTES // (width * self.columns.dtype.itemsize))) if width else 1
        for (file, part), row in zip(self.parts[first_part:], self.starts[first_part:-1], strict=True):
            with opened(file) as table:
                for batch in table.batches(part, names, n_rows):
                    yield self.columns.rows(batch, str(file), row, width, self.gaps)
                    row += len(batch)


@contextlib.contextmanager
def opened(place: Place, mapped: bool = False) -> Iterator[ParquetReader | ArrowReader | CsvReader]:
    """Yield the reader of a file, or refuse a damaged one; `mapped` Arrow files are read as they are accessed."""
    arrow = optional_module("pyarrow", "parquet")
    suffix = place.suffix.lower() if isinstance(place, Path) else ""
    with as_damage(str(place)):
        try:
            if isinstance(place, Path) and suffix in CSV_SUFFIXES:
                yield CsvReader(place)
            else:
                yield ArrowReader(str(place), mapped) if suffix in ARROW_SUFFIXES else ParquetReader(place)
        except arrow.ArrowMemoryError as error:  # damage may look like a length that no memory holds
            raise ValueError(str(error)) from error


def columns_of(member: str | None) -> tuple[str, ...] | None:
    """Return the column names in `member`, which follows `::`, between commas; None where there are none."""
    return tuple(name.strip() for name in member.split(",")) if member else None


def check_same(columns: Any, expected: Any, path: Place, first: Place) -> None:
    """Refuse a file whose columns, which are said as text, are not the expected ones, those of the first file."""
    if columns != expected:
        raise DataError(f"all files must have the same columns: {path} has {columns}, {first} has {expected}")


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
