"""Points in zarr arrays, local or behind a URL, and in HDF5 files, dense or in compressed sparse rows."""

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore, LocalStore, ObjectStore

from scalemani.config.limits import check_limit
from scalemani.errors import (
    ConfigError,
    DataError,
    ScalemaniError,
    StoreError,
    UnsafeStoreError,
    refuse_credentials,
)
from scalemani.io.sources.base import Source, as_damage, check_file, optional_module, without_credentials
from scalemani.io.sources.bucket_files import BucketFile, Place
from scalemani.io.sources.columns import names_of_var
from scalemani.io.sources.sliced import SPARSE_PARTS, XARRAY, SlicedPoints, sparse_group
from scalemani.store.arrays import check_settings
from scalemani.store.buckets import SCHEMES, ConflictError, MissingObjectError, ask, open_bucket
from scalemani.store.objects import leads_out

COMPRESSION_CODECS = {"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"}
LAYOUT_CODECS = {"bytes", "transpose", "sharding_indexed", "crc32c", "crc32", "adler32", "fletcher32"}
NUMBER_CODECS = {"shuffle", "delta", "bitround", "quantize", "fixedscaleoffset", "packbits", "astype"}
TEXT_CODECS = {"vlen-utf8"}  # of strings, which format 2 calls objects
SAFE_CODECS = LAYOUT_CODECS | COMPRESSION_CODECS | NUMBER_CODECS | TEXT_CODECS
HOLDERS = {"configuration", "codecs", "index_codecs"}  # of codecs, within a codec
ARRAYS = {"zarr.json", ".zarray"}  # the descriptions of arrays, with their codecs
DESCRIPTIONS = ARRAYS | {".zattrs", ".zgroup", ".zmetadata"}
COMPONENTS = "X_pca"  # on which scanpy finds neighbours too
WHOLE = "X"
ANNDATA = "anndata"  # the encoding of an AnnData
LAYERS, VAR, INDEX = (
    "layers",
    "var",
    "_index",
)  # its matrices like X, what it says of their columns, and where the names are
UNEVEN = {"array.rectilinear_chunks": True}  # with which zarr reads chunks of several shapes


def check_codecs(metadata: Any, description: str) -> None:
    """Refuse an array whose codecs could run code: pickled objects, unknown codecs."""
    if not isinstance(metadata, dict):
        return
    listed = [metadata.get(place) for place in ("codecs", "filters", "compressor")]
    names = {name.removeprefix("numcodecs.") for name in codec_names(listed)}
    for name in sorted(names - SAFE_CODECS):
        raise UnsafeStoreError(f"{description} uses the codec {name!r}; allowed: {', '.join(sorted(SAFE_CODECS))}")
    if metadata.get("dtype") == "|O" and names.isdisjoint(TEXT_CODECS):
        raise UnsafeStoreError(f"{description} holds Python objects (dtype |O): store numbers")


def codec_names(described: Any) -> Iterator[str]:
    """Yield the names of codecs in what metadata say of them: in lists, and wherever codecs hold others."""
    if isinstance(described, dict):
        if name := described.get("name") or described.get("id"):
            yield str(name)
        # Of texts, those count that stand where codecs do; others are their settings.
        described = [value for key, value in described.items() if key in HOLDERS or not isinstance(value, str)]
    for codec in described if isinstance(described, list | tuple) else ():
        yield from [codec] if isinstance(codec, str) else codec_names(codec)


