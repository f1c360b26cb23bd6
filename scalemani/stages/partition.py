"""Sketches and cells: the principal axes of the points, k-means cells in them, and the cell of every point."""

from typing import Any

import numpy as np

from scalemani.chunked.work import Arrays, Dimensions, DiskNeed, StageTask, StageWork
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.neighbors.cells import nearest_cells, train_cells
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points
from scalemani.params import Parameters
from scalemani.records.points import StoredPartition, StoredPoints
from scalemani.workers.budget import MemoryNeed

MOST_BASIS_ROWS = 10_000  # more would not move the axes by anything that matters for choosing candidates


def n_cells(dimensions: Dimensions, params: Parameters) -> int:
    """Return the number of cells."""
    return max(1, round(dimensions.n_points / params.partition.cell_points))


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the sample on which the models are trained, and of a block with its sketch."""
    sample = min(params.partition.sample_points, dimensions.n_points)
    width = params.partition.sketch_dimensions
    basis = min(sample, MOST_BASIS_ROWS) * dimensions.n_features * 8 * 2 + 8 * dimensions.n_features**2 * 4
    fixed = sample * (2 * dimensions.row_bytes + 8 * width) + basis + 8 * dimensions.n_points
    centroids = 4 * n_cells(dimensions, params) * (width + 1024)
    return MemoryNeed(fixed, dimensions.block_rows * (2 * dimensions.row_bytes + 12 * width) + centroids)


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the cell of every point, of the axes and of the centroids."""
    width = params.partition.sketch_dimensions
    models = 8 * dimensions.n_features * (width + 1) + 4 * n_cells(dimensions, params) * width
    return DiskNeed(4 * dimensions.n_points + models)


def run(work: StageWork) -> dict[str, Any]:
    """Train the axes and the cells on a sample, then find the cell of every point."""
    task = work.task
    if not task.output.committed("whole"):
        work.executor.progress.start(task.stage, 1)
        task.output.write_whole(trained_models(task))
        work.executor.progress.advance()
    task.output.create(task.dimensions.n_points, [StoredPartition.CELLS.sized()])
    work.map_blocks(nearest_cell_block)
    cells = StoredPartition(task.output).cells.read()
    sizes = np.bincount(cells, minlength=n_cells(task.dimensions, task.params))
    return {"cells": len(sizes), "largest_cell": int(sizes.max()), "empty_cells": int(np.count_nonzero(sizes == 0))}


def trained_models(task: StageTask) -> Arrays:
    """Return the mean, the axes and the centroids that a sample of the points gives."""
    asked, dimensions = task.params.partition, task.dimensions
    rows = sample_rows(task.params.seed, "partition/sample", dimensions.n_points, asked.sample_points)
    sample = StoredPoints(task.inputs["points"]).points.gather(rows)
    basis = fit_sketch(sample[:: -(-len(sample) // MOST_BASIS_ROWS)], asked.sketch_dimensions)
    draws = generator(task.params.seed, "partition/cells")
    centroids = train_cells(sketch_points(sample, basis), n_cells(dimensions, task.params), draws)
    return {
        StoredPartition.MEAN: basis.mean,
        StoredPartition.AXES: basis.axes,
        StoredPartition.SCALE: np.array(basis.scale),
        StoredPartition.CENTROIDS: centroids,
    }


def nearest_cell_block(task: StageTask, block: int) -> Arrays:
    """Return the nearest cell of every point of a block."""
    models = StoredPartition(task.output)
    sketches = sketch_points(StoredPoints(task.inputs["points"]).points.read_block(block), models.basis)
    return {StoredPartition.CELLS: nearest_cells(sketches, models.centroids.read_once(), 1)[:, 0]}
