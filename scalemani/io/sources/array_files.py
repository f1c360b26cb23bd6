"""Arrays in memory, in .npy files, folders of them and .npz archives, and the pixels of images as points."""

import math
import struct
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from scalemani.config.validation import N_REPORTED_ROWS, check_dtype, check_points, unmasked
from scalemani.errors import ConfigError, DataError, StoreError, UnsafeStoreError
from scalemani.io.sources.base import (
    PointsSource,
    Source,
    SourceOfPieces,
    as_damage,
    as_opening_errors,
    as_store_errors,
    check_file,
    natural_order,
    optional_module,
)
from scalemani.io.sources.bucket_files import BucketFile, Place
from scalemani.io.sources.tables import check_same
from scalemani.kernels.machine.forks import new_lock

PIECE_BYTES = 2**20  # of an archive, read at once
LENGTHS_IN_HEADER = 26  # where a member of a .zip has the lengths of its name and of what comes before its content

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
IMAGES = (
    "an array (rows, columns), (rows, columns, colours), (frames, rows, columns) or (frames, rows, columns, colours), "
    f"its .npy or .npz::member, or a picture ({', '.join(PICTURES)})"
)
MOST_COLOURS = 4  # of three axes, the last is colours where it is no longer than this, and else columns
# Where positions below 2^24 and the values themselves are exact.
EXACT_IN_FLOAT32 = ("uint8", "int8", "uint16", "int16", "float32")


class ArrayPoints(Source):
    """Points in memory: an array, a data frame, a list of lists."""

    def __init__(self, points: Any, gaps: bool = False) -> None:
        checked = check_points(points, min_rows=0, gaps=gaps)
        super().__init__(checked.shape, checked.dtype, f"{type(points).__name__} in memory")
        if isinstance(points, np.ndarray):
            self.input_dtype = points.dtype
        self.points, self.column_names = checked, list(getattr(points, "columns", ()))

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) as a view of the array."""
        return self.points[start:stop]


class Header(NamedTuple):
    """What the beginning of an .npy file says of its array."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype


def read_header(file: IO[bytes], name: str) -> Header:
    """Return the header of an .npy file, leaving `file` at its first value."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise DataError(f"{name} has .npy format version {version}; allowed: 1.0 and 2.0, which plain numbers get")
    return Header(*readers[version](file))


@contextmanager
def opened_array(path: Place, member: str | None) -> Iterator[tuple[IO[bytes], Header, int | None]]:
    """Yield an .npy file or a member of an .npz archive at its first value, its header, and where in the file that is.

    None is of compressed members. Objects are refused, and fewer bytes than the header promises.
    """
    name = str(path) if member is None else f"{path}::{member}"
    with ExitStack() as closing:
        file: IO[bytes] = closing.enter_context(path.open() if isinstance(path, BucketFile) else path.open("rb"))
        closing.enter_context(as_damage(name))
        start: int | None = 0
        size = path.size if isinstance(path, BucketFile) else path.stat().st_size
        if member is not None:
            archive = closing.enter_context(zipfile.ZipFile(file))
            info = archive.getinfo(f"{member}.npy")
            file.seek(info.header_offset + LENGTHS_IN_HEADER)
            start, size = sum(struct.unpack("<HH", file.read(4))) + file.tell(), info.file_size
            start = start if info.compress_type == zipfile.ZIP_STORED else None
            file = closing.enter_context(archive.open(info))
        header = read_header(file, name)
        if header.dtype.hasobject:
            raise UnsafeStoreError(
                f"{name} holds Python objects that only pickle could read, which can run code: save numbers, for "
                "example numpy.save(path, array.astype(numpy.float32))"
            )
        promised = file.tell() + math.prod(header.shape) * header.dtype.itemsize
        if size < promised:
            raise DataError(f"{name} is truncated: {size} bytes, its header promises {promised}; copy or save it again")
        yield file, header, None if start is None else start + file.tell()


def whole_array(path: Place, member: str | None = None) -> np.ndarray:
    """Return an .npy file, or a member of an .npz archive, read into memory."""
    with opened_array(path, member) as (file, _, _):
        file.seek(0)
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        read_to_end(file)
        return array


def read_to_end(file: IO[bytes]) -> None:
    """Read what is left of a file: the checksum of a member of an archive is compared at its end alone."""
    while file.read(PIECE_BYTES):
        pass


def read_array(path: Path, member: str | None, dimensions: tuple[int, ...] = (1,)) -> np.ndarray:
    """Return the array in an .npy file, or in an .npz archive the one that is named or has so many axes alone."""
    return whole_array(path, chosen_member(path, member, dimensions) if path.suffix.lower() == ".npz" else None)


class NpyPoints(Source):
    """An .npy file, or an uncompressed member of an .npz archive, read by plain reads: nothing stays resident."""

    def __init__(self, path: Place, member: str | None = None) -> None:
        self.path, self.member, self.remote = path, member, isinstance(path, BucketFile)
        self.file = None if isinstance(path, BucketFile) else path.absolute()
        with opened_array(path, member) as (_, header, self.offset):
            self.fortran_order, self.file_dtype = header.fortran_order, header.dtype
        super().__init__(header.shape, header.dtype, str(path) if member is None else f"{path}::{member}")
        if self.remote and self.fortran_order and self.shape[1] > 1:
            self.remark = (
                f"{path} is stored column by column: each block of rows takes {self.shape[1]} requests; "
                "numpy.ascontiguousarray(array), saved again, is read by one"
            )

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) in the byte order of the file."""
        n_rows, n_columns = self.shape
        with as_store_errors(self.description, start, stop):
            if not self.fortran_order:
                return self._values(start * n_columns, (stop - start) * n_columns).reshape(-1, n_columns)
            rows = np.empty((stop - start, n_columns), dtype=self.file_dtype)
            for column in range(n_columns):
                rows[:, column] = self._values(column * n_rows + start, stop - start)
            return rows

    def _values(self, first: int, count: int) -> np.ndarray:
        start, size = (self.offset or 0) + first * self.file_dtype.itemsize, count * self.file_dtype.itemsize
        if isinstance(self.path, BucketFile):
            return np.frombuffer(self.path.read(start, start + size), self.file_dtype)
        values = np.fromfile(self.file or self.path, self.file_dtype, count, offset=start)
        if len(values) < count:
            raise DataError(f"{self.path} was truncated while it was read: run again when nothing writes to it")
        return values


