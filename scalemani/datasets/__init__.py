"""Data sets that are computed: surfaces, clusters, digits by the million; each a source of points like any other."""

from pathlib import Path
from typing import Any

import numpy as np

from scalemani.datasets.digits import DeformedDigits, InfiniteDigits
from scalemani.datasets.generator import Blobs, FishBowl, Generator, Spiral, SwissRoll
from scalemani.datasets.pixels import PlanetPixels
from scalemani.errors import ConfigError, nearest_name
from scalemani.io.export import Progress, companion_path, rows_per_block, write_rows

__all__ = ["GENERATORS", "Generator", "generator", "labels_path", "write"]

GENERATORS: dict[str, type[Generator]] = {
    kind.name: kind for kind in (SwissRoll, FishBowl, Spiral, Blobs, PlanetPixels, DeformedDigits, InfiniteDigits)
}


def generator(name: str, n_points: int | None = None, seed: int = 0, source: str | Path | None = None) -> Generator:
    """Return a generated data set by name.

    Parameters
    ----------
    name : swiss-roll, fish-bowl, spiral, blobs, planet-pixels, deformed-digits or infinite-digits
    n_points : number of points (None: 20,000; planet-pixels 1,000,000, infinite-digits 1,020,000); fewer points are
        the first of more
    seed : the same seed gives the same points, however they are cut into blocks
    source : for infinite-digits, an .npz file with pictures X (uint8, one a row) and labels y, such as mnist.npz

    Raises
    ------
    ConfigError
        For another name, a number out of range, or a source that is missing or not allowed.
    """
    if name not in GENERATORS:
        raise ConfigError(f"no data set {name!r}: {nearest_name(name, GENERATORS)}")
    kind = GENERATORS[name]
    arguments: dict[str, Any] = {"n_points": kind.default_points if n_points is None else n_points, "seed": seed}
    if issubclass(kind, InfiniteDigits):
        return kind.from_file(source=None if source is None else str(source), **arguments)
    if source is not None:
        raise ConfigError(f"{name} needs no source, got {source}")
    return kind.from_scikit_learn(**arguments) if issubclass(kind, DeformedDigits) else kind(**arguments)


def labels_path(path: str | Path) -> str:
    """Return where the labels of points at `path` go: points.labels.npy next to points.npy (URL: .labels.zarr)."""
    return companion_path(path, "labels")


def write(data: Generator, path: str | Path, progress: Progress | None = None, workers: int | None = None) -> None:
    """Write a data set as .npy, .zarr or .parquet, block by block, and its labels next to it (see `labels_path`).

    Parameters
    ----------
    data : what `generator` returned
    path : ends in .npy, .zarr or .parquet
    progress : called with the number of rows just written
    workers : threads (None: one a core); the result does not depend on it
    """
    block_rows = rows_per_block(data.n_features * data.dtype.itemsize)
    write_rows(data.block, data.shape, data.dtype, path, block_rows, progress, workers)
    kind: np.dtype = data.labels(0, 1).dtype
    write_rows(data.labels, (data.n_points,), kind, labels_path(path), block_rows=2**20)
