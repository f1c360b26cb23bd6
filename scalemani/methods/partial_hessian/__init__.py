"""Partial Hessians of a descent: the spectral direction with the repulsion's diagonal, and the rate at the end."""

from typing import TYPE_CHECKING, Any

from scalemani.config.methods import CheckExtension, DescentExtension, FieldsExtension

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.descents.parts import DescentPart

SPECTRAL_DIAGONAL = "spectral+diagonal"


def wanted(layout: Any) -> bool:
    """Return whether a descent takes the direction, or measures its rate."""
    return layout.measured_rate or layout.direction == SPECTRAL_DIAGONAL


def descent() -> "type[DescentPart]":
    """Return the direction and the rate."""
    from scalemani.methods.partial_hessian.rules import PartialHessian

    return PartialHessian


def fields() -> type:
    """Return the parameters."""
    from scalemani.methods.partial_hessian.parameters import PartialHessianParams

    return PartialHessianParams


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.partial_hessian.audit import check_rate

    return check_rate


EXTENSIONS = (
    FieldsExtension("partial_hessian", fields, stage="layout"),
    DescentExtension("partial_hessian", descent, wanted, (SPECTRAL_DIAGONAL,)),
    CheckExtension("partial_hessian", check, stage="layout"),
)
