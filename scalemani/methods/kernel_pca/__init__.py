"""Principal components of kernels, of points that are combinations of landmarks: sparse ones, or between all points."""

from dataclasses import replace
from typing import TYPE_CHECKING

from scalemani.config.methods import (
    ArgumentExtension,
    CheckExtension,
    MeaningsExtension,
    MethodRoute,
    TableExtension,
)
from scalemani.config.stages import (
    KERNEL_ROUTE,
    LANDMARK_WEIGHTS,
    LANDMARKS,
    LINEAR_ROUTE,
    REDUCED,
    Key,
    Stage,
)

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.interfaces.report.certificates import Meanings

KERNEL_COMPONENTS = Stage(
    "kernel_components",
    ("work_points", "symmetric_affinities", "landmark_weights", "reduced"),
    package=__name__,
    key=Key(version=3, parameters_of=("landmark_embedding",), without=("symmetric_affinities",)),
)
FUNCTION_COMPONENTS = Stage(
    "function_components",
    ("points", "landmarks", "landmark_weights"),
    package=__name__,
    key=Key(parameters_of=("landmark_embedding",)),
)
ROUTE = (
    *KERNEL_ROUTE,
    LANDMARKS,
    replace(LANDMARK_WEIGHTS, solvers=()),
    replace(REDUCED, solvers=()),
    KERNEL_COMPONENTS,
)
FUNCTION_ROUTE = (*LINEAR_ROUTE, FUNCTION_COMPONENTS)


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.kernel_pca.interface import MEANINGS

    return MEANINGS


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.kernel_pca.audit import check_of_kernel

    return check_of_kernel


def table() -> type:
    """Return the parameters of a kernel between all points."""
    from scalemani.methods.kernel_pca.parameters import FunctionComponentsParams

    return FunctionComponentsParams


def function_check() -> "Check":
    """Return the check of an audit, of a kernel between all points."""
    from scalemani.methods.kernel_pca.audit import check_of_function

    return check_of_function


EXTENSIONS = (
    MethodRoute("kernel-pca", ROUTE),
    MeaningsExtension(KERNEL_COMPONENTS.name, meanings),
    CheckExtension(KERNEL_COMPONENTS.name, check),
    MethodRoute("kernel-function-pca", FUNCTION_ROUTE),
    TableExtension(FUNCTION_COMPONENTS.name, table),
    ArgumentExtension("kernel", "function_components.kernel"),
    MeaningsExtension(FUNCTION_COMPONENTS.name, meanings),
    CheckExtension(FUNCTION_COMPONENTS.name, function_check),
)
