"""Solvers that embed landmarks by a graph of landmarks, and all points by the landmarks: Nystrom's formula, LE(Z)."""

from typing import TYPE_CHECKING

from scalemani.config.methods import CheckExtension, MeaningsExtension, SolverExtension, TableExtension
from scalemani.config.stages import LANDMARKS, POINTS, Key, Stage

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.interfaces.report.certificates import Meanings
    from scalemani.stages.embedding import SpectralSolver

NYSTROM, LE_Z = SOLVERS = ("nystrom", "le-z")
# What is around landmarks, whatever of it their graphs take; of graphs by the Bhattacharyya distance.
LANDMARK_COVARIANCES = Stage(
    "landmark_covariances",
    ("points", "landmarks"),
    by_block=False,
    solvers=SOLVERS,
    optional=True,
    wanted=("landmark_graph.kind", "bhattacharyya"),
    package=__name__,
    key=Key(version=3, parameters=("landmark_graph.neighborhood", "landmark_graph.covariances")),
)
LANDMARK_GRAPH = Stage(
    "landmark_graph",
    ("points", "landmarks", "landmark_covariances"),
    by_block=False,
    solvers=SOLVERS,
    package=__name__,
    key=Key(version=2, parameters_of=("landmark_embedding",)),
)
# The group `embedding`, by the graph of the landmarks alone.
EMBEDDING = Stage(
    "embedding", ("points", "landmarks", "landmark_graph"), key=Key(version=2, parameters_of=("landmark_weights",))
)
ROUTE = (POINTS, LANDMARKS, LANDMARK_COVARIANCES, LANDMARK_GRAPH, EMBEDDING)


def by_graph() -> "SpectralSolver":
    """Return the embedding by the landmark graph."""
    from scalemani.methods.landmark_graph import solver

    return solver


def table() -> type:
    """Return the parameters."""
    from scalemani.methods.landmark_graph.parameters import LandmarkGraphParams

    return LandmarkGraphParams


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.landmark_graph.interface import MEANINGS

    return MEANINGS


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.landmark_graph.audit import check_landmark_graph

    return check_landmark_graph


EXTENSIONS = (
    SolverExtension(NYSTROM, by_graph, ROUTE, by_weights=False),
    SolverExtension(LE_Z, by_graph, ROUTE),
    TableExtension(LANDMARK_GRAPH.name, table),
    MeaningsExtension("landmark_covariances", meanings),
    MeaningsExtension("landmark_graph", meanings),
    CheckExtension(LANDMARK_GRAPH.name, check),
)
