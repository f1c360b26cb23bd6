"""Solvers that embed landmarks by a graph of their own, and all points by the landmarks: Nystrom's formula, LE(Z)."""

from scalemani.config.stages import LANDMARKS, POINTS, Stage

SOLVERS = {"nystrom": "solver.run", "le-z": "solver.run"}
# What is around landmarks, whatever of it their graphs take; of graphs by the Bhattacharyya distance.
LANDMARK_COVARIANCES = Stage(
    "landmark_covariances",
    ("points", "landmarks"),
    by_block=False,
    solvers=tuple(SOLVERS),
    parameters=("landmark_graph.neighborhood", "landmark_graph.covariances"),
    optional=True,
    version=3,
    package=__name__,
)
LANDMARK_GRAPH = Stage(
    "landmark_graph",
    ("points", "landmarks", "landmark_covariances"),
    by_block=False,
    solvers=tuple(SOLVERS),
    also_reads=("landmark_embedding",),
    version=2,
    package=__name__,
)
# The group `embedding`, by the graph of the landmarks alone.
EMBEDDING = Stage("embedding", ("points", "landmarks", "landmark_graph"), also_reads=("landmark_weights",), version=2)
SOLVER_ROUTES = dict.fromkeys(SOLVERS, (POINTS, LANDMARKS, LANDMARK_COVARIANCES, LANDMARK_GRAPH, EMBEDDING))
