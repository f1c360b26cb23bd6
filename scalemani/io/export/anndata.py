"""Results into AnnData, as an HDF5 file (.h5ad) or a zarr store: beside what is there, or into a new one."""

import contextlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zarr

from scalemani.errors import ConfigError, DataError
from scalemani.io.export.anndata_elements import (
    GROUP,
    GROUPS,
    ZARR_FORMAT,
    Annotations,
    add_columns,
    write_elements,
    write_frame,
)
from scalemani.io.export.atomic import (
    ZARR_MARKERS,
    as_errors_of,
    leftovers,
    replaced_file,
    sync,
    sync_tree,
    temporary_folder,
)
from scalemani.io.export.rows import whole_group
from scalemani.io.sources.base import optional_module
from scalemani.io.sources.hdf5 import h5ad_node, refuse_other_files
from scalemani.io.sources.stores import is_anndata

WRITTEN, REPLACED = "written", "replaced"  # folders of new elements, and of those whose place they take


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
    """Write an .h5ad with what is in the one that is there."""
    there = Path(target).exists()
    if there:
        check_file(annotations, Path(target))
    with replaced_file(target) as file:
        if there:
            with Path(target).open("rb") as earlier:
                shutil.copyfileobj(earlier, file)
            file.flush()
            shutil.copymode(target, file.name)
        with hdf5_file(file.name, "r+" if there else "w") as opened:
            if not there:
                write_frame(opened, annotations.n_obs)
            for path in annotations.paths:
                if path in opened:
                    del opened[path]
            write_elements(opened, annotations)
            add_columns(opened, annotations)


class LateErrors(io.FileIO):
    """A file that keeps the first error of writing in `error`, and writes nothing from then on."""

    error: OSError | None = None

    def write(self, content: Any) -> int:
        """Return the length of a content, written or not."""
        left = memoryview(content).cast("B")
        while left and self.error is None:
            try:
                left = left[super().write(left) :]
            except OSError as error:
                self.error = error
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        """Return the size asked for, reached or not."""
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
        check_kept(file, annotations, str(path))


def check_rows(root: Any, annotations: Annotations, where: str) -> None:
    """Refuse an AnnData of other rows than there are results for."""
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


def check_kept(root: Any, annotations: Annotations, where: str) -> None:
    """Refuse to replace what is to be kept."""
    if taken := [path for path in annotations.kept if path in root]:
        raise ConfigError(
            f"{where} has {taken[0]}, from which other results may come, and it is not replaced: rename it, or give "
            "the name of a new AnnData"
        )


def add_to_store(annotations: Annotations, target: Path) -> None:
    """Write the elements beside a zarr store, and move each to its place."""
    group = zarr.open_group(target, mode="r+", use_consolidated=False)
    check_rows(group, annotations, str(target))
    check_kept(group, annotations, str(target))
    with as_errors_of(target):
        for left in leftovers(target):
            put_back(left / REPLACED, target)
        with temporary_folder(target) as own:
            written = zarr.open_group(own / WRITTEN, mode="w-", zarr_format=group.metadata.zarr_format)
            write_elements(written, annotations)
            sync_tree(own)
            for path in annotations.paths:
                parent = path.rpartition("/")[0]
                if parent not in group:
                    group.create_group(parent, attributes=GROUP)
                if path in group:
                    (own / REPLACED / path).parent.mkdir(parents=True, exist_ok=True)
                    (target / path).rename(own / REPLACED / path)
                (own / WRITTEN / path).rename(target / path)
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