class RegularFiles(LocalStore):
    """A local zarr store that reads regular files in its folder only.

    Descriptions are of a bounded size, and codecs that could run code are refused before zarr makes any of them.
    """

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return the object under `key` or None; refuse pipes, devices, and links out of the folder."""
        path = self.root / key
        if leads_out(self.root, key):
            raise UnsafeStoreError(f"{path} leads out of {self.root} through a symbolic link: copy what it leads to")
        if not path.is_dir():
            check_file(path)
        if path.name in DESCRIPTIONS and path.is_file():
            check_limit("description", path.stat().st_size, str(path))
            with contextlib.suppress(ValueError):  # of what is no JSON, for zarr to complain about
                check_codecs(json.loads(path.read_bytes()) if path.name in ARRAYS else None, str(path))
        return await super().get(key, prototype, byte_range)


class UrlStore(ObjectStore):
    """A zarr store in a bucket or at an http(s) address; each process opens it with its credentials.

    Requests wait in threads of Python. Answers to asynchronous ones come from threads of obstore, and one that still
    waits for the interpreter when this ends aborts the process, before Python 3.14.
    """

    def __init__(self, location: str, read_only: bool = True) -> None:
        super().__init__(open_bucket(location.rstrip("/")), read_only=read_only)
        self.location = location

    def __reduce__(self) -> tuple[type["UrlStore"], tuple[str, bool]]:
        return UrlStore, (self.location, self.read_only)

    def __str__(self) -> str:
        return without_credentials(self.location)

    @property
    def supports_listing(self) -> bool:
        """Whether the server lists what it holds: web servers do not."""
        return self.location.startswith(SCHEMES)

    def with_read_only(self, read_only: bool = False) -> "UrlStore":
        """Return a store of the same place that may be written unless `read_only`."""
        return UrlStore(self.location, read_only)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the object under `key`, or a part of it; None where there is none."""
        content = await self._answer("read", key, self._read, byte_range)
        return None if content is None else prototype.buffer.from_bytes(content)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return objects or ranges of bytes of these, requested side by side; None where there is none."""
        return await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges))

    async def exists(self, key: str) -> bool:
        """Ask the server whether there is an object under `key`, without its content."""
        return await self._answer("read", key, self.store.head) is not None

    async def getsize(self, key: str) -> int:
        """Return the bytes of the object under `key`, as the server says; FileNotFoundError where there is none."""
        metadata = await self._answer("read", key, self.store.head)
        if metadata is None:
            raise FileNotFoundError(f"{self}/{key}")
        return int(metadata["size"])

    async def set(self, key: str, value: Buffer) -> None:
        """Write the object under `key` in one request, whether or not there is one."""
        self._check_writable()
        await self._answer("write", key, self.store.put, value.as_buffer_like())

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write the object under `key` where there is none, in one request."""
        self._check_writable()
        with contextlib.suppress(ConflictError):
            create = functools.partial(self.store.put, mode="create")
            await self._answer("write", key, create, value.as_buffer_like())

    async def delete(self, key: str) -> None:
        """Remove the object under `key` if it is there."""
        self._check_writable()
        await self._answer("delete", key, self.store.delete)

    async def delete_dir(self, prefix: str) -> None:
        """Remove all objects whose keys begin with `prefix` and a slash; all of the store for an empty one."""
        self._check_writable()
        if paths := [path async for path in self.list_prefix(f"{prefix.rstrip('/')}/" if prefix else "")]:
            await self._answer("delete", prefix, lambda _: self.store.delete(paths))

    async def list_dir(self, prefix: str) -> AsyncGenerator[str, None]:
        """Yield the names of objects and folders directly below `prefix`."""
        there = await self._answer("list", prefix, self.store.list_with_delimiter)
        for path in (*there["common_prefixes"], *(metadata["path"] for metadata in there["objects"])):
            yield path.removeprefix(prefix.rstrip("/")).lstrip("/")

    async def _list(self, prefix: str | None = None) -> AsyncGenerator[Any, None]:
        for metadata in await self._answer("list", prefix or "", lambda below: self.store.list(below).collect()):
            yield metadata

    async def _answer(self, verb: str, key: str, request: Callable[..., Any], *arguments: Any) -> Any:
        """Return the answer to a request for a key, None where there is no such object; errors name the request."""
        with contextlib.suppress(MissingObjectError):
            return await asyncio.to_thread(ask, f"{verb} {self}/{key}", functools.partial(request, key, *arguments))

    def _read(self, key: str, part: ByteRequest | None) -> Any:
        if isinstance(part, RangeByteRequest):
            return self.store.get_range(key, start=part.start, end=part.end)
        if isinstance(part, SuffixByteRequest) and self.location.startswith("az://"):  # which does not count from ends
            part = OffsetByteRequest(self.store.head(key)["size"] - part.suffix)
        name = "suffix" if isinstance(part, SuffixByteRequest) else "offset"
        options = None if part is None else {"range": {name: getattr(part, name)}}
        return self.store.get(key, options=options).bytes()


