"""From what a user passes as points to the source that reads it."""

import importlib.util
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import zarr
from scipy import sparse

from scalemani.config.validation import check_finite_block, check_points, check_shape
from scalemani.errors import ConfigError, StoreError, refuse_credentials, refuse_nul
from scalemani.io.sources.annotated import take_representation
from scalemani.io.sources.arrow import ArrowTable
from scalemani.io.sources.base import (
    PointsSource,
    Source,
    as_opening_errors,
    check_file,
    nonzeros_of,
    read_rows,
    without_credentials,
)
from scalemani.io.sources.bucket_files import BucketFile
from scalemani.io.sources.dask_arrays import DaskPoints, is_dask_array, open_dask_frame
from scalemani.io.sources.hdf5 import open_h5ad
from scalemani.io.sources.metrics import check_rows
from scalemani.io.sources.numpy_files import ArrayPoints, NpyParts, NpyPoints, chosen_member, npz_members, open_npz
from scalemani.io.sources.sliced import SlicedPoints, is_sliced
from scalemani.io.sources.sparse_rows import sparse_file, sparse_matrix
from scalemani.io.sources.stores import open_zarr, zarr_points
from scalemani.io.sources.tables import ARROW_SUFFIXES, PARQUET_SUFFIXES, TableFiles, columns_of, is_arrow_folder
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import EUCLIDEAN, keeps_zeros, map_rows
from scalemani.store.buckets import SCHEMES
from scalemani.store.places import remark_on

ALLOWED = (
    ".npy (file or directory), .npz (file.npz::X), a zarr array (path or URL), .parquet (file or directory), "
    ".arrow (file or data set of Hugging Face), .h5ad (file.h5ad::obsm/X_pca), a scipy sparse .npz"
)
BUCKET_SUFFIXES = (".npy", *PARQUET_SUFFIXES, ".h5ad", ".h5", ".hdf5")  # of which rows are read without all of a file
FILE_SUFFIXES = (*BUCKET_SUFFIXES, ".npz", *ARROW_SUFFIXES)
ZARR_MARKERS = ("zarr.json", ".zarray", ".zgroup")


def open_points(points: Any) -> PointsSource:
    """Return the source of points (N, D): nothing but headers is read yet.

    Parameters
    ----------
    points : array (N, D) of NumPy, Dask, zarr or scipy.sparse, a data frame, a table of Arrow, a list of lists, a
        source or generator, an AnnData (its obsm["X_pca"], or X), whatever slices of rows become arrays, or the path or
        URL of .npy, .npz (`file.npz::X`), zarr (`store.zarr::name`), Parquet (`file.parquet::x,y`, or one column of
        lists), Arrow or a data set of Hugging Face, .h5ad (`file.h5ad::obsm/X_pca`), a scipy sparse .npz, or a folder
        of .npy files

    Raises
    ------
    ConfigError, StoreError
        When it is of no kind that can be read, is not there, or needs an extra that is not installed.
    DataError
        When it is damaged, not numeric, not a table, or empty.
    UnsafeStoreError
        When it holds Python objects or asks for a codec that could run code.
    """
    points = take_representation(points)
    return next((reader for is_kind, reader in READERS if is_kind(points)), ArrayPoints)(points)


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


def has_names(points: Any) -> bool:
    """Return whether the columns of points that are read by slices have names that scikit-learn looks at."""
    return is_table(points) and ArrowTable(points).named


def is_table(points: Any) -> bool:
    """Return whether points speak the protocol of Arrow and are no array."""
    return is_arrow(points) and not is_sliced(points)


def columns_shown(points: Any, n_columns: int) -> Any:
    """Return what scikit-learn is to look at for columns: points, or no rows of so many where it cannot read them."""
    return np.empty((0, n_columns)) if is_stored(points) and not has_names(points) else points


def points_in_memory(points: Any, name: str = "points", metric: str = EUCLIDEAN) -> np.ndarray:
    """Return all of (N, D) points, given as anything that `open_points` takes, mapped for a metric: finite, N >= 1."""
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
    if source is None or nonzeros_of(source) is None or not keeps_zeros(metric):
        return points_in_memory(points if source is None else source, metric=metric)
    check_shape(source.shape)
    rows = read_rows(source, 0, source.shape[0], sparse=True)
    check_finite_block(rows)
    check_rows(rows, metric)
    return map_rows(rows, metric)


def open_location(location: str) -> PointsSource:
    """Return the source at a path or URL, with an optional member after `::`."""
    refuse_nul(location)
    name, _, member = location.rpartition("::") if "://" not in location.rpartition("::")[2] else ("", "", "")
    name, requested = (name, member) if name else (location, None)
    if "://" in name:
        source = open_remote(name, requested)
        source.remark = "; ".join(filter(None, (source.remark, remark_on(name))))
        return source
    path = Path(name)
    if not path.exists():
        raise StoreError(f"no file or directory {name}; points are {ALLOWED}")
    with as_opening_errors(name):
        return open_directory(path, requested) if path.is_dir() else open_file(path, requested)


def open_remote(url: str, member: str | None) -> Source:
    """Return the source behind a URL: a zarr store, or a file in a bucket that is read by pieces."""
    refuse_credentials(url)
    shown = without_credentials(url)
    suffix = PurePosixPath(shown).suffix.lower()
    if suffix not in FILE_SUFFIXES:
        return open_zarr(url, member)
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


def open_file(path: Path | BucketFile, member: str | None) -> Source:
    """Return the source in a single file, of this machine or in a bucket."""
    suffix = path.suffix.lower()
    if isinstance(path, Path):
        check_file(path)
    if isinstance(path, Path) and suffix == ".npz":
        if member is None and {"data", "shape"} < (names := npz_members(path).keys()) and {"format", "indptr"} & names:
            return sparse_file(path)
        return open_npz(path, chosen_member(path, member, dimensions=(2,)))
    if suffix in PARQUET_SUFFIXES or (isinstance(path, Path) and suffix in ARROW_SUFFIXES):
        return TableFiles(path, columns_of(member))
    if suffix in (".h5ad", ".h5", ".hdf5"):
        return open_h5ad(path, member)
    if suffix == ".npy":
        refuse_member(path, member)
        return NpyPoints(path)
    raise ConfigError(f"points in {path} cannot be read: {suffix or 'no suffix'} is not among {ALLOWED}")


def refuse_member(path: Path | BucketFile, member: str | None) -> None:
    """Refuse the name of an array where there are no names."""
    if member is not None:
        raise ConfigError(f"{path} is a single array; leave out ::{member}")


# The kinds of points that are read by blocks, in the order in which they are tried. A table of numbers with two axes is
# read as one, whatever protocols of tables it speaks as well, as labelled arrays do.
READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], PointsSource]], ...] = (
    (lambda points: isinstance(points, str | Path), lambda location: open_location(str(location))),
    (lambda points: isinstance(points, PointsSource), lambda source: source),
    (lambda points: isinstance(points, zarr.Array), zarr_points),
    (is_dask_array, DaskPoints),
    (sparse.issparse, sparse_matrix),
    (is_sliced, SlicedPoints),
    (lambda points: hasattr(points, "to_dask_array"), open_dask_frame),
    (is_arrow, ArrowTable),
)
