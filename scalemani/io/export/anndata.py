"""Results into AnnData, as an HDF5 file (.h5ad) or a zarr store, new or with other elements that stay.

The encodings are those of https://anndata.readthedocs.io/en/stable/fileformat-prose.html.
"""

import contextlib
import io
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import zarr

from scalemani.errors import ConfigError, DataError
from scalemani.io.export.atomic import leftovers, replaced_file, sync_tree, temporary
from scalemani.io.export.writers import SparseMatrix, block_rows, blocks, fill, fill_matrix, group_array, whole_group
from scalemani.io.sources.base import optional_module
from scalemani.io.sources.lazy import LazyRows
from scalemani.io.sources.opening import ZARR_MARKERS
from scalemani.io.sources.stores import h5ad_node, is_anndata, refuse_other_files
from scalemani.store.objects import as_errors_of, sync

WRITTEN, REPLACED = "written", "replaced"  # folders of new elements, and of those that they replace
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
class Clusters:
    """The cluster (N,) int of each row, -1 for none: categories, which an array of numbers is not."""

    labels: np.ndarray


# An array, a sparse matrix, clusters, a number or text, or several by name.
Element = LazyRows | SparseMatrix | Clusters | bool | int | float | str | Mapping[str, Any]


@dataclass(frozen=True)
class Annotations:
    """What is written of `n_obs` rows, by the path of each element in the AnnData, as "obsm/X_tsne".

    `retained` names elements that are not replaced where they are there.
    """

    n_obs: int
    elements: Mapping[str, Element]
    retained: tuple[str, ...] = ()


def write_anndata(annotations: Annotations, target: str) -> None:
    """Write results into an AnnData, .h5ad or .zarr: elements of the same path are replaced, others stay.

    A file is written as a temporary copy and renamed; elements of a store are written next to it and moved one by one.
    """
    if Path(target).suffix.lower() == ".h5ad":
        write_file(annotations, os.path.realpath(target))
    elif is_anndata(target):
        add_to_store(annotations, Path(os.path.realpath(target)))
    else:
        with whole_group(target, ZARR_FORMAT) as group:
            write_frame(group, annotations.n_obs)
            write_elements(group, annotations)
            add_columns(group, annotations)


def write_file(annotations: Annotations, target: str) -> None:
    """Write results into an .h5ad, or a copy of the one that is there, which replaces it once it is whole."""
    there = Path(target).exists()
    if there:
        check_file(annotations, Path(target))
    with replaced_file(target) as file:
        if there:
            shutil.copy(target, file.name)
        with hdf5_file(file.name, "r+" if there else "w") as opened:
            if not there:
                write_frame(opened, annotations.n_obs)
            for path in annotations.elements:
                if path in opened:
                    del opened[path]
            write_elements(opened, annotations)
            add_columns(opened, annotations)


