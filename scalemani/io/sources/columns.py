"""Named columns of labels and values, as tables hold them: Parquet, .csv with a header, `obs` of an AnnData."""

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources.arrow import INDEX
from scalemani.io.sources.base import optional_module
from scalemani.io.sources.categories import with_categories
from scalemani.io.sources.label_values import values_of, values_of_texts
from scalemani.io.sources.obs import OBS, obs_columns
from scalemani.io.sources.tables import Place, columns_of, opened, table_files

ALLOWED = ".parquet, .csv with a header, .h5ad and .zarr of AnnData (file.h5ad::obs or file.h5ad::obs/column)"
ANNOTATED = (".h5ad", ".zarr")


def is_table(path: Path, member: str | None) -> bool:
    """Return whether a file has named columns: a .csv does where it is asked for one, or where its first line has."""
    suffix = path.suffix.lower()
    if suffix == ".csv" and path.is_file():
        return member is not None or "," in first_line(path)
    return suffix in (".parquet", *ANNOTATED)


def read_columns(path: Path, member: str | None) -> dict[str, np.ndarray]:
    """Return columns (N,) of numbers, strings or objects by name; missing values are NaN or None.

    `member` names columns, separated by commas, or `obs` or `obs/NAME` of an AnnData; None is all of them.
    """
    if not path.exists():
        raise StoreError(f"no file of labels {path}: give one that is there")
    suffix = path.suffix.lower()
    if suffix in ANNOTATED:
        return obs_columns(path, member or OBS)
    asked = columns_of(member)
    found = parquet_columns(path, asked) if suffix == ".parquet" else csv_columns(path, asked)
    if not found:
        raise DataError(f"{path} has no column of numbers or texts: give a file with one")
    return found


def check_names(path: Place, asked: Sequence[str] | None, there: Sequence[str]) -> None:
    """Refuse columns that are not there."""
    if missing := [name for name in asked or () if name not in there]:
        raise ConfigError(f"{path} has no column {', '.join(missing)}; it has {', '.join(there)}")


def check_distinct(path: Place, names: Sequence[str]) -> None:
    """Refuse a table with a name twice, of which one column would take the place of the other."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise DataError(f"{path} has more than one column {', '.join(repeated[:5])}: give each a name of its own")


def parquet_columns(path: Path, asked: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Return columns of a Parquet file or of the files of a folder."""
    arrow = optional_module("pyarrow", "parquet")
    tables = []
    for file in table_files(path):
        with opened(file) as reader:
            names = [name for name in reader.schema.names if not name.startswith(INDEX)]
            check_names(file, asked, names)
            check_distinct(file, names)
            tables.append(reader.file.read(columns=list(asked or names)))
    table = arrow.concat_tables(tables)
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        categories: list[Any] = []
        if arrow.types.is_dictionary(column.type):
            if column.type.ordered:
                categories = column.unify_dictionaries().chunk(0).dictionary.to_pylist() if column.num_chunks else []
            column = column.cast(column.type.value_type)
        if not arrow.types.is_nested(column.type):
            found[name] = with_categories(values_of(column, f"{path}, column {name}"), categories)
        elif asked is not None:  # else it is left out: the coordinates of an embedding, say
            raise DataError(f"{path}, column {name} must hold numbers or texts, got {column.type}")
    return found


def first_line(path: Path) -> str:
    """Return the first line of a text."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.readline()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error}") from error


def csv_columns(path: Path, asked: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Return columns of a .csv file whose first line names them."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file, strict=True)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is no UTF-8 text of comma-separated values: {error}") from error
    check_names(path, asked, header)
    check_distinct(path, header)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise DataError(f"{path}, line {number}: {len(header)} values expected, as the header has, got {len(row)}")
    wanted = [(name, position) for position, name in enumerate(header) if asked is None or name in asked]
    return {name: values_of_texts([row[position].strip() for row in rows]) for name, position in wanted}
