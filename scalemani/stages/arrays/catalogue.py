"""All arrays of all stages, and what the names of their dimensions stand for."""

from collections.abc import Iterable
from types import ModuleType

from scalemani.config.methods import part_of
from scalemani.config.routes import PACKAGES
from scalemani.engine.reading import StoredStage
from scalemani.stages.arrays import affinities, embeddings, graph, landmarks, points
from scalemani.store.schema import ArrayDescription


def declared_in(modules: Iterable[ModuleType]) -> dict[str, type[StoredStage]]:
    """Return the stages that modules describe the arrays of, by their names."""
    return {
        stored.STAGE: stored
        for module in modules
        for stored in vars(module).values()
        if isinstance(stored, type) and issubclass(stored, StoredStage) and "STAGE" in vars(stored)
    }


BY_STAGE = declared_in((affinities, embeddings, graph, landmarks, points))

DIMENSIONS: dict[str, str] = {
    "given_row": "the rows that were given, equal ones among them",
    "point": "the points, N",
    "point_bound": "the points, and one",
    "feature": "the columns of the points, D",
    "other_feature": "the same columns, across",
    "axis": "the axes of a sketch: partition.sketch_dimensions, at most D",
    "cell": "the cells of the partition",
    "cell_bound": "the cells, and one",
    "stretch": "the stretches of work rows of one cell",
    "stretch_bound": "these stretches, and one",
    "neighbor": "the neighbours of a point, k",
    "query": "the points by which the recall is measured: neighbors.sampled_queries, at most N",
    "figure": "the share, its standard error, and the number of points",
    "bridge": "the bridges between components",
    "piece": "the pieces of a graph, each embedded by itself",
    "end": "the ends of a bridge, 2",
    "extent": "frames, rows and columns of an image: 3",
    "side": "pixels to each side, and frames before and after: 2",
    "kept_point": "the points of the largest component",
    "row": "the rows of a block",
    "row_bound": "the rows of a block, and one",
    "nonzero": "the nonzeros of a sparse matrix in CSR form",
    "landmark": "the landmarks, L",
    "anchor": "the points nearest to a landmark off the data: 8, at most N",
    "landmark_bound": "the landmarks, and one",
    "nearest_landmark": "the landmarks that a point is a combination of: landmark_weights.n_neighbors",
    "affinity_nonzero": "the nonzeros of a part of Z^T W Z",
    "mass_nonzero": "the nonzeros of a part of Z^T D Z",
    "laplacian_triangle_nonzero": "the nonzeros of Z^T (D - W) Z up to its diagonal",
    "mass_triangle_nonzero": "the nonzeros of Z^T D Z up to its diagonal",
    "component": "the dimensions of the embedding, d",
    "node": "the nodes of a coarse graph",
    "node_bound": "these nodes, and one",
    "joined_node": "these nodes; none on the last level",
    "leaf": "leaves that a point is in",
    "joined_point": "points of a group of leaves",
    "joined_edge": "candidates that these leaves give to their points",
    "start_vector": "the eigenvectors of a coarse graph that refinement starts from",
    "class": "the classes of the labels, C",
    "cluster": "the clusters: clustering.n_clusters",
    "evaluation": "the iterations at which the objective was computed",
    "quantity": "iteration, objective, norm of the gradient: 3",
}


def of_method(stage: str) -> type[StoredStage] | None:
    """Return the reader of the groups of a method's own stage; None for other stages."""
    module = part_of(PACKAGES.get(stage, ""), stage)
    return None if module is None else declared_in([module]).get(stage)


def stored_stages() -> list[type[StoredStage]]:
    """Return all stages that store arrays, in the order of the routes, those of methods last."""
    shared = [BY_STAGE[stage] for stage in PACKAGES if stage in BY_STAGE]
    return [*shared, *filter(None, map(of_method, PACKAGES))]


def arrays_of(stage: str) -> tuple[ArrayDescription, ...]:
    """Return the arrays that a stage stores; none where it has certificates alone."""
    stored = BY_STAGE.get(stage) or of_method(stage)
    return () if stored is None else stored.ARRAYS
