"""The fast Gauss transform: Gaussian sums by Hermite and Taylor expansions, with bounds of their errors."""

from typing import TYPE_CHECKING, Any

from scalemani.config.methods import CheckExtension, DescentExtension, RepulsionExtension

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.descents.parts import DescentPart
    from scalemani.kernels.repulsion.pair_sums import ApproximateSums


def transform() -> "type[ApproximateSums]":
    """Return the transform."""
    from scalemani.methods.fast_gauss.kernels.fast_gauss import FastGauss

    return FastGauss


def wanted(layout: Any) -> bool:
    """Return whether a descent sums by the transform."""
    return bool(layout.repulsion == NAME)


def bounds() -> "type[DescentPart]":
    """Return what bounds the error of its forces."""
    from scalemani.methods.fast_gauss.rules import BoundedForces

    return BoundedForces


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.fast_gauss.audit import check_bounds

    return check_bounds


NAME = "fgt"
EXTENSIONS = (
    RepulsionExtension(NAME, transform, ("gaussian",), "order"),
    DescentExtension(NAME, bounds, wanted),
    CheckExtension(NAME, check, stage="layout"),
)
