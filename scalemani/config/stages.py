"""Stages, and those that several methods share, as plain data that one can print."""

from dataclasses import dataclass, replace

SPECTRAL_START = "spectral"  # the start of a descent that is the spectral embedding
COMPUTED_STARTS = (SPECTRAL_START, "pca", "random")
GIVEN_START = "given"  # the start that comes with the points, as coordinates of some or all of them
PRECOMPUTED = "precomputed"  # the metric of neighbours that were found elsewhere
METRIC_NAMES = ("euclidean", "cosine", "correlation", "hellinger", "hamming", "jaccard", PRECOMPUTED)
GIVEN_LANDMARKS = "given"  # the method of landmarks that come with the points
GIVEN_ROWS = "rows"  # the method of those that are rows of the points, which it is resolved to where they have to be
BESIDE_POINTS = (GIVEN_LANDMARKS, GIVEN_ROWS)
DRAWN_LANDMARKS = ("random", "spread")  # rules that draw among all points
SAMPLED_LANDMARKS = ("kmeans", "kmeans++", "kmeans++ seeding", "minmax")  # rules that read landmarks.sample_points
GIVEN_LISTS = "given"  # the method of neighbours that come with the points, as lists of another library
WINDOW = "window"  # the method that takes the pixels around a pixel for its neighbours
AUTO = "auto"  # the solver of a run that names none: REFINE where it fits the driver, else LLL
REFINE, LLL = "refine", "lll"
LANDMARK_SOLVERS = ("lll", "lll+refine")  # make points of their nearest landmarks
REFINING_SOLVERS = ("refine", "lll+refine")  # pass over the graph, preconditioned by coarse graphs
Names = tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """One step: its inputs by name, whether it draws at random, works by row blocks, and the version of its result.

    `solvers` names those of embedding.solver that need the stage; none means all. `also_reads` names the stages whose
    parameters it depends on beside its own and, through their keys, those of its inputs; `parameters` names single ones
    of other stages, as on the command line. `follows` names inputs that are functions of its other inputs and of its
    parameters, or inputs of these: its key does not hold theirs once more.
    `reads` names the parts of the side data whose digests are in its key, where the points have them.
    An `optional` stage is left out of runs that do not ask for it.
    `continues` names the stages of an earlier run of the first points whose results it goes on from, and whose keys are
    then in its own, where points were appended to that run; it then reads these stages of its own run too. Raise
    `version` whenever the same inputs and parameters give another result: stored results of the older version are then
    computed anew. Raise `continued_version` where that is so of what goes on from an earlier run alone.

    `package` holds the module of the stage's name; that of a method's own stage is the method's folder.
    """

    name: str
    inputs: Names
    seeded: bool = False
    by_block: bool = True
    solvers: Names = ()
    also_reads: Names = ()
    parameters: Names = ()
    follows: Names = ()
    reads: Names = ()
    optional: bool = False
    continues: Names = ()
    continued_version: int = 1
    version: int = 1
    package: str = "scalemani.stages"


Route = tuple[Stage, ...]  # in an order in which every stage follows its inputs

