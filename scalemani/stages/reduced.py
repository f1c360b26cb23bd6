"""The reduced problem Z^T (D - W) Z and Z^T D Z, summed over blocks in a fixed order."""

import functools
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.memory_model import Disk, Memory, Terms, array, entries
from scalemani.engine.reading import MatrixDescription
from scalemani.engine.sizes import Sizes, pixels
from scalemani.kernels.spectral.reduced import (
    ROWS_PER_PRODUCT,
    ROWS_UNPACKED,
    PackedSum,
    TreeSum,
    diagonal_product,
    lower_triangle,
    symmetric_triangle,
    weighted_product,
)
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.landmarks import StoredReduced
from scalemani.stages.shared.edges import rows_made
from scalemani.stages.shared.landmark_maps import (
    stored_landmark_weights,
    warn_of_unseen_components,
    weights_at,
)

# Of the products of a row of W with Z, so many fall on separate entries: 0.04 on surfaces, 0.23 on digits and on
# counts of words, 0.42 without any structure.
DISTINCT_OF_ROW = 0.9  # for each neighbour of a point and landmark of it, of which W has up to two
PARTS = (StoredReduced.AFFINITY_PART, StoredReduced.MASS_PART)
SUMMED_TOGETHER = 64  # parts, by a worker; a power of two, so that the tree of all sums is that of one process
PARTS_IN_MEMORY = 7  # partial sums on the way up the tree of one of A~ and B~, and the other
LARGE_SUM_BYTES = 2**28  # of partial sums; where there are more they are added to a dense one
DISTINCT = 1.2  # of the products by the root of how many points use a landmark, the share on separate entries
REPEATED = 1.5  # by the root of the number of blocks, how many of these meet the same entry
WITH_SUMS = 1.7  # of the entries of parts, with those of their sum
ROWS_REACHED = 8  # rows of Z that the neighbours of a block are, for each row of the block, without any structure


def memory(sizes: Sizes) -> Memory:
    """Return what Z takes, the products of a block, and then the sums of all blocks."""
    dimensions, params, width = sizes.dimensions, sizes.params, sizes.landmarks_a_point
    rows = dimensions.block_rows
    reached = min(dimensions.n_points, ROWS_REACHED * rows)
    spread = min(params.n_landmarks, math.ceil(DISTINCT_OF_ROW * params.affinity_neighbors * width))
    part = min(2 * sizes.reduced_entries, rows * width * spread)
    products = {  # as scipy makes them
        "rows of W in a block": 2 * entries(sizes.block_nonzeros),
        "rows of Z that they reach": 3 * entries(reached * width),
        "rows of W Z": 1.5 * entries(min(rows, ROWS_PER_PRODUCT) * spread),
        "part of the sums": 3 * entries(part),
    }
    sums = dense_sums(sizes) if adds_densely(sizes) else tree_sums(sizes)
    made = Memory(task=products) + rows_made(sizes)
    held = Memory(pixels(sizes), points={"Z": entries(dimensions.n_points * width)})
    return held + Memory(steps={"products": made, "sums": Memory(sums)})


def tree_sums(sizes: Sizes) -> Terms:
    """Return what sums take on the way up the tree."""
    return {"sums on the way up the tree": PARTS_IN_MEMORY / 2 * entries(sizes.reduced_entries)}


def dense_sums(sizes: Sizes) -> Terms:
    """Return what a dense sum takes, and what is added to it."""
    n_landmarks = sizes.params.n_landmarks
    return {
        "dense sum of lower triangles": array("float64", n_landmarks, (n_landmarks + 1) / 2),
        # Triangles: one of A~ and B~, and a part or the other; values of a part, columns, places and what is there.
        "part and sums": 2 * entries(sizes.reduced_entries),
        "rows of a part as they are added": 4 * array("float64", ROWS_UNPACKED, n_landmarks),
    }


def adds_densely(sizes: Sizes) -> bool:
    """Return whether lower triangles are added to a dense one: it follows from the points and parameters alone."""
    tree, dense = (sum(terms.values()) for terms in (tree_sums(sizes), dense_sums(sizes)))
    return tree > max(dense, LARGE_SUM_BYTES)


def disk(sizes: Sizes) -> Disk:
    """Return what the parts of all blocks take and the sums of these.

    How many of the products of two rows of Z fall on the same entry, and in how many blocks an entry is met, goes by
    what was seen of 20,000 to 1,020,000 digits and of points without any structure.
    """
    width, n_points = sizes.landmarks_a_point, sizes.dimensions.n_points
    uses = n_points * width / sizes.params.n_landmarks
    distinct = min(1.0, DISTINCT / math.sqrt(uses))
    met = REPEATED * math.sqrt(sizes.dimensions.n_blocks) * sizes.reduced_entries
    products = {"Z' W Z": 2 * sizes.n_affinities * width**2 * distinct, "Z' D Z": n_points * width**2 / 2}
    stored = {name: WITH_SUMS * entries(min(count, met)) for name, count in products.items()}
    return Disk({f"{name}, of blocks and in sum": n_bytes for name, n_bytes in stored.items()})