class CompressedPoints(Source):
    """A compressed member of an .npz archive, decompressed as a whole and held until its last row was read."""

    sequential = True

    def __init__(self, points: NpyPoints) -> None:
        super().__init__(points.shape, points.file_dtype, points.description)
        self.whole = points.path, points.member
        self.reopening = (open_npz, self.whole)
        self.held_bytes = math.prod(self.shape) * points.file_dtype.itemsize
        self._lock = new_lock()
        self._whole: np.ndarray | None = None

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the member, which is decompressed whole and held until its last row."""
        with self._lock, as_store_errors(self.description, start, stop):
            whole = whole_array(*self.whole) if self._whole is None else self._whole
            self._whole = whole if stop < self.shape[0] else None
        return whole[start:stop]


def open_npz(path: Place, member: str | None) -> Source:
    """Open a member of an .npz archive, which is read by rows where it is not compressed.

    Rows are read past the archive, in any order and in several processes, so the checksum is compared here.
    """
    points = NpyPoints(path, member)
    if points.offset is None:
        return CompressedPoints(points)
    with opened_array(path, member) as (file, _, _):
        read_to_end(file)
    return points


def npz_members(path: Path) -> dict[str, Header]:
    """Return the header of every array in an .npz archive, by name without `.npy`."""
    members = {}
    with as_damage(path), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as file:
                    members[name.removesuffix(".npy")] = read_header(file, f"{path}::{name}")
    return members


def chosen_member(path: Path, requested: str | None, dimensions: tuple[int, ...]) -> str:
    """Return the requested member, or the only one with numbers (labels: anything) and so many dimensions."""
    members = npz_members(path)
    if requested is not None and (requested := requested.removesuffix(".npy")) in members:
        return requested
    readable = {name: header for name, header in members.items() if not header.dtype.hasobject}
    listed = ", ".join(f"{name} {shape} {dtype}" for name, (shape, _, dtype) in readable.items())
    offered = f"it has {listed or 'no arrays of numbers'}"
    if requested is not None:
        raise ConfigError(f"{path} has no array {requested!r}; {offered}")
    fitting = [
        name
        for name, (shape, _, dtype) in readable.items()
        if len(shape) in dimensions and (dtype.kind in "biuf" or len(shape) == 1)
    ]
    if len(fitting) != 1:
        raise ConfigError(f"say which array of {path} is meant, as in {path}::NAME; {offered}")
    return fitting[0]


class NpyParts(SourceOfPieces):
    """The .npy files of a folder in natural order of their names (part-2 before part-10)."""

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("*.npy"), key=natural_order)
        for path in files:
            check_file(path)
        self.parts = [NpyPoints(path) for path in files]
        first = self.parts[0]
        kinds = [f"{part.shape[1]} of {part.file_dtype}" for part in self.parts]
        for path, kind in zip(files, kinds, strict=True):
            check_same(kind, kinds[0], path, files[0])
        self.starts = [0, *accumulate(part.shape[0] for part in self.parts)]
        super().__init__((self.starts[-1], first.shape[1]), first.file_dtype, f"{folder} ({len(files)} files)")

    def piece_rows(self, piece: int, first: int, last: int) -> np.ndarray:
        """Return rows [first, last) of one file of the folder."""
        return self.parts[piece].read(first, last)


class PixelRows(Source):
    """The pixels (N, 3 to 7) of an image or a video, frame by frame and row by row; refuses NaN and infinity.

    The features of a pixel are its row and its column, in a video its frame, and its grey or colours unchanged: float32
    where that is exact, else float64. `pixels` is (rows, columns), (rows, columns, colours) with at most four colours,
    (frames, rows, columns) or (frames, rows, columns, colours).
    """

    def __init__(self, pixels: Any, description: str) -> None:
        values = np.asarray(unmasked(pixels, description))
        kind = check_dtype(values.dtype, description)
        if values.ndim == 2 or (values.ndim == 3 and values.shape[2] <= MOST_COLOURS):
            values = values[np.newaxis]
        if values.ndim == 3:
            values = values[..., np.newaxis]
        if values.ndim != 4 or not values.size:
            raise DataError(f"an image is {IMAGES}; got shape {np.shape(pixels)} of {description}")
        self.pixels = values
        frames, rows, columns, colours = values.shape
        self.image = (frames, rows, columns)
        refuse_not_finite(values, description)
        dtype = np.float32 if kind.name in EXACT_IN_FLOAT32 else np.float64
        super().__init__((frames * rows * columns, 2 + (frames > 1) + colours), dtype, description)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return pixels [start, stop): row, column, frame in a video, then grey or colours."""
        frame, row, column = np.unravel_index(np.arange(start, stop), self.image)
        place = [row, column] if self.image[0] == 1 else [row, column, frame]
        values = self.pixels[frame, row, column]
        return np.concatenate([np.stack(place, axis=1), values], axis=1, dtype=self.dtype, casting="unsafe")


