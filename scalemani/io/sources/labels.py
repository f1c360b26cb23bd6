"""One label for each point, from a file or from memory."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources import columns
from scalemani.io.sources.base import as_opening_errors
from scalemani.io.sources.categories import categories_of, colours_of_categories, with_categories
from scalemani.io.sources.label_values import values_of, values_of_texts
from scalemani.io.sources.numpy_files import chosen_member, whole_array

ALLOWED = f".npy, .npz (file.npz::y), .txt or .csv with one label a line, {columns.ALLOWED}"


def open_labels(labels: Any, n_points: int | None = None, noun: str = "label") -> np.ndarray:
    """Return labels as a 1-D array of integers, floats or strings; missing ones are NaN or empty strings.

    Texts that are categories with an order or colours of their own keep these: see `OrderedLabels`. Labels that differ
    stay different: `001`, `01` and `1` of a text are three, and lists of several types become texts; `nan` in a text is
    missing.

    Parameters
    ----------
    labels : array-like (N,), or the path of an .npy file, an .npz member (`file.npz::y`; the only 1-D array if none is
        named), a text file with one label a line, or one column of a table (`file.parquet::y`, `file.csv::y`,
        `file.h5ad::obs/y`)

    Raises
    ------
    ConfigError, StoreError, DataError
        For a file of another kind, no file, and content that is not one label a point.
    """
    if not isinstance(labels, str | Path):
        return checked_labels(labels, f"{noun}s", n_points, noun)
    named = open_columns(labels, n_points, noun)
    if len(named) > 1:
        raise ConfigError(f"{labels} has {len(named)} columns: say which, as in {labels}::{next(iter(named))}")
    return next(iter(named.values()))


def open_columns(location: str | Path, n_points: int | None = None, noun: str = "label") -> dict[str, np.ndarray]:
    """Return all labels in a file by name, each as `open_labels` gives them; without a name, that of the file."""
    name, _, member = str(location).partition("::")
    with as_opening_errors(name):
        if not columns.is_table(Path(name), member or None):
            labels = read_labels(str(location), noun)
            return {Path(location).name: checked_labels(labels, str(location), n_points, noun)}
        named = columns.read_columns(Path(name), member or None)
    return {key: checked_labels(values, f"{location}, column {key}", n_points, noun) for key, values in named.items()}


def named_labels(labels: Any, n_points: int) -> dict[str, np.ndarray]:
    """Return labels (N,) each by their names: those they are given under, of their files, or by their numbers."""
    if isinstance(labels, Mapping):
        return {str(name): open_labels(given, n_points) for name, given in labels.items()}
    listed = labels if isinstance(labels, list | tuple) else [labels]
    collected: dict[str, np.ndarray] = {}
    for number, given in enumerate(listed, start=1):
        named = {f"labels {number}": given}
        if isinstance(given, str | Path):
            named = open_columns(given, n_points)
        for name, values in named.items():
            collected[name if name not in collected else f"{name} ({number})"] = open_labels(values, n_points)
    return collected


def chosen_labels(labels: Any, n_points: int, choose: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Return what `choose` returns for one set of labels (N,), or for several by name; None for none."""
    if isinstance(labels, Mapping):
        return {str(name): choose(open_labels(given, n_points)) for name, given in labels.items()}
    return None if labels is None else choose(open_labels(labels, n_points))


def checked_labels(labels: Any, where: str, n_points: int | None, noun: str) -> np.ndarray:
    """Return labels (N,) of one kind, or raise DataError."""
    categories, colours = categories_of(labels), colours_of_categories(labels)
    values = values_of(labels, where)
    if values.ndim == 2 and 1 in values.shape:
        values = values.ravel()
    if values.ndim != 1:
        raise DataError(f"{where} must have one {noun} a point, got an array of shape {values.shape}")
    if values.dtype.kind not in "biufUS":
        raise DataError(f"{where} must be numbers or strings, got dtype {values.dtype}")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "backslashreplace")  # no letter stands for several others
    if n_points is not None and len(values) != n_points:
        raise DataError(
            f"{where} has {len(values)} {noun}s for {n_points} points: give one a point, in the points' order"
            + ("; is the first a header?" if len(values) == n_points + 1 and values.dtype.kind == "U" else "")
        )
    return with_categories(values, categories, colours)


def read_labels(location: str, noun: str) -> np.ndarray:
    """Read the labels in a file, or what else there is one of a point."""
    name, _, member = location.partition("::")
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".npz", ".txt", ".csv"):
        raise ConfigError(f"{noun}s in {name} cannot be read; allowed: {ALLOWED}")
    if not path.is_file():
        raise StoreError(
            f"no file of {noun}s {name}: " + ("it is a directory" if path.is_dir() else "nothing is there")
        )
    if suffix in (".txt", ".csv"):
        return text_labels(path, noun)
    if suffix == ".npz":
        return whole_array(path, chosen_member(path, member or None, dimensions=(1,)))
    return whole_array(path)


def text_labels(path: Path, noun: str) -> np.ndarray:
    """Read one label a line; see `values_of_texts`."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error}") from error
    stripped = [line.strip() for line in lines]
    for number, line in enumerate(stripped, start=1):
        if not line or "," in line or "\t" in line:
            raise DataError(f"{path}, line {number}: one {noun} a line expected, got {line[:60]!r}")
    return values_of_texts(stripped)
