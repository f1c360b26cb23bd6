"""The weight of every edge of the neighbour graph, row by row."""

import math
from typing import Any, NamedTuple

import numpy as np

from scalemani.chunked.needs import EACH_TASK, STORED, Held, Written
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import Arrays, StageTask, StageWork
from scalemani.kernels.affinities.bandwidths import gaussian_affinities, self_tuning_affinities
from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.params import Parameters
from scalemani.records.affinities import StoredAffinities
from scalemani.records.graph import StoredNeighbors
from scalemani.store.schema import RowArray

COPIES_OF_STORED = 3  # to be stored, looked at for what is not finite, and encoded
COLUMNS_BESIDE_EDGES = 6  # three of 8 bytes, as they are found and as they are stored


def memory(sizes: Sizes) -> list[Held]:
    """List what a block of edges takes."""
    rows, k = sizes.dimensions.block_rows, sizes.params.n_neighbors
    return [
        Held("neighbours of a block", EACH_TASK, rows, k, "int32"),
        Held("distances of a block", EACH_TASK, rows, k, sizes.dimensions.distance_dtype),
        Held("squared distances", EACH_TASK, rows, k, "float64"),
        Held("affinities while they are found", EACH_TASK, rows, k, "float64"),
        Held("affinities of a block", EACH_TASK, rows, k, "float32", COPIES_OF_STORED),
        Held("bandwidths, steps and residuals", EACH_TASK, rows, COLUMNS_BESIDE_EDGES),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored."""
    n_points = sizes.dimensions.n_points
    return [
        Written(array.description.meaning, STORED, n_points, math.prod(array.columns), array.dtype)
        for array in arrays(sizes.params)
    ]


def arrays(params: Parameters) -> list[RowArray]:
    """Describe what is stored."""
    values = [StoredAffinities.VALUES.sized(params.n_neighbors)]
    if params.affinities.kind != "entropic":
        return values
    return values + [described.sized() for described in StoredAffinities.ENTROPIC]


def run(work: StageWork) -> dict[str, Any]:
    """Compute the affinities of all blocks; certify the largest entropy residual of the points that have a root."""
    task = work.task
    task.output.create(task.dimensions.n_points, arrays(task.params))
    work.map_blocks(affinities_block)
    if task.params.affinities.kind != "entropic":
        return {}
    found = work.fold_blocks(block_certificates, added_certificates)
    if found.saturated:
        work.warn(
            f"{found.saturated} of {task.dimensions.n_points} points have at least as many equally near neighbours "
            f"(duplicates, say) as the perplexity {task.params.perplexity:g}, which is out of their reach: "
            "their affinities are uniform over those; merge duplicated points or raise affinities.perplexity"
        )
    return {
        "largest_entropy_residual": found.residual,
        "mean_iterations": found.iterations / task.dimensions.n_points,
        "saturated_points": found.saturated,
        "duplicated_points": found.duplicated,
    }


class Certificates(NamedTuple):
    """What rows add to the certificates: largest residual, steps in all, rows that are saturated and duplicated."""

    residual: float
    iterations: int
    saturated: int
    duplicated: int


def block_certificates(task: StageTask, block: int) -> Certificates:
    """Return the certificates of a block."""
    output = StoredAffinities(task.output)
    saturated = output.saturated.read_block(block).astype(bool)
    residuals = np.abs(output.residuals.read_block(block))[~saturated]
    iterations, duplicated = output.iterations.read_block(block), output.duplicated.read_block(block)
    counts = (values.sum(dtype=np.int64) for values in (iterations, saturated, duplicated))
    return Certificates(float(residuals.max(initial=0.0)), *map(int, counts))


def added_certificates(one: Certificates, other: Certificates) -> Certificates:
    """Return the certificates of two sets of rows together."""
    return Certificates(max(one.residual, other.residual), *(a + b for a, b in zip(one[1:], other[1:], strict=True)))


def affinities_block(task: StageTask, block: int) -> Arrays:
    """Return the affinities of one block."""
    asked = task.params.affinities
    start, _ = task.dimensions.rows(block)
    indices, distances = StoredNeighbors(task.inputs["neighbors"]).read_graph_block(block)
    squared = distances.astype(np.float64) ** 2
    if asked.kind == "gaussian":
        return {StoredAffinities.VALUES: gaussian_affinities(squared, asked.sigma).astype(np.float32)}
    if asked.kind == "self-tuning":
        values = self_tuning_affinities(squared, asked.bandwidth_neighbor)
        return {StoredAffinities.VALUES: values.astype(np.float32)}
    found = entropic_affinities(
        squared,
        task.params.perplexity,
        solver=asked.solver,
        order=asked.order,
        tol=asked.tolerance,
        indices=indices,
        first_row=start,
        seed=task.params.seed,
    )
    return {
        StoredAffinities.VALUES: found.values.astype(np.float32),
        StoredAffinities.BETA: found.beta,
        StoredAffinities.ITERATIONS: found.iterations,
        StoredAffinities.SATURATED: found.saturated.astype(np.uint8),
        StoredAffinities.DUPLICATED: (squared[:, 0] == 0).astype(np.uint8),
        StoredAffinities.RESIDUALS: found.residuals,
    }
