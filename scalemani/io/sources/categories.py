"""Columns of categories, texts or numbers, as bits: of which the Hamming distance counts the columns that differ."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.errors import DataError
from scalemani.io.sources.label_values import is_absent
from scalemani.io.sources.labels import OBS, open_columns, open_labels

TABLE_SUFFIXES = (".parquet", ".csv")


def open_categories(given: Any) -> sp.csr_matrix | None:
    """Return columns of categories as sparse bits (N, C), one for each value of each column; None for other points.

    Parameters
    ----------
    given : a frame, a table of Arrow, one column, a table (N, D) of texts, or columns of a file:
        `file.parquet::job,city`, `file.csv::job` or `file.h5ad::obs/job`

    Raises
    ------
    DataError
        For values that are missing, and columns that hold other things than numbers and texts.
    """
    columns = columns_of_categories(given)
    if columns is None:
        return None
    parts = []
    for name, column in columns.items():
        values = open_labels(column)
        if (absent := np.flatnonzero(is_absent(values))).size:
            raise DataError(
                f"column {name} has no category in {len(absent)} rows, the first row {absent[0]}: fill it in, or leave "
                "out the rows or the column"
            )
        codes = np.unique(values, return_inverse=True)[1]
        parts.append(sp.csr_matrix((np.ones(len(codes)), codes, np.arange(len(codes) + 1))))
    return sp.csr_matrix(sp.hstack(parts, format="csr"))


def columns_of_categories(given: Any) -> Mapping[Any, Any] | None:
    """Return columns (N,) by name or number; None for points that are no such columns."""
    if isinstance(given, str | Path):
        name, _, member = str(given).partition("::")
        stored = Path(name).suffix.lower() in TABLE_SUFFIXES or member.split("/")[0] == OBS
        return open_columns(given) if stored else None
    names = getattr(given, "column_names", getattr(given, "columns", None))  # of Arrow; of pandas and polars
    if names is not None:
        return {name: given[name] for name in names}
    if len(getattr(given, "shape", ())) == 1:
        return {getattr(given, "name", None) or "0": given}
    of_texts = isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype.kind in "OSU"
    return dict(enumerate(given.T)) if of_texts else None
