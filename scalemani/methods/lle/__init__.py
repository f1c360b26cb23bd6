"""Locally linear embedding of points that are combinations of landmarks."""

from dataclasses import replace
from typing import TYPE_CHECKING

from scalemani.config.methods import ArgumentExtension, CheckExtension, MeaningsExtension, MethodRoute, TableExtension
from scalemani.config.stages import DISTANCES_ROUTE, LANDMARK_WEIGHTS, Key, Stage

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.interfaces.report.certificates import Meanings

RECONSTRUCTION_WEIGHTS = Stage(
    "reconstruction_weights",
    ("work_points", "neighbors", "components"),
    package=__name__,
    key=Key(parameters=("local_reconstruction.reg",)),
)
LOCAL_RECONSTRUCTION = Stage(
    "local_reconstruction",
    ("work_points", "components", "reconstruction_weights", "landmarks", "landmark_weights"),
    package=__name__,
    key=Key(version=3, parameters_of=("landmark_embedding",), without=("work_points", "components", "landmarks")),
)
ROUTE = (
    *DISTANCES_ROUTE,
    replace(LANDMARK_WEIGHTS, solvers=()),
    RECONSTRUCTION_WEIGHTS,
    LOCAL_RECONSTRUCTION,
)


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.lle.interface import MEANINGS

    return MEANINGS


def table() -> type:
    """Return the parameters."""
    from scalemani.methods.lle.parameters import LocalReconstructionParams

    return LocalReconstructionParams


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.lle.audit import check_local

    return check_local


EXTENSIONS = (
    MethodRoute("locally-linear-embedding", ROUTE),
    TableExtension("local_reconstruction", table),
    ArgumentExtension("reg", "local_reconstruction.reg"),
    MeaningsExtension(LOCAL_RECONSTRUCTION.name, meanings),
    CheckExtension(LOCAL_RECONSTRUCTION.name, check),
)