def refuse_not_finite(pixels: np.ndarray, description: str) -> None:
    """Refuse NaN and infinity among pixels (frames, rows, columns, colours), with the places of the first."""
    bad = np.argwhere(~np.isfinite(pixels).all(axis=3)) if pixels.dtype.kind == "f" else ()
    if len(bad):
        places = ", ".join(str(tuple(place.tolist())) for place in bad[:N_REPORTED_ROWS])
        raise DataError(
            f"{len(bad)} pixels of {description} are NaN or infinite, the first at (frame, row, column) {places}: fill "
            "them in, all pixels of an image have neighbours"
        )


def open_pixels(image: Any) -> PointsSource:
    """Return the pixels of an array, or of the path of an array or a picture; a source stays as it is."""
    if isinstance(image, PointsSource):
        return image
    if not isinstance(image, str | Path):
        return PixelRows(image, f"{type(image).__name__} in memory")
    name, _, member = str(image).partition("::")
    path, suffix = Path(name), Path(name).suffix.lower()
    if suffix not in (".npy", ".npz", *PICTURES):
        raise ConfigError(f"an image is {IMAGES}; got {image}")
    with as_opening_errors(name):
        if not path.is_file():
            raise StoreError(f"no file {path}; an image is {IMAGES}")
        values = read_picture(path) if suffix in PICTURES else read_array(path, member or None, dimensions=(2, 3, 4))
    return PixelRows(values, str(image))


def read_picture(path: Path) -> np.ndarray:
    """Return a picture: grey levels (rows, columns), or red, green and blue (rows, columns, 3)."""
    pictures = optional_module("PIL.Image", "figures")
    with as_damage(path), pictures.open(path) as picture:
        grey = picture.mode in ("1", "L", "LA") or picture.mode.startswith(("I", "F"))
        mode = {"1": "L", "LA": "L"}.get(picture.mode, picture.mode) if grey else "RGB"
        return np.asarray(picture.convert(mode))
