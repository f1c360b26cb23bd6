"""The parameters of landmarks of Gaussian processes."""

from typing import Annotated, Literal

from scalemani.config.params.conditions import Acts, OneOf
from scalemani.config.params.fields import Count, CountOrZero, Positive, Tuned, parameters

OF_PROCESS, LEARNED = Acts("landmarks.method", OneOf("gp-active", "gp")), Acts("landmarks.method", OneOf("gp"))


@parameters()
class GaussianProcessParams:
    """Landmarks of Gaussian processes have kernels exp(-x^2 / eta).

    `eta` None is the sum of the variances of the columns. `gp-active` compares `sample_points` points with every
    landmark. `gp` finds each by `steps` steps over batches of `batch_points` points (None: 1,000, or twice the
    landmarks if more), `sample_points` in all, and keeps them by `projection` in the positive orthant, or in the part
    of the unit sphere in it. Both then improve landmarks jointly by `sweeps`, in which each is found anew given all
    others, among the points or by as many steps; 0 leaves them as they were selected.
    """

    eta: Tuned[Annotated[Positive | None, OF_PROCESS]] = None
    projection: Tuned[Annotated[Literal["none", "orthant", "sphere"], LEARNED]] = "none"
    batch_points: Tuned[Annotated[Count | None, LEARNED]] = None
    steps: Tuned[Annotated[Count, LEARNED]] = 1000
    sweeps: Tuned[Annotated[CountOrZero, OF_PROCESS]] = 0
