"""Z times the landmarks' coordinates, by blocks where tasks run, with its residual on the full problem.

Each process makes a table of the vectors, N rows of a few columns, in memory or in a file. One pass over W sums, for
every vector v, what its residual needs; a second step writes the vectors in input order.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scalemani.engine.context import Arrays, StageGraph, StageTask
from scalemani.engine.graph import Key
from scalemani.engine.memory.files import Table
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.sizes import Sizes, pixels
from scalemani.kernels.arrays.tiles import slices
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.shared.edges import rows_made
from scalemani.stages.shared.output import over_landmarks
from scalemani.stages.shared.tiles import added

ROWS_REACHED = 8  # vectors that the neighbours of a block have, for each row of the block, without any structure
ORDER_ROWS = 2**20  # work rows whose places are looked at together
RUN_ROWS = 2**22  # rows that one pass over the order writes, at least: a task has their places, 32 MB, in memory


class ResidualSums(NamedTuple):
    """Sums over rows for each vector v, each (d,) float64: v^T D v, and |D^-1/2 (D - W - lambda D) v|^2."""

    masses: np.ndarray
    squares: np.ndarray

    @property
    def residuals(self) -> np.ndarray:
        """|L u - lambda u| (d,) of the unit vectors u = D^1/2 v / |D^1/2 v|, with lambda their Rayleigh quotients."""
        return np.sqrt(self.squares / self.masses)


def memory_by_blocks(sizes: Sizes) -> Memory:
    """Return what the vectors take, and a block of W and of them."""
    dimensions, width = sizes.dimensions, sizes.params.n_components
    n_points, rows = dimensions.n_points, dimensions.block_rows
    reached = array("float64", min(n_points, ROWS_REACHED * rows), width)
    places = array("int64", min(n_points, RUN_ROWS)) + 2 * array("int64", min(n_points, ORDER_ROWS))
    return Memory(
        process={**pixels(sizes), **({"Z": entries(sizes.weight_entries)} if sizes.weight_entries else {})},
        # Of a block: v, W v, D v - W v, and their products.
        task={"vectors and their products of a block": 6 * array("float64", rows, width)},
        points={"vectors": array("float64", n_points, width)},
        steps={
            # Made by the driver alone, and only where eigenvalues are zero to rounding.
            "small eigenvalues": Memory(
                points={"vectors, products, degrees": array("float64", n_points, 4 * width + 8)}
            )
            + rows_made(sizes),
            "residuals": Memory(
                task={
                    # As read, decoded, its columns sorted and numbered.
                    "a block of W": 5 * entries(sizes.block_nonzeros, "float32"),
                    "vectors of a block and of its neighbours": reached,
                }
            )
            + rows_made(sizes),
            "writing": Memory(
                task={"order of some points, and places of the rows of a run": places},
                cache={"places of the rows of longer runs": array("int64", dimensions.n_blocks * rows)},
            ),
        },
    )


def residuals_and_blocks(graph: StageGraph) -> Key | None:
    """Add the sums of the residuals, and the blocks of the embedding in input order; return the key of the sums."""
    context, task, sums = graph.context, graph.context.task, graph.fold_blocks(block_sums, added)
    block_rows, n_blocks = task.dimensions.block_rows, task.dimensions.n_blocks
    together = max(RUN_ROWS // block_rows, context.blocks_per_range(block_rows * np.dtype(np.int64).itemsize))
    graph.map_block_ranges(written_blocks, min(together, -(-n_blocks // context.at_once)))
    return sums


def vectors_table(task: StageTask) -> Table:
    """Return Z times the landmarks' coordinates: (N, d) float64, in work order."""
    return over_landmarks(task, task.stored(StoredLandmarkEmbedding).vectors.read(), task.table)


def block_sums(task: StageTask, block: int) -> ResidualSums:
    """Return the sums over the rows of one block."""
    graph, vectors = affinity_graph(task.inputs, task.cache_bytes), task.once(vectors_table)
    affinities, degrees = graph.read_matrix(block, task.dimensions.n_points), graph.degrees(block)[:, np.newaxis]
    block_vectors = vectors[slice(*task.dimensions.rows(block))]
    if not isinstance(vectors, np.ndarray):  # of a table in a file, the rows that the block reaches are read
        reached, affinities = graph.on_reached(affinities)
        vectors = vectors[reached]
    values = task.stored(StoredLandmarkEmbedding).eigenvalues.read_once()
    missed = degrees * (1.0 - values) * block_vectors - affinities @ vectors
    return ResidualSums((degrees * block_vectors**2).sum(axis=0), (missed**2 / degrees).sum(axis=0))


def written_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield consecutive blocks of the embedding, in input order."""
    vectors, first = task.once(vectors_table), task.dimensions.rows(blocks[0])[0]
    places = work_rows(task, first, task.dimensions.rows(blocks[-1])[1])
    for block in blocks:
        start, stop = task.dimensions.rows(block)
        yield block, {StoredEmbedding.embedding: vectors[places[start - first : stop - first]]}


def work_rows(task: StageTask, first: int, last: int, at_once: int = ORDER_ROWS) -> np.ndarray:
    """Return the work rows (last - first,) int64 of input rows, by one pass over the order, some rows at a time."""
    if StoredWorkPoints.STAGE not in task.inputs:
        return np.arange(first, last)
    order, places = task.stored(StoredWorkPoints).input_rows, np.empty(last - first, int)
    for part in slices(task.dimensions.n_points, at_once):
        input_rows = order.read_rows(part)
        inside = np.flatnonzero((input_rows >= first) & (input_rows < last))
        places[input_rows[inside] - first] = part.start + inside
    return places
