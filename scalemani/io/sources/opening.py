"""From what a user passes as points to the source that reads it."""

import importlib.util
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import zarr
from scipy import sparse

from scalemani.config.validation import (
    check_exact_columns,
    check_points,
    check_shape,
    unmasked,
)
from scalemani.errors import ConfigError, DataError, StoreError, refuse_credentials, refuse_home, refuse_nul
from scalemani.io.sources.array_files import ArrayPoints, NpyParts, NpyPoints, chosen_member, npz_members, open_npz
from scalemani.io.sources.base import (
    ARROW_SUFFIXES,
    CSV_SUFFIXES,
    HDF5_SUFFIXES,
    PARQUET_SUFFIXES,
    MetricPoints,
    PointsSource,
    Source,
    as_opening_errors,
    check_file,
    check_rows,
    optional_module,
    without_credentials,
)
from scalemani.io.sources.bucket_files import BucketFile, Place
from scalemani.io.sources.chunks import is_dataset
from scalemani.io.sources.columns import in_order_of, names_of, names_of_var
from scalemani.io.sources.lazy import DaskPoints, is_dask_array, open_dask_frame
from scalemani.io.sources.sliced import SlicedPoints, is_sliced, sparse_file, sparse_group, sparse_matrix
from scalemani.io.sources.stores import COMPONENTS, WHOLE, dataset_points, open_h5ad, open_zarr, zarr_points
from scalemani.io.sources.tables import (
    ArrowTable,
    TableFiles,
    check_distinct_names,
    columns_of,
    is_arrow_folder,
    with_numbers,
)
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS, map_rows
from scalemani.store.buckets import SCHEMES
from scalemani.store.places import remark_on

ANNOTATED_SUFFIXES = (".h5ad", ".zarr")
ALLOWED = (
    ".npy (file or directory), .npz (file.npz::X), a zarr array (path or URL), .parquet (file or directory), "
    ".csv and .tsv, .arrow (file or data set of Hugging Face), .h5ad (file.h5ad::obsm/X_pca), a scipy sparse .npz"
)
BUCKET_SUFFIXES = (".npy", *PARQUET_SUFFIXES, *HDF5_SUFFIXES)  # of which rows are read without all of a file
FILE_SUFFIXES = (*BUCKET_SUFFIXES, ".npz", *ARROW_SUFFIXES, *CSV_SUFFIXES)
ZARR_MARKERS = ("zarr.json", ".zarray", ".zgroup")


def take_vectors(points: Any, gaps: bool = False) -> Any:
    """Return the table (N, D) of a column of N vectors in memory, of one length; anything else as it is."""
    if not is_column_of_objects(points):
        return points
    rows = list(np.asarray(points))
    if not rows or not all(isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim) for row in rows):
        return points
    description = f"{type(points).__name__} in memory"
    lengths = np.array([len(row) for row in rows])
    if (lengths != lengths[0]).any():
        row = int(np.argmax(lengths != lengths[0]))
        raise DataError(
            f"{description} is a column of vectors of different lengths: {lengths[0]} numbers in row 0, {lengths[row]} "
            f"in row {row}. Give vectors of one length"
        )
    rows = unmasked(rows, description, gaps)
    try:
        table = np.array(rows)
    except ValueError as error:
        raise DataError(
            f"{description} is a column of vectors that form no table ({error}): give vectors of one length"
        ) from error
    check_exact_columns(rows, table, description)
    return table


def is_column_of_objects(points: Any) -> bool:
    """Return whether points are one column of Python objects, of NumPy or pandas; Dask's are not in memory."""
    in_memory = isinstance(points, np.ndarray) or (hasattr(points, "iloc") and not hasattr(points, "dask"))
    return in_memory and getattr(points, "ndim", None) == 1 and points.dtype == object