def store_at(url: str, read_only: bool = True) -> UrlStore | str:
    """Return what zarr opens at a URL: fsspec reads what is neither a bucket nor at an http(s) address."""
    return UrlStore(url, read_only) if url.startswith((*SCHEMES, "http://", "https://")) else url


def zarr_points(array: zarr.Array, description: str = "zarr array") -> SlicedPoints:
    """Return the source of a zarr array with the names of its columns; UnsafeStoreError for unsafe codecs."""
    check_settings()
    check_codecs(dict(array.metadata.to_dict()), description)
    source = SlicedPoints(array, description)
    source.remote = isinstance(array.store, FsspecStore | UrlStore)
    dimensions: Any = getattr(array.metadata, "dimension_names", None) or array.attrs.get(XARRAY)
    column = dimensions[1] if isinstance(dimensions, list | tuple) and len(dimensions) == 2 else None
    source.column_names = names_in_zarr(array, source, column)
    return source


def names_in_zarr(node: Any, source: Source, dimension: Any = None) -> list[str]:
    """Return the names of the columns of a matrix in a zarr store, where these are stored next to it."""

    def node_at(place: str) -> Any:
        with contextlib.suppress(FileNotFoundError), zarr.config.set(UNEVEN):
            mode: Any = "r" if node.store.read_only else "r+"  # not every store has a copy that is read alone
            opened = zarr.open(node.store, path=place, mode=mode, zarr_format=node.metadata.zarr_format)
            member = with_attributes(opened, f"{source.description}, {place}")
            if isinstance(member, zarr.Array):
                check_codecs(dict(member.metadata.to_dict()), f"{source.description}, {place}")
            return member

    has_dimension = node.path and isinstance(dimension, str)
    coordinate = f"{node.path.rpartition('/')[0]}/{dimension}".lstrip("/") if has_dimension else ""
    with as_zarr_errors(source.description, f"cannot read the names of the columns of {source.description}"):
        return stored_column_names(source, node.path, coordinate, node_at)


def stored_column_names(source: Source, member: str, coordinate: str, node_at: Callable[[str], Any]) -> list[str]:
    """Return the names of the columns (D,) of a matrix that its file or store has; none where it has none.

    AnnData has those of X and layers, not of obsm, in the index of `var`; xarray and netCDF have a variable of the name
    of the columns' dimension.

    Parameters
    ----------
    member, coordinate : the places of the matrix and of that variable; the latter is "" where there is no such name
    node_at : opens an array or group of the same file or store by its place; None where there is none
    """
    *above, last = member.strip("/").split("/")
    if above[-1:] == [LAYERS] or last == WHOLE:
        var = "/".join([*(above[:-1] if above[-1:] == [LAYERS] else above), VAR])
        index = getattr(node_at(var), "attrs", {}).get(INDEX)
        if isinstance(index, str):
            return names_of_var(texts_at(f"{var}/{index}", source, node_at))
    return texts_at(coordinate, source, node_at) if coordinate else []


def texts_at(place: str, source: Source, node_at: Callable[[str], Any]) -> list[str]:
    """Return the texts (D,) of an array, one a column of points; none where it holds anything else."""
    node, mask = node_at(place), None
    if node is not None and not hasattr(node, "shape"):  # texts of which some may be missing, as AnnData writes them
        node, mask = node_at(f"{place}/values"), node_at(f"{place}/mask")
    dimensions: Any = getattr(node, "shape", ())
    n_columns = source.shape[1]
    if len(dimensions) != 1 or not holds_texts(node):
        return []
    if dimensions != (n_columns,) or (mask is not None and mask.shape != dimensions):
        raise DataError(
            f"{source.description} has {n_columns} columns, and {place}, where their names are, {dimensions[0]} "
            "values: it was damaged, write it again"
        )
    check_limit("dense row", n_columns * source.dtype.itemsize, f"a row of {source.description}")
    if mask is not None and np.any(mask[...]):
        return []
    return np.asarray((node if isinstance(node, zarr.Array) else node.asstr())[...]).tolist()


