"""Arrays in memory, .npy files, folders of them, and members of .npz archives."""

import math
import struct
import threading
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import numpy as np

from scalemani.config.validation import check_points
from scalemani.errors import ConfigError, DataError, ScalemaniError, UnsafeStoreError
from scalemani.io.sources.base import Source, check_file, natural_order, pieces
from scalemani.io.sources.bucket_files import BucketFile

LENGTHS_IN_HEADER = 26  # where a member of a .zip has the lengths of its name and of what comes before its content

Header = tuple[tuple[int, ...], bool, np.dtype]
# RuntimeError is what zipfile says of an encrypted member; headers of arrays are read as expressions of Python.
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError, RuntimeError),
    *(SyntaxError, TypeError, KeyError, AttributeError, tokenize.TokenError),
)


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


@contextmanager
def as_damage(name: Path | str) -> Iterator[None]:
    """Raise the errors of NumPy and zipfile as DataErrors that name the damaged file."""
    try:
        yield
    except ScalemaniError:
        raise
    except DAMAGE as error:
        kind = ".npz archive" if str(name).lower().partition("::")[0].endswith(".npz") else ".npy file"
        raise DataError(f"{name} is no {kind}, or is truncated or damaged: {error}; copy or save it again") from error


def read_npy_header(file: IO[bytes], name: str) -> Header:
    """Return shape, column-major order and dtype of an .npy file, leaving `file` at its first value; refuse objects."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with as_damage(name):
        version = np.lib.format.read_magic(file)
        if version not in readers:
            raise DataError(f"{name} has .npy format version {version}; allowed: 1.0 and 2.0, which plain numbers get")
        shape, fortran_order, dtype = readers[version](file)
    if dtype.hasobject:
        raise UnsafeStoreError(
            f"{name} holds Python objects that only pickle could read, which can run code: save numbers, for example "
            "numpy.save(path, array.astype(numpy.float32))"
        )
    return shape, fortran_order, dtype


def whole_array(path: Path, member: str | None = None) -> np.ndarray:
    """Return an .npy file, or a member of an .npz archive, read into memory."""
    with as_damage(path if member is None else f"{path}::{member}"):
        if member is not None:
            with np.load(path, allow_pickle=False) as archive:
                array: np.ndarray = archive[member]
            return array
        with path.open("rb") as file:
            shape, _, dtype = read_npy_header(file, str(path))
            check_promised(path, path.stat().st_size, file.tell() + math.prod(shape) * dtype.itemsize)
        return np.load(path, allow_pickle=False)


def check_promised(name: Path | BucketFile | str, size: int, promised: int) -> None:
    """Refuse a file of fewer bytes than its header promises."""
    if size < promised:
        raise DataError(f"{name} is truncated: {size} bytes, its header promises {promised}; copy or save it again")


class NpyPoints(Source):
    """An .npy file, or an uncompressed member of an .npz archive, read by plain reads: nothing stays resident."""

    def __init__(self, path: Path | BucketFile, member: str | None = None) -> None:
        self.path, self.remote = path, isinstance(path, BucketFile)
        name = str(path) if member is None else f"{path}::{member}"
        if isinstance(path, BucketFile):
            start, size = 0, path.size
        else:
            start, size = (0, path.stat().st_size) if member is None else place_of_member(path, member)
        with path.open() if isinstance(path, BucketFile) else path.open("rb") as file:
            file.seek(start)
            shape, self.fortran_order, self.file_dtype = read_npy_header(file, name)
            self.offset = file.tell()
        super().__init__(shape, self.file_dtype, name)
        check_promised(name, size, self.offset - start + math.prod(shape) * self.file_dtype.itemsize)
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
    with as_damage(path), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as file, suppress(UnsafeStoreError):
                    members[name.removesuffix(".npy")] = read_npy_header(file, f"{path}::{name}")
    return members


def chosen_member(path: Path, requested: str | None, dimensions: tuple[int, ...]) -> str:
    """Return the requested member, or the only one with numbers (labels: anything) and so many dimensions."""
    members = npz_members(path)
    listed = (
        ", ".join(f"{name} {shape} {dtype}" for name, (shape, _, dtype) in members.items()) or "no arrays of numbers"
    )
    if requested is not None:
        requested = requested.removesuffix(".npy")
        if requested not in members:
            with zipfile.ZipFile(path) as archive, suppress(KeyError), archive.open(f"{requested}.npy") as file:
                read_npy_header(file, f"{path}::{requested}")  # which refuses objects
            raise ConfigError(f"{path} has no array {requested!r}; it has {listed}")
        return requested
    fitting = [
        name
        for name, (shape, _, dtype) in members.items()
        if len(shape) in dimensions and (dtype.kind in "biuf" or len(shape) == 1)
    ]
    if len(fitting) != 1:
        raise ConfigError(f"say which array of {path} is meant, as in {path}::NAME; it has {listed}")
    return fitting[0]


def open_npz(path: Path, member: str) -> Source:
    """Open a member of an .npz archive, which is read by rows where it is not compressed."""
    with as_damage(path), zipfile.ZipFile(path) as archive:
        stored = archive.getinfo(f"{member}.npy").compress_type == zipfile.ZIP_STORED
    return NpyPoints(path, member) if stored else CompressedPoints(path, member)


def place_of_member(path: Path, member: str) -> tuple[int, int]:
    """Return offset and length of an uncompressed member of an archive."""
    with as_damage(path), zipfile.ZipFile(path) as archive, path.open("rb") as file:
        member_info = archive.getinfo(f"{member}.npy")
        file.seek(member_info.header_offset + LENGTHS_IN_HEADER)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
        return file.tell() + name_length + extra_length, member_info.file_size


class CompressedPoints(Source):
    """A compressed member of an .npz archive, decompressed as a whole and held until its last row was read."""

    sequential = True

    def __init__(self, path: Path, member: str) -> None:
        self.path, self.member, name = path, member, f"{path}::{member}"
        self._lock = threading.Lock()
        self._whole: np.ndarray | None = None
        with as_damage(name), zipfile.ZipFile(path) as archive, archive.open(f"{member}.npy") as file:
            shape, _, dtype = read_npy_header(file, name)
            self.held_bytes = math.prod(shape) * dtype.itemsize
            check_promised(name, archive.getinfo(f"{member}.npy").file_size, file.tell() + self.held_bytes)
        super().__init__(shape, dtype, name)

    def __reduce__(self) -> tuple[type["CompressedPoints"], tuple[Path, str]]:
        return CompressedPoints, (self.path, self.member)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        with self._lock:
            whole = whole_array(self.path, self.member) if self._whole is None else self._whole
            self._whole = whole if stop < self.shape[0] else None
        return whole[start:stop]


class NpyParts(Source):
    """The .npy files of a folder in natural order of their names (part-2 before part-10)."""

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("*.npy"), key=natural_order)
        for path in files:
            check_file(path)
        self.parts = [NpyPoints(path) for path in files]
        first = self.parts[0]
        for path, part in zip(files, self.parts, strict=True):
            if (part.shape[1], part.file_dtype) != (first.shape[1], first.file_dtype):
                raise DataError(
                    f"all files must have the same columns: {path} has {part.shape[1]} of {part.file_dtype}, "
                    f"{files[0]} has {first.shape[1]} of {first.file_dtype}"
                )
        self.starts = [0, *accumulate(part.shape[0] for part in self.parts)]
        super().__init__((self.starts[-1], first.shape[1]), first.file_dtype, f"{folder} ({len(files)} files)")

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        rows, row = np.empty((stop - start, self.shape[1]), self.dtype), 0
        for part, first, last in pieces(self.starts, start, stop):
            rows[row : row + last - first] = self.parts[part].read(first, last)
            row += last - first
        return rows
