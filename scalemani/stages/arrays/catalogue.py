"""All arrays of all stages, and what the names of their dimensions stand for."""

from scalemani.engine.reading import StoredStage
from scalemani.errors import StoreError
from scalemani.stages.arrays import affinities, coarse, embeddings, graph, landmarks, points
from scalemani.store.schema import ArrayDescription, numberless

# The stages that store arrays, in the order in which `FORMAT.md` describes them.
ORDER = (
    *("duplicates", "points", "partition", "work_points", "weights", "neighbors", "graph", "geodesics", "affinities"),
    *("components", "symmetric_affinities", "normalized_affinities", "landmarks", "landmark_weights"),
    *("affinity_weights", "reduced", "landmark_embedding", "landmark_covariances", "landmark_graph", "coarse_graphs"),
    *("coarse_embedding", "embedding", "diffusion_coordinates", "classes", "principal_components"),
    *("kernel_components", "local_reconstruction", "isomap", "discriminants", "kernel_discriminants"),
    *("clustering", "layout"),
)
BY_STAGE: dict[str, type[StoredStage]] = {
    stored.STAGE: stored
    for module in (affinities, coarse, embeddings, graph, landmarks, points)
    for stored in vars(module).values()
    if isinstance(stored, type) and issubclass(stored, StoredStage) and "STAGE" in vars(stored)
}
STORED_STAGES = tuple(BY_STAGE[stage] for stage in ORDER)

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
    "end": "the ends of a bridge, 2",
    "extent": "frames, rows and columns of an image: 3",
    "side": "pixels to each side, and frames before and after: 2",
    "kept_point": "the points of the largest component",
    "row": "the rows of a block",
    "row_bound": "the rows of a block, and one",
    "nonzero": "the nonzeros of a sparse matrix in CSR form",
    "landmark": "the landmarks, L",
    "source_landmark": "the landmarks of a part, from which paths start: 8, at most L",
    "anchor": "the points nearest to a landmark off the data: 8, at most N",
    "landmark_bound": "the landmarks, and one",
    "nearest_landmark": "the landmarks that a point is a combination of: landmark_weights.n_neighbors",
    "joined_landmark": "the landmarks that a landmark is joined to: landmark_graph.n_neighbors",
    "affinity_nonzero": "the nonzeros of a part of Z^T W Z",
    "mass_nonzero": "the nonzeros of Z^T D Z, or of a part of it",
    "laplacian_nonzero": "the nonzeros of Z^T (D - W) Z",
    "component": "the dimensions of the embedding, d",
    "node": "the nodes of a coarse graph",
    "node_bound": "these nodes, and one",
    "joined_node": "these nodes; none on the last level",
    "start_vector": "the eigenvectors of a coarse graph that refinement starts from",
    "class": "the classes of the labels, C",
    "direction": "the dimensions of what discriminants are found in, at most D and L",
    "cluster": "the clusters: clustering.n_clusters",
    "evaluation": "the iterations at which the objective was computed",
    "quantity": "iteration, objective, norm of the gradient: 3",
}


def stored_stage(stage: str) -> type[StoredStage]:
    """Return the reader of a stage's groups.

    Raises
    ------
    StoreError
        Where no stage has that name.
    """
    if stage not in ORDER:
        raise StoreError(f"no stage {stage!r} is described; those described: {', '.join(ORDER)}")
    return BY_STAGE[stage]


def description_of(stage: str, path: str) -> ArrayDescription:
    """Return the description of the array at a path below `arrays/` of a group of a stage.

    Raises
    ------
    StoreError
        Where the stage stores no such array.
    """
    for described in stored_stage(stage).ARRAYS:
        if numberless(path) in described.paths:
            return described
    raise StoreError(f"stage {stage} stores no array at {path!r}: see FORMAT.md")
