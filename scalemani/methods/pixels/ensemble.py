"""W of an image or a video as an ensemble of minimum spanning trees, each of jittered pixels."""

from typing import Any

import numpy as np

from scalemani.engine.needs import EACH_PROCESS, EACH_TASK, Held, entries_held
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageWork
from scalemani.methods.pixels.kernels import (
    ensemble_affinities,
    jittered,
    mean_distances,
    minimum_spanning_tree,
)
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.groups import block_unit

COPIES_OF_POINTS = 3  # noise, its words, and the sum
COLUMNS_OF_TREE = 5  # parents, labels, lengths, edges of components and of the tree
COPIES_OF_EDGES = 4  # of all trees, counted, in both directions, and by block


def memory(sizes: Sizes) -> list[Held]:
    """List the pixels, what the growth of a tree takes, and the edges of all trees."""
    n_points, features = sizes.dimensions.n_points, sizes.dimensions.n_features
    edges = 2 * sizes.params.affinities.trees * n_points
    return [
        Held("pixels and their mean distances", EACH_PROCESS, n_points, features + 1, "float64"),
        Held("jittered pixels", EACH_TASK, n_points, features, "float64", COPIES_OF_POINTS, "trees"),
        Held("components of a tree", EACH_TASK, n_points, COLUMNS_OF_TREE, "float64", step="trees"),
        *entries_held("W", EACH_PROCESS, edges, COPIES_OF_EDGES, values="float32"),
    ]


def write_ensemble(work: StageWork) -> dict[str, Any]:
    """Grow the trees side by side on this process's threads, and write W by blocks."""
    task = work.task
    image, reach = task.params.neighbors.image(task.dimensions.n_points), task.params.neighbors.reach
    points = task.stored(StoredWorkPoints).dense_points.read_once()
    deviations = task.params.affinities.jitter * mean_distances(points, image, reach)

    def grown(copy: int) -> np.ndarray:
        return minimum_spanning_tree(jittered(points, deviations, task.params.seed, copy), image, reach)

    copies = range(task.params.affinities.trees)
    work.executor.progress.start(task.stage, len(copies))
    weights = ensemble_affinities(list(work.executor.map_locally(grown, copies)), len(points))
    for block in range(task.dimensions.n_blocks):
        if not task.output.committed(block_unit(block)):
            rows = weights[slice(*task.dimensions.rows(block))]
            bounds, columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
            task.output.write_block(block, StoredSymmetricAffinities.parts(bounds, columns, rows.data))
    return {"trees": len(copies), "shared": float(np.mean(weights.data == 1))}
