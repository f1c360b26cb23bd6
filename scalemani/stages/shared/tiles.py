"""Sums over tiles of rows: tiles are the same for any block size, so that bits do not depend on these."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

from scalemani.engine.context import StageContext, StageGraph, StageTask, ranges_of
from scalemani.engine.graph import Key, parts_held
from scalemani.kernels.arrays.tiles import TILE_ROWS


def fold_tiles(
    context: StageContext, function: Callable[[StageTask, range], Any], combine: Any, together: int, shown: str = ""
) -> Any:
    """Return function(task, tiles) of all tiles, at least so many together, combined in order."""
    return context.compute(lambda graph: add_fold_of_tiles(graph, function, combine, together, shown))


def add_fold_of_tiles(
    graph: StageGraph, function: Callable[[StageTask, range], Any], combine: Any, together: int, shown: str = ""
) -> Key | None:
    """Add what `fold_tiles` computes to a graph; return the key of the result."""
    tiles = ranges_of(-(-graph.context.task.dimensions.n_points // TILE_ROWS), together)
    return graph.fold(function, combine, tiles, TILE_ROWS, shown)


def sums_held(n_points: int, together: int) -> int:
    """Return how many sums of tiles are held on the way up their tree, of which tasks add so many tiles."""
    return parts_held(len(ranges_of(-(-n_points // TILE_ROWS), together)))


def parts_of_tiles(task: StageTask, tiles: range) -> Iterator[tuple[int, slice]]:
    """Yield the blocks that hold consecutive tiles, each with the places of their rows in it."""
    first, last = tiles.start * TILE_ROWS, min(tiles.stop * TILE_ROWS, task.dimensions.n_points)
    for block in range(first // task.dimensions.block_rows, -(-last // task.dimensions.block_rows)):
        start, stop = task.dimensions.rows(block)
        yield block, slice(max(first, start) - start, min(last, stop) - start)


def tiles_one_by_one(task: StageTask, tiles: range) -> Iterator[tuple[int, slice]]:
    """Yield the block of each of consecutive tiles, with the places of its rows there."""
    for block, part in parts_of_tiles(task, tiles):
        for first in range(part.start, part.stop, TILE_ROWS):
            yield block, slice(first, min(first + TILE_ROWS, part.stop))


def added(one: Any, other: Any) -> Any:
    """Return the sum of two named tuples of one kind, field by field."""
    return one._make(map(operator.add, one, other))
