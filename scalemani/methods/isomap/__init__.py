"""Landmark Isomap: classical scaling of shortest paths from landmarks, by which all points are triangulated."""

from typing import TYPE_CHECKING

from scalemani.config.methods import CheckExtension, MeaningsExtension, MethodRoute, PlacementExtension
from scalemani.config.stages import DISTANCES_ROUTE, Key, Stage

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
ROUTE = (*DISTANCES_ROUTE, GEODESICS, ISOMAP)


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
    PlacementExtension(ISOMAP.name, placement),
    MeaningsExtension(GEODESICS.name, meanings),
    MeaningsExtension(ISOMAP.name, meanings),
    CheckExtension(GEODESICS.name, check),
)
