"""Linear discriminants of classes, in the span of the landmarks' moments."""

from dataclasses import replace
from typing import TYPE_CHECKING

from scalemani.config.methods import CheckExtension, MeaningsExtension, MethodRoute, PlacementExtension
from scalemani.config.stages import CLASSES, LINEAR_ROUTE, Key, Stage

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.interfaces.report.certificates import Meanings
    from scalemani.runs.new_points.placements import PlacerOf

DISCRIMINANTS = Stage(
    "discriminants",
    ("points", "landmarks", "landmark_weights", "classes"),
    package=__name__,
    key=Key(version=3, parameters_of=("landmark_embedding",)),
)
ROUTE = (*LINEAR_ROUTE, replace(CLASSES, inputs=("points",)), DISCRIMINANTS)


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.lda.interface import MEANINGS

    return MEANINGS


def placement() -> "PlacerOf":
    """Return how new points are placed."""
    from scalemani.methods.lda.new_points import placer_of

    return placer_of


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.lda.audit import check_discriminants

    return check_discriminants


EXTENSIONS = (
    MethodRoute("lda", ROUTE),
    PlacementExtension(DISCRIMINANTS.name, placement),
    MeaningsExtension(DISCRIMINANTS.name, meanings),
    CheckExtension(DISCRIMINANTS.name, check),
)
