"""The tree of tiles: each has four children, down to leaves of few points; made of any number in bounded memory."""

import contextlib
import gzip
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalemani.interfaces.tiles.pixels import BITS, PICTURE_ORDER, PixelCounts, joined_bits, places_of

LEAF_POINTS = 8192  # of a tile of 256 by 256 pixels: beyond, discs would cover each other
MOST_LEVELS = 16  # tiles below have positions of 32 bits along an axis; points of one place are never split further
HELD_POINTS = 2**20  # that are sorted in memory
SPLIT_LEVELS = 4  # by which records in files are split at once: into 256 files
KEY_BITS, PLACE_BITS = 64, 32
EMPTY, LEAF, INNER = 0, 1, 2  # kinds of tiles
SHADE_PERCENT = 99.0  # of the pixels that hold points: their counts are the darkest
RECORD = np.dtype([("key", "<u8"), ("point", "<u4")])


class Node(NamedTuple):
    """A tile by its level, 0 for the whole, and its Morton number among those of the level."""

    level: int
    number: int

    @property
    def children(self) -> list["Node"]:
        """The four tiles of the next level, in Morton order."""
        return [Node(self.level + 1, 4 * self.number + place) for place in range(4)]

    @property
    def name(self) -> str:
        """Its level, column and row, the first row the lowest."""
        column, row = joined_bits(np.array([self.number, self.number >> 1], np.uint64)).tolist()
        return f"{self.level}/{column}-{row}"

    @property
    def first_key(self) -> int:
        """The lowest Morton key of points in it."""
        return self.number << KEY_BITS - 2 * self.level

    def holds(self, other: "Node") -> bool:
        """Return whether a tile of the same or a lower level is in this one."""
        return other.number >> 2 * (other.level - self.level) == self.number


class HeldRecords:
    """Records of the points of a tile in memory, by their keys."""

    def __init__(self, node: Node, records: np.ndarray) -> None:
        self.node, self.records = node, records

    def __len__(self) -> int:
        return len(self.records)

    def read(self) -> np.ndarray:
        """Return the records."""
        return self.records

    def children(self) -> list["HeldRecords"]:
        """Return those of the four tiles of the next level."""
        firsts = np.array([child.first_key for child in self.node.children[1:]], np.uint64)
        parts = np.split(self.records, np.searchsorted(self.records["key"], firsts))
        return [HeldRecords(child, part) for child, part in zip(self.node.children, parts, strict=True)]


class SpoolFile(NamedTuple):
    """A file with the records of one tile."""

    node: Node
    path: Path
    n_points: int


class SpooledRecords:
    """Records of the points of a tile in files, each of a tile in it; files are removed once they are read."""

    def __init__(self, node: Node, files: Sequence[SpoolFile], held_points: int) -> None:
        self.node, self.files, self.held_points = node, files, held_points

    def __len__(self) -> int:
        return sum(file.n_points for file in self.files)

    def read(self) -> np.ndarray:
        """Return the records, sorted by key, those of one key by point."""
        parts = [np.fromfile(file.path, RECORD) for file in self.files]
        self.remove()
        records = np.concatenate(parts)
        return records[np.argsort(records["key"], kind="stable")]

    def children(self) -> Sequence["HeldRecords | SpooledRecords"]:
        """Return those of the four tiles of the next level: in memory where they have room."""
        if len(self) <= self.held_points:
            return HeldRecords(self.node, self.read()).children()
        files = self.files
        if files[0].node == self.node:
            files = split_records(self.node, blocks_of(files[0].path, self.held_points), files[0].path.parent)
            self.remove()
        return [
            SpooledRecords(child, [file for file in files if child.holds(file.node)], self.held_points)
            for child in self.node.children
        ]

    def remove(self) -> None:
        """Remove the files."""
        for file in self.files:
            file.path.unlink()


def blocks_of(path: Path, count: int) -> Iterable[np.ndarray]:
    """Yield the records of a file, so many at a time."""
    with path.open("rb") as file:
        while len(records := np.fromfile(file, RECORD, count)):
            yield records


