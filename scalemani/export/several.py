"""Several arrays together in one file that other programs read: .npz, .parquet and .zarr, by blocks of rows."""

import contextlib
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import zarr

from scalemani.export.atomic import replaced_file
from scalemani.export.rows import creating, new_zarr, refuse_other, rows_per_block
from scalemani.sources.base import optional_module
from scalemani.sources.lazy import LazyRows

Arrays = Mapping[str, LazyRows]


@contextlib.contextmanager
def whole_group(target: str, zarr_format: Literal[2, 3] = 3) -> Iterator[zarr.Group]:
    """Yield a new zarr group that is at `target` at the end; one in a folder goes where that is not reached."""
    with new_zarr(target) as place:
        with creating(target):
            group = zarr.open_group(place, mode="w-", zarr_format=zarr_format)
        refuse_other(target, group)
        yield group


def blocks(rows: LazyRows) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, rows) in order."""
    step = block_rows(rows)
    for start in range(0, len(rows), step):
        yield start, rows.read(start, min(start + step, len(rows)))


def block_rows(rows: LazyRows) -> int:
    """Return how many rows are read at once."""
    row_bytes = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    return min(rows_per_block(row_bytes, rows.preferred_rows), max(1, len(rows)))


def write_npz(arrays: Arrays, target: str) -> None:
    """Write arrays of any shapes as `numpy.load` reads them."""
    with replaced_file(target) as file, zipfile.ZipFile(file, "w") as archive:
        for name, rows in arrays.items():
            with npy_member(archive, name, rows.shape, rows.dtype) as member:
                for _, block in blocks(rows):
                    member.write(block.data.cast("B") if block.size else b"")


@contextlib.contextmanager
def npy_member(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype) -> Iterator[Any]:
    """Yield a new member of an .npz archive, with the header of an array written, to be filled by its rows.

    Parameters
    ----------
    archive : open for writing
    name : of the array
    shape, dtype : of the array
    """
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
        np.lib.format.write_array_header_1_0(member, header)
        yield member


def write_parquet(arrays: Arrays, target: str) -> None:
    """Write arrays (N,) as columns of their names, arrays (N, m) as columns name_1 ... name_m."""
    arrow, parquet = optional_module("pyarrow", "parquet"), optional_module("pyarrow.parquet", "parquet")
    kinds = {name: arrow.from_numpy_dtype(rows.dtype) for name, rows in arrays.items()}
    names = {name: column_names(name, rows) for name, rows in arrays.items()}
    schema = arrow.schema([(column, kinds[name]) for name in arrays for column in names[name]])
    n_rows, step = len(next(iter(arrays.values()))), min(map(block_rows, arrays.values()))
    with replaced_file(target) as file, parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, n_rows, step):
            columns: list[np.ndarray] = []
            for rows in arrays.values():
                block = rows.read(start, min(start + step, n_rows))
                columns.extend(np.ascontiguousarray(block.reshape(len(block), -1).T))
            writer.write_table(arrow.table(columns, schema=schema))


def column_names(name: str, rows: LazyRows) -> list[str]:
    """Return the names of the columns of a table that an array makes."""
    return [name] if rows.ndim == 1 else [f"{name}_{number + 1}" for number in range(rows.shape[1])]


def write_zarr(arrays: Arrays, target: str) -> None:
    """Write a zarr v3 group of arrays."""
    with whole_group(target) as group:
        for name, rows in arrays.items():
            fill(group_array(group, name, rows.shape, rows.dtype, block_rows(rows)), blocks(rows))


def group_array(group: zarr.Group, name: str, shape: tuple[int, ...], dtype: np.dtype, rows: int) -> zarr.Array:
    """Create an array of a group.

    Parameters
    ----------
    group : the zarr group
    name, shape, dtype : of the array
    rows : of a chunk
    """
    config: Any = {"write_empty_chunks": True}
    return group.create_array(name, shape=shape, dtype=dtype, chunks=(rows, *shape[1:]), config=config)


def fill(array: Any, parts: Iterator[tuple[int, np.ndarray]]) -> None:
    """Write parts (first row, rows) of an array."""
    for start, rows in parts:
        array[start : start + len(rows)] = rows


WRITERS: dict[str, Callable[[Arrays, str], None]] = {
    ".npz": write_npz,
    ".parquet": write_parquet,
    ".zarr": write_zarr,
}
