"""Images and videos as points: a row a pixel, of where it lies and what it shows."""

from pathlib import Path
from typing import Any

import numpy as np

from scalemani.config.validation import N_REPORTED_ROWS, check_dtype, refuse_masked
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources.base import PointsSource, Source, optional_module
from scalemani.io.sources.numpy_files import chosen_member, whole_array

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
ALLOWED = (
    "an array (rows, columns), (rows, columns, colours), (frames, rows, columns) or (frames, rows, columns, colours), "
    f"its .npy or .npz::member, or a picture ({', '.join(PICTURES)})"
)
MOST_COLOURS = 4  # of three axes, the last is colours where it is no longer than this, and else columns
# Where positions below 2^24 and the values themselves are exact.
EXACT_IN_FLOAT32 = ("uint8", "int8", "uint16", "int16", "float32")


class PixelRows(Source):
    """The pixels (N, 3 to 7) of an image or a video, frame by frame and row by row; refuses NaN and infinity.

    The features of a pixel are its row and its column, in a video its frame, and its grey or colours as given: float32
    where that is exact, else float64. `pixels` is (rows, columns), (rows, columns, colours) with at most four colours,
    (frames, rows, columns) or (frames, rows, columns, colours).
    """

    def __init__(self, pixels: Any, description: str) -> None:
        refuse_masked(pixels, description)
        given = np.asarray(pixels)
        kind = check_dtype(given.dtype, description)
        if given.ndim == 2 or (given.ndim == 3 and given.shape[2] <= MOST_COLOURS):
            given = given[np.newaxis]
        if given.ndim == 3:
            given = given[..., np.newaxis]
        if given.ndim != 4 or not given.size:
            raise DataError(f"an image is {ALLOWED}; got shape {np.shape(pixels)} of {description}")
        self.pixels = given
        frames, rows, columns, colours = given.shape
        self.image = (frames, rows, columns)
        refuse_not_finite(given, description)
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
    if pixels.dtype.kind != "f":
        return
    bad = np.argwhere(~np.isfinite(pixels).all(axis=3))
    if len(bad):
        first = bad[:N_REPORTED_ROWS] if len(pixels) > 1 else bad[:N_REPORTED_ROWS, 1:]
        listed = ", ".join(str(tuple(place.tolist())) for place in first)
        place = "(frame, row, column)" if len(pixels) > 1 else "(row, column)"
        raise DataError(
            f"{len(bad)} pixels of {description} are NaN or infinite, the first at {place} {listed}: fill them in, all "
            "pixels of an image have neighbours"
        )


def open_pixels(given: Any) -> PointsSource:
    """Return the pixels of an array, or of the path of an array or a picture; a source stays as it is."""
    if isinstance(given, PointsSource):
        return given
    if not isinstance(given, str | Path):
        return PixelRows(given, f"{type(given).__name__} in memory")
    return PixelRows(read_array(str(given)), str(given))


def read_array(location: str) -> np.ndarray:
    """Return the array in a file, of as many axes as it has."""
    name, _, member = location.partition("::")
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".npz", *PICTURES):
        raise ConfigError(f"an image is {ALLOWED}; got {location}")
    if not path.is_file():
        raise StoreError(f"no file {path}; an image is {ALLOWED}")
    if suffix in PICTURES:
        return read_picture(path)
    if suffix == ".npz":
        return whole_array(path, chosen_member(path, member or None, dimensions=(2, 3, 4)))
    return whole_array(path)


def read_picture(path: Path) -> np.ndarray:
    """Return a picture: grey levels (rows, columns), or red, green and blue (rows, columns, 3)."""
    pictures = optional_module("PIL.Image", "figures")
    try:
        with pictures.open(path) as picture:
            grey = picture.mode in ("1", "L", "LA") or picture.mode.startswith(("I", "F"))
            mode = {"1": "L", "LA": "L"}.get(picture.mode, picture.mode) if grey else "RGB"
            return np.asarray(picture.convert(mode))
    except Exception as error:  # what reads pictures has errors of many kinds, and all mean the same here
        raise DataError(f"{path} is no picture, or is truncated or damaged: {error}") from error
