"""Discriminants of classes for a sparse kernel K = I + W, in the span of its columns that landmarks combine."""

from dataclasses import replace
from typing import TYPE_CHECKING

from scalemani.config.methods import CheckExtension, MeaningsExtension, MethodRoute, TableExtension
from scalemani.config.stages import CLASSES, KERNEL_ROUTE, LANDMARK_WEIGHTS, LANDMARKS, Key, Stage

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.interfaces.report.certificates import Meanings

KERNEL_DISCRIMINANTS = Stage(
    "kernel_discriminants",
    ("work_points", "components", "symmetric_affinities", "landmarks", "landmark_weights", "classes"),
    package=__name__,
    key=Key(version=3, parameters_of=("landmark_embedding",), without=("components", "landmarks")),
)
ROUTE = (*KERNEL_ROUTE, LANDMARKS, replace(LANDMARK_WEIGHTS, solvers=()), CLASSES, KERNEL_DISCRIMINANTS)


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.kernel_lda.interface import MEANINGS

    return MEANINGS


def table() -> type:
    """Return the parameters."""
    from scalemani.methods.kernel_lda.parameters import KernelDiscriminantsParams

    return KernelDiscriminantsParams


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.kernel_lda.audit import check_discriminants

    return check_discriminants


EXTENSIONS = (
    MethodRoute("kernel-lda", ROUTE),
    TableExtension("kernel_discriminants", table),
    MeaningsExtension(KERNEL_DISCRIMINANTS.name, meanings),
    CheckExtension(KERNEL_DISCRIMINANTS.name, check),
)
