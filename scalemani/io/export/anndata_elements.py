"""The elements of an AnnData in AnnData's on-disk format, in groups of HDF5 or zarr.

Source: https://anndata.readthedocs.io/en/stable/fileformat-prose.html.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import zarr
from numcodecs import VLenUTF8
from zarr.core.dtype import VariableLengthUTF8

from scalemani.io.export.rows import block_rows, blocks, fill, group_array
from scalemani.io.export.sparse import SparseMatrix, fill_matrix
from scalemani.io.sources.base import optional_module
from scalemani.io.sources.lazy import LazyRows

ANNDATA = {"encoding-type": "anndata", "encoding-version": "0.1.0"}
GROUP = {"encoding-type": "dict", "encoding-version": "0.1.0"}
FRAME = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index", "column-order": []}
CATEGORIES = {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False}
ARRAY = {"encoding-type": "array", "encoding-version": "0.2.0"}
TEXT = {"encoding-type": "string", "encoding-version": "0.2.0"}
TEXTS = {"encoding-type": "string-array", "encoding-version": "0.2.0"}
NUMBER = {"encoding-type": "numeric-scalar", "encoding-version": "0.2.0"}
GROUPS = ("layers", "obsm", "obsp", "uns", "varm", "varp")
ZARR_FORMAT: Literal[2] = 2  # that anndata writes by default, and all its versions read
NAMES_AT_ONCE = 2**18


@dataclass(frozen=True)
class Annotations:
    """What is written of `n_obs` rows, by the path of each element in the AnnData, as "obsm/X_tsne".

    `kept` names elements that are not replaced where they are there.
    """

    n_obs: int
    arrays: Mapping[str, LazyRows] = field(default_factory=dict)
    matrices: Mapping[str, SparseMatrix] = field(default_factory=dict)
    clusters: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    kept: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The path of every element."""
        return [*self.arrays, *self.matrices, *self.clusters, *self.settings]


def write_frame(root: Any, n_obs: int) -> None:
    """Write what every AnnData has: names of rows, and groups of which nothing is known."""
    root.attrs.update(ANNDATA)
    for name, n_rows in (("obs", n_obs), ("var", 0)):
        table = new_group(root, name, FRAME)
        names = new_texts(table, "_index", n_rows)
        for start in range(0, n_rows, NAMES_AT_ONCE):
            stop = min(start + NAMES_AT_ONCE, n_rows)
            names[start:stop] = np.array([str(row) for row in range(start, stop)], dtype=object)
    for name in GROUPS:
        new_group(root, name, GROUP)


def write_elements(root: Any, annotations: Annotations) -> None:
    """Write every element at its path, none of which is there."""
    for path, rows in annotations.arrays.items():
        group, name = place(root, path)
        array = new_array(group, name, rows.shape, rows.dtype, block_rows(rows))
        array.attrs.update(ARRAY)
        fill(array, blocks(rows))
    for path, matrix in annotations.matrices.items():
        group, name = place(root, path)
        fill_matrix(matrix, group.create_group(name), new_array)
    for path, codes in annotations.clusters.items():
        group, name = place(root, path)
        write_categories(new_group(group, name, CATEGORIES), codes)
    for path, values in annotations.settings.items():
        group, name = place(root, path)
        write_settings(new_group(group, name, GROUP), values)


def place(root: Any, path: str) -> tuple[Any, str]:
    """Return the group that an element is in, which is made where it is not there, and the element's name."""
    parent, _, name = path.rpartition("/")
    return (root[parent] if parent in root else new_group(root, parent, GROUP)), name


def write_categories(group: Any, clusters: np.ndarray) -> None:
    """Write the cluster (N,) of each row as categories, named by their numbers; -1 is none."""
    count = int(clusters.max()) + 1
    codes = clusters.astype(np.min_scalar_type(-max(count, 1)))
    stored = new_array(group, "codes", codes.shape, codes.dtype, len(codes))
    stored[...] = codes
    stored.attrs.update(ARRAY)
    new_texts(group, "categories", count)[...] = np.array([str(number) for number in range(count)], dtype=object)


def write_settings(group: Any, values: Mapping[str, Any]) -> None:
    """Write numbers, texts and tables of these by their names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            write_settings(new_group(group, name, GROUP), value)
        elif isinstance(value, str):
            array = new_texts(group, name, None)
            array[...] = value
            array.attrs.update(TEXT)
        else:
            array = new_array(group, name, (), np.asarray(value).dtype, 1)
            array[...] = value
            array.attrs.update(NUMBER)


def add_columns(root: Any, annotations: Annotations) -> None:
    """Name the columns that were added to the table of rows."""
    obs = root["obs"]
    listed = [str(name) for name in obs.attrs["column-order"]]
    added = [path.rpartition("/")[2] for path in annotations.clusters]
    obs.attrs["column-order"] = [*listed, *(name for name in added if name not in listed)]


def new_group(parent: Any, name: str, attributes: Mapping[str, Any]) -> Any:
    """Create a group with the attributes that say what it is."""
    group = parent.create_group(name)
    group.attrs.update(attributes)
    return group


def new_array(group: Any, name: str, shape: tuple[int, ...], dtype: np.dtype, rows: int) -> Any:
    """Create an array of a group of HDF5 or zarr."""
    if isinstance(group, zarr.Group):
        if not shape:
            return group.create_array(name, shape=shape, dtype=dtype)
        return group_array(group, name, shape, dtype, max(1, rows))
    chunks = (min(max(1, rows), shape[0]), *shape[1:]) if all(shape) and shape else None
    return group.create_dataset(name, shape=shape, dtype=dtype, chunks=chunks)


def new_texts(group: Any, name: str, length: int | None) -> Any:
    """Create an array of so many texts in a group of HDF5 or zarr; None: of one without an axis."""
    shape = () if length is None else (length,)
    if isinstance(group, zarr.Group):
        filters: Any = [VLenUTF8()] if group.metadata.zarr_format == ZARR_FORMAT else "auto"
        kind: Any = VariableLengthUTF8()
        chunks = (min(NAMES_AT_ONCE, max(1, length)),) if length is not None else ()
        array = group.create_array(name, shape=shape, dtype=kind, chunks=chunks, filters=filters, fill_value="")
    else:
        array = group.create_dataset(name, shape=shape, dtype=optional_module("h5py", "anndata").string_dtype())
    array.attrs.update(TEXTS)
    return array
