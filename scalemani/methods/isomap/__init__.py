"""Isomap by landmarks: points are triangulated by shortest paths from these, or are combinations of them."""

from dataclasses import replace
from typing import TYPE_CHECKING

from scalemani.config.methods import CheckExtension, MeaningsExtension, MethodRoute, PlacementExtension
from scalemani.config.stages import DISTANCES_ROUTE, LANDMARK_WEIGHTS, Key, Stage

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.interfaces.report.certificates import Meanings
    from scalemani.runs.new_points.placements import PlacerOf

GEODESICS = Stage(
    "geodesics",
    ("work_points", "neighbors", "components", "landmarks"),
    by_block=False,
    package=__name__,
    key=Key(version=3),
)
ISOMAP = Stage(
    "isomap", ("work_points", "geodesics"), package=__name__, key=Key(version=5, parameters_of=("landmark_embedding",))
)
COMBINED_ISOMAP = Stage(
    "combined_isomap",
    ("work_points", "neighbors", "components", "landmarks", "landmark_weights", "geodesics"),
    package=__name__,
    key=Key(parameters_of=("landmark_embedding",), without=("work_points", "neighbors", "components", "landmarks")),
)
ROUTE = (*DISTANCES_ROUTE, GEODESICS, ISOMAP)
COMBINED_ROUTE = (*DISTANCES_ROUTE, replace(LANDMARK_WEIGHTS, solvers=()), GEODESICS, COMBINED_ISOMAP)


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.isomap.interface import MEANINGS

    return MEANINGS


def placement() -> "PlacerOf":
    """Return how new points are placed."""
    from scalemani.methods.isomap.new_points import placer_of

    return placer_of


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.isomap.audit import check_paths

    return check_paths


EXTENSIONS = (
    MethodRoute("isomap", ROUTE),
    MethodRoute("combined-isomap", COMBINED_ROUTE),
    PlacementExtension(ISOMAP.name, placement),
    MeaningsExtension(GEODESICS.name, meanings),
    MeaningsExtension(ISOMAP.name, meanings),
    MeaningsExtension(COMBINED_ISOMAP.name, meanings),
    CheckExtension(GEODESICS.name, check),
)
