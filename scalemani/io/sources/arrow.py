"""Tables of Arrow as points: which of their columns, a number a column or one column of lists, and their rows."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.config.validation import N_REPORTED_ROWS, check_exact, check_shape
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources.base import Source, optional_module

INDEX = "__index_level_"  # what the names of columns begin with that pandas has stored its index in


@dataclass(frozen=True)
class PointColumns:
    """The columns of a table that are coordinates, and the dtype that holds all of them.

    `lists` says that there is one, which holds a list of coordinates in each row; `width` is the length of these where
    the type of the column tells it.
    """

    names: tuple[str, ...]
    dtype: np.dtype
    lists: bool = False
    width: int | None = None

    def rows(self, batch: Any, where: str, first_row: int = 0, width: int | None = None) -> np.ndarray:
        """Return the coordinates (n, D) of a record batch; refuse missing values and lists of different lengths."""
        columns = [batch.column(name) for name in self.names]
        if self.lists:
            return listed_rows(columns[0], self.names[0], where, first_row, width)
        missing = [
            f"{name} ({column.null_count})"
            for name, column in zip(self.names, columns, strict=True)
            if column.null_count
        ]
        if missing:
            raise DataError(f"{where} has missing values in {', '.join(missing[:5])}: fill them or remove their rows")
        values = [column.to_numpy(zero_copy_only=False) for column in columns]
        for name, column in zip(self.names, values, strict=True):  # before they become one type
            if column.dtype.kind in "iu":
                check_exact(column[:, np.newaxis], first_row, where, (name,))
        return np.column_stack(values)


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


def point_columns(schema: Any, requested: tuple[str, ...] | None, where: str) -> PointColumns:
    """Return the columns of a table that are coordinates.

    `requested` are names, with * for any letters; by default the only column of lists of numbers, else all columns.
    """
    requested = None if requested is None else matched_columns(schema.names, requested, where)
    repeated = sorted(name for name, count in Counter(schema.names).items() if count > 1)
    if repeated:
        raise DataError(f"{where} has more than one column {', '.join(repeated[:5])}: give each a name of its own")
    names = requested or tuple(name for name in schema.names if not name.startswith(INDEX))
    lists = [name for name in names if list_type(schema.field(name).type) is not None]
    if lists:
        if len(lists) > 1 or (requested is not None and len(requested) > 1):
            raise DataError(
                f"{where} has columns of lists {', '.join(lists)}: one of these is taken at a time, name it as in "
                f"FILE::{lists[0]}"
            )
        kind = list_type(schema.field(lists[0]).type)
        width = getattr(kind, "list_size", None)
        return PointColumns((lists[0],), number_dtype(kind.value_type), True, width)
    kinds = {name: schema.field(name).type for name in names}
    others = [f"{name} ({kind})" for name, kind in kinds.items() if not is_number(kind)]
    if others:
        raise DataError(
            f"{where} has columns that are no numbers: {', '.join(others[:5])}; choose columns as in FILE::x,y,z or "
            "FILE::x*, or leave these out"
        )
    return PointColumns(names, np.result_type(*map(number_dtype, kinds.values())) if kinds else np.dtype(np.float64))


def matched_columns(names: list[str], requested: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Return the requested columns; those of a pattern, with * for any letters, in the order of the table."""
    matched: list[str] = []
    missing = []
    existing, chosen = set(names), set()
    for one in requested:
        if one in existing or "*" not in one:
            fitting = [one] if one in existing else []
        else:
            pattern = re.compile(".*".join(map(re.escape, one.split("*"))), re.DOTALL)
            fitting = [name for name in names if pattern.fullmatch(name)]
        missing += [] if fitting else [one]
        matched += [name for name in fitting if name not in chosen or name == one]
        chosen.update(fitting)
    if missing:
        raise ConfigError(f"{where} has no column {', '.join(missing)}; it has {', '.join(names)}")
    return tuple(matched)


def list_type(kind: Any) -> Any:
    """Return the type of a column of lists of numbers, that below an extension such as a tensor's; None of others."""
    arrow = optional_module("pyarrow", "parquet")
    kind = getattr(kind, "storage_type", kind)
    lists = (arrow.types.is_list, arrow.types.is_large_list, arrow.types.is_fixed_size_list)
    return kind if any(test(kind) for test in lists) and is_number(kind.value_type) else None


def is_number(kind: Any) -> bool:
    """Return whether a type of Arrow is one of real numbers or of truth values."""
    return re.fullmatch(r"u?int\d+|bool|halffloat|float|double", str(kind)) is not None


def number_dtype(kind: Any) -> np.dtype:
    """Return the dtype of a type of numbers."""
    return np.dtype({"halffloat": "f2", "float": "f4", "double": "f8"}.get(str(kind), str(kind)))


def listed_rows(column: Any, name: str, where: str, first_row: int, width: int | None) -> np.ndarray:
    """Return a column of lists of `width` numbers, by default as many as in the first row, as a table (n, D)."""
    column = getattr(column, "storage", column)
    compute = optional_module("pyarrow.compute", "parquet")
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    width = int(lengths[0]) if width is None and len(lengths) and not column.null_count else width
    wrong = np.flatnonzero(lengths != width)  # of a missing list the length is NaN
    if len(wrong):
        listed = ", ".join(str(first_row + row) for row in wrong[:N_REPORTED_ROWS])
        raise DataError(
            f"column {name} of {where} must have {width or 'as many'} numbers in every row, and has not in "
            f"{len(wrong)} of rows [{first_row}, {first_row + len(lengths)}), the first of them row {listed}: fill or "
            "remove these rows"
        )
    values = column.flatten()
    if values.null_count:
        row = first_row + int(np.flatnonzero(values.is_null())[0]) // int(width or 1)
        raise DataError(
            f"column {name} of {where} has {values.null_count} missing values, the first in row {row}: fill them or "
            "remove their rows"
        )
    rows = values.to_numpy(zero_copy_only=False).reshape(len(lengths), int(width or 0))
    check_exact(rows, first_row, f"column {name} of {where}")
    return rows
