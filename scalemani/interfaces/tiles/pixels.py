"""What the pixels of a tile count: points, those of each class, values; four tiles make one of the level above.

Pixels are in Morton order: bits of their column and row alternate, that of the column last. The four pixels that
become one of the level above are then next to each other.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scalemani.interfaces.report.map_data import LEVELS

BITS = 8  # of a pixel along an axis
SIDE = 2**BITS
PIXELS = SIDE**2


class ClassCounts(NamedTuple):
    """Points of each class in each pixel: `cells` are pixel * n_classes + class, ascending, with their `counts`."""

    n_classes: int
    cells: np.ndarray
    counts: np.ndarray

    @classmethod
    def of_points(cls, pixels: np.ndarray, codes: np.ndarray, n_classes: int) -> "ClassCounts":
        """Count points (n,) at pixels by their codes; those of no class have a code beyond."""
        labelled = codes < n_classes
        cells = pixels[labelled].astype(np.int64) * n_classes + codes[labelled]
        return cls(n_classes, *np.unique(cells, return_counts=True))

    @classmethod
    def merged(cls, tiles: Sequence["ClassCounts"]) -> "ClassCounts":
        """Return the counts of the tile that four make."""
        n_classes = tiles[0].n_classes
        coarse = [coarse_pixels(tile.cells // n_classes, place) for place, tile in enumerate(tiles)]
        cells = np.concatenate(
            [pixels * n_classes + tile.cells % n_classes for pixels, tile in zip(coarse, tiles, strict=True)]
        )
        counts = np.concatenate([tile.counts for tile in tiles])
        order = np.argsort(cells, kind="stable")
        cells, counts = cells[order], counts[order]
        first = np.flatnonzero(np.diff(cells, prepend=-1))
        return cls(n_classes, cells[first], np.add.reduceat(counts, first) if len(first) else counts)

    def shown(self, empty: int) -> np.ndarray:
        """Return the most frequent class of each pixel, the first of equals; `empty` where no point has one."""
        codes = np.full(PIXELS, empty, np.int64)
        if len(self.cells):
            pixels = self.cells // self.n_classes
            first = np.flatnonzero(np.diff(pixels, prepend=-1))
            largest = np.repeat(np.maximum.reduceat(self.counts, first), np.diff(first, append=len(pixels)))
            most = np.flatnonzero(self.counts == largest)[::-1]
            codes[pixels[most]] = self.cells[most] % self.n_classes  # of equals the last that is written, the first
        return codes


class ValueSums(NamedTuple):
    """Sums of levels of values in each pixel, and how many points have one."""

    sums: np.ndarray
    counts: np.ndarray

    @classmethod
    def of_points(cls, pixels: np.ndarray, codes: np.ndarray) -> "ValueSums":
        """Add up the codes of points (n,) at pixels; those of no value have a code beyond."""
        there = pixels[codes < LEVELS]
        sums = np.bincount(there, codes[codes < LEVELS], PIXELS).astype(np.int64)
        return cls(sums, np.bincount(there, minlength=PIXELS))

    @classmethod
    def merged(cls, tiles: Sequence["ValueSums"]) -> "ValueSums":
        """Return the sums of the tile that four make."""
        return cls(coarse_sums([tile.sums for tile in tiles]), coarse_sums([tile.counts for tile in tiles]))

    def shown(self, empty: int) -> np.ndarray:
        """Return the mean level of each pixel; `empty` where no point has one."""
        return np.where(self.counts, np.rint(self.sums / np.maximum(self.counts, 1)), empty).astype(np.int64)


class PixelCounts(NamedTuple):
    """Points in each pixel, (PIXELS,), and what they are by each column."""

    points: np.ndarray
    columns: list[ClassCounts | ValueSums]

    @classmethod
    def of_points(
        cls, pixels: np.ndarray, codes: Sequence[np.ndarray], columns: Sequence[Mapping[str, Any]]
    ) -> "PixelCounts":
        """Count points (n,) at pixels, with codes (n,) by each column."""
        counted = [
            ValueSums.of_points(pixels, values)
            if column["classes"] is None
            else ClassCounts.of_points(pixels, values, len(column["classes"]))
            for values, column in zip(codes, columns, strict=True)
        ]
        return cls(np.bincount(pixels, minlength=PIXELS), counted)

    @classmethod
    def merged(cls, tiles: Sequence["PixelCounts"]) -> "PixelCounts":
        """Return the counts of the tile that four make, in Morton order."""
        columns: Any = zip(*(tile.columns for tile in tiles), strict=True)
        return cls(coarse_sums([tile.points for tile in tiles]), [type(four[0]).merged(four) for four in columns])


def coarse_pixels(pixels: np.ndarray, place: int) -> np.ndarray:
    """Return the pixels of the tile above that pixels of its tile `place`, of four, are in."""
    return place * (PIXELS // 4) + (pixels >> 2)


def coarse_sums(four: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sums (PIXELS,) of the tile that four make."""
    return np.concatenate(four).reshape(PIXELS, 4).sum(axis=1)


def spread_bits(values: np.ndarray) -> np.ndarray:
    """Return numbers of 32 bits with a zero before each bit, as uint64."""
    bits = values.astype(np.uint64)
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ):
        bits = (bits | bits << np.uint64(shift)) & np.uint64(mask)
    return bits


def joined_bits(values: np.ndarray) -> np.ndarray:
    """Return the numbers that `spread_bits` spreads, as uint32."""
    bits = values.astype(np.uint64) & np.uint64(0x5555555555555555)
    for shift, mask in (
        (1, 0x3333333333333333),
        (2, 0x0F0F0F0F0F0F0F0F),
        (4, 0x00FF00FF00FF00FF),
        (8, 0x0000FFFF0000FFFF),
        (16, 0x00000000FFFFFFFF),
    ):
        bits = (bits | bits >> np.uint64(shift)) & np.uint64(mask)
    return bits.astype(np.uint32)


def morton_keys(places: np.ndarray) -> np.ndarray:
    """Return the Morton keys (n,) uint64 of places (n, 2) uint32, across and up."""
    return spread_bits(places[:, 0]) | spread_bits(places[:, 1]) << np.uint64(1)


def places_of(keys: np.ndarray) -> np.ndarray:
    """Return the places (n, 2) uint32 of Morton keys (n,)."""
    return np.column_stack([joined_bits(keys), joined_bits(keys >> np.uint64(1))])


# Morton numbers of the pixels of a picture, row by row from below.
PICTURE_ORDER = morton_keys(np.column_stack([np.tile(np.arange(SIDE), SIDE), np.repeat(np.arange(SIDE), SIDE)]))