def holds_texts(array: Any) -> bool:
    """Return whether an array of zarr or HDF5 holds texts; objects of zarr are texts, by their codec."""
    if isinstance(array, zarr.Array):
        return array.dtype.kind in "OTU"
    return optional_module("h5py", "anndata").check_string_dtype(array.dtype) is not None


def open_zarr(location: str, member: str | None) -> Source:
    """Open a zarr array, an array within a group, or a matrix of an AnnData .zarr."""
    node, description = zarr_node(location, member), described(location, member)
    if isinstance(node, zarr.Array):
        return zarr_points(node, description)
    if all(name in node for name in SPARSE_PARTS):
        for name in SPARSE_PARTS:
            check_codecs(dict(node[name].metadata.to_dict()), description)
        source = sparse_group(node, description)
        source.column_names = names_in_zarr(node, source)
        return source
    if not member and node.attrs.get("encoding-type") == ANNDATA:
        components = f"obsm/{COMPONENTS}"
        return open_zarr(location, components if components in node else WHOLE)
    arrays = dict(node.arrays()) if node.store.supports_listing else {}  # as web servers do not
    if len(arrays) == 1:
        name, array = next(iter(arrays.items()))
        return zarr_points(array, f"{description}::{name}")
    offered = zarr_names(location, member)
    raise StoreError(f"{description} is a zarr group: say which array, as in {location}::NAME{offered}")


def described(location: str, member: str | None) -> str:
    """Return location and member as messages name them, without credentials."""
    return without_credentials(location) + (f"::{member}" if member else "")


def zarr_node(location: str, member: str | None) -> Any:
    """Return the zarr array or group at a path or URL, or a member of it."""
    check_settings()
    refuse_credentials(location)
    description = described(location, member)
    if "://" in location and "::" in location:
        raise ConfigError(f"{description} is a chain of URLs: give one URL, or copy or unpack what it leads to")
    with as_zarr_errors(description, f"cannot open {description} as zarr"):
        try:
            with zarr.config.set(UNEVEN):
                return with_attributes(zarr.open(place_of(location), path=member, mode="r"), description)
        except FileNotFoundError as error:
            there = zarr_names(location) if member else ""
            raise StoreError(f"no zarr array at {description}{there}: name one that is there") from error


def with_attributes(node: Any, description: str) -> Any:
    """Return an array or group whose attributes are a JSON object: zarr opens those of damaged ones as they are."""
    if not isinstance(node.metadata.attributes, dict):
        raise StoreError(f"{description} has attributes that are no JSON object: it was damaged, write it again")
    return node


