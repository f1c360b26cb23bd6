"""A map of points as a table that viewers open as it is: x and y, columns of labels, in Parquet neighbours too."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scalemani.errors import ConfigError
from scalemani.io.export.atomic import replaced_file
from scalemani.io.export.rows import block_rows
from scalemani.io.export.text import write_csv
from scalemani.io.sources.base import optional_module
from scalemani.io.sources.categories import categories_of
from scalemani.io.sources.lazy import LazyRows, lazy_rows

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
    arrow, parquet = optional_module("pyarrow", "parquet"), optional_module("pyarrow.parquet", "parquet")
    checked_axes(positions, columns, NEIGHBORS)
    step = min(map(block_rows, (positions, *(graph or ()))))

    def block(start: int) -> Any:
        stop = min(start + step, len(positions))
        table = dict(zip(AXES, np.ascontiguousarray(positions.read(start, stop).T), strict=False))
        table |= {name: with_missing(arrow, values[start:stop]) for name, values in columns.items()}
        if graph is not None:
            table[NEIGHBORS] = listed_neighbors(arrow, *(part.read(start, stop) for part in graph))
        return arrow.table(table)

    first = block(0)
    with replaced_file(target) as file, parquet.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for start in range(step, len(positions), step):
            writer.write_table(block(start))


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
        found = arrow.array([codes.get(value) for value in values.tolist()], arrow.int32())
        return arrow.DictionaryArray.from_arrays(found, arrow.array(categories, arrow.string()), ordered=True)
    missing = np.isnan(values) if values.dtype.kind == "f" else values == "" if values.dtype.kind == "U" else None
    return arrow.array(values, mask=missing)


def listed_neighbors(arrow: Any, indices: np.ndarray, distances: np.ndarray) -> Any:
    """Return neighbours (n, k) and their distances as a column of structs of two lists."""
    bounds = np.arange(0, indices.size + 1, indices.shape[1], dtype=np.int32)
    lists = [arrow.ListArray.from_arrays(bounds, np.ascontiguousarray(part).ravel()) for part in (indices, distances)]
    return arrow.StructArray.from_arrays(lists, ["ids", "distances"])
