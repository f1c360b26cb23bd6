"""The parameters of determinantal landmarks."""

from typing import Annotated, Literal

from scalemani.config.params.conditions import Acts, OneOf
from scalemani.config.params.fields import Count, Positive, Tuned, parameters

DETERMINANTAL = Acts("landmarks.method", OneOf("dpp", "dpp-exact"))
APPROXIMATE, EXACT = Acts("landmarks.method", OneOf("dpp")), Acts("landmarks.method", OneOf("dpp-exact"))


@parameters()
class DeterminantalParams:
    """Determinantal landmarks repel each other at the bandwidth `sigma`, in the unit of the points.

    None chooses it: the kernels of as many random points add up to two at one of them. `dpp` lowers the probability of
    points near a landmark by the `update` 1 - exp(-x^2 / 2 sigma^2), or by sin^2(x / tau), tau = sqrt(2) sigma, and
    that of the `neighborhood` nearest points alone (None: all); it gives up where more than `sample_points` have to be
    read, and 64 a landmark. `dpp-exact` takes the kernel of Euclidean distances, or of `geodesic` ones: shortest paths
    over the graph of 10 neighbours.
    """

    sigma: Tuned[Annotated[Positive | None, DETERMINANTAL]] = None
    update: Tuned[Annotated[Literal["gaussian", "sine"], APPROXIMATE]] = "gaussian"
    neighborhood: Tuned[Annotated[Count | None, APPROXIMATE]] = None
    geodesic: Tuned[Annotated[bool, EXACT]] = False
