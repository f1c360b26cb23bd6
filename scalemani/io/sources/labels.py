"""Labels, one for each point or several by name: from memory, text files, tables and AnnData."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from scalemani.config.limits import check_limit
from scalemani.errors import ConfigError, DataError, StoreError, warn
from scalemani.io.sources.array_files import chosen_member, whole_array
from scalemani.io.sources.base import as_damage, as_opening_errors, optional_module
from scalemani.io.sources.bucket_files import Place
from scalemani.io.sources.label_values import (
    categories_of,
    colours_of_categories,
    values_of,
    values_of_texts,
    with_categories,
    with_missing,
)
from scalemani.io.sources.sliced import missing_chunks
from scalemani.io.sources.stores import check_codecs, h5ad_node, refuse_other_files, zarr_node
from scalemani.io.sources.tables import INDEX, check_there, check_unrepeated, columns_of, opened, table_files

TABLES = ".parquet, .csv with a header, .h5ad and .zarr of AnnData (file.h5ad::obs or file.h5ad::obs/column)"
ANNOTATED = (".h5ad", ".zarr")
OBS, LEGACY = "obs", "__categories"  # the second held the categories of all columns in old files
COLOURS = "uns/{}_colors"  # where scanpy keeps one for each category of a column, in their order
HEXADECIMAL = re.compile(r"#[0-9a-fA-F]{6}")  # what comes after it is an opacity
ALLOWED = f".npy, .npz (file.npz::y), .txt or .csv with one label a line, {TABLES}"


def is_table(path: Path, member: str | None) -> bool:
    """Return whether a file has named columns: a .csv does where it is given a column, or where its first line has."""
    suffix = path.suffix.lower()
    if suffix == ".csv" and path.is_file():
        with as_damage(path), path.open(encoding="utf-8-sig", newline="") as file:
            return member is not None or "," in file.readline()
    return suffix in (".parquet", *ANNOTATED)


def read_columns(path: Path, member: str | None) -> dict[str, np.ndarray]:
    """Return columns (N,) of numbers, strings or objects by name; missing values are NaN or None.

    `member` names columns, separated by commas, or `obs` or `obs/NAME` of an AnnData; None is all of them.
    """
    if not path.exists():
        raise StoreError(f"no file of labels {path}: give one that is there")
    suffix = path.suffix.lower()
    if suffix in ANNOTATED:
        with as_damage(f"{path}::{member or OBS}"):
            return obs_columns(path, member or OBS)
    requested = columns_of(member)
    columns = parquet_columns(path, requested) if suffix == ".parquet" else csv_columns(path, requested)
    if not columns:
        raise DataError(f"{path} has no column of numbers or texts: give a file with one")
    return columns


def check_names(path: Place, requested: Sequence[str] | None, names: Sequence[str]) -> None:
    """Refuse a table without the requested columns, or with two of one name."""
    check_there(path, [name for name in requested or () if name not in names], names)
    check_unrepeated(path, names)


def parquet_columns(path: Path, requested: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Return columns of a Parquet file or of the files of a folder."""
    arrow = optional_module("pyarrow", "parquet")
    tables = []
    for file in table_files(path):
        with opened(file) as reader:
            names = [name for name in reader.schema.names if not name.startswith(INDEX)]
            check_names(file, requested, names)
            tables.append(reader.file.read(columns=list(requested or names)))
    table = arrow.concat_tables(tables)
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        categories: list[Any] = []
        if arrow.types.is_dictionary(column.type):
            if column.type.ordered:
                categories = column.unify_dictionaries().chunk(0).dictionary.to_pylist() if column.num_chunks else []
            column = column.cast(column.type.value_type)
        if not arrow.types.is_nested(column.type):
            columns[name] = with_categories(values_of(column, f"{path}, column {name}"), categories)
        elif requested is not None:  # else it is left out: the coordinates of an embedding, say
            raise DataError(f"{path}, column {name} must hold numbers or texts, got {column.type}")
    return columns


