"""The parameters of partial Hessians."""

from typing import Annotated

from scalemani.config.params.conditions import Acts, OneOf
from scalemani.config.params.fields import Count, Unkeyed, parameters

RATED = ("spectral", "spectral+diagonal")  # directions of one B that steps of one are made by


@parameters()
class PartialHessianParams:
    """B of spectral+diagonal has the diagonal of the repulsion's Hessian, anew every `renewal` iterations.

    `measured_rate` has the rate norm(B^-1 H - I) of a spectral direction measured at the end, H by differences of
    exact gradients: hundreds to thousands of sums over all pairs.
    """

    renewal: Unkeyed[Annotated[Count, Acts("layout.direction", OneOf("spectral+diagonal"))]] = 1
    measured_rate: Unkeyed[
        Annotated[
            bool,
            Acts("layout.direction", OneOf(*RATED), required=True),
            Acts("layout.freeze", OneOf(False), required=True),
        ]
    ] = False
