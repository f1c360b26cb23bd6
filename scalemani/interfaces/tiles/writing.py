"""A folder of static tiles about a map: read by blocks, sorted in files, written next to its target and renamed."""

import base64
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scalemani.config.objectives import OBJECTIVES
from scalemani.errors import ConfigError
from scalemani.interfaces.report.map_data import LEVELS, encoded_column, is_identifier
from scalemani.interfaces.report.page import policy, templates_of, text_of
from scalemani.interfaces.tiles.pixels import morton_keys
from scalemani.interfaces.tiles.tree import (
    HELD_POINTS,
    LEAF_POINTS,
    RECORD,
    HeldRecords,
    Node,
    SpooledRecords,
    TreeWriter,
    split_records,
    zipped,
)
from scalemani.io.export.atomic import already_there, new_folder
from scalemani.io.export.writers import blocks
from scalemani.io.figures.panels import GOLDEN_RATIO, LARGEST_EXTENT_RATIO, column_limits
from scalemani.io.sources import PointsSource, open_points

if TYPE_CHECKING:
    from scalemani.interfaces.report.opened import ReportedRun

PLACES = 2.0**32  # along an axis
BLOCK_ROWS = 2**16  # of the index of rows: 256 KB before compression
NOWHERE = 2**32 - 1  # in that index, of rows that are not in the map
SCRIPTS = ("store", "painter", "viewer")


class Plane(NamedTuple):
    """Two columns of an embedding, and the square of the map in it.

    Attributes
    ----------
    source : the embedding (M, d)
    axes : (2,) its columns, from 0
    low, extent : (2,) the lowest corner of the map, and how far it goes
    """

    source: PointsSource
    axes: tuple[int, int]
    low: np.ndarray
    extent: np.ndarray

    @classmethod
    def of(cls, embedding: Any, axes: tuple[int, int]) -> "Plane":
        """Return the plane of two columns, which robust limits fit into; far outliers are put on the rim.

        Axes have one scale unless one goes more than four times as far as the other.
        """
        source = open_points(embedding)
        limits = column_limits(source, min(max(axes) + 1, source.shape[1]))
        if source.shape[1] == 1:
            limits = np.append(limits, [[0.0, 1.0]], axis=0)
        limits = limits[list(axes)]
        extent = np.ptp(limits, axis=1)
        if extent.max() <= LARGEST_EXTENT_RATIO * extent.min() and source.shape[1] > 1:
            low = limits.mean(axis=1) - extent.max() / 2
            return cls(source, axes, low, np.full(2, extent.max()))
        return cls(source, axes, limits[:, 0], extent)

    def shares(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, places (n, 2) from 0 to 1 where within the map) of all rows, by blocks."""
        for start, rows in blocks(self.source):
            numbers = np.arange(start, start + len(rows))
            spread = np.column_stack([rows, numbers * GOLDEN_RATIO % 1]) if rows.shape[1] == 1 else rows
            yield start, (spread[:, self.axes] - self.low) / self.extent

    def keyed_blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, Morton keys (n,)) of all rows, by blocks."""
        for start, shares in self.shares():
            yield start, morton_keys(np.clip(np.floor(shares * PLACES), 0, PLACES - 1).astype(np.uint32))

    def count_outside(self) -> int:
        """Return how many points lie outside the map."""
        return sum(int(np.count_nonzero(((part < 0) | (part > 1)).any(axis=1))) for _, part in self.shares())


def checked_axes(axes: Sequence[int], n_columns: int) -> tuple[int, int]:
    """Return two columns of an embedding, from 0, or raise ConfigError; `axes` count from 1."""
    most = max(2, n_columns)  # of one column, the second axis spreads points
    if len(axes) != 2 or len(set(axes)) != 2 or not all(1 <= axis <= most for axis in axes):
        raise ConfigError(f"axes must be two different columns of the embedding, from 1 to {most}, got {tuple(axes)}")
    return axes[0] - 1, axes[1] - 1