def take_representation(points: Any, use_rep: str | None = None, gaps: bool = False) -> Any:
    """Return the matrix of an AnnData, the table of a column of vectors, or anything else as it is.

    `use_rep` is "X" or a name in `obsm`; by default "X_pca" where there is one, else "X". NumPy must not see an
    AnnData: it takes one for nested sequences and does not return. Columns of a frame may have `gaps`, which are then
    NaN.
    """
    if isinstance(points, str | Path):
        return stored_representation(points, use_rep)
    if is_frame(points):
        check_distinct_names(points.columns, f"{type(points).__name__} in memory")
        if len(points.columns) and all(hasattr(dtype, "fill_value") for dtype in points.dtypes):
            return sparse_frame(points)
        return with_numbers(points, f"{type(points).__name__} in memory", gaps)
    if is_rows_of_file(points):
        return sparse_group(points.group, type(points).__name__)
    if not is_annotated(points):
        return take_vectors(points, gaps)
    name = representation_of(points, use_rep)
    matrix = points.X if name == WHOLE else points.obsm.get(name)
    if matrix is None:
        raise DataError(
            f"{type(points).__name__} has no {name if name == WHOLE else f'obsm[{name!r}]'}, got obsm of "
            f"{', '.join(points.obsm) or 'nothing'}: give use_rep one of these"
            + ("" if points.X is None else f", or {WHOLE!r}")
        )
    return sparse_group(matrix.group, f"{type(points).__name__}.{name}") if is_rows_of_file(matrix) else matrix


def is_rows_of_file(matrix: Any) -> bool:
    """Return whether a matrix is the sparse rows of an open file of AnnData, which need not be installed."""
    return hasattr(matrix, "group") and hasattr(matrix, "to_memory")


def is_annotated(points: Any) -> bool:
    """Return whether points are an AnnData, by `obsm` and `obs_names`: the library need not be installed."""
    return hasattr(points, "obsm") and hasattr(points, "obs_names")


def representation_of(annotated: Any, use_rep: str | None) -> str:
    """Return the name of the matrix of an AnnData that holds its points: "X", or a name in `obsm`."""
    return use_rep or (COMPONENTS if COMPONENTS in annotated.obsm else WHOLE)


def is_frame(points: Any) -> bool:
    """Return whether points are a frame of pandas, by its method `isetitem`; pandas is not imported."""
    return hasattr(points, "isetitem")


def sparse_frame(frame: Any) -> Any:
    """Return the sparse rows of a frame of pandas of sparse columns; a frame of which gaps are not zero as it is."""
    zeros = all(dtype.fill_value == 0 and dtype.subtype.kind in "biuf" for dtype in frame.dtypes)
    return frame.sparse.to_coo().tocsr() if zeros else frame


def stored_representation(location: str | Path, use_rep: str | None) -> str | Path:
    """Return the location of the requested matrix of a stored AnnData; a path that names one stays as it is."""
    if use_rep is None or "::" in str(location) or Path(location).suffix.lower() not in ANNOTATED_SUFFIXES:
        return location
    return f"{location}::{WHOLE if use_rep == WHOLE else f'obsm/{use_rep}'}"


def open_points(points: Any, gaps: bool = False, use_rep: str | None = None) -> PointsSource:
    """Return the source of points (N, D): nothing but headers is read yet.

    Parameters
    ----------
    points : array (N, D) of NumPy, Dask, zarr or scipy.sparse, a data frame, a table of Arrow, a list of lists, a
        source or generator, an AnnData (its obsm["X_pca"], or X), an object whose row slices become arrays, or the path
        or URL of .npy, .npz (`file.npz::X`), zarr (`store.zarr::name`), Parquet (`file.parquet::x,y`, `::!y` for all
        but y, or one column of lists), .csv and .tsv (the same), Arrow or a data set of Hugging Face, .h5ad
        (`file.h5ad::obsm/X_pca`), a scipy sparse .npz, or a folder of .npy files
    gaps : whether values that are missing are read as NaN; else they are refused
    use_rep : of an AnnData, or the path of one: "X" or a name in `obsm`

    Raises
    ------
    ConfigError, StoreError
        When it is of no kind that can be read, is not there, or needs an extra that is not installed.
    DataError
        When it is damaged, not numeric, not a table, or empty.
    UnsafeStoreError
        When it holds Python objects or asks for a codec that could run code.
    """
    taken = take_representation(points, use_rep, gaps)
    reader = next((reader for is_kind, reader in READERS if is_kind(taken)), ArrayPoints)
    source = reader(taken, gaps) if reader in (ArrayPoints, open_dask_frame) else reader(taken)
    if gaps and isinstance(source, Source):
        source.accept_gaps()
    return with_names_of(points, source, use_rep)


