"""Neighbour lists of another library, in work order. Their digest is in the key."""

import functools
from typing import Any

import numpy as np

from scalemani.engine.needs import EACH_PROCESS, EACH_TASK, Held
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.io.sources.side_data import GivenLists
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.stages.arrays.graph import StoredGivenLists
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.shared.beside_points import given_beside

COPIES_OF_BLOCK = 3  # in input rows, in work rows, and encoded


def memory(sizes: Sizes) -> list[Held]:
    """List the lists as given, the order of the points, and a block of lists."""
    n_points, k = sizes.dimensions.n_points, sizes.params.n_neighbors
    return [
        Held("lists and distances as given", EACH_PROCESS, n_points, 2 * k, "float32"),
        Held("input rows", EACH_PROCESS, n_points, 1, "int64"),
        Held("work rows of input rows", EACH_PROCESS, n_points, 1, "int64"),
        Held("given lists of a block", EACH_TASK, sizes.dimensions.block_rows, k, "int32", COPIES_OF_BLOCK),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Write the lists."""
    given: GivenLists = given_beside(work, "lists")
    task, k = work.task, work.task.params.n_neighbors
    order = StoredWorkPoints(task.inputs[StoredWorkPoints.STAGE]).input_rows.read()
    task.output.create(len(order), [StoredGivenLists.indices.sized(k)])
    work.map_blocks_here(functools.partial(block_of_lists, given.indices[:, :k], order, inverse_order(order)))
    return {"missing_entries": int(np.count_nonzero(given.indices[:, :k] < 0))}


def block_of_lists(
    indices: np.ndarray, order: np.ndarray, work_rows: np.ndarray, task: StageTask, block: int
) -> Arrays:
    """Return the lists of a block of work rows, in work rows.

    Parameters
    ----------
    indices : (N, k) lists in input rows, in their order
    order : (N,) the input row of each work row
    work_rows : (N,) the work row of each input row
    """
    listed = indices[order[slice(*task.dimensions.rows(block))]]
    return {StoredGivenLists.indices: np.where(listed < 0, -1, work_rows[listed]).astype(np.int32)}
