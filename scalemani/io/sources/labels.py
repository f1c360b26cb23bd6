"""Labels, one for each point or several by name: from memory, text files, tables and AnnData."""

import csv
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.config.limits import check_limit
from scalemani.errors import ConfigError, DataError, StoreError, refuse_home, warn
from scalemani.io.sources.array_files import read_array
from scalemani.io.sources.base import as_damage, as_opening_errors, optional_module
from scalemani.io.sources.chunks import missing_chunks
from scalemani.io.sources.csv_files import DELIMITERS
from scalemani.io.sources.label_values import (
    Measured,
    categories_of,
    colours_of_categories,
    values_of,
    values_of_texts,
    with_categories,
    with_missing,
)
from scalemani.io.sources.stores import h5ad_node, open_h5, open_h5ad, open_zarr, zarr_node
from scalemani.io.sources.tables import (
    INDEX,
    ParquetReader,
    check_distinct_names,
    check_names,
    columns_of,
    opened,
    table_files,
)

Columns = dict[str, np.ndarray]  # (N,) each, of numbers, texts or objects; missing values are NaN or None
OBS, LEGACY = "obs", "__categories"  # the second held the categories of all columns in old files
SEPARATORS = {"semicolons": ";", "tabs": "\t"}  # of tables, where commas are signs of fractions
QUOTED = re.compile(r'[ \t]*"([^"]*(?:""[^"]*)*)"[ \t]*(?:\n|\Z)')  # which may hold line breaks, as in a table
BARE = re.compile(r"([^\n]*)(?:\n|\Z)")
GENES = re.compile(r"(X|raw/X|layers/[^/]+)/(.+)")  # columns of a matrix of an AnnData, by their names
BYTES_AT_ONCE = 2**26  # of rows of such a matrix, as they are read
HEXADECIMAL = re.compile(r"#[0-9a-fA-F]{6}")  # what comes after it is an opacity


def parquet_columns(path: Path, member: str | None) -> Columns:
    """Return the columns that `member` names (None: all but those of an index) of a Parquet file or folder."""
    arrow, requested, tables = optional_module("pyarrow", "parquet"), columns_of(member), []
    for file in table_files(path):
        with opened(file) as reader:
            assert isinstance(reader, ParquetReader)
            names = reader.schema.names
            check_names(file, sorted(set(requested or ()) - set(names)), names)
            named = [name for name in names if not name.startswith(INDEX)]
            tables.append(reader.file.read(columns=list(requested or named)))
    return columns_of_table(arrow.concat_tables(tables), str(path), requested)


def columns_of_table(table: Any, where: str, requested: Sequence[str] | None = None) -> Columns:
    """Return the columns of a table of Arrow; nested ones, which only `requested` names may be, are left out."""
    arrow, columns = optional_module("pyarrow", "parquet"), {}
    table = table.unify_dictionaries()
    for name, column in zip(table.column_names, table.columns, strict=True):
        categories: list[Any] = []
        if arrow.types.is_dictionary(column.type):
            if column.type.ordered and column.num_chunks:
                categories = column.chunk(0).dictionary.to_pylist()
            column = column.cast(column.type.value_type)
        if not arrow.types.is_nested(column.type):
            columns[name] = with_categories(values_of(column, f"{where}, column {name}"), categories)
        elif requested is not None:  # else it is left out: the coordinates of an embedding, say
            raise DataError(f"{where}, column {name} must hold numbers or texts, got {column.type}")
    return columns


def columns_of_frame(frame: Any) -> Mapping[str, Any] | None:
    """Return the columns of a frame of pandas or Polars, or of a table of Arrow, by name; None of anything else."""
    where = f"{type(frame).__name__} of labels"
    if hasattr(frame, "isetitem"):  # pandas
        names = list(map(str, frame.columns))
        columns = {name: frame.iloc[:, place] for place, name in enumerate(names)}
    elif hasattr(frame, "get_columns"):  # Polars
        names, columns = list(frame.columns), dict(zip(frame.columns, frame.get_columns(), strict=True))
    elif hasattr(frame, "unify_dictionaries"):
        names, columns = frame.column_names, columns_of_table(frame, where)
    else:
        return None
    check_distinct_names(names, where)
    return columns


