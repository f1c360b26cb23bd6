"""The weight of every edge of the neighbour graph, row by row."""

import functools
import math
from typing import Any

import numpy as np

from scalemani.config.limits import MUCH_AT_FLOOR
from scalemani.config.params import AffinitiesParams, Resolved
from scalemani.config.stages import AFFINITIES
from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.graph import Key
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.affinities.bandwidths import (
    LEAST_WEIGHT,
    SAMPLED_POINTS,
    gaussian_affinities,
    row_entropies,
    rows_to_choose_by,
    self_tuning_affinities,
    typical_bandwidth,
)
from scalemani.kernels.affinities.entropic import (
    RowsOfData,
    entropic_affinities,
    repeated_affinities,
    repeated_entropies,
)
from scalemani.stages.arrays.affinities import StoredAffinities
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import stored_weights
from scalemani.stages.shared.edges import edges_read, multiplicities
from scalemani.store.groups import StageGroup
from scalemani.store.schema import RowArray


def memory(sizes: Sizes) -> Memory:
    """Return what a block of edges takes, and the sample that sigma is chosen from."""
    n_points, rows, k = sizes.dimensions.n_points, sizes.dimensions.block_rows, sizes.params.affinity_neighbors
    held = Memory(
        task={
            **edges_read(sizes),
            "squared distances, and affinities while they are found": array("float64", rows, 2 * k),
            "affinities to be stored, looked at, and encoded": 3 * array("float32", rows, k),
            "bandwidths, steps and residuals, found and stored": array("float64", rows, 6),
        }
    )
    if sizes.weighted:
        of_block = {"weights of the neighbours of a block, and with the point": array("float64", rows, 2 * (k + 1))}
        held += Memory(task=of_block, points={"weights of the points": array("float64", n_points)})
    if sizes.params.affinities.chooses_sigma:
        drawn = 3 * array("float64", SAMPLED_POINTS, sizes.params.n_neighbors)
        held += Memory({"order in which points are drawn, and their distances": array("float64", n_points, 3) + drawn})
    return held


def disk(sizes: Sizes) -> Disk:
    """Return what is stored of the kind of affinities, and of points with weights."""
    stored = (array.description for array in arrays(sizes.params, sizes.weighted))
    return Disk(written(stored, sizes, neighbor=sizes.params.affinity_neighbors))


def arrays(params: Resolved, weighted: bool) -> list[RowArray]:
    """Describe what is stored, of points with weights or without."""
    values = [StoredAffinities.values.sized(params.affinity_neighbors)]
    if params.affinities.kind != "entropic":
        return values
    stored = StoredAffinities
    described = [stored.beta, stored.iterations, stored.saturated, stored.duplicated, stored.residuals]
    return values + [array.sized() for array in described + [stored.twins] * weighted]


def run(context: StageContext) -> dict[str, Any]:
    """Compute the affinities of all blocks; certify how good they are as they are stored."""
    task = context.task
    if task.params.affinities.chooses_sigma and not task.output.committed(StoredAffinities.SIGMA_UNIT):
        sigma = sampled_bandwidth(task, task.params.affinities.bandwidth_neighbor)
        task.output.write_whole({StoredAffinities.sigma: np.array(sigma)}, StoredAffinities.SIGMA_UNIT)
    weighted = stored_weights(task.inputs) is not None
    task.output.create(task.dimensions.n_points, arrays(task.params, weighted))
    if task.earlier is not None and follows_earlier(task):
        context.take_earlier_blocks(functools.partial(has_earlier_lists, task))
    certify = entropic_certificates if task.params.affinities.kind == "entropic" else weight_certificates
    return certify(context, *context.compute(blocks_and_certificates))


def graphs(context: StageContext) -> Steps:
    """Yield the affinities with what certifies them."""
    if context.task.params.affinities.chooses_sigma and not context.task.output.committed(StoredAffinities.SIGMA_UNIT):
        yield "sigma by a sample of the points"
    yield blocks_and_certificates


def blocks_and_certificates(graph: StageGraph) -> Key | None:
    """Add the affinities of all blocks, and the sums that certify them."""
    graph.map_blocks(affinities_block)
    if graph.context.task.params.affinities.kind == "entropic":
        return graph.fold_blocks(
            block_of_entropic, lambda one, other: (np.maximum(one[0], other[0]), one[1] + other[1])
        )
    return graph.fold_blocks(block_of_weights, lambda one, other: (one[0] + other[0], one[1] + other[1]))


def sampled_bandwidth(task: StageTask, nth: int) -> float:
    """Return the median distance of a sample of the points to their `nth` neighbour."""
    rows = rows_to_choose_by(task.params.seed, task.dimensions.n_points)
    neighbors = task.stored(StoredNeighbors)
    distances = neighbors.distances(neighbors.final_step).gather(rows)
    return typical_bandwidth(distances.astype(np.float64) ** 2, nth)


def follows_earlier(task: StageTask) -> bool:
    """Return whether affinities follow from lists as those of the run do that points were appended to."""
    stored, params = task.earlier_results.groups[StoredAffinities.STAGE], task.params.affinities
    same_sigma = params.kind != "gaussian" or sigma_of(stored, params) == sigma_of(task.output, params)
    return bool(stored.record["version"] == AFFINITIES.key.version) and same_sigma


def has_earlier_lists(task: StageTask, block: int) -> bool:
    """Return whether the lists of a block are those of the run that points were appended to."""
    names = StoredNeighbors.indices.name, StoredNeighbors.distances.name
    now, before = (
        [one.group.content_of_block(name, block, one.final_step) for name in names]
        for one in (task.stored(StoredNeighbors), task.earlier_results.stored(StoredNeighbors))
    )
    return now == before


