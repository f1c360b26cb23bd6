"""Rows as text with commas between them, as spreadsheets and R open them: one table, by blocks of rows."""

import csv
import io

import numpy as np

from scalemani.io.export.atomic import replaced_file
from scalemani.io.export.rows import Arrays, block_rows, column_names
from scalemani.io.sources.label_values import is_number

SUFFIX = ".csv"
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # with which spreadsheets begin one, or what they leave out before it


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
            found = (rows.read(start, min(start + step, n_rows)) for rows in arrays.values())
            columns = [cells(column, escaped) for block in found for column in block.reshape(len(block), -1).T]
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
