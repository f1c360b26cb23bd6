"""The parameters of each stage: one frozen table a stage, whose values are checked when it is made.

None stands for what follows the method and the data: `Parameters.resolved` decides it.

`Tuned` numbers were tuned once, and few have a reason to change them. A stage's key holds one, and a parameter that is
`Unkeyed`, only where it differs from the default here, so that a number can be added without taking what is stored from
anybody. Numbers that nobody has a reason to change are constants of a table (`ClassVar`), or of the kernel of whose
arithmetic they are part.

Whoever changes a constant or the default of a tuned number raises the version of the stage in
`scalemani.config.stages`: `tests/config/params/test_constants.py` holds the two together. New points are never stored,
so no key needs theirs.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

from pydantic import Field

from scalemani.config.choices import BandwidthSolver, Disconnected, Missing
from scalemani.config.methods import (
    LandmarkExtension,
    OrderExtension,
    PixelAffinitiesExtension,
    PixelsExtension,
    ReductionExtension,
    SolverExtension,
    extensions,
)
from scalemani.config.metrics import lists_metrics
from scalemani.config.params.conditions import Acts, AtMost, Configuration, OneOf, OtherThan, Where
from scalemani.config.params.fields import (
    Count,
    CountOrZero,
    Metric,
    Part,
    PartOrZero,
    Positive,
    Share,
    Tolerance,
    Tuned,
    Unkeyed,
    parameters,
    with_fields_of_methods,
)
from scalemani.config.stages import (
    AUTO,
    COMPUTED_STARTS,
    INPUT_LANDMARKS,
    INPUT_LISTS,
    LANDMARK_SOLVERS,
    PRECOMPUTED,
    REFINE,
    REFINING_SOLVERS,
    SIDE_DATA_LANDMARKS,
    DrawnRule,
    SampledRule,
)
from scalemani.errors import ConfigError

FEW_NEIGHBORS = 30  # where lists are no longer, more candidates of each are compared

# Checkers take names that stand in the text; tables hold these.
if TYPE_CHECKING:
    LandmarkMethod = str
    Solver = str
    AffinityOrder = str
    NeighborMethod = str
    AffinityKind = str
else:
    NeighborMethod = Literal[
        ("auto", "exact", "pynndescent", "partition", "leaves", *extensions(PixelsExtension), INPUT_LISTS)
    ]
    AffinityKind = Literal[
        ("entropic", "gaussian", "self-tuning", "uniform", *extensions(PixelAffinitiesExtension), PRECOMPUTED)
    ]
    LandmarkMethod = Literal[(DrawnRule, SampledRule, *extensions(LandmarkExtension), *SIDE_DATA_LANDMARKS)]
    AffinityOrder = Literal[("density", "bounds", *extensions(OrderExtension), "oracle")]
    Solver = Literal[
        (AUTO, "refine", "lll", "lll+refine", *extensions(ReductionExtension), "exact", *extensions(SolverExtension))
    ]


@lists_metrics
@parameters()
class PointsParams:
    """The points: the `metric` in which they are compared, and what to do with rows with a gap.

    It is one of METRICS, by another name l2, tanimoto, l1 or cityblock, or precomputed; or minkowski:P with a power P;
    or a function of two rows (D,) float64 that numba compiles, as module:function or path.py::function, which is loaded
    by that name in every process. A run knows the function by a digest of its code and of the values that it reads.
    Rows are mapped when they are read, so that distances in all other stages are Euclidean. `affinities.sigma` and
    `landmarks` are in that geometry; distances that users receive are those of the metric. Of jaccard, distances to
    neighbours are square roots of Jaccard distances, and landmarks lie among rows of bits at equal length.
    COMPARED_METRICS, powers and functions compare rows as they are (wasserstein: their cumulative shares): exact
    search, leaves or pynndescent find neighbours, and methods of a graph take them.
    Where it is precomputed, the input has neighbours and their distances in place of points.

    `missing` says whether to `refuse` rows with a gap, or to `leave-out` these rows: results have NaN in their place.
    Gaps are NaN, NA, None, masked values, `_FillValue` and `missing_value` of packed arrays, and rows without a
    direction in the metric: zeros under cosine and hellinger, one value under correlation.

    `distances` says what precomputed neighbour lists hold: `distances`, their squares (`squared`), or the inner
    products of rows at unit length (`inner-product`). `auto` takes them for distances, inner products that descend from
    one for these, and warns of squares that are recognised.
    """

    metric: Unkeyed[Metric] = "euclidean"
    distances: Tuned[
        Annotated[Literal["auto", "distances", "squared", "inner-product"], Acts("points.metric", OneOf(PRECOMPUTED))]
    ] = "auto"
    missing: Unkeyed[Missing] = "refuse"


@parameters()
class DuplicatesParams:
    """Which rows are one point, whose weight is their number, or the sum of their weights in the input.

    `tolerance` None: each row is a point. 0 (or true): rows that are equal as the metric maps them. Above 0: rows in
    one cell of a grid of cubes, whose side is the tolerance over the square root of the number of features: they lie
    within the tolerance, and the point is the first of them. Rows as near to both sides of a border stay two points.
    Copies are as far from each other as points are: results have all rows, those of one point the same.
    """

    tolerance: Tolerance = None


@parameters()
class PartitionParams:
    """Cells of nearby points: the locality order in which points are stored, and where neighbours are looked for.

    `sketch_dimensions` leading principal components stand in for the points while candidates are chosen;
    `cell_points` is the mean number of points a cell; both models are trained on `sample_points` points, or two a cell
    where these are more.
    """

    sketch_dimensions: Annotated[int, Field(ge=1, le=256)] = 64
    cell_points: Annotated[int, Field(ge=16)] = 600
    sample_points: Annotated[int, Field(ge=1000)] = 50_000
    most_basis_rows: ClassVar[int] = 10_000  # more do not move the axes by what matters for choosing candidates


SEARCHED = Acts("neighbors.method", OneOf("partition", "pynndescent", "leaves"))
MEASURED = Acts("neighbors.method", OneOf("partition", "pynndescent", "leaves", INPUT_LISTS))
NOT_OF_PIXELS = Acts("neighbors.method", OtherThan(*extensions(PixelsExtension)))


@with_fields_of_methods("neighbors")
@parameters()
class NeighborsParams:
    """The k-nearest-neighbour graph.

    `n_neighbors` None means three times the perplexity, or all other points where these are fewer. `method` auto
    chooses exact search for small data and the partition beyond; leaves or exact search, whichever is quicker, where a
    sample of dense points says that cells lose neighbours, or where the metric compares rows. The partition visits
    `n_probes` cells a point (None: chosen by the cells in which the true neighbours of the sampled queries lie) and is
    refined until `recall` is reached, or `max_rounds` rounds are spent. It is measured on `sampled_queries` exact
    queries, and reached two standard errors above the target.

    `method` leaves is for dense points without leading axes, as vectors of language and image models are: cells of
    sketches lose their neighbours. Each of its first rounds draws leaders at random, and compares all points that share
    one of their three nearest leaders; a leaf has `leaf_points` points on average, and larger ones are split.
    Rounds over neighbours of neighbours by all coordinates come next, and leaders are drawn again where these bring too
    little. `max_rounds` counts two of these as one.

    `method` given is for lists of another library that accompany the points: their distances are computed anew, their
    recall is measured, and those that miss entries are completed by a round among the neighbours of neighbours.

    Exact distances are computed of k times `few_candidates` points where lists are no longer than 30.
    """

    n_neighbors: Annotated[Count | None, NOT_OF_PIXELS] = None
    method: NeighborMethod = "auto"
    recall: Annotated[Share, MEASURED] = 0.95
    n_probes: Annotated[Count | None, Acts("neighbors.method", OneOf("partition"))] = None
    max_rounds: Annotated[CountOrZero, SEARCHED] = 6
    sampled_queries: Annotated[int, Field(ge=10), MEASURED] = 1000
    few_candidates: Tuned[
        Annotated[float, Field(ge=1), SEARCHED, Acts("neighbors.n_neighbors", AtMost(FEW_NEIGHBORS))]
    ] = 3.0
    leaf_points: Tuned[Annotated[int, Field(ge=2), Acts("neighbors.method", OneOf("leaves"))]] = 2000

    # Chosen on 70,000 and 1,020,000 digits by seconds to a recall of 0.95.
    exact_below: ClassVar[int] = 20_000  # points: comparing all pairs is quicker than anything that has to be trained
    first_probes: ClassVar[int] = 8  # cells that new points visit, and those whose true neighbours are looked for
    # Where it is left open how many cells a point visits: until, of true neighbours, no more than `missed` times the
    # share lie elsewhere that the recall asked for leaves out. A round over neighbours of neighbours, which costs less
    # than as many cells, finds half to two thirds of those, but it leads into no cell that none of the lists leads
    # into: so the least is more than one.
    missed: ClassVar[float] = 1.6
    least_probes: ClassVar[int] = 4
    most_probes: ClassVar[int] = 32
    # The cells nearest to a point are looked for among so many nearest to its own, more where it visits many: 0.992 of
    # the 10 nearest of 1,700 are among 256.
    nearby_cells: ClassVar[int] = 256
    nearby_per_probe: ClassVar[int] = 16
    # Candidates over k in the first round and later, where lists are longer than `few_neighbors`.
    few_neighbors: ClassVar[int] = FEW_NEIGHBORS
    first_candidates: ClassVar[float] = 1.7
    later_candidates: ClassVar[float] = 1.0
    # A later round looks at so many first neighbours of each of so many nearest neighbours.
    most_visited: ClassVar[int] = 30
    most_listed: ClassVar[int] = 45
    # Sketches are rounded to bytes where that moves a distance by at most a share of what the closest tenth of the
    # points have to their last neighbour.
    rounding_share: ClassVar[float] = 0.08
    close_share: ClassVar[float] = 0.1
    leaf_overlap: ClassVar[int] = 3  # leaves of a point

    @property
    def of_pixels(self) -> bool:
        """Whether neighbours are those around a pixel, of which W is made without lists."""
        return self.method in extensions(PixelsExtension)

    @property
    def follows_data(self) -> bool:
        """Whether the method is chosen by a sample of the points."""
        return self.method == "auto" and self.n_probes is None

    @property
    def most_rounds(self) -> int:
        """How many rounds follow the first: within leaves, a draw and the round that it takes to bear are one."""
        return self.max_rounds * (2 if self.method == "leaves" else 1)

    def method_for(self, n_points: int) -> str:
        """Return the method that builds the graph of so many points, auto resolved."""
        if self.method != "auto":
            return self.method
        return "exact" if n_points <= self.exact_below else "partition"


ENTROPIC = Acts("affinities.kind", OneOf("entropic"))


def takes_perplexity(here: Configuration) -> bool:
    """Return whether a perplexity decides affinities, or else how many neighbours points have."""
    follows = here.requested("neighbors.n_neighbors") is None and not here.part(NeighborsParams).of_pixels
    return follows or here.value("affinities.kind") == "entropic"


def takes_bandwidth_neighbor(here: Configuration) -> bool:
    """Return whether the distance to a neighbour sets a bandwidth."""
    return here.part(AffinitiesParams).takes_bandwidth_neighbor


@with_fields_of_methods("affinities")
@parameters()
class AffinitiesParams:
    """Weights of the graph's edges: entropic at a perplexity, Gaussian with one `sigma`, self-tuning, uniform ...

    The nearest `n_neighbors` of a point's neighbours have one (None: all), so that one graph serves several numbers of
    them. `kind` None is entropic, and Gaussian where affinities are a kernel. `perplexity` None means 30, or a third of
    the neighbours where these are fewer than 90. `solver`, `order` and `tolerance` (of the entropy, in nats) are those
    of the root finder. Self-tuning takes the distance to the `bandwidth_neighbor`-th neighbour as each point's sigma,
    the farthest where points have fewer than the default of seven; `sigma` None is the median of these over a sample of
    the points. Where they are `uniform` all neighbours weigh the same, as connectivities of scikit-learn.
    `precomputed` ones are the input, in place of points.
    """

    kind: AffinityKind | None = None
    perplexity: Annotated[
        Annotated[float, Field(gt=1)] | None,
        Acts("affinities.kind", Where("entropic, as neighbors.n_neighbors is given", takes_perplexity)),
    ] = None
    solver: Annotated[BandwidthSolver, ENTROPIC] = "halley"
    order: Annotated[AffinityOrder, ENTROPIC] = "density"
    tolerance: Annotated[Positive, ENTROPIC] = 1e-10
    sigma: Annotated[Positive | None, Acts("affinities.kind", OneOf("gaussian"))] = None
    bandwidth_neighbor: Annotated[
        Count,
        Acts("affinities.kind", Where("self-tuning, or gaussian without affinities.sigma", takes_bandwidth_neighbor)),
    ] = 7
    n_neighbors: Unkeyed[Annotated[Count | None, NOT_OF_PIXELS, Acts("affinities.kind", OtherThan(PRECOMPUTED))]] = None

    @property
    def of_pixels(self) -> bool:
        """Whether they are of a kind that pixels alone have."""
        return self.kind in extensions(PixelAffinitiesExtension)

    @property
    def precomputed(self) -> bool:
        """Whether the input has affinities in place of points."""
        return self.kind == PRECOMPUTED

    @property
    def chooses_sigma(self) -> bool:
        """Whether sigma is chosen from the points."""
        return self.kind == "gaussian" and self.sigma is None

    @property
    def takes_bandwidth_neighbor(self) -> bool:
        """Whether the distance to a neighbour sets a bandwidth."""
        return self.kind == "self-tuning" or self.chooses_sigma

    def check_reach(self, k: int, fewest: float | None = None) -> None:
        """Refuse a perplexity beyond k neighbours, or beyond the `fewest` points that so many are with their copies."""
        if self.kind != "entropic" or self.perplexity is None:
            return
        if fewest is None and self.perplexity >= k:
            raise ConfigError(
                f"affinities.perplexity must be < n_neighbors (k={k}), got {self.perplexity:g}: 3 to 5 neighbours a "
                "unit of perplexity are usual"
            )
        if fewest is not None and self.perplexity >= fewest:
            raise ConfigError(
                f"affinities.perplexity must be below {fewest:g}, the sum of the {k} smallest weights, got "
                f"{self.perplexity:g}: it counts points with all their copies, and n_neighbors (k={k}) distinct ones"
            )


@parameters()
class ComponentsParams:
    """What to do where the neighbour graph falls into pieces.

    `connect` them through closest pairs where these are searched or known: of points, and of a matrix of all
    distances. Pieces of neighbour lists and of affinities stay separate, and those that are infinitely far in a metric.
    `separate` leaves all pieces as they are: each is embedded from its eigenvectors, and a descent starts from all
    of them side by side. `largest` embeds that alone, and `error` refuses.

    Bridges between components are looked for from `queries_per_component` points of each, or fewer where these would be
    more than 8,192 in all.
    """

    disconnected: Disconnected = "connect"
    queries_per_component: Tuned[
        Annotated[
            Count,
            Acts("components.disconnected", OneOf("connect")),
            Acts("points.metric", OtherThan(PRECOMPUTED)),
        ]
    ] = 64
    most_queries: ClassVar[int] = (
        8192  # of all components, each compared with every cell, or by a function with every row
    )
    least_bridge_weight: ClassVar[float] = 1e-3  # of the mean affinity of its ends: it must hold in float32


@parameters()
class SymmetricAffinitiesParams:
    """W = (P + P^T) / 2, times 1 - `target_weight` between points of different classes, by the labels of the points.

    Points without a label (-1, NaN, empty) keep their affinities. 0 reads no labels; below 1 no edge is lost.

    Rows of W are `stored`, or, for embeddings by landmarks alone, made of affinities each time they are read. A run
    then takes a quarter less of the disk. It takes little more time where neighbours lie in few blocks, as on a
    surface, and half as long again where they lie in all.
    """

    target_weight: Unkeyed[PartOrZero] = 0.0
    stored: Unkeyed[bool] = True


@parameters()
class NormalizedAffinitiesParams:
    """W over (q_n q_m)^`alpha`, q the degrees of W, for diffusion maps.

    0 leaves W as it is; at 1 the density of the points leaves no trace in the limit of many points.
    """

    alpha: Annotated[float, Field(ge=0, le=1)] = 1.0


SAMPLED_BY_METHODS = tuple(name for name, rule in extensions(LandmarkExtension).items() if rule.sampled)


def of_rule(*rules: str) -> Acts:
    """Return the condition of a parameter of some rules of landmarks."""
    return Acts("landmarks.method", OneOf(*rules))


@with_fields_of_methods("landmarks")
@parameters()
class LandmarksParams:
    """The landmarks: how many, and how they are chosen.

    `n_landmarks` None means 1,000, or all distinct points where there are no more than 1,000. k-means takes
    `sample_points` points in batches; `kmeans++`, `kmeans++ seeding` and `minmax` compare so many with every landmark.
    `given` are those that come with the points, on the data or off it. `given` is resolved to `rows` for those that are
    points: passed as row numbers, or to a method that takes such landmarks alone.

    `snap` puts each centroid of k-means at the data point nearest to it. Without, landmarks are the centroids
    themselves, which lie off the data.
    """

    n_landmarks: Annotated[int, Field(ge=2)] | None = None
    method: LandmarkMethod = "random"
    sample_points: Annotated[int, Field(ge=1000), of_rule(*get_args(SampledRule), *SAMPLED_BY_METHODS)] = 100_000
    snap: Tuned[Annotated[bool, of_rule("kmeans", "kmeans++")]] = True

    @property
    def off_data(self) -> bool:
        """Whether landmarks are no data points."""
        if rule := extensions(LandmarkExtension).get(self.method):
            return rule.off_data
        return self.method == INPUT_LANDMARKS or (self.method in ("kmeans", "kmeans++") and not self.snap)


WITHOUT_WEIGHTS = {name: solver for name, solver in extensions(SolverExtension).items() if not solver.by_weights}


def takes_weights(here: Configuration) -> bool:
    """Return whether points are placed by Z, and not by a formula of the solver."""
    solver = WITHOUT_WEIGHTS.get(here.value("embedding.solver"))
    return solver is None or any(not stage.optional and stage.name not in here.stages for stage in solver.route)


BY_WEIGHTS = Acts("embedding.solver", Where(f"other than {' or '.join(WITHOUT_WEIGHTS)}", takes_weights))


@parameters()
class LandmarkWeightsParams:
    """Z: each point as an affine combination of its `n_neighbors` nearest landmarks (K_Z; None: 5, or all of fewer).

    `regularization` is the share of the mean diagonal that is added to the diagonal of a point's Gram matrix (None:
    1e-3 where K_Z is above the number of features, else 1e-10).

    Points take fewer of these landmarks where fewer reconstruct them to a `tolerance`, as a share of the distance of
    the nearest one, or lie within a `radius` (None: all K_Z).
    """

    n_neighbors: Annotated[Count | None, BY_WEIGHTS] = None
    regularization: Annotated[Positive | None, BY_WEIGHTS] = None
    tolerance: Unkeyed[Annotated[Part | None, BY_WEIGHTS]] = None
    radius: Unkeyed[Annotated[Positive | None, BY_WEIGHTS]] = None


@parameters()
class ReducedParams:
    """Z^T L Z and Z^T D Z: nothing to choose."""


@parameters()
class LandmarkEmbeddingParams:
    """The reduced eigenproblem.

    `n_components` None means two, or where points are clustered as many as clusters, below the number of landmarks.
    """

    n_components: Count | None = None


REFINED = Acts("embedding.solver", OneOf(*REFINING_SOLVERS))


@parameters()
class EmbeddingParams:
    """The embedding: solver, and the residual |S u - theta u| to which it is refined.

    `auto` is `refine` where the refinement fits the memory of the driver, with arrays that have a row for each point in
    mapped files if need be, and `lll` beyond; for precomputed inputs and descents it is always `refine`. It is resolved
    before keys are made; `scalemani plan` prints the decision and the store keeps it.

    `refine` starts from the eigenvectors of coarse graphs and passes over the graph until `residual` or `max_passes`
    passes; `lll` is Z times the landmark eigenvectors, without a pass; `variational-nystrom` the same with another Z,
    the affinities of points to the landmarks among their neighbours; `lll+refine` starts from both; `exact` runs an
    in-memory sparse eigensolver to machine precision. `nystrom` and `le-z` need no graph of the points: they are the
    eigenmaps of `landmark_graph`, carried to all points by its kernel or by Z. `residual` None means 1e-4, and 1e-2
    where the embedding is the start of a descent, which goes no further from a better one.
    """

    solver: Solver = "auto"
    residual: Annotated[Part | None, REFINED] = None
    max_passes: Annotated[CountOrZero, REFINED] = 200
    float32_reaches: ClassVar[float] = 4e-6  # the least residual to which vectors in float32 are refined

    @property
    def resolved_solver(self) -> str:
        """The solver: as requested, or `refine` unless a run finds that it does not fit the driver."""
        return REFINE if self.solver == AUTO else self.solver

    @property
    def by_landmarks(self) -> bool:
        """Whether points are made of their nearest landmarks."""
        return self.solver in LANDMARK_SOLVERS

    @property
    def by_affinities(self) -> bool:
        """Whether points are made of the landmarks among their neighbours."""
        return self.solver in extensions(ReductionExtension)

    @property
    def reduces(self) -> bool:
        """Whether the eigenproblem of the landmark graph is solved."""
        return self.by_landmarks or self.by_affinities

    @property
    def without_graph(self) -> bool:
        """Whether a method's solver embeds landmarks by themselves, without the graph of the points."""
        return self.solver in extensions(SolverExtension)

    @property
    def by_passes(self) -> bool:
        """Whether vectors are refined by passes over the graph."""
        return self.resolved_solver in REFINING_SOLVERS


