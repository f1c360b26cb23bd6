"""Points in text: columns of .csv and .tsv files, read by blocks as tables of Arrow."""

import csv
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scalemani.errors import DataError
from scalemani.io.sources.base import CSV_SUFFIXES, optional_module

DELIMITERS = dict(zip(CSV_SUFFIXES, (",", "\t"), strict=True))
OTHER_SEPARATORS = {"semicolons": ";", "tabs": "\t"}  # of tables, where commas are signs of fractions
BLOCK_BYTES = 2**20  # of text that is read at once
ROWS_A_BLOCK = 8  # at least, by the longest of the first lines
COPIES_OF_TEXT = 4  # as read, cut at lines, parsed, and as columns


class CsvReader:
    """A .csv or .tsv file as one part; a first pass counts its rows, and says which columns are integers."""

    def __init__(self, path: Path) -> None:
        self.path, state = path, path.stat()
        self.schema, self.n_rows = surveyed(path, state.st_size, state.st_mtime_ns)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield the rows of the only part, and about how many bytes are held while it is read."""
        yield self.n_rows, COPIES_OF_TEXT * block_bytes(self.path)

    def batches(self, _: int, names: list[str], n_rows: int) -> Iterator[Any]:
        """Yield the record batches of the file, cut to at most so many rows."""
        types = {name: self.schema.field(name).type for name in names}
        with streamed(self.path, types, names) as stream:
            for batch in stream:
                yield from (batch.slice(start, n_rows) for start in range(0, len(batch), n_rows))


def block_bytes(path: Path) -> int:
    """Return the bytes of text that are read at once: a megabyte, or more where lines are long."""
    with path.open("rb") as file:
        return max(BLOCK_BYTES, ROWS_A_BLOCK * max(len(file.readline()), len(file.readline())))


@functools.lru_cache(maxsize=64)
def surveyed(path: Path, _size: int, _changed: int) -> tuple[Any, int]:
    """Return the schema of a file of this size and time of change, and its number of rows, by a pass over all of it.

    A column that begins with integers or gaps and has fractions later is one of fractions.
    """
    arrow = optional_module("pyarrow", "parquet")
    with streamed(path, {}) as stream:
        schema = stream.schema
    whole = {field.name: arrow.float64() for field in schema if field.type in (arrow.int64(), arrow.null())}
    for types in ({}, whole):
        try:
            with streamed(path, types) as stream:
                return stream.schema, sum(map(len, stream))
        except arrow.ArrowInvalid as error:
            message = str(error)
    raise DataError(f"{path} has values that are not of the type of its first rows: {message}")


def streamed(path: Path, types: dict[str, Any], names: Iterable[str] = ()) -> Any:
    """Return the stream of record batches of a file with columns of these types, or only those of some names."""
    arrow_csv = optional_module("pyarrow.csv", "parquet")
    first, delimiter = first_line(path), DELIMITERS[path.suffix.lower()]
    return arrow_csv.open_csv(
        path,
        arrow_csv.ReadOptions(
            use_threads=False, block_size=block_bytes(path), autogenerate_column_names=all(map(is_number, first))
        ),
        arrow_csv.ParseOptions(delimiter=delimiter),
        arrow_csv.ConvertOptions(column_types=types, include_columns=list(names) or None, strings_can_be_null=True),
    )


def first_line(path: Path) -> list[str]:
    """Return the values of the first line; refuse a file with another separator, whose columns would be one."""
    delimiter = DELIMITERS[path.suffix.lower()]
    with path.open(encoding="utf-8-sig", newline="") as file:
        line = file.readline()
    if not line.strip():
        raise DataError(f"{path} has no first line: it must name the columns or have their first values")
    other = next((name for name, sign in OTHER_SEPARATORS.items() if sign in line), None)
    if delimiter not in line and other is not None:
        raise DataError(f"{path} has {other} between its values: write it with commas, and fractions with points")
    return next(csv.reader([line], delimiter=delimiter))


def is_number(text: str) -> bool:
    """Return whether a value of a first line is a number, and no name of a column."""
    try:
        float(text)
    except ValueError:
        return False
    return True
