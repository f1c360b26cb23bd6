"""Landmarks that repel each other: a determinantal point process, and its approximation for any number of points."""

from typing import TYPE_CHECKING, Any

from scalemani.config.methods import FieldsExtension, LandmarkExtension

if TYPE_CHECKING:
    from scalemani.stages.landmarks import PlannedRule


def approximate() -> "PlannedRule[Any]":
    """Return the approximation."""
    from scalemani.methods.determinantal.rules import Repulsive

    return Repulsive()


def exact() -> "PlannedRule[Any]":
    """Return the process itself."""
    from scalemani.methods.determinantal.rules import Determinantal

    return Determinantal()


def fields() -> type:
    """Return the parameters."""
    from scalemani.methods.determinantal.parameters import DeterminantalParams

    return DeterminantalParams


EXTENSIONS = (
    FieldsExtension("determinantal", fields, stage="landmarks"),
    LandmarkExtension("dpp", approximate, sampled=True),  # ends where more than landmarks.sample_points are read
    LandmarkExtension("dpp-exact", exact),
)