def with_names_of(points: Any, source: PointsSource, use_rep: str | None = None) -> PointsSource:
    """Return a source with the names of the columns of the frame, or of X of the AnnData, that it was taken from."""
    if is_frame(points):
        source.column_names = list(points.columns)
    elif is_annotated(points) and representation_of(points, use_rep) == WHOLE:
        source.column_names = names_of_var(getattr(points, "var_names", ()))
    return source


def may_have_names(points: Any) -> bool:
    """Return whether columns of points may have names: those of arrays and lists in memory have none."""
    return is_frame(points) or is_annotated(points) or is_stored(points)


def with_same_columns(points: Any, others: Any) -> tuple[Any, Any]:
    """Return points and others, landmarks say, whose columns come in the order of the points' where both have names."""
    if not (may_have_names(points) and may_have_names(others)):
        return points, others
    source = open_points(points)
    return source, in_order_of(open_points(others), names_of(source), "the points")


def is_stored(points: Any) -> bool:
    """Return whether points are read by blocks, and never as one array."""
    return any(is_kind(points) for is_kind, _ in READERS)


def is_in_memory(points: Any) -> bool:
    """Return whether all points are in memory, or in a memory map, whose results are arrays as well."""
    return isinstance(points, np.memmap) or sparse.issparse(points) or is_table(points) or not is_stored(points)


def is_arrow(points: Any) -> bool:
    """Return whether points speak the protocol of Arrow; frames of pandas do too, and are arrays already."""
    spoken = hasattr(points, "__arrow_c_stream__") or hasattr(points, "__arrow_c_array__")
    reread = not hasattr(points, "iloc") and hasattr(points, "__len__")  # no stream that can be read once
    return spoken and reread and importlib.util.find_spec("pyarrow") is not None


def is_table(points: Any) -> bool:
    """Return whether points speak the protocol of Arrow and are no array."""
    return is_arrow(points) and not is_sliced(points)


def columns_shown(points: Any, source: PointsSource) -> Any:
    """Return what scikit-learn is to look at for columns: points, or no rows of a table like them that it can read."""
    if not is_stored(points):
        return points
    names, empty = names_of(source), np.empty((0, source.shape[1]))
    return optional_module("pyarrow", "parquet").table(dict.fromkeys(names, empty[:, 0])) if names else empty


def points_in_memory(points: Any, name: str = "points", metric: str = EUCLIDEAN) -> np.ndarray:
    """Return all of (N, D) points, of any kind that `open_points` takes, mapped for a metric: finite, N >= 1."""
    points = take_representation(points)
    if is_stored(points):
        source = open_points(points)
        points = source.read(0, source.shape[0])
    rows = check_points(points, name)
    check_rows(rows, metric)
    return map_rows(rows, metric)


def rows_in_memory(points: Any, metric: str = EUCLIDEAN) -> Points:
    """Return all of (N, D) points as `points_in_memory` does; sparse ones stay so where the metric keeps zeros."""
    points = take_representation(points)
    source = open_points(points) if is_stored(points) else None
    if source is None or source.nonzeros is None or not METRICS[metric].keeps_zeros:
        return points_in_memory(points if source is None else source, metric=metric)
    check_shape(source.shape)
    return MetricPoints(source, metric).read_sparse(0, source.shape[0])


def open_location(location: str) -> PointsSource:
    """Return the source at a path or URL, with an optional member after `::`."""
    refuse_nul(location)
    refuse_home(location)
    name, _, member = location.rpartition("::") if "://" not in location.rpartition("::")[2] else ("", "", "")
    name, requested = (name, member) if name else (location, None)
    if "://" in name:
        source = open_remote(name, requested)
        source.remark = "; ".join(filter(None, (source.remark, remark_on(name))))
        return source
    path = Path(name)
    with as_opening_errors(name):
        if not path.exists():
            raise StoreError(f"no file or directory {name}; points are {ALLOWED}")
        return open_directory(path, requested) if path.is_dir() else open_file(path, requested)


