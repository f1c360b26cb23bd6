"""Every point counted in tiles over the map, and what the points of each tile are, on grids of a few resolutions.

Counts are whole numbers and sum up to the points. A tile shows the class that most of its labelled points have, or the
mean of their values, on each grid counted anew: what a coarse tile shows is not that of the finer ones within it.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

SIDE = 2048  # tiles a side of the finest grid: what every WebGL 2 takes as a texture
RESOLUTIONS = 4  # grids; each has half the tiles a side of the one before, down to three pixels or so a tile


class ColumnTiles(Protocol):
    """What the points of each tile are by one column of labels or values."""

    def add(self, tiles: np.ndarray, codes: np.ndarray) -> None:
        """Add points (n,) that lie in tiles of the finest grid; a code above all others is no label."""

    def codes(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, finest grid first, the tiles (t,) with labelled points, and the code (t,) that each shows."""


class ClassTiles:
    """The most frequent class of each tile; of several as frequent, the first in the legend.

    It keeps a number for each pair of a tile and a class in it: 16 bytes for each of the points, at most.
    """

    def __init__(self, n_classes: int, side: int = SIDE) -> None:
        self.n_classes, self.side = n_classes, side
        self.pairs, self.counts = np.empty(0, np.int64), np.empty(0, np.int64)

    def add(self, tiles: np.ndarray, codes: np.ndarray) -> None:
        """Add points, as `ColumnTiles` says."""
        labelled = codes < self.n_classes
        pairs = tiles[labelled].astype(np.int64) * self.n_classes + codes[labelled]
        found, counts = np.unique(pairs, return_counts=True)
        self.pairs, self.counts = summed(np.append(self.pairs, found), np.append(self.counts, counts))

    def codes(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield tiles and the most frequent class of each, as `ColumnTiles` says."""
        pairs, counts, side = self.pairs, self.counts, self.side
        for resolution in range(RESOLUTIONS):
            tiles, classes = np.divmod(pairs, self.n_classes)
            starts = np.flatnonzero(np.diff(tiles, prepend=-1))
            if len(starts):
                sizes = np.diff(starts, append=len(tiles))
                most = np.flatnonzero(counts == np.repeat(np.maximum.reduceat(counts, starts), sizes))
                first = most[np.diff(tiles[most], prepend=-1) != 0]  # pairs are sorted by class within a tile
                yield tiles[first], classes[first]
            else:
                yield tiles, classes
            if resolution < RESOLUTIONS - 1:
                pairs, counts = summed(coarser(tiles, side) * self.n_classes + classes, counts)
                side //= 2


class ValueTiles:
    """The mean value of each tile, as a code along the ramp; it keeps 16 bytes for each tile."""

    def __init__(self, n_levels: int, side: int = SIDE) -> None:
        self.n_levels, self.side = n_levels, side
        self.sums, self.counts = np.zeros(side**2), np.zeros(side**2, np.int64)

    def add(self, tiles: np.ndarray, codes: np.ndarray) -> None:
        """Add points, as `ColumnTiles` says."""
        valued = codes < self.n_levels
        tiles, codes = tiles[valued], codes[valued]
        self.sums += np.bincount(tiles, codes, self.side**2)
        self.counts += np.bincount(tiles, minlength=self.side**2)

    def codes(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield tiles and the mean code of each, as `ColumnTiles` says."""
        sums, counts, side = self.sums, self.counts, self.side
        for resolution in range(RESOLUTIONS):
            tiles = np.flatnonzero(counts)
            yield tiles, np.rint(sums[tiles] / counts[tiles]).astype(np.int64)
            if resolution < RESOLUTIONS - 1:
                sums, counts = (
                    values.reshape(side // 2, 2, side // 2, 2).sum(axis=(1, 3)).ravel() for values in (sums, counts)
                )
                side //= 2


def summed(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different keys (k,), sorted, and the sum of the counts (n,) of each."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.add.reduceat(counts[order], starts) if len(starts) else counts


def coarser(tiles: np.ndarray, side: int) -> np.ndarray:
    """Return which tiles (n,) of the grid with half the tiles a side hold tiles (n,) of a grid with `side`."""
    rows, columns = np.divmod(tiles, side)
    return rows // 2 * (side // 2) + columns // 2


class Tiles:
    """The counts of a map, and what its tiles show by each column."""

    def __init__(self, columns: list[ColumnTiles], side: int = SIDE) -> None:
        self.columns, self.side = columns, side
        self.counts = np.zeros(side**2, np.int64)

    def add(self, places: np.ndarray, codes: list[np.ndarray]) -> None:
        """Count points.

        Parameters
        ----------
        places : (n, 2) uint16, of the points: across and up
        codes : for each column, those of the points (n,)
        """
        cells = places.astype(np.int64) * self.side >> 16
        tiles = cells[:, 1] * self.side + cells[:, 0]
        self.counts += np.bincount(tiles, minlength=self.side**2)
        for column, given in zip(self.columns, codes, strict=True):
            column.add(tiles, given)

    def shown(self, number: int, dtype: np.dtype, missing: int | None) -> np.ndarray:
        """Return the codes of all tiles by a column, those of the finest grid first, row by row, and of coarser ones.

        Tiles without a labelled point have the code of points without a label, or the first where there are none.
        """
        sides = [self.side >> resolution for resolution in range(RESOLUTIONS)]
        grids = [np.full(side**2, missing or 0, dtype) for side in sides]
        for grid, (tiles, codes) in zip(grids, self.columns[number].codes(), strict=True):
            grid[tiles] = codes
        return np.concatenate(grids)
