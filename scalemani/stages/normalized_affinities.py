"""W normalised by density, q^-alpha W q^-alpha with the degrees q of W: the graph of diffusion maps."""

from typing import Any

import numpy as np

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.graph import Key
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.affinities.reweighting import density_normalized, density_scales
from scalemani.stages.arrays.affinities import StoredNormalizedAffinities, StoredSymmetricAffinities
from scalemani.stages.arrays.points import stored_weights


def memory(sizes: Sizes) -> Memory:
    """Return what the scale of every point takes, and a block of W, decoded, scaled and encoded."""
    columns = 2 + 2 * sizes.weighted  # degrees and their powers; weights, and degrees over these
    of_block = 3 * array("int32", sizes.block_nonzeros) + 6 * array("float32", sizes.block_nonzeros)
    return Memory(
        process={"scales of the points": array("float64", sizes.dimensions.n_points, columns)},
        task={"a block of W, before and after": of_block},
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: as much as of W."""
    return Disk(written(StoredNormalizedAffinities.ARRAYS, sizes, nonzero=sizes.most_nonzeros))


def run(context: StageContext) -> dict[str, Any]:
    """Scale the rows of W that are missing; certify the extremes of the degrees that are left."""
    least, largest = context.compute(blocks_and_extremes)
    return {"least_degree": least, "largest_degree": largest}


def graphs(context: StageContext) -> Steps:
    """Yield the scaled rows with what certifies them."""
    yield blocks_and_extremes


def blocks_and_extremes(graph: StageGraph) -> Key | None:
    """Add the scaled rows of all blocks, and the extremes of their degrees."""
    graph.map_blocks(normalized_block)
    return graph.fold_blocks(block_extremes, lambda one, other: (min(one[0], other[0]), max(one[1], other[1])))


def block_extremes(task: StageTask, block: int) -> tuple[float, float]:
    """Return the extremes of a block's degrees."""
    degrees = StoredNormalizedAffinities(task.output).degrees(block)
    return float(degrees.min()), float(degrees.max())


def normalized_block(task: StageTask, block: int) -> Arrays:
    """Return the rows of one block."""
    indptr, indices, values = task.stored(StoredSymmetricAffinities).read_rows(block)
    scaled = density_normalized(indptr, indices, values, task.dimensions.rows(block)[0], task.once(scales))
    return StoredNormalizedAffinities.parts(indptr, indices, scaled)


def scales(task: StageTask) -> np.ndarray:
    """Return the scale (N,) of every point."""
    degrees = task.stored(StoredSymmetricAffinities).read_degrees(task.dimensions.n_points)
    weights = stored_weights(task.inputs)
    if weights is not None:  # the crowd at a point is the degree of one of its copies
        degrees = degrees / weights.read()
    return density_scales(degrees, task.params.normalized_affinities.alpha)
