"""Neighbour lists of another library, in work order, and what their distances are. Their digest is in the key."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import Arrays, StageContext, StageTask
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.io.sources.side_data import PrecomputedLists
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.stages.arrays.graph import StoredGivenLists
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.shared.side_data import side_data_part

COMPARED_ROWS = 500  # lists whose distances are compared with those of their points
ALIKE = 0.25  # of a distance: what codes instead of points typically change of it, at most


def memory(sizes: Sizes) -> Memory:
    """Return what the input lists take, the order of the points, and a block in input rows, work rows, encoded."""
    n_points, k = sizes.dimensions.n_points, sizes.params.n_neighbors
    return Memory(
        process={
            "lists and distances as given": array("float32", n_points, 2 * k),
            "input rows, and work rows of these": array("int64", n_points, 2),
        },
        task={"given lists of a block": 3 * array("int32", sizes.dimensions.block_rows, k)},
    )


def run(context: StageContext) -> dict[str, Any]:
    """Write the lists, and say what their distances are."""
    lists: PrecomputedLists = side_data_part(context, "lists")
    task, k = context.task, context.task.params.n_neighbors
    stored = task.stored(StoredWorkPoints)
    order = stored.input_rows.read()
    work_rows = inverse_order(order)
    task.output.create(len(order), [StoredGivenLists.indices.sized(k)])
    indices = lists.indices[:, :k]

    def block_of_lists(task: StageTask, block: int) -> Arrays:
        """Return the lists of a block of work rows, which came in input rows and their order, in work rows."""
        listed = indices[order[slice(*task.dimensions.rows(block))]]
        return {StoredGivenLists.indices: np.where(listed < 0, -1, work_rows[listed]).astype(np.int32)}

    context.map_blocks_here(block_of_lists)
    return {"missing_entries": int(np.count_nonzero(indices < 0)), **form(lists, stored, work_rows)}


def form(lists: PrecomputedLists, stored: StoredWorkPoints, work_rows: np.ndarray) -> dict[str, Any]:
    """Return what the distances of lists are, by those between points, and how far they typically are from that.

    Pairs are the first and the last neighbour of rows that are spread evenly.
    """
    listed = (lists.indices >= 0).sum(axis=1)
    owners = np.flatnonzero(listed)
    owners = owners[:: -(-len(owners) // COMPARED_ROWS)]
    owners, places = np.tile(owners, 2), np.concatenate([np.zeros_like(owners), listed[owners] - 1])
    others, stated = lists.indices[owners, places], lists.distances[owners, places].astype(np.float64)
    rows, numbers = np.unique(work_rows[np.concatenate([owners, others])], return_inverse=True)
    points = stored.points.gather(rows).astype(np.float64)
    first, second = points[numbers[: len(owners)]], points[numbers[len(owners) :]]
    products = products_of(first, second)
    squares = np.maximum(products_of(first, first) + products_of(second, second) - 2 * products, 0)
    forms = {
        "distances": np.sqrt(squares),
        "squared distances": squares,
        "half squared distances": squares / 2,
        "inner products": products,
        "negative inner products": -products,
        "one less the inner products": 1 - products,
    }
    relative = {
        name: float(np.median(np.abs(stated - values)) / (np.median(np.abs(values)) or 1))
        for name, values in forms.items()
    }
    best = min(relative, key=lambda name: np.nan_to_num(relative[name], nan=np.inf))
    if not relative[best] <= ALIKE:
        return {"distances_given": "of another form"}
    return {"distances_given": best, "typical_difference": relative[best]}


def products_of(first: Any, second: Any) -> np.ndarray:
    """Return the inner product of each row of (n, D) points with that of others, (n,) float64, dense or sparse."""
    if sp.issparse(first):
        return np.asarray(first.multiply(second).sum(axis=1), np.float64).ravel()
    return np.einsum("ij,ij->i", first, second)
