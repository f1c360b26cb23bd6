"""Landmarks by which a Gaussian process knows most of the points: chosen among these, or learned off the data."""

from typing import TYPE_CHECKING

from scalemani.config.methods import LandmarkExtension

if TYPE_CHECKING:
    from scalemani.stages.landmarks import PlannedRule


def active() -> "PlannedRule":
    """Return the rule that chooses among the points."""
    from scalemani.methods.gaussian_process.rules import Active

    return Active()


def ascended() -> "PlannedRule":
    """Return the rule that learns landmarks off the data."""
    from scalemani.methods.gaussian_process.rules import Ascended

    return Ascended()


EXTENSIONS = (
    LandmarkExtension("gp-active", active, sampled=True),
    LandmarkExtension("gp", ascended, off_data=True, sampled=True, one_by_one=True),
)