def csv_columns(path: Path, member: str | None) -> Columns | np.ndarray:
    """Return columns of a .csv or .tsv whose first line names them, or one label a line where there is one column."""
    requested, delimiter = columns_of(member), DELIMITERS[path.suffix.lower()]
    with path.open(encoding="utf-8-sig", newline="") as file:
        if delimiter == ",":
            refuse_separators(path, file)
            file.seek(0)
        if requested is None and len(next(csv.reader(file, delimiter=delimiter), ())) < 2:
            return lines_of(path, member)
        file.seek(0)
        header, *rows = without_last_empty(list(csv.reader(file, delimiter=delimiter, strict=True)))
    check_names(path, sorted(set(requested or ()) - set(header)), header)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise DataError(f"{path}, line {number}: {len(header)} values expected, as the header has, got {len(row)}")
    return {
        name: values_of_texts([value.strip() for value in column], f"{path}, column {name}")
        for name, column in zip(header, zip(*rows, strict=True), strict=True)
        if requested is None or name in requested
    }


def refuse_separators(path: Path, lines: Iterable[str]) -> None:
    """Refuse lines of a .csv file, the first with its header, which all have as many semicolons or tabs."""
    counts = {tuple(map(line.count, SEPARATORS.values())) for line in lines if line.strip()}
    for place, name in enumerate(SEPARATORS):
        numbers = {count[place] for count in counts}
        if len(numbers) == 1 and 0 not in numbers:
            raise DataError(f"{path} has {name} between its values: write it with commas, and fractions with points")


def without_last_empty(rows: list[list[str]]) -> list[list[str]]:
    """Return rows of values without the empty lines at their end; an empty text in quotes is a row."""
    while rows and (not rows[-1] or (len(rows[-1]) == 1 and rows[-1][0].isspace())):
        rows.pop()
    return rows


def lines_of(path: Path, _: str | None) -> np.ndarray:
    """Return one label a line, without quotes around it; see `values_of_texts`.

    A line ends at a line feed, a carriage return or both, and at no other letter; empty lines at the end are skipped.
    """
    labels, place, text = [], 0, path.read_text(encoding="utf-8-sig").rstrip(" \t\n")
    while place < len(text):
        line = QUOTED.match(text, place) or BARE.match(text, place)
        assert line is not None  # a bare line matches any
        label = line[1].strip()
        if line.re is BARE and (not label or "," in label or "\t" in label):
            number = text.count("\n", 0, place) + 1
            remedy = "" if label else ": write NA where a value is missing, or take the empty line out"
            raise DataError(f"{path}, line {number}: one value a line expected, got {label[:60]!r}{remedy}")
        labels.append(label.replace('""', '"') if line.re is QUOTED else label)
        place = line.end()
    return values_of_texts(labels, str(path))


def obs_columns(path: Path, member: str | None) -> Columns | np.ndarray:
    """Return columns of `obs` of an AnnData, .h5ad or .zarr: "obs/NAME", or of "obs" all but the index.

    Those of a matrix have the names of genes: "X/GENE,GENE", "layers/NAME/GENE". A zarr array is the labels themselves.
    """
    if genes := GENES.fullmatch(member or ""):
        return gene_columns(path, genes[1], genes[2].split(","))
    file, member = Annotated(path), member or OBS
    if is_array(file.root):
        return file.values("")
    node = file.node(member)
    if is_array(node) or member != OBS:
        return {member.rpartition("/")[2]: file.column(member)}
    order = {str(name): place for place, name in enumerate(node.attrs.get("column-order", ()))}
    names = sorted(set(node) - {node.attrs.get("_index"), LEGACY}, key=lambda name: (order.get(name, len(order)), name))
    return {name: file.column(f"{OBS}/{name}") for name in names}


