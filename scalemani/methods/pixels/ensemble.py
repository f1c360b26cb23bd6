"""W of an image or a video as an ensemble of minimum spanning trees, each of jittered pixels."""

from typing import Any

import numpy as np

from scalemani.engine.context import StageContext
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.sizes import Sizes
from scalemani.methods.pixels.kernels import (
    ensemble_affinities,
    jittered,
    mean_distances,
    minimum_spanning_tree,
)
from scalemani.methods.pixels.parameters import EnsembleParams, WindowParams
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.groups import block_unit


def stored_nonzeros(sizes: Sizes) -> int:
    """Return the nonzeros of W that are stored, where no two trees share an edge."""
    return 2 * sizes.params.part(EnsembleParams).trees * sizes.dimensions.n_points


def memory(sizes: Sizes) -> Memory:
    """Return what the pixels take, the growth of a tree, and the edges of all trees."""
    n_points, features = sizes.dimensions.n_points, sizes.dimensions.n_features
    edges = stored_nonzeros(sizes)
    trees = {
        "jittered pixels: noise, its words, and the sum": 3 * array("float64", n_points, features),
        "parents, labels, lengths, and edges of a tree": array("float64", n_points, 5),
    }
    # Of all trees, counted, in both directions, and by block.
    of_all = {"W": 4 * entries(edges, "float32"), "pixels, mean distances": array("float64", n_points, features + 1)}
    return Memory(of_all, steps={"trees": Memory(task=trees)})


def write(context: StageContext) -> dict[str, Any]:
    """Grow the trees side by side on this process's threads, and write W by blocks."""
    task = context.task
    window, ensemble = task.params.part(WindowParams), task.params.part(EnsembleParams)
    image, reach = window.image(task.dimensions.n_points), window.reach
    points = task.stored(StoredWorkPoints).dense_points.read_once()
    deviations = ensemble.jitter * mean_distances(points, image, reach)

    def grown(copy: int) -> np.ndarray:
        return minimum_spanning_tree(jittered(points, deviations, task.params.seed, copy), image, reach)

    copies = range(ensemble.trees)
    context.executor.progress.start(task.stage, len(copies))
    weights = ensemble_affinities(list(context.executor.map_here(grown, copies)), len(points))
    for block in range(task.dimensions.n_blocks):
        if not task.output.committed(block_unit(block)):
            rows = weights[slice(*task.dimensions.rows(block))]
            bounds, columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
            task.output.write_block(block, StoredSymmetricAffinities.parts(bounds, columns, rows.data))
    return {"trees": len(copies), "shared": float(np.mean(weights.data == 1))}
