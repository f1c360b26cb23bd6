"""The parameters of the landmark graph."""

from typing import Annotated, Literal

from scalemani.config.params.conditions import Acts, OneOf
from scalemani.config.params.fields import Count, Positive, Tuned, parameters

JOINED_LANDMARKS = 10  # others, of a landmark
OF_GAUSSIANS = Acts("landmark_graph.kind", OneOf("bhattacharyya"))


@parameters()
class LandmarkGraphParams:
    """The neighbour graph of the landmarks, for the solvers nystrom and le-z.

    Neighbours by `kind`: their Euclidean distance, or the Bhattacharyya distance of the Gaussians around them, which
    tells neighbouring sheets apart.

    Each landmark is joined to `n_neighbors` others (None: 10, or all of fewer). Edges weigh exp(-x^2 / 2 sigma^2) by
    their Euclidean length, in the unit of the points (`sigma` None: the median distance to the seventh nearest
    landmark). The Gaussian around a landmark is that of its `neighborhood` nearest points, with `covariances` in full
    or diagonal ones for many features.
    """

    kind: Literal["euclidean", "bhattacharyya"] = "euclidean"
    n_neighbors: Tuned[Count | None] = None
    sigma: Tuned[Positive | None] = None
    neighborhood: Tuned[Annotated[Count, OF_GAUSSIANS]] = 100
    covariances: Tuned[Annotated[Literal["full", "diagonal"], OF_GAUSSIANS]] = "full"

    def joined(self, n_landmarks: int) -> int:
        """Return how many others each of so many landmarks is joined to."""
        return self.n_neighbors or min(JOINED_LANDMARKS, n_landmarks - 1)