def gene_columns(path: Path, matrix: str, genes: Sequence[str], at_once: int = BYTES_AT_ONCE) -> Columns:
    """Return columns (N,) of a matrix of an AnnData by their names in `var`; so many bytes of rows are read at once."""
    source = open_zarr(str(path), matrix) if path.suffix.lower() == ".zarr" else open_h5ad(path, matrix)
    names = list(map(str, source.column_names))
    for gene in genes:
        if names.count(gene) != 1:
            close = difflib.get_close_matches(gene, names, n=1)
            offer = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names[:5]) or 'no names'} ..."
            problem = "more than one column" if gene in names else "no column"
            raise ConfigError(f"{path}::{matrix} has {problem} {gene!r}: {offer}")
    (n_points, width), places = source.shape, list(map(names.index, genes))
    check_limit("points", n_points, str(path))
    step = max(source.preferred_rows or 1, at_once // (width * source.dtype.itemsize))
    read = source.read if source.nonzeros is None else source.read_sparse
    blocks = [read(start, min(start + step, n_points))[:, places] for start in range(0, n_points, step)]
    if source.remark:
        warn(source.remark)
    columns = sp.vstack(blocks).toarray() if source.nonzeros is not None else np.vstack(blocks)
    return dict(zip(genes, np.ascontiguousarray(columns.T).view(Measured), strict=True))


class Annotated:
    """An AnnData on this machine, .h5ad or .zarr, whose arrays and groups are opened by their paths in it.

    So each is checked to take nothing from another file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.in_zarr = path, path.suffix.lower() == ".zarr"
        self.root = zarr_node(str(path), None) if self.in_zarr else open_h5(path)

    def node(self, member: str) -> Any:
        """Return an array or a group; that of no name is all of a zarr store."""
        return zarr_node(str(self.path), member or None) if self.in_zarr else h5ad_node(self.path, member)

    def column(self, member: str) -> np.ndarray:
        """Return one column: numbers, texts, categories, or values of which some are masked."""
        node = self.node(member)
        parts = set() if is_array(node) else set(node)
        if {"categories", "codes"} <= parts:
            codes, categories = self.values(f"{member}/codes"), self.column(f"{member}/categories").tolist()
            if codes.dtype.kind not in "iu" or (codes.size and not -1 <= codes.min() <= codes.max() < len(categories)):
                raise DataError(
                    f"{self.path}::{member} has codes beyond its {len(categories)} categories: it is damaged, write it "
                    "again"
                )
            values_by_code = np.array([*categories, None], dtype=object)[codes]  # code -1 is a missing category
            return with_categories(values_by_code, categories, self.colours(member.rpartition("/")[2], categories))
        if {"values", "mask"} <= parts:
            return with_missing(self.values(f"{member}/values"), self.values(f"{member}/mask").astype(bool))
        return self.values(member)

    def colours(self, name: str, categories: Sequence[Any]) -> dict[str, str]:
        """Return the colours (#rrggbb) of the categories of a column, which scanpy keeps in their order; or none."""
        place = f"uns/{name}_colors"
        if place not in self.root or len(getattr(self.node(place), "shape", ())) != 1:
            return {}
        values = self.values(place)
        if values.dtype.kind not in "OU" or len(values) < len(categories):  # of a file cut down there may be more
            return {}
        colours = zip(map(str, categories), map(hexadecimal, values.tolist()), strict=False)
        return {category: colour for category, colour in colours if colour}

    def values(self, member: str) -> np.ndarray:
        """Return an array (N,) of numbers, or of texts as objects; DataError for what has other dimensions."""
        node, where = self.node(member), f"{self.path}::{member}"
        if len(getattr(node, "shape", ())) != 1:
            raise DataError(f"{where} is no column of numbers, texts or categories: name another")
        check_limit("points", node.shape[0], where)
        if self.in_zarr:  # whose writers leave out chunks of zeros, as codes and masks often are
            values = np.asarray(node[...])
            return values.astype(object) if values.dtype.kind == "T" else values
        if remark := missing_chunks(node, where):
            warn(remark)
        h5py = optional_module("h5py", "anndata")
        return np.asarray(node.asstr()[...] if h5py.check_string_dtype(node.dtype) else node[...])


def is_array(node: Any) -> bool:
    """Return whether a node of an AnnData has a shape, as arrays have and groups have not."""
    return hasattr(node, "shape")


def hexadecimal(colour: str) -> str | None:
    """Return a colour as #rrggbb, by its name too where Matplotlib is installed; else None."""
    if HEXADECIMAL.match(colour):
        return colour[:7].lower()
    if find_spec("matplotlib") is None:
        return None
    from matplotlib.colors import is_color_like, to_hex

    return to_hex(colour) if is_color_like(colour) else None


# What reads a file, by its suffix: columns by name, or the only one.
READERS: Mapping[str, Callable[[Path, str | None], Columns | np.ndarray]] = {
    ".npy": read_array,
    ".npz": read_array,
    ".txt": lines_of,
    ".csv": csv_columns,
    ".tsv": csv_columns,
    ".parquet": parquet_columns,
    ".h5ad": obs_columns,
    ".zarr": obs_columns,
}
FOLDERS = (".parquet", ".zarr")  # that may be folders
ALLOWED = (
    ".npy, .npz (file.npz::y), .txt or .csv with one label a line, .parquet, .csv or .tsv with a header, .h5ad and "
    ".zarr of AnnData (file.h5ad::obs, file.h5ad::obs/column or file.h5ad::X/gene)"
)


def open_labels(labels: Any, n_points: int | None = None, noun: str = "label") -> np.ndarray:
    """Return labels as a 1-D array of integers, floats or strings; missing ones are NaN or empty strings.

    Texts that are categories with an order or colours keep these: see `OrderedLabels`. Labels that differ
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
        file = str(labels).partition("::")[0]
        group = f"{OBS}/" if READERS[Path(file).suffix.lower()] is obs_columns else ""
        raise ConfigError(f"{labels} has {len(named)} columns: say which, as in {file}::{group}{next(iter(named))}")
    return next(iter(named.values()))


def open_columns(location: str | Path, n_points: int | None = None, noun: str = "label") -> Columns:
    """Return all labels in a file by name, each as `open_labels` gives them; without a name, that of the file.

    After `::` come columns separated by commas, a member of an archive, or `obs`, `obs/NAME`, `X/GENE` or
    `layers/NAME/GENE` of an AnnData; without it, all columns are read.
    """
    name, _, member = str(location).partition("::")
    refuse_home(name)
    path, suffix = Path(name), Path(name).suffix.lower()
    if suffix not in READERS:
        others = ", or the folder of a run: its clusters" if noun == "label" else ""
        raise ConfigError(f"{noun}s in {name} cannot be read; allowed: {ALLOWED}{others}")
    with as_opening_errors(name):
        if not path.is_file() and not (path.is_dir() and suffix in FOLDERS):
            raise StoreError(
                f"no file of {noun}s {name}: " + ("it is a directory" if path.is_dir() else "nothing is there")
            )
        with as_damage(name):
            columns = READERS[suffix](path, member or None)
    if isinstance(columns, np.ndarray):
        return {printable_name(Path(location).name): checked_labels(columns, str(location), n_points, noun)}
    if not columns:
        raise DataError(f"{location} has no column of numbers or texts: give a file with one")
    return {key: checked_labels(values, f"{location}, column {key}", n_points, noun) for key, values in columns.items()}


def printable_name(name: str) -> str:
    """Return the name of a file as UTF-8 can hold it, which no name of a file need be."""
    return name.encode(errors="backslashreplace").decode()


def named_labels(labels: Any, n_points: int) -> Columns:
    """Return labels (N,) each by their names: those of the mapping or frame, of their files, or by their numbers."""
    collected: Columns = {}
    for number, source in enumerate(labels if isinstance(labels, list | tuple) else [labels], start=1):
        for name, values in columns_by_name(source, f"labels {number}", n_points).items():
            collected[name if name not in collected else f"{name} ({number})"] = values
    return collected


def columns_by_name(source: Any, name: str, n_points: int) -> Columns:
    """Return labels (N,) by the names of a mapping, of the columns of a frame or a file; an array has `name`."""
    if isinstance(source, str | Path):
        return open_columns(source, n_points)
    if isinstance(source, Mapping):
        return {str(key): open_labels(values, n_points) for key, values in source.items()}
    columns = columns_of_frame(source)
    if columns is None:
        return {name: open_labels(source, n_points)}
    if not columns:
        raise DataError(f"{type(source).__name__} of labels has no column of numbers or texts: give one with some")
    return {key: checked_labels(values, f"column {key}", n_points, "label") for key, values in columns.items()}


def chosen_labels(labels: Any, n_points: int, choose: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Return what `choose` returns for one set of labels (N,), or for several by name; None for none."""
    if isinstance(labels, Mapping) or columns_of_frame(labels) is not None:
        return {name: choose(values) for name, values in columns_by_name(labels, "", n_points).items()}
    return None if labels is None else choose(open_labels(labels, n_points))


def checked_labels(labels: Any, where: str, n_points: int | None, noun: str) -> np.ndarray:
    """Return labels (N,) of one kind, or raise DataError."""
    categories, colours = categories_of(labels), colours_of_categories(labels)
    measured = isinstance(labels, Measured) or sp.issparse(labels)  # a column of counts, most of which are zero
    values = values_of(labels.toarray() if sp.issparse(labels) and 1 in labels.shape else labels, where)
    if values.ndim == 2 and 1 in values.shape:
        values = values.ravel()
    if values.ndim != 1:
        raise DataError(f"{where} must have one {noun} a point, got an array of shape {np.shape(labels)}")
    if values.dtype.kind not in "biufUS":
        raise DataError(f"{where} must be numbers or strings, got dtype {values.dtype}")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "backslashreplace")  # no letter stands for several others
    if n_points is not None and len(values) != n_points:
        header = "; is the first a header? Then name the column: file.csv::kind"
        raise DataError(
            f"{where} has {len(values)} {noun}s for {n_points} points: give one a point, in the points' order"
            + (header if len(values) == n_points + 1 and values.dtype.kind == "U" else "")
        )
    return values.view(Measured) if measured else with_categories(values, categories, colours)
