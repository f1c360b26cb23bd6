"""Landmarks that repel each other: a determinantal point process, and its approximation for any number of points."""

from typing import TYPE_CHECKING

from scalemani.config.methods import LandmarkExtension

if TYPE_CHECKING:
    from scalemani.stages.landmarks import PlannedRule


def approximate() -> "PlannedRule":
    """Return the approximation."""
    from scalemani.methods.determinantal.rules import Repulsive

    return Repulsive()


def exact() -> "PlannedRule":
    """Return the process itself."""
    from scalemani.methods.determinantal.rules import Determinantal

    return Determinantal()


EXTENSIONS = (
    LandmarkExtension("dpp", approximate, sampled=True),  # ends where more than landmarks.sample_points are read
    LandmarkExtension("dpp-exact", exact),
)
