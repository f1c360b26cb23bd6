"""Numbers that were tuned once and that few have a reason to change, each a parameter of its stage all the same.

A stage's key holds a tuned number only where it differs from the default here, so that a number can be added without
taking what is stored from anybody. Whoever changes a default raises the version of the stage in `scalemani.routes`:
`tests/params/test_tuned.py` holds the two together.

Numbers that only follow from the arithmetic of a kernel (where a step stops being halved, when a sum counts as zero)
stay constants beside it. Who changes one changes code, which the version of the stage tells as well:
`tests/params/test_constants.py` holds these to it. New points are never stored, so no key needs theirs.
"""

from typing import Annotated, Literal

from pydantic import Field

from scalemani.params.fields import Count, CountOrZero, Part, PartOrZero, Positive, Share, parameters

JOINED_LANDMARKS = 10  # others, of a landmark in a graph of landmarks


@parameters()
class PartitionTuning:
    """Principal axes are computed of `most_basis_rows` points at most.

    More would not move the axes by anything that matters for choosing candidates.
    """

    most_basis_rows: Count = 10_000


@parameters()
class NeighborsTuning:
    """The search for neighbours; chosen on 70,000 and 1,020,000 digits by seconds to a recall of 0.95.

    `method` auto looks at every pair up to `exact_below` points, where that is quicker than anything that has to be
    trained. Where it is left open how many cells a point visits, it is found out by the points whose true neighbours
    the recall is measured by: cells are visited, from `least_probes` to `most_probes`, until of these neighbours no
    more than `missed` times the share lie elsewhere that the recall asked for leaves out. A round over neighbours of
    neighbours, which costs less than as many cells, finds half to two thirds of those, but it leads into no cell that
    none of the lists leads into: so the least is more than one. These points themselves, and new ones, look through
    `first_probes` cells. The cells nearest to a point are looked for among the `nearby_cells` nearest to its own: 0.992
    of the 10 nearest of 1,700 are among 256. Where many cells are visited, they are looked for among `nearby_per_probe`
    times as many.

    Exact distances are computed of k times `few_candidates` points where lists are no longer than `few_neighbors`;
    beyond of k times `first_candidates` in the first round and `later_candidates` in the others. Rounds over cells take
    half more than k of points with no more features than a sketch has, which sketches rank. A later round looks at the
    first `most_listed` neighbours of each of the `most_visited` nearest neighbours. Sketches are rounded to bytes
    where that moves a distance by at most the share `rounding_share` of what the closest `close_share` of points have
    to their last neighbour.
    """

    exact_below: CountOrZero = 20_000
    first_probes: Count = 8
    missed: Positive = 1.6
    least_probes: Count = 4
    most_probes: Count = 32
    nearby_cells: Count = 256
    nearby_per_probe: Count = 16
    few_neighbors: CountOrZero = 30
    few_candidates: Annotated[float, Field(ge=1)] = 3.0
    first_candidates: Annotated[float, Field(ge=1)] = 1.7
    later_candidates: Annotated[float, Field(ge=1)] = 1.0
    most_visited: Count = 30
    most_listed: Count = 45
    rounding_share: PartOrZero = 0.08
    close_share: Share = 0.1


@parameters()
class AffinitiesTuning:
    """An ensemble has `trees` minimum spanning trees, each of pixels that are jittered.

    The standard deviation of the jitter is the share `jitter` of the mean distance of a pixel to those of its window.
    Both are those of [LLL] 4.8.4.
    """

    trees: Count = 10
    jitter: Positive = 0.4


@parameters()
class ComponentsTuning:
    """Bridges between components are looked for from points of each.

    `queries_per_component` points, or fewer where these would be more than `most_queries` in all. A bridge weighs at
    least `least_bridge_weight` of the mean affinity of its ends: it must hold in float32.
    """

    queries_per_component: Count = 64
    most_queries: Count = 8192
    least_bridge_weight: Part = 1e-3


@parameters()
class LandmarksTuning:
    """What one way to choose landmarks takes. `snap` puts each centroid of k-means at the data point nearest to it.

    Without, landmarks are the centroids themselves, which lie off the data.

    Determinantal landmarks repel each other at the bandwidth `sigma`, in the unit of the points. None chooses it: the
    kernels of as many random points add up to two at one of them. `dpp` lowers the probability of points near a
    landmark by the `update` 1 - exp(-x^2 / 2 sigma^2), or by sin^2(x / tau), tau = sqrt(2) sigma, and that of the
    `neighborhood` nearest points alone (None: all). `dpp-exact` takes the kernel of Euclidean distances, or of
    `geodesic` ones: shortest paths over the graph of 10 neighbours.

    Landmarks of Gaussian processes have kernels exp(-x^2 / eta); `eta` None is the sum of the variances of the columns.
    `gp` finds each by `steps` steps over batches of `batch_points` points (None: 1,000, or twice the landmarks if more)
    and keeps them by `projection` in the positive orthant, or in the part of the unit sphere in it.
    """

    snap: bool = True
    sigma: Positive | None = None
    update: Literal["gaussian", "sine"] = "gaussian"
    neighborhood: Count | None = None
    geodesic: bool = False
    eta: Positive | None = None
    projection: Literal["none", "orthant", "sphere"] = "none"
    batch_points: Count | None = None
    steps: Count = 1000


@parameters()
class LandmarkGraphTuning:
    """Each landmark is joined to `n_neighbors` others (None: 10, or all of fewer).

    Edges weigh exp(-x^2 / 2 sigma^2) by their Euclidean length, in the unit of the points (`sigma` None: the median
    distance to the seventh nearest landmark). The Gaussian around a landmark is that of its `neighborhood` nearest
    points, with `covariances` in full or diagonal ones for many features.
    """

    n_neighbors: Count | None = None
    sigma: Positive | None = None
    neighborhood: Count = 100
    covariances: Literal["full", "diagonal"] = "full"

    def joined(self, n_landmarks: int) -> int:
        """Return how many others each of so many landmarks is joined to."""
        return self.n_neighbors or min(JOINED_LANDMARKS, n_landmarks - 1)


@parameters()
class EmbeddingTuning:
    """Vectors are refined in float32 where `residual` is at least `float32_reaches`, else in float64."""

    float32_reaches: Part = 4e-6


@parameters()
class ClusteringTuning:
    """k-means over all points ends when no centre moves by more than `settled`, or after `most_passes` passes."""

    settled: Positive = 1e-6
    most_passes: Count = 100


@parameters()
class LayoutTuning:
    """The start of a descent and the sums of its repulsion.

    A little noise, `jitter` of the start's deviation, parts points that would otherwise stay together. `repulsion` auto
    sums exactly up to `exact_up_to` points: beyond, the mesh is quicker at every tolerance that it meets. A `schedule`
    begins at the error `coarsest`. A map that momentum has moved for 150 iterations is doubled where that alone lets
    the objective fall by a share `doubled_for` (1: never); one that was given is not. A homotopy begins at
    `least_strength` of the strength asked for: 1e-4 to 1e2 in [PH] 3.4.
    """

    jitter: Positive = 1e-4
    exact_up_to: CountOrZero = 2000
    coarsest: Part = 0.1
    doubled_for: Share = 0.08
    least_strength: Part = 1e-6