@parameters()
class DiffusionCoordinatesParams:
    """Diffusion maps: columns are scaled by |1 - eigenvalue|^`time`, the steps of the random walk; 0 scales nothing."""

    time: Annotated[float, Field(ge=0)] = 1.0


@parameters()
class DoubtParams:
    """Which points of a map to believe, where a run has `measured` it, or `scalemani doubt RUN`.

    Shares of neighbours are those of `n_neighbors`. The map of points without structure has `null_points`, a sample
    whose columns are permuted (0: no such map); of the points that are called believable, as they agree with the data
    better than points of that map, at most a share `rate` is expected not to. The points are split in two at random so
    many times as `halves` says, and each half mapped anew: 0 maps none, and each takes about as long as the map itself.
    """

    measured: bool = False
    n_neighbors: Count = 15
    null_points: CountOrZero = 3000
    rate: Part = 0.05
    halves: Annotated[
        CountOrZero,
        Acts(
            "doubt.measured",
            Where("of a map by a descent", lambda here: "layout" in here.stages),
            required=True,
            reason="halves are mapped by a descent, and this map is made by none",
        ),
        Acts("layout.init", OneOf(*COMPUTED_STARTS)),
    ] = 0


@parameters()
class ClusteringParams:
    """Spectral clustering: k-means with restarts on the landmarks, then once over all points.

    `n_columns` are the leading eigenvectors that k-means takes. None: all of them, but of K for K > 2 clusters K - 1
    where a gap of the eigenvalues follows these.
    """

    n_clusters: Count = 10
    n_columns: Count | None = None
    n_restarts: Count = 20
    # [LLL] 4.7 takes K eigenvectors without the constant one. Of well-separated clusters K - 1 have small eigenvalues,
    # and the next one cuts a cluster: of 980 points in four clusters of 600 to 60, whose next eigenvalue is 2.2 times
    # higher, K - 1 find 97 % and K 62 %. Handwritten digits have none such (1.1 to 1.2 times): K find 90 %, K - 1 81 %.
    gap: ClassVar[float] = 1.5
    # K-means over all points ends when no centre moves by more than `settled`, or after so many passes: it begins at
    # the centres of the landmarks, and few are needed. Rows have unit length, and K-means on another sample of n points
    # would have centres some (n_clusters / n)^1/2 away.
    settled: ClassVar[float] = 1e-4
    most_passes: ClassVar[int] = 100