def split_records(node: Node, blocks: Iterable[np.ndarray], folder: Path) -> list[SpoolFile]:
    """Write the records of a tile, in blocks, to files by the tiles some levels below; return these in Morton order."""
    level = min(node.level + SPLIT_LEVELS, MOST_LEVELS)
    first, shift = node.number << 2 * (level - node.level), np.uint64(KEY_BITS - 2 * level)
    counts: dict[int, int] = {}
    with contextlib.ExitStack() as stack:
        opened: dict[int, Any] = {}
        for records in blocks:
            numbers = (records["key"] >> shift).astype(np.int64) - first
            order = np.argsort(numbers.astype(np.uint8), kind="stable")  # 256 at most
            present, starts = np.unique(numbers[order], return_index=True)
            for number, part in zip(present.tolist(), np.split(records[order], starts[1:]), strict=True):
                if number not in opened:
                    opened[number] = stack.enter_context((folder / f"{level}-{first + number}").open("wb"))
                opened[number].write(part.tobytes())
                counts[number] = counts.get(number, 0) + len(part)
    nodes = [Node(level, first + number) for number in sorted(counts)]
    return [SpoolFile(one, folder / f"{one.level}-{one.number}", counts[one.number - first]) for one in nodes]


class TreeWriter:
    """Writes the tiles of a tree, those of points and those of counts, into a folder.

    Attributes
    ----------
    kinds : the kind of each tile, each before its children; children of inner tiles alone
    first_keys : the lowest key of each tile of points, ascending: its place there is its number
    shades : by level, the count of a pixel that is drawn as dark as any
    """

    def __init__(
        self,
        folder: Path,
        columns: Sequence[Mapping[str, Any]],
        codes: Sequence[np.ndarray],
        rows: np.ndarray | None,
        leaf_points: int = LEAF_POINTS,
    ) -> None:
        """Take columns with codes (M,) of the points, and the rows (M,) they have in the input where not the same."""
        self.folder, self.columns, self.codes, self.rows = folder, columns, codes, rows
        self.leaf_points = leaf_points
        self.kinds = bytearray()
        self.first_keys: list[int] = []
        self.shades: list[int] = []
        self.nothing = PixelCounts.of_points(np.empty(0, np.int64), [part[:0] for part in codes], columns)

    def write(self, source: HeldRecords | SpooledRecords) -> PixelCounts:
        """Write a tile and all below it; return what its pixels count."""
        node = source.node
        if not len(source):
            self.kinds.append(EMPTY)
            return self.nothing
        if len(source) <= self.leaf_points or node.level == MOST_LEVELS:
            self.kinds.append(LEAF)
            self.first_keys.append(node.first_key)
            return self.write_points(node, source.read())
        self.kinds.append(INNER)
        counts = PixelCounts.merged([self.write(child) for child in source.children()])
        self.write_counts(node, counts)
        return counts

    def write_points(self, node: Node, records: np.ndarray) -> PixelCounts:
        """Write the points of a tile, in the order of their rows; return what its pixels count.

        The file has places across and up, of 16 bits within the tile, differences of rows, and codes by column.
        """
        pixels = (records["key"] >> np.uint64(KEY_BITS - 2 * (node.level + BITS))).astype(np.int64) & 4**BITS - 1
        counts = PixelCounts.of_points(pixels, [codes[records["point"]] for codes in self.codes], self.columns)
        records = np.sort(records, order="point")
        points = records["point"]
        places = (places_of(records["key"]) >> np.uint32(PLACE_BITS // 2 - node.level)).astype("<u2")
        rows = np.diff(points if self.rows is None else self.rows[points], prepend=0).astype("<u4")
        arrays = [*places.T, rows, *(codes[points] for codes in self.codes)]
        self.store("points", node, arrays)
        return counts

    def write_counts(self, node: Node, counts: PixelCounts) -> None:
        """Write how many points each pixel has, row by row from below, and what these are by each column."""
        points = counts.points.astype("<u4")
        shown = [
            column.shown(described["missing"] or 0).astype(codes.dtype)
            for column, described, codes in zip(counts.columns, self.columns, self.codes, strict=True)
        ]
        self.store("counts", node, [values[PICTURE_ORDER] for values in (points, *shown)])
        self.shades += [1] * (node.level + 1 - len(self.shades))
        shade = int(np.percentile(points[points > 0], SHADE_PERCENT))
        self.shades[node.level] = max(self.shades[node.level], shade)

    def store(self, kind: str, node: Node, arrays: Sequence[np.ndarray]) -> None:
        """Write the arrays of a tile as a file."""
        path = self.folder / kind / f"{node.name}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zipped(arrays))


def zipped(arrays: Sequence[np.ndarray]) -> bytes:
    """Return arrays of integers compressed, each as its first bytes, all second ones, ..., which are more alike."""
    planes = [
        np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).view(np.uint8).reshape(len(array), -1).T
        for array in arrays
    ]
    return gzip.compress(b"".join(plane.tobytes() for plane in planes), 6, mtime=0)
