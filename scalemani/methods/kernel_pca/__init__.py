"""Principal components for a sparse kernel K = I + W, of points that are combinations of landmarks."""

from dataclasses import replace
from typing import TYPE_CHECKING

from scalemani.config.methods import CheckExtension, MeaningsExtension, MethodRoute
from scalemani.config.stages import KERNEL_ROUTE, LANDMARK_WEIGHTS, LANDMARKS, REDUCED, Key, Stage

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.interfaces.report.certificates import Meanings

KERNEL_COMPONENTS = Stage(
    "kernel_components",
    ("work_points", "symmetric_affinities", "landmark_weights", "reduced"),
    package=__name__,
    key=Key(version=3, parameters_of=("landmark_embedding",), without=("symmetric_affinities",)),
)
ROUTE = (
    *KERNEL_ROUTE,
    LANDMARKS,
    replace(LANDMARK_WEIGHTS, solvers=()),
    replace(REDUCED, solvers=()),
    KERNEL_COMPONENTS,
)


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.kernel_pca.interface import MEANINGS

    return MEANINGS


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.kernel_pca.audit import check_of_kernel

    return check_of_kernel


EXTENSIONS = (
    MethodRoute("kernel-pca", ROUTE),
    MeaningsExtension(KERNEL_COMPONENTS.name, meanings),
    CheckExtension(KERNEL_COMPONENTS.name, check),
)