def sigma_of(group: StageGroup, params: AffinitiesParams) -> float:
    """Return the sigma of Gaussian affinities: as requested, or as the stage chose it."""
    return float(StoredAffinities(group).sigma.read_once()) if params.sigma is None else params.sigma


def entropic_certificates(context: StageContext, residuals: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
    """Certify the entropy of the points that have a root: as float32 holds them, and as the solver left them."""
    n_points, perplexity = context.task.dimensions.n_points, context.task.params.perplexity
    stored, solved = residuals
    iterations, saturated, duplicated = counts.tolist()
    if saturated:
        context.warn(
            f"{saturated} of {n_points} points have at least as many equally near neighbours "
            f"(duplicates, say) as the perplexity {perplexity:g}, which is out of their reach: "
            "their affinities are uniform over those; merge duplicated points, or raise affinities.perplexity, which "
            "counts copies where points have weights"
        )
    return {
        "largest_entropy_residual": float(stored),
        "largest_solver_residual": float(solved),
        "mean_iterations": iterations / n_points,
        "saturated_points": saturated,
        "duplicated_points": duplicated,
    }


def block_of_entropic(task: StageTask, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Return of a block the largest residuals as stored and as solved, and steps, saturated and duplicated rows."""
    output = StoredAffinities(task.output)
    saturated = output.saturated.read_block(block)
    missed = np.abs(stored_entropies(task, output, block) - math.log(task.params.perplexity))
    left = np.abs(output.residuals.read_block(block))
    counted = output.iterations.read_block(block), saturated, output.duplicated.read_block(block)
    largest = [values[saturated == 0].max(initial=0.0) for values in (missed, left)]
    return np.array(largest), np.array([values.sum(dtype=np.int64) for values in counted])


def stored_entropies(task: StageTask, output: StoredAffinities, block: int) -> np.ndarray:
    """Return the entropy (n,) of the affinities of each point of a block as they are stored, with all copies."""
    values = output.values.read_block(block)
    counts = None
    if stored_weights(task.inputs) is not None:
        indices, _ = task.stored(StoredNeighbors).read_graph_block(block, task.params.affinity_neighbors)
        counts = multiplicities(task, block, indices)
    return (
        row_entropies(values) if counts is None else repeated_entropies(values, output.twins.read_block(block), counts)
    )


def weight_certificates(context: StageContext, at_floor: int, effective: float) -> dict[str, Any]:
    """Certify how many neighbours of a point count, and that edges do not all weigh the same for being too far."""
    task, params = context.task, context.task.params.affinities
    share = at_floor / (task.dimensions.n_points * task.params.affinity_neighbors)
    gaussian = {"sigma": sigma_of(task.output, params)} if params.kind == "gaussian" else {}
    if share > MUCH_AT_FLOOR:
        nth = min(params.bandwidth_neighbor, task.params.affinity_neighbors)
        context.warn(
            f"affinities: {share:.0%} of the edges are too long for their bandwidth to distinguish them and have the "
            f"least weight there is; the median distance to neighbour {nth} is {sampled_bandwidth(task, nth):.3g}"
            + (f", affinities.sigma {gaussian['sigma']:.3g}: raise it, or leave it open" if gaussian else "")
        )
    return {**gaussian, "floor_share": share, "effective_neighbors": effective / task.dimensions.n_points}


def block_of_weights(task: StageTask, block: int) -> tuple[int, float]:
    """Return how many edges of a block have the least weight there is, and the sum of its effective neighbours."""
    values = StoredAffinities(task.output).values.read_block(block)
    return int(np.count_nonzero(values <= np.float32(LEAST_WEIGHT))), float(np.exp(row_entropies(values)).sum())


def affinities_block(task: StageTask, block: int) -> Arrays:
    """Return the affinities of one block."""
    params = task.params.affinities
    start, _ = task.dimensions.rows(block)
    graph = task.stored(StoredNeighbors)
    indices, distances = graph.read_graph_block(block, task.params.affinity_neighbors)
    squared = distances.astype(np.float64) ** 2
    if params.kind == "gaussian":
        values = gaussian_affinities(squared, sigma_of(task.output, params))
        return {StoredAffinities.values: values.astype(np.float32)}
    if params.kind == "self-tuning":
        values = self_tuning_affinities(squared, params.bandwidth_neighbor)
        return {StoredAffinities.values: values.astype(np.float32)}
    if params.kind == "uniform":
        return {StoredAffinities.values: np.ones(squared.shape, np.float32)}
    search: Any = {"solver": params.solver, "order": params.order, "tol": params.tolerance}
    search["rows"] = RowsOfData(indices, start, task.params.seed)
    counts, copies = multiplicities(task, block, indices), {}
    if counts is None:
        affinities = entropic_affinities(squared, task.params.perplexity, **search)
    else:
        affinities, of_copies = repeated_affinities(squared, task.params.perplexity, counts, **search)
        copies = {StoredAffinities.twins: of_copies}
    return {
        **copies,
        StoredAffinities.values: affinities.values.astype(np.float32),
        StoredAffinities.beta: affinities.beta,
        StoredAffinities.iterations: affinities.iterations,
        StoredAffinities.saturated: affinities.saturated.astype(np.uint8),
        StoredAffinities.duplicated: (squared[:, 0] == 0).astype(np.uint8),
        StoredAffinities.residuals: affinities.residuals,
    }
