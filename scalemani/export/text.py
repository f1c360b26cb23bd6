"""Rows as text with commas between them, as spreadsheets and R open them: one table, by blocks of rows."""

import csv
import io

import numpy as np

from scalemani.export.atomic import replaced_file
from scalemani.export.several import Arrays, block_rows, column_names

SUFFIX = ".csv"


def write_csv(arrays: Arrays, target: str) -> None:
    """Write arrays (N,) as columns of their names, arrays (N, m) as columns name_1 ... name_m.

    Numbers have as many digits as it takes to read the same ones again; NaN is an empty cell.

    Parameters
    ----------
    arrays : by name, all of N rows
    target : where to; what is there is replaced when all is written
    """
    n_rows, step = len(next(iter(arrays.values()))), min(map(block_rows, arrays.values()))
    with replaced_file(target) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        table = csv.writer(text, lineterminator="\n")
        table.writerow([column for name, rows in arrays.items() for column in column_names(name, rows)])
        for start in range(0, n_rows, step):
            found = (rows.read(start, min(start + step, n_rows)) for rows in arrays.values())
            columns = [cells(column) for block in found for column in block.reshape(len(block), -1).T]
            table.writerows(zip(*columns, strict=True))


def cells(values: np.ndarray) -> list[str]:
    """Return values (n,) as text."""
    texts = values.astype(str)
    return (np.where(np.isnan(values), "", texts) if values.dtype.kind == "f" else texts).tolist()