class LateErrors(io.FileIO):
    """A file that keeps the first error of writing in `error`, and writes nothing from then on."""

    error: OSError | None = None

    def write(self, content: Any) -> int:
        """Write as much as the disk takes, keep the first error, and return the length of all: HDF5 continues."""
        left = memoryview(content).cast("B")
        while left and self.error is None:
            try:
                left = left[super().write(left) :]
            except OSError as error:
                self.error = error
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        """Change the size, or keep the error, and return the requested size all the same."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return self.tell() if size is None else size


@contextlib.contextmanager
def hdf5_file(path: str, mode: str) -> Iterator[Any]:
    """Yield an HDF5 file, and raise at the end what failed: HDF5 prints each failed write, and may crash at one."""
    with LateErrors(path, "r+") as file:
        try:
            with optional_module("h5py", "anndata").File(file, mode) as opened:
                yield opened
        finally:
            if file.error is not None:
                raise file.error


def check_file(annotations: Annotations, path: Path) -> None:
    """Refuse an .h5ad that is damaged, leads to other files, is no AnnData, or has other rows."""
    with h5ad_node(path, "obs").file as file:
        for name in GROUPS:
            if name in file:
                refuse_other_files(file, name, path)
        check_rows(file, annotations, str(path))


def check_rows(root: Any, annotations: Annotations, where: str) -> None:
    """Refuse an AnnData of other rows than there are results for, and to replace what is to be retained."""
    obs = root.get("obs")
    index = None if obs is None else obs.attrs.get("_index")
    if index is None or index not in obs:
        raise DataError(
            f"{where} has no table obs as AnnData writes it since version 0.7: read it and write it once with anndata"
        )
    if (n_obs := int(obs[index].shape[0])) != annotations.n_obs:
        raise DataError(
            f"{where} has {n_obs} rows, the run {annotations.n_obs}: give the AnnData that its points came from, or "
            "the name of a new one"
        )

    if taken := [path for path in annotations.retained if path in root]:
        raise ConfigError(
            f"{where} has {taken[0]}, from which other results may come, and it is not replaced: rename it, or give "
            "the name of a new AnnData"
        )


def add_to_store(annotations: Annotations, target: Path) -> None:
    """Write the elements next to a zarr store, and move each to its place."""
    group = zarr.open_group(target, mode="r+", use_consolidated=False)
    check_rows(group, annotations, str(target))
    with as_errors_of(target):
        for left in leftovers(target):
            put_back(left / REPLACED, target)
        with temporary(target, Path.mkdir) as (folder, _):
            written = zarr.open_group(folder / WRITTEN, mode="w-", zarr_format=group.metadata.zarr_format)
            write_elements(written, annotations)
            sync_tree(folder)
            for path in annotations.elements:
                parent = path.rpartition("/")[0]
                if parent not in group:
                    group.create_group(parent, attributes=GROUP)
                if path in group:
                    (folder / REPLACED / path).parent.mkdir(parents=True, exist_ok=True)
                    (target / path).rename(folder / REPLACED / path)
                (folder / WRITTEN / path).rename(target / path)
                sync((target / path).parent)
            add_columns(group, annotations)
            if zarr.open_group(target, mode="r").metadata.consolidated_metadata is not None:
                zarr.consolidate_metadata(str(target), zarr_format=group.metadata.zarr_format)


def put_back(replaced: Path, target: Path) -> None:
    """Move elements that a killed command has taken out of a zarr store back, where nothing has taken their place."""
    for described in sorted(replaced.rglob("*")):
        place = target / described.relative_to(replaced)
        if described.name in ZARR_MARKERS and not place.exists() and not place.parent.exists():
            described.parent.rename(place.parent)


def write_frame(root: Any, n_obs: int) -> None:
    """Write what every AnnData has: names of rows, and groups of which nothing is known."""
    root.attrs.update(ANNDATA)
    for name, n_rows in (("obs", n_obs), ("var", 0)):
        write_numbers(new_group(root, name, FRAME), "_index", n_rows)
    for name in GROUPS:
        new_group(root, name, GROUP)


def write_numbers(group: Any, name: str, count: int) -> None:
    """Write the row numbers 0 to count - 1 as texts (count,), which AnnData takes for names."""
    array = new_texts(group, name, (count,))
    for start in range(0, count, NAMES_AT_ONCE):
        stop = min(start + NAMES_AT_ONCE, count)
        array[start:stop] = np.arange(start, stop).astype(str).astype(object)


def write_elements(root: Any, annotations: Annotations) -> None:
    """Write every element at its path below `root`, where nothing may be."""
    for path, element in annotations.elements.items():
        write_element(*place(root, path), element)


def write_element(group: Any, name: str, element: Element) -> None:
    """Write an element into a group, in AnnData's encoding of its kind."""
    if isinstance(element, Mapping):
        inner = new_group(group, name, GROUP)
        for key, value in element.items():
            write_element(inner, key, value)
    elif isinstance(element, LazyRows):
        fill(new_array(group, name, element.shape, element.dtype, block_rows(element), ARRAY), blocks(element))
    elif isinstance(element, Clusters):
        write_categories(new_group(group, name, CATEGORIES), element.labels)
    elif isinstance(element, str):
        new_texts(group, name, (), TEXT)[...] = element
    elif isinstance(element, bool | int | float):
        new_array(group, name, (), np.asarray(element).dtype, 1, NUMBER)[...] = element
    else:
        fill_matrix(element, group.create_group(name), new_array)


def place(root: Any, path: str) -> tuple[Any, str]:
    """Return the group of an element, which is created where it is missing, and the element's name."""
    parent, _, name = path.rpartition("/")
    return (root[parent] if parent in root else new_group(root, parent, GROUP)), name


def write_categories(group: Any, clusters: np.ndarray) -> None:
    """Write the cluster (N,) of each row as categories, named by their numbers; -1 is none."""
    count = int(clusters.max()) + 1
    codes = clusters.astype(np.min_scalar_type(-max(count, 1)))
    new_array(group, "codes", codes.shape, codes.dtype, len(codes), ARRAY)[...] = codes
    write_numbers(group, "categories", count)


def add_columns(root: Any, annotations: Annotations) -> None:
    """Append new columns of `obs` to its attribute `column-order`, without which AnnData does not read them."""
    obs = root["obs"]
    listed = [str(name) for name in obs.attrs["column-order"]]
    added = [path.removeprefix("obs/") for path in annotations.elements if path.startswith("obs/")]
    obs.attrs["column-order"] = [*listed, *(name for name in added if name not in listed)]


def new_group(parent: Any, name: str, attributes: Mapping[str, Any]) -> Any:
    """Create a group with attributes such as `encoding-type`, by which AnnData knows what it is."""
    group = parent.create_group(name)
    group.attrs.update(attributes)
    return group


def new_array(
    group: Any,
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    rows: int,
    attributes: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Create an array of a group of HDF5 or zarr, with attributes that say what it is."""
    if isinstance(group, zarr.Group):
        array: Any = group_array(group, name, shape, dtype, max(1, rows))
    else:
        chunks = (min(max(1, rows), shape[0]), *shape[1:]) if all(shape) and shape else None
        array = group.create_dataset(name, shape=shape, dtype=dtype, chunks=chunks)
    array.attrs.update(attributes)
    return array


def new_texts(group: Any, name: str, shape: tuple[int, ...], attributes: Mapping[str, Any] = TEXTS) -> Any:
    """Create an array of texts in a group of HDF5 or zarr."""
    if isinstance(group, zarr.Group):
        chunks = tuple(min(NAMES_AT_ONCE, max(1, length)) for length in shape)
        array: Any = group.create_array(name, shape=shape, dtype=str, chunks=chunks)
    else:
        array = group.create_dataset(name, shape=shape, dtype=optional_module("h5py", "anndata").string_dtype())
    array.attrs.update(attributes)
    return array
