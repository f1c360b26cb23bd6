"""The parameters of a kernel between all points."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from scalemani.config.functions import DIGEST, is_function, with_digest
from scalemani.config.params.conditions import Acts, OneOf
from scalemani.config.params.fields import Positive, as_metric, parameters
from scalemani.errors import ConfigError

GAUSSIAN = "gaussian"


def as_kernel(value: str) -> str:
    """Return the name of a kernel, of a function with its digest; raise ValueError for another one."""
    if value == GAUSSIAN or (is_function(value) and DIGEST in value):
        return value
    if not is_function(value):
        raise ValueError(
            f"must be {GAUSSIAN}, or a function k(x, y) of two rows that numba compiles, as module:function or "
            "path.py::function"
        )
    try:
        return with_digest(value)
    except ConfigError as error:
        raise ValueError(str(error)) from error


KernelName = Annotated[str, BeforeValidator(as_metric), AfterValidator(as_kernel)]


@parameters()
class FunctionComponentsParams:
    """Principal components of a `kernel` between all points.

    The kernel is exp(-d^2 / (2 sigma^2)) of Euclidean distances d (gaussian; `sigma` None: the median distance between
    landmarks), or a function of two rows. It has to be positive semidefinite.
    """

    kernel: KernelName = GAUSSIAN
    sigma: Annotated[Positive | None, Acts("function_components.kernel", OneOf(GAUSSIAN))] = None
