"""Arrays in memory, .npy files and members of .npz archives."""

import math
import threading
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from scalemani.errors import ConfigError, DataError, ScalemaniError, UnsafeStoreError
from scalemani.sources.base import Source
from scalemani.sources.bucket_files import BucketFile
from scalemani.validation import check_points

# A column-by-column archive member has to be read whole; beyond this many bytes that is refused.
LARGEST_WHOLE_MEMBER = 512 * 2**20
SKIPPED_BYTES = 2**22

Header = tuple[tuple[int, ...], bool, np.dtype]
# RuntimeError is what zipfile says of an encrypted member.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError, RuntimeError)
# Headers of arrays are read as expressions of Python.
DAMAGE_OF_HEADERS = (*DAMAGE, SyntaxError, TypeError, KeyError, AttributeError, tokenize.TokenError)


class ArrayPoints(Source):
    """Points in memory: an array, a data frame, a list of lists."""

    def __init__(self, points: Any) -> None:
        checked = check_points(points, min_rows=0)
        super().__init__(checked.shape, checked.dtype, f"{type(points).__name__} in memory")
        if isinstance(points, np.ndarray):
            self.given_dtype = points.dtype
        self.points = checked

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) without a copy."""
        return self.points[start:stop]


def read_npy_header(file: IO[bytes], name: str) -> Header:
    """Return shape, whether columns come first, and dtype of an .npy file; leave `file` at the first value.

    Raises
    ------
    DataError
        When it is not an .npy file or ends early.
    UnsafeStoreError
        When it holds Python objects, which only pickle could read.
    """
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(file)
        if version not in readers:
            raise DataError(f"{name} has .npy format version {version}; allowed: 1.0 and 2.0, which plain numbers get")
        shape, fortran_order, dtype = readers[version](file)
    except DAMAGE_OF_HEADERS as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is no .npy file, or is truncated or damaged: {error}") from error
    if dtype.hasobject:
        raise UnsafeStoreError(
            f"{name} holds Python objects that only pickle could read, which can run code: save numbers, for example "
            "numpy.save(path, array.astype(numpy.float32))"
        )
    return shape, fortran_order, dtype


@contextmanager
def as_damage(name: Path | str) -> Iterator[None]:
    """Turn whatever NumPy raises while a file is read into a DataError that says which one is damaged."""
    try:
        yield
    except ScalemaniError:
        raise
    except DAMAGE_OF_HEADERS as error:
        raise DataError(f"{name} is truncated or damaged: {error}; copy or save it again") from error


def whole_array(path: Path, member: str | None = None) -> np.ndarray:
    """Return an .npy file, or a member of an .npz archive, that memory holds.

    Raises
    ------
    DataError
        When it is damaged, or ends before what its header promises.
    UnsafeStoreError
        When it holds Python objects.
    """
    with as_damage(path if member is None else f"{path}::{member}"):
        if member is not None:
            with np.load(path, allow_pickle=False) as archive:
                found: np.ndarray = archive[member]
            return found
        with path.open("rb") as file:
            shape, _, dtype = read_npy_header(file, str(path))
            check_promised(path, path.stat().st_size, file.tell() + math.prod(shape) * dtype.itemsize)
        return np.load(path, allow_pickle=False)


def check_promised(name: Path | BucketFile | str, size: int, promised: int) -> None:
    """Refuse a file of fewer bytes than its header promises."""
    if size < promised:
        raise DataError(f"{name} is truncated: {size} bytes, its header promises {promised}; copy or save it again")


class NpyPoints(Source):
    """An .npy file, read by plain reads: unlike a memory map, what was read does not stay resident."""

    def __init__(self, path: Path | BucketFile) -> None:
        with path.open() if isinstance(path, BucketFile) else path.open("rb") as file:
            shape, self.fortran_order, self.file_dtype = read_npy_header(file, str(path))
            self.offset = file.tell()
        super().__init__(shape, self.file_dtype, str(path))
        self.path = path
        self.remote = isinstance(path, BucketFile)
        promised = self.offset + self.shape[0] * self.shape[1] * self.file_dtype.itemsize
        check_promised(path, path.size if isinstance(path, BucketFile) else path.stat().st_size, promised)
        if self.remote and self.fortran_order and self.shape[1] > 1:
            self.remark = (
                f"{path} is stored column by column: each block of rows takes {self.shape[1]} requests; "
                "numpy.ascontiguousarray(array), saved again, is read by one"
            )

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) in the byte order of the file."""
        n_rows, n_columns = self.shape
        if not self.fortran_order:
            return self._values(start * n_columns, (stop - start) * n_columns).reshape(-1, n_columns)
        rows = np.empty((stop - start, n_columns), dtype=self.file_dtype)
        for column in range(n_columns):
            values = self._values(column * n_rows + start, stop - start)
            rows[: len(values), column] = values
            if len(values) < stop - start:
                raise DataError(f"{self.path} was truncated while it was read: run again when nothing writes to it")
        return rows

    def _values(self, first: int, count: int) -> np.ndarray:
        start, size = self.offset + first * self.file_dtype.itemsize, count * self.file_dtype.itemsize
        if isinstance(self.path, BucketFile):
            return np.frombuffer(self.path.read(start, start + size), self.file_dtype)
        return np.fromfile(self.path, self.file_dtype, count, offset=start)


