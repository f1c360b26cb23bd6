"""Sketches and cells: the principal axes of the points, k-means cells in them, and the cell of every point."""

import operator
from typing import Any

import numpy as np

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps, ranges_of
from scalemani.engine.graph import Key
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes, sketched_tile
from scalemani.engine.task import Dimensions, EarlierResults
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.neighbors.cell_index import CellIndex, index_cells, nearest_indexed_cells, train_cells
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS, SketchBasis, fit_sketch, gram_rows, sketch_points
from scalemani.stages.arrays.points import StoredPartition, StoredPoints
from scalemani.stages.shared.sampled_rows import gathered_rows

SKETCHED_BYTES = 2**26  # of sampled points, read together to be sketched: each time, all points are read for them
COUNTED_ROWS = 2**22  # points at a time whose cells are counted: 48 MB


def memory(sizes: Sizes) -> Memory:
    """Return what training the models on a sample takes, and what finding the cells of a block does."""
    dimensions, params, width = sizes.dimensions, sizes.params, sizes.sketch_width
    features, row, cells = dimensions.n_features, dimensions.row_bytes, sizes.n_cells
    n_sampled = sizes.partition_sample
    n_basis = len(rows_of_basis(n_sampled, features, params.partition.most_basis_rows))
    order, sampled = min(n_basis, features), min(sketched_together(dimensions), n_sampled)
    # In float64; many features of sparse points stay sparse: transposed too, and what takes part in a product.
    narrow = not dimensions.sparse or features <= MOST_SAMPLE_ROWS
    centred = array("float64", n_basis, features) if narrow else 4 * n_basis * row
    block, centroids = {"points of a block": dimensions.block_rows * row}, array("float32", cells, width)
    return Memory(
        # What the Gram matrix spans, the same orthonormal, with its signs, and as it is stored.
        process={"mean and axes": 4 * array("float64", features, width + 1), "sampled points together": sampled * row},
        cache={"all sampled points, read once": -(-n_sampled // TILE_ROWS) * TILE_ROWS * row},
        steps={
            "axes": Memory(
                {
                    "sample of points for the axes, and centred": n_basis * row + centred,
                    "its Gram matrix and eigenvectors, with LAPACK": 4 * array("float64", order, order),
                },
                block,
            ),
            "centroids": Memory(
                {"sketches of the sample": 2 * array("float32", n_sampled, width), **sketched_tile(sizes)}, block
            ),
            "cells": Memory(
                {"centroids in groups or in a tree": array("float32", cells, 2 * width + 4)},
                {
                    **block,
                    **sketched_tile(sizes),
                    "sketches of a block": array("float32", dimensions.block_rows, width),
                    "centroids as read, centred and in panels": 3 * centroids,
                },
            ),
            "sizes": Memory(
                task={
                    "cells of points, while they are counted": 3
                    * array("int32", min(COUNTED_ROWS, dimensions.n_points)),
                    "points of each cell": 3 * array("int64", cells),
                }
            ),
        },
    )


def run(context: StageContext) -> dict[str, Any]:
    """Train the axes and the cells on a sample, or take those of an earlier run; then assign every point to a cell."""
    task = context.task
    if not task.output.committed("whole"):
        context.executor.progress.start(task.stage, 1, "model")
        # Results by the models of an earlier run stay true.
        known = None if task.earlier is None else task.earlier.stored(StoredPartition)
        if known is None:
            basis, centroids = trained_models(context, sketched_together(task.dimensions, task.cache_bytes))
        else:
            basis, centroids = known.basis, known.centroids.read()
        task.output.write_whole(
            {
                StoredPartition.mean: basis.mean,
                StoredPartition.axes: basis.axes,
                StoredPartition.scale: np.array(basis.scale),
                StoredPartition.centroids: centroids,
            }
        )
        context.executor.progress.advance()
    task.output.create(task.dimensions.n_points, [StoredPartition.cells.sized()])
    counts = context.compute(cells_and_counts)
    return {"cells": len(counts), "largest_cell": int(counts.max()), "empty_cells": int(np.count_nonzero(counts == 0))}


def graphs(context: StageContext) -> Steps:
    """Yield the models, which come first, and the cells of all points."""
    if not context.task.output.committed("whole"):
        yield "axes and centroids of a sample; tasks read its rows where it lies in many blocks"
    yield cells_and_counts


def cells_and_counts(graph: StageGraph) -> Key | None:
    """Add the cells of all points, and how many points each has."""
    graph.map_blocks(nearest_cell_block)
    return graph.fold(points_of_cells, operator.add, ranges_of(graph.context.task.dimensions.n_blocks))


def points_of_cells(task: StageTask, blocks: range, at_once: int = COUNTED_ROWS) -> np.ndarray:
    """Return how many points of consecutive blocks each cell has, (C,) int64, counted `at_once` points at a time."""
    stored, (first, last) = StoredPartition(task.output), task.dimensions.rows_of(blocks)
    counts = np.zeros(len(stored.centroids.read()), np.int64)
    for part in slices(last - first, at_once):
        cells = stored.cells.read_rows(slice(first + part.start, first + part.stop))
        counts += np.bincount(cells, minlength=len(counts))
    return counts


def rows_of_basis(n_sampled: int, n_features: int, most: int) -> np.ndarray:
    """Return which rows of the sample fix the axes: evenly spread, and fewer of many features."""
    spread = np.arange(0, n_sampled, -(-n_sampled // most))
    return spread[gram_rows(len(spread), n_features)]


def sketched_together(dimensions: Dimensions, cache_bytes: int = 0) -> int:
    """Return how many sampled points are read at a time: whole tiles, so that their sketches have the same bits."""
    return max(1, max(SKETCHED_BYTES, cache_bytes) // dimensions.row_bytes // TILE_ROWS) * TILE_ROWS


def trained_models(context: StageContext, step: int) -> tuple[SketchBasis, np.ndarray]:
    """Return the mean, the axes and the centroids that a sample of the points gives, read `step` rows at a time."""
    task = context.task
    params, dimensions = task.params.partition, task.dimensions
    sizes = Sizes(dimensions, task.params)
    rows = sample_rows(task.params.seed, "partition/sample", dimensions.n_points, sizes.partition_sample)
    chosen = rows_of_basis(len(rows), dimensions.n_features, params.most_basis_rows)
    sample = gathered_rows(context, rows) if len(rows) <= step else None
    basis = fit_sketch(
        gathered_rows(context, rows[chosen]) if sample is None else sample[chosen], params.sketch_dimensions
    )
    parts = (gathered_rows(context, rows[part]) for part in slices(len(rows), step)) if sample is None else [sample]
    sketches = np.concatenate([sketch_points(part, basis) for part in parts])
    draws = generator(task.params.seed, "partition/cells")
    centroids = train_cells(sketches, sizes.n_cells, draws, over=context.executor.over)
    return basis, centroids


def nearest_cell_block(task: StageTask, block: int) -> Arrays:
    """Return the nearest cell of every point of a block."""
    start, stop = task.dimensions.rows(block)
    known = earlier_cells(task.earlier, start, stop)
    if len(known) == stop - start:
        return {StoredPartition.cells: known}
    models = StoredPartition(task.output)
    points = task.stored(StoredPoints).points.read_block(block)
    first = len(known) // TILE_ROWS * TILE_ROWS  # sketches are those of whole tiles
    sketches = sketch_points(points[first:] if first else points, models.basis)
    cells = nearest_indexed_cells(sketches, task.once(index_of_cells), 1)[:, 0]
    return {StoredPartition.cells: np.concatenate([known, cells[len(known) - first :]])}


def earlier_cells(earlier: EarlierResults | None, start: int, stop: int) -> np.ndarray:
    """Return the cells of those of the points from `start` to `stop` whose cells an earlier run has stored."""
    if earlier is None or start >= earlier.n_points:
        return np.empty(0, np.int32)
    cells = earlier.stored(StoredPartition).cells
    return cells.gather(np.arange(start, min(stop, earlier.n_points)))


def index_of_cells(task: StageTask) -> CellIndex:
    """Return what finds the cell of a point."""
    return index_cells(StoredPartition(task.output).centroids.read())
