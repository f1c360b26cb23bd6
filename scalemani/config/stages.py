"""Stages, and those that several methods share, as plain data that one can print."""

from dataclasses import dataclass, replace
from typing import Literal

SPECTRAL_START = "spectral"  # the start of a descent that is the spectral embedding
COMPUTED_STARTS = (SPECTRAL_START, "pca", "random")
COMPUTED_REFERENCES = ("pca", SPECTRAL_START)  # maps that a descent may be pulled to
INPUT_START = "given"  # the start, or reference, that comes with the points, as coordinates of some or all of them
PRECOMPUTED = "precomputed"  # the metric of precomputed neighbours
INPUT_LANDMARKS = "given"  # the method of landmarks that come with the points
LANDMARK_ROWS = "rows"  # the method of those that are rows of the points, which it is resolved to where they have to be
SIDE_DATA_LANDMARKS = (INPUT_LANDMARKS, LANDMARK_ROWS)
DrawnRule = Literal["random", "spread"]  # rules of landmarks that draw among all points
SampledRule = Literal["kmeans", "kmeans++", "kmeans++ seeding", "minmax"]  # those that read landmarks.sample_points
INPUT_LISTS = "given"  # the method of neighbours that come with the points, as lists of another library
AUTO = "auto"  # the solver of a run that names none: REFINE where it fits the driver, else LLL
REFINE, LLL = "refine", "lll"
LANDMARK_SOLVERS = ("lll", "lll+refine")  # make points of their nearest landmarks
REFINING_SOLVERS = ("refine", "lll+refine")  # pass over the graph, preconditioned by coarse graphs
Names = tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """What the key of a stage's result holds in addition to the stage's parameters and the keys of its inputs.

    Raise `version` whenever the same inputs and parameters give another result: stored results of the older version are
    then computed again. Raise `continued_version` where that is so only of what continues an earlier run.
    `parameters_of` names stages whose parameters the result depends on as well; `parameters` names single ones of other
    stages, as on the command line. `side_data` names the parts of the side data whose digests it holds, where points
    have them. `without` names inputs that are functions of the other inputs and of the parameters, or inputs of these:
    their keys are left out. `continues` names the stages of an earlier run that a run of appended points reads, with
    their keys in its keys; it then also reads these stages of the new run.
    """

    version: int = 1
    continued_version: int = 1
    parameters_of: Names = ()
    parameters: Names = ()
    side_data: Names = ()
    without: Names = ()
    continues: Names = ()


@dataclass(frozen=True)
class Stage:
    """One step: its inputs by name, whether it draws at random or works by row blocks, and what its key holds.

    `solvers` names those of embedding.solver that need the stage; none means all. An `optional` stage is left out of
    runs that do not request it; `wanted` is a parameter, as on the command line, and its value that requests it, where
    one does. `package` holds the module of the stage's name; that of a method's stage is the method's folder.
    """

    name: str
    inputs: Names
    seeded: bool = False
    by_block: bool = True
    solvers: Names = ()
    optional: bool = False
    wanted: tuple[str, str | bool] | None = None
    package: str = "scalemani.stages"
    key: Key = Key()


Route = tuple[Stage, ...]  # in an order in which every stage follows its inputs

