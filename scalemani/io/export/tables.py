"""Tables that viewers and spreadsheets open: maps of points in Parquet, and rows as text with commas between them."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scalemani.errors import ConfigError
from scalemani.io.export.atomic import replaced_file
from scalemani.io.export.rows import Arrays, block_rows, column_names, write_table
from scalemani.io.sources.base import optional_module
from scalemani.io.sources.categories import categories_of
from scalemani.io.sources.label_values import is_number
from scalemani.io.sources.lazy import LazyRows, lazy_rows

CSV = ".csv"
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # with which spreadsheets begin one, or what they leave out before it
AXES = ("x", "y", "z")
ROW = "row"  # of a .csv, which has no other identifier
NEIGHBORS = "neighbors"  # {"ids": [...], "distances": [...]} in each row, ids being rows of the table


def write_map(
    positions: LazyRows, columns: Mapping[str, np.ndarray], graph: Sequence[LazyRows] | None, target: str
) -> None:
    """Write a Parquet table of points by blocks of rows.

    `positions` (N, 2 or 3) are x, y, z; `columns` are (N,) by name, NaN and empty strings missing; `graph` holds the
    neighbours (N, k), rows of the table, and their distances (N, k).
    """
    arrow = optional_module("pyarrow", "parquet")
    checked_axes(positions, columns, NEIGHBORS)

    def table(start: int, stop: int) -> Any:
        block = dict(zip(AXES, np.ascontiguousarray(positions.read(start, stop).T), strict=False))
        block |= {name: with_missing(arrow, values[start:stop]) for name, values in columns.items()}
        if graph is not None:
            block[NEIGHBORS] = listed_neighbors(arrow, *(part.read(start, stop) for part in graph))
        return arrow.table(block)

    write_table(table, len(positions), min(map(block_rows, (positions, *(graph or ())))), target)


def write_map_csv(
    rows: LazyRows, positions: LazyRows, columns: Mapping[str, np.ndarray], target: str, escaped: bool = False
) -> None:
    """Write a .csv table of points as `write_map` does, with the row (N,) of each among the points given."""
    axes = checked_axes(positions, columns, ROW)
    table = {ROW: rows, **{axis: coordinate(positions, number) for number, axis in enumerate(axes)}}
    write_csv(table | {name: lazy_rows(values, name) for name, values in columns.items()}, target, escaped)


def coordinate(positions: LazyRows, number: int) -> LazyRows:
    """Return one coordinate (N,) of positions (N, d)."""

    def read(start: int, stop: int) -> np.ndarray:
        return positions.read(start, stop)[:, number]

    return LazyRows((len(positions),), positions.dtype, read, f"coordinate {number + 1}", positions.preferred_rows)


def checked_axes(positions: LazyRows, columns: Mapping[str, np.ndarray], further: str) -> Sequence[str]:
    """Return the names of the axes of a map; refuse other dimensions and columns that are called as its own are."""
    n_axes = positions.shape[1]
    if n_axes not in (2, 3):
        raise ConfigError(f"a map has two or three dimensions, this embedding has {n_axes}: export it without a map")
    if taken := [name for name in columns if name in (*AXES[:n_axes], further)]:
        raise ConfigError(f"a column of labels is called {taken[0]!r}, as one of the map is: rename it")
    return AXES[:n_axes]


def with_missing(arrow: Any, values: np.ndarray) -> Any:
    """Return labels (n,) as a column of Arrow; NaN and empty strings are missing, categories with an order keep it."""
    if categories := categories_of(values):
        codes = {name: code for code, name in enumerate(categories)}
        numbers = arrow.array([codes.get(value) for value in values.tolist()], arrow.int32())
        return arrow.DictionaryArray.from_arrays(numbers, arrow.array(categories, arrow.string()), ordered=True)
    missing = np.isnan(values) if values.dtype.kind == "f" else values == "" if values.dtype.kind == "U" else None
    return arrow.array(values, mask=missing)


def listed_neighbors(arrow: Any, indices: np.ndarray, distances: np.ndarray) -> Any:
    """Return neighbours (n, k) and their distances as a column of structs of two lists."""
    bounds = np.arange(0, indices.size + 1, indices.shape[1], dtype=np.int32)
    lists = [arrow.ListArray.from_arrays(bounds, np.ascontiguousarray(part).ravel()) for part in (indices, distances)]
    return arrow.StructArray.from_arrays(lists, ["ids", "distances"])


def write_csv(arrays: Arrays, target: str, escaped: bool = False) -> None:
    """Write arrays (N,) as columns of their names, arrays (N, m) as columns name_1 ... name_m.

    Numbers have as many digits as it takes to read the same ones again; NaN is an empty cell.
    """
    n_rows, step = len(next(iter(arrays.values()))), min(map(block_rows, arrays.values()))
    with replaced_file(target) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        table = csv.writer(text, lineterminator="\n")
        names = [column for name, rows in arrays.items() for column in column_names(name, rows)]
        table.writerow(map(without_formula, names) if escaped else names)
        for start in range(0, n_rows, step):
            row_blocks = (rows.read(start, min(start + step, n_rows)) for rows in arrays.values())
            columns = [cells(column, escaped) for block in row_blocks for column in block.reshape(len(block), -1).T]
            table.writerows(zip(*columns, strict=True))


def cells(values: np.ndarray, escaped: bool) -> list[str]:
    """Return values (n,) as text, numbers as they are."""
    texts = values.astype(str)
    if escaped and values.dtype.kind == "U":
        return list(map(without_formula, texts.tolist()))
    return (np.where(np.isnan(values), "", texts) if values.dtype.kind == "f" else texts).tolist()


def without_formula(text: str) -> str:
    """Return a text as a spreadsheet shows it: one that it would take for a formula behind an apostrophe."""
    return f"'{text}" if text.startswith(FORMULAS) and not is_number(text) else text
