"""Points in HDF5 files such as AnnData's .h5ad, dense or in compressed sparse rows."""

from pathlib import Path
from typing import Any

from scalemani.errors import ConfigError, DataError, ScalemaniError, UnsafeStoreError
from scalemani.io.sources.annotated import COMPONENTS, WHOLE
from scalemani.io.sources.base import Source, optional_module
from scalemani.io.sources.bucket_files import BucketFile
from scalemani.io.sources.sliced import SlicedPoints
from scalemani.io.sources.sparse_rows import SPARSE_PARTS, SparseRows, sparse_parts


def open_h5(path: Path | BucketFile) -> Any:
    """Open an HDF5 file for reading."""
    try:
        return optional_module("h5py", "anndata").File(path.open() if isinstance(path, BucketFile) else path, "r")
    except OSError as error:
        raise DataError(f"{path} is no HDF5 file, or is truncated or damaged: {error}") from error


def h5ad_node(path: Path | BucketFile, member: str) -> Any:
    """Return the dataset or group `member` of an HDF5 file that stays open."""
    h5py, file = optional_module("h5py", "anndata"), open_h5(path)
    try:
        refuse_other_files(file, member, path)
        if member in file:
            return file[member]
        parent = file.get(member.rpartition("/")[0] or "/")
        names = list(parent if isinstance(parent, h5py.Group) else file)
    except (KeyError, RuntimeError) as error:  # of HDF5 links that lead nowhere, or in a circle
        file.close()
        raise DataError(f"{path}::{member} is a link to nothing: put the values in its place") from error
    file.close()
    raise ConfigError(f"{path} has no {member!r}; beside it there is {', '.join(names) or 'nothing'}")


def refuse_other_files(file: Any, member: str, path: Path | BucketFile | str) -> None:
    """Refuse a member in another file, or with values from one: a file of points may name any file."""
    h5py, parts = optional_module("h5py", "anndata"), member.strip("/").split("/")
    names = ["/".join(parts[: length + 1]) for length in range(len(parts))]
    for name in (*names, *(f"{names[-1]}/{part}" for part in SPARSE_PARTS)):
        linked = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
        node = None if linked else file.get(name)
        outside = isinstance(node, h5py.Dataset) and (node.external or node.is_virtual)
        if linked or outside or (node is not None and node.file.filename != file.filename):
            file.close()
            raise UnsafeStoreError(f"{path}::{name} takes its values from another file: copy them into this one")
        if isinstance(node, h5py.Dataset):
            return


def open_h5ad(path: Path | BucketFile, member: str | None) -> Source:
    """Open a matrix of an .h5ad file, dense or in compressed sparse rows, by default that of the points."""
    try:
        name = member or default_member(path)
        source = open_node(h5ad_node(path, name), f"{path}::{name}")
        source.reopening, source.remote = (open_h5ad, (path, name)), isinstance(path, BucketFile)
        return source
    except ScalemaniError:
        raise
    except Exception as error:  # the errors of HDF5 are of many kinds, and all mean the same here
        raise DataError(f"{path} is truncated or damaged: {error}; copy or save it again") from error


def open_node(node: Any, description: str) -> Source:
    """Return the points in a dataset, or in the compressed sparse rows of a group."""
    if not hasattr(node, "shape"):
        return SparseRows(*sparse_parts(node, dict(node.attrs), description))
    if node.shape is None:
        raise DataError(f"{description} is an empty dataset: it has neither rows nor columns")
    return SlicedPoints(node, description)


def default_member(path: Path | BucketFile) -> str:
    """Return the matrix of the points of an AnnData."""
    with open_h5(path) as file:
        return f"obsm/{COMPONENTS}" if f"obsm/{COMPONENTS}" in file else WHOLE