def write_tiles(
    run: "ReportedRun",
    folder: Path,
    labels: Mapping[str, np.ndarray],
    axes: Sequence[int] = (1, 2),
    leaf_points: int = LEAF_POINTS,
    held_points: int = HELD_POINTS,
) -> None:
    """Write the tiles of the embedding of a run, with labels or values (N,) of its points by name.

    `leaf_points` are the most that a tile has of points, `held_points` the most that are sorted in memory at once.
    """
    if run._n_drawn is None:
        raise ConfigError(f"{run.store.root} has no finished embedding: run a method that ends in one")
    embedding = run._drawn()
    chosen = checked_axes(axes, embedding.positions.shape[1])
    if folder.exists():
        raise already_there(folder)
    columns = embedding.columns(labels)
    texts = [name for name, values in columns.items() if is_identifier(values)]
    encoded = [encoded_column(name, values) for name, values in columns.items() if name not in texts]
    plane = Plane.of(embedding.positions, chosen)
    with new_folder(folder) as target:
        described, codes = [column for column, _ in encoded], [values for _, values in encoded]
        tree = TreeWriter(target, described, codes, embedding.rows, leaf_points)
        write_tree(tree, plane, held_points)
        write_index(tree, plane, embedding.n_points)
        description = {
            "points": plane.source.shape[0],
            "of": embedding.n_points,
            "outside": plane.count_outside(),
            "axes": [
                {"name": axis_name(axis, plane.source.shape[1]), "low": low, "extent": extent}
                for axis, low, extent in zip(plane.axes, plane.low.tolist(), plane.extent.tolist(), strict=True)
            ],
            "columns": described,
            "code_bytes": [values.itemsize for values in codes],
            "levels_of_values": LEVELS,
            "left_out": texts,
            "shades": tree.shades,
            "block_rows": BLOCK_ROWS,
        }
        (target / "index.html").write_text(page(run.method, description, inline_arrays(tree)), encoding="utf-8")


def axis_name(axis: int, n_columns: int) -> str:
    """Return the name of a column of an embedding."""
    return f"component {axis + 1}" if axis < n_columns else "nothing"


def write_tree(tree: TreeWriter, plane: Plane, held_points: int) -> None:
    """Write the tiles of all points."""
    root, spool = Node(0, 0), tree.folder / "records"
    spool.mkdir()
    records = records_of(plane)
    if plane.source.shape[0] <= held_points:
        held = np.concatenate(list(records))
        tree.write(HeldRecords(root, held[np.argsort(held["key"], kind="stable")]))
    else:
        tree.write(SpooledRecords(root, split_records(root, records, spool), held_points))
    shutil.rmtree(spool)


def records_of(plane: Plane) -> Iterator[np.ndarray]:
    """Yield the records of all points, by blocks."""
    for start, keys in plane.keyed_blocks():
        records = np.empty(len(keys), RECORD)
        records["key"], records["point"] = keys, np.arange(start, start + len(keys))
        yield records


def write_index(tree: TreeWriter, plane: Plane, n_rows: int) -> None:
    """Write the number of the tile of points that each input row is in, in files of `BLOCK_ROWS` rows each."""
    folder, first_keys = tree.folder / "rows", np.array(tree.first_keys, np.uint64)
    folder.mkdir()
    numbers = np.full(BLOCK_ROWS, NOWHERE, np.uint32)
    block = 0
    for start, keys in plane.keyed_blocks():
        points = np.arange(start, start + len(keys))
        rows = points if tree.rows is None else tree.rows[points]
        leaves = np.searchsorted(first_keys, keys, side="right") - 1
        while len(rows):
            here = int(np.searchsorted(rows, (block + 1) * BLOCK_ROWS))
            numbers[rows[:here] - block * BLOCK_ROWS] = leaves[:here]
            rows, leaves = rows[here:], leaves[here:]
            if len(rows):
                write_rows_block(folder, block, numbers)
                block += 1
    for last in range(block, -(-n_rows // BLOCK_ROWS)):
        write_rows_block(folder, last, numbers)


def write_rows_block(folder: Path, block: int, numbers: np.ndarray) -> None:
    """Write a file of the index, and clear the numbers for the next."""
    (folder / f"{block}.bin").write_bytes(zipped([numbers]))
    numbers[:] = NOWHERE


def inline_arrays(tree: TreeWriter) -> dict[str, str]:
    """Return what the page itself has, in base64: the kinds of all tiles, and the first tile."""
    kind = "points" if len(tree.kinds) == 1 else "counts"
    first = (tree.folder / kind / f"{Node(0, 0).name}.bin").read_bytes()
    contents = {"kinds": zipped([np.frombuffer(bytes(tree.kinds), np.uint8)]), "first": first}
    return {name: base64.b64encode(content).decode() for name, content in contents.items()}


def page(method: str, description: Mapping[str, Any], arrays: Mapping[str, str]) -> str:
    """Return the page that shows the tiles; it may ask for files next to it and nothing else."""
    template = files("scalemani.interfaces.tiles") / "template"
    style = text_of("page.css") + (template / "tiles.css").read_text(encoding="utf-8")
    of_tiles = [(template / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    scripts = [text_of("pace.js"), text_of("legend.js"), *of_tiles, text_of("page.js")]
    return (
        templates_of("scalemani.interfaces.tiles")
        .get_template("index.html")
        .render(
            title=OBJECTIVES[method].name if method in OBJECTIVES else method,
            description=json.loads(json.dumps(description)),
            arrays=arrays,
            style=style,
            scripts=scripts,
            policy=f"{policy(style, scripts)}; connect-src 'self'",
        )
    )