def npz_members(path: Path) -> dict[str, Header]:
    """Return the header of every array in an .npz archive, by name without `.npy`; arrays of objects are left out."""
    members = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as file:
                        try:
                            members[name.removesuffix(".npy")] = read_npy_header(file, f"{path}::{name}")
                        except UnsafeStoreError:
                            continue
    except DAMAGE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is no .npz archive, or is truncated or damaged: {error}") from error
    return members


def chosen_member(path: Path, asked: str | None, dimensions: tuple[int, ...]) -> str:
    """Return the member asked for, or the only one with numbers (labels: anything) and so many dimensions."""
    members = npz_members(path)
    listed = (
        ", ".join(f"{name} {shape} {dtype}" for name, (shape, _, dtype) in members.items()) or "no arrays of numbers"
    )
    if asked is not None:
        asked = asked.removesuffix(".npy")
        if asked not in members:
            with zipfile.ZipFile(path) as archive:
                if f"{asked}.npy" in archive.namelist():
                    raise UnsafeStoreError(
                        f"{path}::{asked} holds Python objects that only pickle could read: save numbers"
                    )
            raise ConfigError(f"{path} has no array {asked!r}; it has {listed}")
        return asked
    fitting = [
        name
        for name, (shape, _, dtype) in members.items()
        if len(shape) in dimensions and (dtype.kind in "biuf" or len(shape) == 1)
    ]
    if len(fitting) != 1:
        raise ConfigError(f"say which array of {path} is meant, as in {path}::NAME; it has {listed}")
    return fitting[0]


class NpzPoints(Source):
    """A member of an .npz archive, decompressed as it is read: ascending blocks cost one pass, going back another."""

    sequential = True

    def __init__(self, path: Path, member: str) -> None:
        self.path = path
        self.member = member
        self._lock = threading.Lock()
        self._stream: IO[bytes] | None = None
        self._row = 0
        self._whole: np.ndarray | None = None
        name = f"{path}::{member}"
        with zipfile.ZipFile(path) as archive, archive.open(f"{member}.npy") as file:
            shape, self.fortran_order, self.file_dtype = read_npy_header(file, name)
            n_values = math.prod(shape)
            promised = file.tell() + n_values * self.file_dtype.itemsize
            check_promised(name, archive.getinfo(f"{member}.npy").file_size, promised)
        super().__init__(shape, self.file_dtype, name)
        if self.fortran_order and n_values * self.file_dtype.itemsize > LARGEST_WHOLE_MEMBER:
            raise DataError(
                f"{name} is stored column by column, so its rows cannot be streamed: save "
                "numpy.ascontiguousarray(array), or save it as .npy"
            )

    def __reduce__(self) -> tuple[type["NpzPoints"], tuple[Path, str]]:
        return NpzPoints, (self.path, self.member)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), going on in the open stream where `start` is not behind it."""
        with self._lock:
            try:
                if self.fortran_order:
                    return self._all_rows()[start:stop]
                return self._stream_rows(start, stop)
            except DAMAGE as error:
                self._close()
                raise DataError(
                    f"{self.description} is truncated or damaged: {error}; copy or save it again"
                ) from error

    def _all_rows(self) -> np.ndarray:
        if self._whole is None:
            self._stream = self._open()
            content = self._exactly(self.shape[0] * self.shape[1] * self.file_dtype.itemsize)
            flat = np.frombuffer(content, dtype=self.file_dtype)
            self._whole = np.ascontiguousarray(flat.reshape(self.shape[::-1]).T)
            self._close()
        return self._whole

    def _stream_rows(self, start: int, stop: int) -> np.ndarray:
        if self._stream is None or start < self._row:
            self._close()
            self._stream = self._open()
            self._row = 0
        row_bytes = self.shape[1] * self.file_dtype.itemsize
        skipped = (start - self._row) * row_bytes
        while skipped:
            skipped -= len(self._exactly(min(skipped, SKIPPED_BYTES)))
        content = self._exactly((stop - start) * row_bytes)
        self._row = stop
        if stop == self.shape[0]:
            self._close()
        return np.frombuffer(content, dtype=self.file_dtype).reshape(-1, self.shape[1])

    def _exactly(self, n_bytes: int) -> bytes:
        content = self._stream.read(n_bytes) if self._stream else b""
        if len(content) != n_bytes:
            raise EOFError("the archive ends early")
        return content

    def _open(self) -> IO[bytes]:
        # The archive stays open for as long as its member is.
        stream = zipfile.ZipFile(self.path).open(f"{self.member}.npy")  # noqa: SIM115
        read_npy_header(stream, self.description)
        return stream

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None
