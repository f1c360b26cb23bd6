"""Solvers that embed landmarks by a graph of their own, and all points by the landmarks: Nystrom's formula, LE(Z)."""

from scalemani.config.stages import LANDMARKS, POINTS, Key, Stage

SOLVERS = {"nystrom": "solver.run", "le-z": "solver.run"}
# What is around landmarks, whatever of it their graphs take; of graphs by the Bhattacharyya distance.
LANDMARK_COVARIANCES = Stage(
    "landmark_covariances",
    ("points", "landmarks"),
    by_block=False,
    solvers=tuple(SOLVERS),
    optional=True,
    package=__name__,
    key=Key(version=3, parameters=("landmark_graph.neighborhood", "landmark_graph.covariances")),
)
LANDMARK_GRAPH = Stage(
    "landmark_graph",
    ("points", "landmarks", "landmark_covariances"),
    by_block=False,
    solvers=tuple(SOLVERS),
    package=__name__,
    key=Key(version=2, parameters_of=("landmark_embedding",)),
)
# The group `embedding`, by the graph of the landmarks alone.
EMBEDDING = Stage(
    "embedding", ("points", "landmarks", "landmark_graph"), key=Key(version=2, parameters_of=("landmark_weights",))
)
SOLVER_ROUTES = dict.fromkeys(SOLVERS, (POINTS, LANDMARKS, LANDMARK_COVARIANCES, LANDMARK_GRAPH, EMBEDDING))