LEAVE_OUT = "leave-out"  # of points.missing
MADE_ROWS = "made-rows"  # where symmetric_affinities.stored is false
DUPLICATES = Stage("duplicates", (), by_block=False, optional=True, key=Key(side_data=("duplicates",)))
POINTS = Stage("points", (), key=Key(continues=("points",)))
PARTITION = Stage("partition", ("points",), seeded=True, key=Key(version=6, continues=("partition",)))
WORK_POINTS = Stage("work_points", ("points", "partition"), key=Key(version=2, continues=("work_points",)))
LISTS = Stage(
    "given_lists",
    ("work_points",),
    optional=True,
    wanted=("neighbors.method", INPUT_LISTS),
    key=Key(side_data=("lists",)),
)
NEIGHBORS = Stage(
    "neighbors",
    ("partition", "work_points", "given_lists"),
    seeded=True,
    key=Key(version=13, continued_version=4, continues=("neighbors", "work_points")),
)
WEIGHTS = Stage("weights", ("work_points",), optional=True, key=Key(side_data=("weights",)))
CLASSES = Stage("classes", ("work_points",), key=Key(side_data=("labels",)))
AFFINITIES = Stage("affinities", ("neighbors", "weights"), seeded=True, key=Key(continues=("neighbors", "affinities")))
COMPONENTS = Stage(
    "components",
    ("partition", "work_points", "neighbors", "affinities", "weights"),
    by_block=False,
    key=Key(version=2, side_data=("pairs",)),
)
COMPARED_COMPONENTS = replace(COMPONENTS, key=replace(COMPONENTS.key, version=3))  # of metrics that compare rows
NEIGHBOR_COMPONENTS = replace(
    COMPONENTS, inputs=("partition", "work_points", "neighbors"), key=Key(side_data=("pairs",))
)  # of all edges of the graph
SYMMETRIC_AFFINITIES = Stage(
    "symmetric_affinities", ("neighbors", "affinities", "components", "weights", "classes"), key=Key(version=2)
)
KERNEL_AFFINITIES = replace(SYMMETRIC_AFFINITIES, inputs=("neighbors", "affinities", "components"))  # with any classes
NORMALIZED_AFFINITIES = Stage("normalized_affinities", ("symmetric_affinities", "weights"))
LANDMARKS = Stage(
    "landmarks",
    ("points",),
    seeded=True,
    by_block=False,
    key=Key(version=4, side_data=("landmarks",), continues=("landmarks",)),
)
LANDMARK_WEIGHTS = Stage("landmark_weights", ("work_points", "landmarks"), solvers=LANDMARK_SOLVERS)
LANDMARKS_IN_GRAPH = ("work_points", "components", "landmarks")  # from which follows which components have none
REDUCED = Stage(
    "reduced",
    ("symmetric_affinities", "normalized_affinities", "landmark_weights", *LANDMARKS_IN_GRAPH),
    solvers=LANDMARK_SOLVERS,
    key=Key(version=2, without=LANDMARKS_IN_GRAPH),
)
LANDMARK_EMBEDDING = Stage(
    "landmark_embedding", ("reduced",), by_block=False, solvers=LANDMARK_SOLVERS, key=Key(version=3)
)
COARSE_GRAPHS = Stage(
    "coarse_graphs",
    ("symmetric_affinities", "normalized_affinities"),
    by_block=False,
    solvers=REFINING_SOLVERS,
    key=Key(version=2, continues=("coarse_graphs", "work_points")),
)
COARSE_EMBEDDING = Stage(
    "coarse_embedding",
    ("coarse_graphs",),
    seeded=True,
    by_block=False,
    solvers=REFINING_SOLVERS,
    key=Key(version=4, parameters_of=("landmark_embedding",), continues=("coarse_embedding", "coarse_graphs")),
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
    key=Key(
        version=9,
        continued_version=2,
        parameters_of=("landmark_embedding",),
        continues=("embedding", "work_points"),
    ),
)
DIFFUSION_COORDINATES = Stage("diffusion_coordinates", ("embedding",))
CLUSTERING = Stage("clustering", ("landmarks", "embedding"), seeded=True, key=Key(version=5))

LAYOUT = Stage(
    "layout",
    ("partition", "work_points", "symmetric_affinities", "embedding", "weights"),
    seeded=True,
    by_block=False,
    key=Key(
        version=10,
        parameters_of=("landmark_embedding",),
        side_data=("init", "reference"),
        continues=("layout",),
        without=("partition",),
    ),
)

DOUBT = Stage(
    "doubt",
    ("partition", "work_points", "neighbors", "symmetric_affinities", "embedding", "layout"),
    seeded=True,
    optional=True,
    wanted=("doubt.measured", True),
    key=Key(version=2, without=("partition", "embedding")),
)

SPECTRAL_DOUBT = replace(  # of eigenvectors, whose places follow from the graph
    DOUBT,
    inputs=("partition", "work_points", "neighbors", "symmetric_affinities", "embedding"),
    key=replace(DOUBT.key, without=("partition",)),
)

GRAPH = Stage("graph", ("work_points", "neighbors"))

GRAPH_ROUTE = (POINTS, PARTITION, WORK_POINTS, LISTS, NEIGHBORS)
KERNEL_ROUTE = (*GRAPH_ROUTE, AFFINITIES, COMPONENTS, KERNEL_AFFINITIES)
AFFINITY_STAGES = (replace(CLASSES, optional=True), AFFINITIES, COMPONENTS, SYMMETRIC_AFFINITIES)
AFFINITY_ROUTE = (*GRAPH_ROUTE, *AFFINITY_STAGES)
WEIGHTED_ROUTE = (DUPLICATES, *GRAPH_ROUTE, WEIGHTS, *AFFINITY_STAGES)
# Of methods by landmarks alone: without neighbours to look for, points need no cells and no other order.
LINEAR_ROUTE = (POINTS, LANDMARKS, replace(LANDMARK_WEIGHTS, inputs=("points", "landmarks"), solvers=()))
# Of methods that take the edges of the graph as they are.
DISTANCES_ROUTE = (*GRAPH_ROUTE, NEIGHBOR_COMPONENTS, LANDMARKS)