@contextlib.contextmanager
def as_zarr_errors(description: str, failure: str) -> Iterator[None]:
    """Raise the errors of opening and creating with zarr, which are of many kinds, as one that says what failed."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{description} needs another package: {error}") from error
    except (ScalemaniError, RecursionError):
        raise
    except Exception as error:
        raise StoreError(f"{failure}: {without_credentials(str(error))}") from error


def is_anndata(location: str) -> bool:
    """Return whether a folder is a zarr store of an AnnData, by its attributes; False for URLs and damaged stores."""
    path = Path(location)
    if "://" in location or not any((path / marker).exists() for marker in (".zgroup", "zarr.json")):
        return False
    try:
        node = with_attributes(zarr.open(RegularFiles(path, read_only=True), mode="r"), location)
    except Exception:  # damaged, in one of many ways: no AnnData
        return False
    return isinstance(node, zarr.Group) and node.attrs.get("encoding-type") == ANNDATA


def place_of(location: str) -> Any:
    """Return the store that zarr reads: of a URL, or of a folder, in which links that lead out are refused."""
    return store_at(location) if "://" in location else RegularFiles(location, read_only=True)


def zarr_names(location: str, member: str | None = None) -> str:
    """Return the end of a message that lists what a zarr group holds."""
    try:
        group = zarr.open_group(place_of(location), path=member, mode="r")
        names = sorted(group.keys()) if group.store.supports_listing else []
    except Exception:  # only a hint inside another error's message
        return ""
    return f"; it holds {', '.join(names) or 'nothing'}"


def open_h5(path: Place) -> Any:
    """Open an HDF5 file, also in a bucket, for reading; DataError where it is damaged."""
    with as_damage(str(path)):
        return optional_module("h5py", "anndata").File(path.open() if isinstance(path, BucketFile) else path, "r")


def h5ad_node(path: Place, member: str) -> Any:
    """Return the dataset or group `member` of an HDF5 file that stays open."""
    h5py, file = optional_module("h5py", "anndata"), open_h5(path)
    try:
        refuse_other_files(file, member, path)
        if member in file:
            return file[member]
        parent = file.get(member.rpartition("/")[0] or "/")
        names = list(parent if isinstance(parent, h5py.Group) else file)
    except UnsafeStoreError:
        file.close()
        raise
    except (KeyError, RuntimeError) as error:  # of HDF5 links that lead nowhere, or in a circle
        file.close()
        raise DataError(f"{path}::{member} is a link to nothing: put the values in its place") from error
    file.close()
    raise ConfigError(f"{path} has no {member!r}; next to it there is {', '.join(names) or 'nothing'}")


def refuse_other_files(file: Any, member: str, path: Place | str) -> None:
    """Refuse a member in another file, or with values from one: a file of points may name any file."""
    h5py, parts = optional_module("h5py", "anndata"), member.strip("/").split("/")
    names = ["/".join(parts[: length + 1]) for length in range(len(parts))]
    for name in (*names, *(f"{names[-1]}/{part}" for part in SPARSE_PARTS)):
        linked = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
        node = None if linked else file.get(name)
        outside = isinstance(node, h5py.Dataset) and (node.external or node.is_virtual)
        if linked or outside or (node is not None and node.file.filename != file.filename):
            raise UnsafeStoreError(f"{path}::{name} takes its values from another file: copy them into this one")
        if isinstance(node, h5py.Dataset):
            return


def open_h5ad(path: Place, member: str | None) -> Source:
    """Open a matrix of an .h5ad file, dense or in compressed sparse rows, by default that of the points."""
    with as_damage(str(path)):
        name = member
        if not name:
            with open_h5(path) as file:
                name = f"obsm/{COMPONENTS}" if f"obsm/{COMPONENTS}" in file else WHOLE
        node, description = h5ad_node(path, name), f"{path}::{name}"
        if hasattr(node, "shape") and node.shape is None:
            raise DataError(f"{description} is an empty dataset: it has neither rows nor columns")
        source: Source = (SlicedPoints if hasattr(node, "shape") else sparse_group)(node, description)
        source.reopening, source.remote = (open_h5ad, (path, name)), isinstance(path, BucketFile)
        source.column_names = names_in_h5(node, source, path)
        return source


def dataset_points(dataset: Any) -> SlicedPoints:
    """Return the points in a dataset of an HDF5 file that is open, and stays so."""
    with as_damage(str(dataset.file.filename)):
        source = SlicedPoints(dataset)
        source.column_names = names_in_h5(dataset, source, str(dataset.file.filename))
        return source


def names_in_h5(node: Any, source: Source, path: Place | str) -> list[str]:
    """Return the names of the columns of a matrix in an HDF5 file, where these are stored next to it."""

    def node_at(place: str) -> Any:
        refuse_other_files(node.file, place, path)
        return node.file.get(place)

    coordinate = ""
    with contextlib.suppress(ValueError, RuntimeError, KeyError, AttributeError):  # dimensions that lead nowhere
        coordinate = node.dims[1][0].name.strip("/")
    return stored_column_names(source, node.name, coordinate, node_at)