LEAVE_OUT = "leave-out"  # of points.missing
DUPLICATES = Stage("duplicates", (), by_block=False, reads=("duplicates",), optional=True)
POINTS = Stage("points", (), continues=("points",))
PARTITION = Stage("partition", ("points",), seeded=True, version=4, continues=("partition",))
WORK_POINTS = Stage("work_points", ("points", "partition"), continues=("work_points",))
LISTS = Stage("given_lists", ("work_points",), reads=("lists",), optional=True)
NEIGHBORS = Stage(
    "neighbors",
    ("partition", "work_points", "given_lists"),
    seeded=True,
    version=13,
    continues=("neighbors", "work_points"),
    continued_version=3,
)
WEIGHTS = Stage("weights", ("work_points",), reads=("weights",), optional=True)
CLASSES = Stage("classes", ("work_points",), reads=("labels",))
AFFINITIES = Stage("affinities", ("neighbors", "weights"), seeded=True)
COMPONENTS = Stage(
    "components",
    ("partition", "work_points", "neighbors", "affinities", "weights"),
    by_block=False,
    reads=("pairs",),
    version=2,
)
NEIGHBOR_COMPONENTS = replace(
    COMPONENTS, inputs=("partition", "work_points", "neighbors"), version=1
)  # of all edges of the graph
SYMMETRIC_AFFINITIES = Stage(
    "symmetric_affinities", ("neighbors", "affinities", "components", "weights", "classes"), version=2
)
KERNEL_AFFINITIES = replace(SYMMETRIC_AFFINITIES, inputs=("neighbors", "affinities", "components"))  # whatever classes
NORMALIZED_AFFINITIES = Stage("normalized_affinities", ("symmetric_affinities", "weights"))
LANDMARKS = Stage(
    "landmarks", ("points",), seeded=True, by_block=False, reads=("landmarks",), continues=("landmarks",), version=3
)
LANDMARK_WEIGHTS = Stage("landmark_weights", ("work_points", "landmarks"), solvers=LANDMARK_SOLVERS)
LANDMARKS_IN_GRAPH = ("work_points", "components", "landmarks")  # tell which components have none
REDUCED = Stage(
    "reduced",
    ("symmetric_affinities", "normalized_affinities", "landmark_weights", *LANDMARKS_IN_GRAPH),
    solvers=LANDMARK_SOLVERS,
    follows=LANDMARKS_IN_GRAPH,
    version=2,
)
LANDMARK_EMBEDDING = Stage("landmark_embedding", ("reduced",), by_block=False, solvers=LANDMARK_SOLVERS, version=3)
COARSE_GRAPHS = Stage(
    "coarse_graphs",
    ("symmetric_affinities", "normalized_affinities"),
    by_block=False,
    solvers=REFINING_SOLVERS,
    version=2,
    continues=("coarse_graphs", "work_points"),
)
COARSE_EMBEDDING = Stage(
    "coarse_embedding",
    ("coarse_graphs",),
    seeded=True,
    by_block=False,
    solvers=REFINING_SOLVERS,
    also_reads=("landmark_embedding",),
    version=4,
    continues=("coarse_embedding", "coarse_graphs"),
)
EMBEDDING = Stage(
    "embedding",
    (
        "work_points",
        "symmetric_affinities",
        "normalized_affinities",
        "landmark_weights",
        "landmark_embedding",
        "coarse_graphs",
        "coarse_embedding",
        "weights",
    ),
    seeded=True,
    by_block=False,
    also_reads=("landmark_embedding",),
    version=7,
    continues=("embedding",),
)
DIFFUSION_COORDINATES = Stage("diffusion_coordinates", ("embedding",))
CLUSTERING = Stage("clustering", ("landmarks", "embedding"), seeded=True, version=2)

LAYOUT = Stage(
    "layout",
    ("work_points", "symmetric_affinities", "embedding", "weights"),
    seeded=True,
    by_block=False,
    version=8,
    also_reads=("landmark_embedding",),
    reads=("init",),
)

GRAPH = Stage("graph", ("work_points", "neighbors"))

GRAPH_ROUTE = (POINTS, PARTITION, WORK_POINTS, LISTS, NEIGHBORS)
KERNEL_ROUTE = (*GRAPH_ROUTE, AFFINITIES, COMPONENTS, KERNEL_AFFINITIES)
AFFINITY_STAGES = (replace(CLASSES, optional=True), AFFINITIES, COMPONENTS, SYMMETRIC_AFFINITIES)
AFFINITY_ROUTE = (*GRAPH_ROUTE, *AFFINITY_STAGES)
WEIGHTED_ROUTE = (DUPLICATES, *GRAPH_ROUTE, WEIGHTS, *AFFINITY_STAGES)
# Of methods by landmarks alone: without neighbours to look for, points need no cells and no other order than their own.
LINEAR_ROUTE = (POINTS, LANDMARKS, replace(LANDMARK_WEIGHTS, inputs=("points", "landmarks"), solvers=()))
# Of methods that take the edges of the graph as they are.
DISTANCES_ROUTE = (*GRAPH_ROUTE, NEIGHBOR_COMPONENTS, LANDMARKS)
