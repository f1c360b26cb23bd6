"""The weights of the points in work order: how many equal points each stands for. Their digest is in the key."""

import functools
from typing import Any

import numpy as np

from scalemani.chunked.needs import EACH_PROCESS, EACH_TASK, STORED, Held, Written
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import Arrays, StageTask, StageWork
from scalemani.records.points import StoredWeights, StoredWorkPoints
from scalemani.sources.beside import found_beside
from scalemani.sources.beside.weighted import WeightedPoints


def memory(sizes: Sizes) -> list[Held]:
    """List the weights and the order of the points."""
    n_points = sizes.dimensions.n_points
    return [
        Held("weights of the points", EACH_PROCESS, n_points, 1, "float64", 2),
        Held("input rows", EACH_PROCESS, n_points, 1, "int64"),
        Held("weights of a block", EACH_TASK, sizes.dimensions.block_rows, 1, "float64", 2),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: a weight a point."""
    return [Written("weights", STORED, sizes.dimensions.n_points, 1, "float64")]


def run(work: StageWork) -> dict[str, Any]:
    """Write the weights, in blocks of points in work order."""
    task = work.task
    given = None if work.points is None else found_beside(work.points.source, WeightedPoints)
    if given is None:
        raise ValueError("the stage `weights` was started without weights to read")
    weights = given.weights.values[StoredWorkPoints(task.inputs["work_points"]).input_rows.read()]
    task.output.create(len(weights), [StoredWeights.WEIGHTS.sized()])
    work.map_blocks_here(functools.partial(weights_block, weights))
    return {"total_weight": float(weights.sum()), "largest_weight": float(weights.max())}


def weights_block(weights: np.ndarray, task: StageTask, block: int) -> Arrays:
    """Return the weights of one block."""
    return {StoredWeights.WEIGHTS: weights[slice(*task.dimensions.rows(block))]}