def open_remote(url: str, member: str | None) -> Source:
    """Return the source behind a URL: a zarr store, or a file in a bucket that is read by pieces."""
    refuse_credentials(url)
    shown = without_credentials(url)
    suffix = PurePosixPath(shown).suffix.lower()
    if suffix not in FILE_SUFFIXES:
        return open_zarr(url, member)
    if urlsplit(url).scheme == "file":
        raise ConfigError(f"{shown} is a file of this machine: give its path, {url2pathname(urlsplit(url).path)}")
    if not url.startswith(SCHEMES) or suffix not in BUCKET_SUFFIXES:
        raise ConfigError(
            f"{shown} is a file behind a URL, where zarr is read, and in a bucket ({', '.join(SCHEMES)}) also "
            f"{', '.join(BUCKET_SUFFIXES)}: "
            "copy it to this machine, or store its rows as zarr, for example with dask.array.to_zarr"
        )
    return open_file(BucketFile(url), member)


def open_directory(path: Path, member: str | None) -> PointsSource:
    """Return the source in a directory: a zarr store or Parquet files."""
    if any((path / marker).exists() for marker in ZARR_MARKERS):
        return open_zarr(str(path), member)
    if is_arrow_folder(path) or any(path.rglob("*.parquet")):
        return TableFiles(path, columns_of(member))
    if any(path.glob("*.npy")):
        refuse_member(path, member)
        return NpyParts(path)
    if path.suffix == ".zarr":
        raise StoreError(f"{path} is not a complete zarr store: it has no {' or '.join(ZARR_MARKERS)}")
    raise ConfigError(
        f"{path} is a directory that holds neither a zarr store nor Parquet, Arrow or .npy files; points are {ALLOWED}"
    )


def open_file(path: Place, member: str | None) -> Source:
    """Return the source of a file on this machine or in a bucket, by its suffix; `member` is what follows `::`."""
    suffix = path.suffix.lower()
    if isinstance(path, Path):
        check_file(path)
    if isinstance(path, Path) and suffix == ".npz":
        if member is None and {"data", "shape"} < (names := npz_members(path).keys()) and {"format", "indptr"} & names:
            return sparse_file(path)
        return open_npz(path, chosen_member(path, member, dimensions=(2,)))
    if suffix in PARQUET_SUFFIXES or (isinstance(path, Path) and suffix in (*ARROW_SUFFIXES, *CSV_SUFFIXES)):
        return TableFiles(path, columns_of(member))
    if suffix in HDF5_SUFFIXES:
        return open_h5ad(path, member)
    if suffix == ".npy":
        refuse_member(path, member)
        return NpyPoints(path)
    raise ConfigError(f"points in {path} cannot be read: {suffix or 'no suffix'} is not among {ALLOWED}")


def refuse_member(path: Place, member: str | None) -> None:
    """Refuse the name of an array where there are no names."""
    if member is not None:
        raise ConfigError(f"{path} is a single array; leave out ::{member}")


# The kinds of points that are read by blocks, in the order in which they are tried. A table of numbers with two axes is
# read as one, for any protocols of tables that it has as well, as labelled arrays do.
READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], PointsSource]], ...] = (
    (lambda points: isinstance(points, str | Path), lambda location: open_location(str(location))),
    (lambda points: isinstance(points, PointsSource), lambda source: source),
    (lambda points: isinstance(points, zarr.Array), zarr_points),
    (is_dask_array, DaskPoints),
    (sparse.issparse, sparse_matrix),
    (lambda points: is_dataset(points) and is_sliced(points), dataset_points),
    (is_sliced, SlicedPoints),
    (lambda points: hasattr(points, "to_dask_array"), open_dask_frame),
    (is_arrow, ArrowTable),
)