def csv_columns(path: Path, requested: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Return columns of a .csv file whose first line names them."""
    with as_damage(path), path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file, strict=True)
    check_names(path, requested, header)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise DataError(f"{path}, line {number}: {len(header)} values expected, as the header has, got {len(row)}")
    wanted = [(name, position) for position, name in enumerate(header) if requested is None or name in requested]
    return {name: values_of_texts([row[position].strip() for row in rows]) for name, position in wanted}


def obs_columns(path: Path, member: str) -> dict[str, np.ndarray]:
    """Return columns (N,) of `obs` of an AnnData, .h5ad or .zarr: "obs/NAME", or of "obs" all but the index.

    A zarr array is the labels themselves.
    """
    stored = path.suffix.lower() == ".zarr"
    if stored and is_array(root := text_node(path, None)):
        return {path.name: stored_values(root, str(path))}
    node = text_node(path, member) if stored else h5ad_node(path, member)
    if is_array(node) or member != OBS:
        return {member.rpartition("/")[2]: obs_column(node, f"{path}::{member}", path)}
    index = node.attrs.get("_index")
    columns = {}
    for name in sorted(node) if stored else node:
        if name not in (index, LEGACY):
            columns[name] = obs_column(part_of(node, name), f"{path}::{member}/{name}", path)
    if not columns:
        raise DataError(f"{path} has no column in {OBS}: give a file with labels there")
    order = [str(name) for name in node.attrs.get("column-order", ())]
    return {name: columns[name] for name in (*(name for name in order if name in columns), *columns)}


def obs_column(node: Any, where: str, path: Path | None = None) -> np.ndarray:
    """Return one column of h5py or zarr: numbers, texts, categories, or values of which some are masked.

    `path` is that of an AnnData in whose `uns` categories may have colours.
    """
    if is_array(node):
        return stored_values(node, where)
    if {"categories", "codes"} <= set(node):
        codes = stored_values(part_of(node, "codes"), where)
        categories = obs_column(part_of(node, "categories"), where).tolist()
        check_codes(codes, len(categories), where)
        values_by_code = np.array([*categories, None], dtype=object)[codes]  # code -1 is a missing category
        colours = {} if path is None else colours_of(node, path, where.rpartition("/")[2], categories)
        return with_categories(values_by_code, categories, colours)
    if {"values", "mask"} <= set(node):
        values, mask = (stored_values(part_of(node, name), where) for name in ("values", "mask"))
        return with_missing(values, mask.astype(bool))
    raise DataError(f"{where} is no column of numbers, texts or categories: name another")


def text_node(path: Path, member: str | None) -> Any:
    """Return an array or a group of a zarr store, where arrays may hold texts."""
    return zarr_node(str(path), member, texts=True)


def is_array(node: Any) -> bool:
    """Return whether something in an AnnData is an array, and no group."""
    return hasattr(node, "shape")


def part_of(node: Any, name: str) -> Any:
    """Return an array or a group within a group; refuse one with values from another file."""
    if isinstance(node, zarr.Group):
        store: Any = node.store  # on a disk
        return text_node(store.root, f"{node.path}/{name}".strip("/"))
    refuse_other_files(node.file, f"{node.name}/{name}", node.file.filename)
    return node[name]


def stored_values(node: Any, where: str) -> np.ndarray:
    """Return the values of an array (N,) of h5py or zarr; texts as objects."""
    if not is_array(node) or len(node.shape) != 1:
        raise DataError(f"{where} is no column of numbers, texts or categories: name another")
    check_limit("points", node.shape[0], where)
    if isinstance(node, zarr.Array):  # whose writers leave out chunks of zeros, as codes and masks often are
        check_codecs(dict(node.metadata.to_dict()), where, texts=True)
        values = np.asarray(node[...])
        return values.astype(object) if values.dtype.kind == "T" else values
    if remark := missing_chunks(node, where):
        warn(remark)
    h5py = optional_module("h5py", "anndata")
    return np.asarray(node.asstr()[...] if h5py.check_string_dtype(node.dtype) else node[...])


def check_codes(codes: np.ndarray, n_categories: int, where: str) -> None:
    """Refuse codes beyond the categories; -1 is none."""
    if codes.dtype.kind not in "iu" or (codes.size and not -1 <= codes.min() <= codes.max() < n_categories):
        raise DataError(f"{where} has codes beyond its {n_categories} categories: it is damaged, write it again")


def colours_of(node: Any, path: Path, name: str, categories: list[Any]) -> dict[str, str]:
    """Return the colours (#rrggbb) in `uns` of the categories of a column; empty where these have none."""
    place = COLOURS.format(name)
    if isinstance(node, zarr.Group):
        given = part_of(root, place) if place in (root := text_node(path, None)) else None
    else:
        refuse_other_files(node.file, place, path)
        given = node.file.get(place)
    if given is None or not is_array(given) or len(given.shape) != 1:
        return {}
    values = stored_values(given, f"{path}::{place}")
    if values.dtype.kind not in "OU" or len(values) < len(categories):  # of a file that was cut down there may be more
        return {}
    colours = zip(map(str, categories), map(hexadecimal, values.tolist()), strict=False)
    return {category: colour for category, colour in colours if colour}


def hexadecimal(colour: str) -> str | None:
    """Return a colour as #rrggbb, by its name too where Matplotlib is installed; else None."""
    if HEXADECIMAL.match(colour):
        return colour[:7].lower()
    if find_spec("matplotlib") is None:
        return None
    from matplotlib.colors import is_color_like, to_hex

    return to_hex(colour) if is_color_like(colour) else None


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
        if not is_table(Path(name), member or None):
            labels = read_labels(str(location), noun)
            return {Path(location).name: checked_labels(labels, str(location), n_points, noun)}
        named = read_columns(Path(name), member or None)
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
    with as_damage(path):
        stripped = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    for number, line in enumerate(stripped, start=1):
        if not line or "," in line or "\t" in line:
            raise DataError(f"{path}, line {number}: one {noun} a line expected, got {line[:60]!r}")
    return values_of_texts(stripped)
