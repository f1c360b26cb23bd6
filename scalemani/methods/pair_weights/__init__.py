"""Weights W^- of the pairs that repel each other, of the user's: repulsion over some pairs, each by its weight."""

from typing import TYPE_CHECKING, Any

from scalemani.config.methods import CheckExtension, DescentExtension, FieldsExtension

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.descents.parts import DescentPart


def wanted(layout: Any) -> bool:
    """Return whether a descent has such weights."""
    return layout.pair_weights is not None


def descent() -> "type[DescentPart]":
    """Return what reads them."""
    from scalemani.methods.pair_weights.rules import PairRepulsion

    return PairRepulsion


def fields() -> type:
    """Return the parameters."""
    from scalemani.methods.pair_weights.parameters import PairWeightsParams

    return PairWeightsParams


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.pair_weights.audit import check_pairs

    return check_pairs


EXTENSIONS = (
    FieldsExtension("pair_weights", fields, stage="layout"),
    DescentExtension("pair_weights", descent, wanted),
    CheckExtension("pair_weights", check, stage="layout"),
)
