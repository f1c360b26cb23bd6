"""A run of points in clusters, its tiles, and a reader of tiles that shares nothing with their writer."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalemani as sm
from scalemani.interfaces.tiles.writing import write_tiles
from tests.interfaces.report.conftest import open_browser

__all__ = ["open_browser"]

LEAF, INNER = 1, 2
N_POINTS = 20_000
N_CLASSES = 7


class Tiles:
    """A folder of tiles: its description, and the kinds, counts and points of tiles by (level, column, row)."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.page = folder, (folder / "index.html").read_text()
        self.described = json.loads(self.script("map-data"))
        self.kinds, self.leaves = {}, []
        kinds = iter(gzip.decompress(base64.b64decode(self.script("array-kinds"))))
        self.plant(kinds, (0, 0, 0))
        assert next(kinds, None) is None

    def script(self, name: str) -> str:
        return re.search(rf'<script [^>]*id="{name}">(.*?)</script>', self.page, re.DOTALL)[1]

    def plant(self, kinds: Iterator[int], place: tuple[int, int, int]) -> None:
        self.kinds[place] = next(kinds)
        if self.kinds[place] == LEAF:
            self.leaves.append(place)
        if self.kinds[place] == INNER:
            level, x, y = place
            for child in range(4):
                self.plant(kinds, (level + 1, 2 * x + child % 2, 2 * y + child // 2))

    def read(self, path: str, sizes: list[int]) -> list[np.ndarray]:
        """Return arrays of unsigned integers of so many bytes, which a file has plane by plane."""
        content = np.frombuffer(gzip.decompress((self.folder / path).read_bytes()), np.uint8)
        count, start, arrays = len(content) // sum(sizes), 0, []
        for size in sizes:
            planes = content[start : start + size * count].reshape(size, count).astype(np.int64)
            arrays.append((planes * 256 ** np.arange(size)[:, None]).sum(axis=0))
            start += size * count
        return arrays

    def counts(self, place: tuple[int, int, int]) -> list[np.ndarray]:
        """Return the counts of a tile and its codes by each column, (256, 256), from the lowest row."""
        level, x, y = place
        arrays = self.read(f"counts/{level}/{x}-{y}.bin", [4, *self.described["code_bytes"]])
        return [array.reshape(256, 256) for array in arrays]

    def points(self, place: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Return places (n, 2) from 0 to 1, rows (n,) and codes of the points of a tile."""
        level, x, y = place
        left, low, rows, *codes = self.read(f"points/{level}/{x}-{y}.bin", [2, 2, 4, *self.described["code_bytes"]])
        inside = (np.column_stack([left, low]) + 0.5) / 65536
        return (np.array([x, y]) + inside) / 2**level, np.cumsum(rows), codes


@pytest.fixture(scope="session")
def clusters() -> tuple[np.ndarray, np.ndarray]:
    """Points of three features in clusters of different width, and their classes."""
    draw = np.random.default_rng(5)
    classes = draw.integers(0, N_CLASSES, N_POINTS)
    centres = draw.normal(size=(N_CLASSES, 3)) * 4
    return centres[classes] + draw.normal(size=(N_POINTS, 3)) * (0.05 + 0.2 * classes[:, None]), classes


@pytest.fixture(scope="session")
def run(clusters, tmp_path_factory) -> Any:
    folder = tmp_path_factory.mktemp("run") / "run"
    sm.LandmarkPCA(n_components=3, n_landmarks=50, store=folder).fit(clusters[0])
    return sm.open_run(folder)


@pytest.fixture(scope="session")
def columns(clusters) -> dict[str, np.ndarray]:
    """Classes, values of which some are missing, and texts that are all different."""
    values = np.where(np.arange(N_POINTS) % 9, clusters[0][:, 2], np.nan)
    return {"kind": clusters[1], "height": values, "name": np.array([f"point {row}" for row in range(N_POINTS)])}


@pytest.fixture(scope="session")
def tiles(run, columns, tmp_path_factory) -> Tiles:
    folder = tmp_path_factory.mktemp("tiles") / "tiles"
    write_tiles(run, folder, columns, leaf_points=300, held_points=2000)
    return Tiles(folder)