def run(context: StageContext) -> dict[str, Any]:
    """Compute every block's part, sums of parts while there are many, and the sum of these."""
    task = context.task
    warn_of_unseen_components(context)
    context.compute(products)
    PROCESS.free()  # Z is not needed any more
    # A sum takes what is planned once a process.
    batch = replace(context.batch, memory=Memory(task={"sums": context.batch.memory.total()}))
    alone, densely = replace(context, at_once=1, batch=batch), adds_densely(Sizes(task.dimensions, task.params))
    laplacian, mass = sums_of_blocks(alone, densely)
    task.output.write_whole({**StoredReduced.LAPLACIAN.arrays(laplacian), **StoredReduced.MASS.arrays(mass)})
    n_landmarks = task.params.n_landmarks
    nonzeros = 2 * int(laplacian.nnz) - int(np.count_nonzero(laplacian.diagonal()))
    return {"nonzeros": nonzeros, "density": nonzeros / n_landmarks**2}


def graphs(context: StageContext) -> Steps:
    """Yield the parts of all blocks, and the rounds of their sums, of which the driver adds the last."""
    yield products
    yield functools.partial(rounds_of_sums, adds_densely(Sizes(context.task.dimensions, context.task.params)))
    yield "the last parts are summed"


def products(graph: StageGraph) -> None:
    """Add the parts of all blocks."""
    graph.map_blocks(reduced_part)


def sums_of_blocks(
    context: StageContext, densely: bool, together: int = SUMMED_TOGETHER
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the lower triangles of Z^T (D - W) Z and Z^T D Z by the parts of all blocks, `together` at a time."""
    task, level = context.task, n_rounds(context.task, together)
    context.compute(functools.partial(rounds_of_sums, densely, together=together))
    parts = range(n_parts(task, level, together))
    mass = lower_triangle(sum_of_parts(task, level, StoredReduced.MASS_PART, parts, densely).total())
    affinity = sum_of_parts(task, level, StoredReduced.AFFINITY_PART, parts, densely)
    return lower_triangle(affinity.subtracted_from(mass)), mass


def rounds_of_sums(densely: bool, graph: StageGraph, together: int = SUMMED_TOGETHER) -> None:
    """Add the sums of parts, while there are many, each of `together` of the round before."""
    task = graph.context.task
    for level in range(1, n_rounds(task, together) + 1):
        part = functools.partial(summed_part, level, densely, together)
        reads = functools.partial(parts_below, n_parts(task, level - 1, together), together) if level > 1 else None
        graph.map_blocks(part, step_of(level), n_parts(task, level, together), reads)


def n_rounds(task: StageTask, together: int) -> int:
    """Return after how many rounds of summing no more than `together` parts are left."""
    return next(level for level in itertools.count() if n_parts(task, level, together) <= together)


def n_parts(task: StageTask, level: int, together: int) -> int:
    """Return the number of parts after so many rounds of summing."""
    return -(-task.dimensions.n_blocks // together**level)


def step_of(level: int) -> str:
    """Return the name of a round of summing; the parts of blocks have none."""
    return f"sum_{level}" if level else ""


def sum_of_parts(
    task: StageTask, level: int, described: MatrixDescription, parts: range, densely: bool
) -> TreeSum | PackedSum:
    """Return the sum of parts of a round; the order of additions decides the last bits."""
    output = StoredReduced(task.output)
    total: TreeSum | PackedSum = PackedSum(task.params.n_landmarks) if densely else TreeSum()
    for part in parts:
        total.add(output.read_part_of(described, part, step_of(level)))
    return total


def summed_part(level: int, densely: bool, together: int, task: StageTask, part: int) -> Arrays:
    """Return a part of a round of summing: consecutive parts of the round before."""
    before = parts_below(n_parts(task, level - 1, together), together, part)
    return part_arrays(*(sum_of_parts(task, level - 1, described, before, densely).total() for described in PARTS))


def parts_below(count: int, together: int, part: int) -> range:
    """Return which of so many parts of the round before a part sums."""
    return range(part * together, min((part + 1) * together, count))


def part_arrays(affinity: sp.csr_matrix, mass: sp.csr_matrix) -> Arrays:
    """Return parts of the two sums, lower triangles, as they are stored."""
    return {**StoredReduced.AFFINITY_PART.arrays(affinity), **StoredReduced.MASS_PART.arrays(mass)}


def reduced_part(task: StageTask, block: int) -> Arrays:
    """Return one block's part of the sums."""
    graph = affinity_graph(task.inputs, task.cache_bytes)
    affinities, degrees = graph.read_matrix(block, task.dimensions.n_points), graph.degrees(block)
    reached, renumbered = graph.on_reached(affinities)
    weights = stored_landmark_weights(task.inputs).read_matrix(block, task.params.n_landmarks)
    affinity = weighted_product(weights, renumbered, weights_at(task, reached))
    return part_arrays(symmetric_triangle(affinity), symmetric_triangle(diagonal_product(weights, degrees)))
