"""Landmarks by which a Gaussian process knows most of the points: chosen among these, or learned off the data."""

from typing import TYPE_CHECKING, Any

from scalemani.config.methods import FieldsExtension, LandmarkExtension

if TYPE_CHECKING:
    from scalemani.stages.landmarks import PlannedRule


def active() -> "PlannedRule[Any]":
    """Return the rule that chooses among the points."""
    from scalemani.methods.gaussian_process.rules import Active

    return Active()


def ascended() -> "PlannedRule[Any]":
    """Return the rule that learns landmarks off the data."""
    from scalemani.methods.gaussian_process.rules import Ascended

    return Ascended()


def fields() -> type:
    """Return the parameters."""
    from scalemani.methods.gaussian_process.parameters import GaussianProcessParams

    return GaussianProcessParams


EXTENSIONS = (
    FieldsExtension("gaussian_process", fields, stage="landmarks"),
    LandmarkExtension("gp-active", active, sampled=True),
    LandmarkExtension("gp", ascended, off_data=True, sampled=True, one_by_one=True),
)
