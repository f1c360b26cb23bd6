"""Every number that changes an answer: one frozen dataclass a stage, checked when it is made."""

import dataclasses
import functools
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from scalemani.errors import ConfigError, nearest_name
from scalemani.objectives import OBJECTIVES
from scalemani.routes import LANDMARK_SOLVERS, REFINING_SOLVERS

NEIGHBORS_PER_PERPLEXITY = 3  # [EA 2.4]: k = 3K to 5K neighbours carry the distribution
DEFAULT_COMPONENTS = 2
DEFAULT_LANDMARKS = 1000
DEFAULT_LANDMARK_NEIGHBORS = 5
if TYPE_CHECKING:
    NonlinearMethod = str
else:
    NonlinearMethod = Literal[tuple(OBJECTIVES)]  # checkers take names that stand in the text; the table holds them
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]

parameters = functools.partial(dataclass, frozen=True, kw_only=True, config=STRICT)


@parameters()
class PartitionParams:
    """Cells of nearby points: the locality order in which points are stored, and where neighbours are looked for.

    `sketch_dimensions` leading principal components stand in for the points while candidates are chosen;
    `cell_points` is the mean number of points a cell; both models are trained on `sample_points` points.
    """

    sketch_dimensions: Annotated[int, Field(ge=1, le=256)] = 64
    cell_points: Annotated[int, Field(ge=16)] = 600
    sample_points: Annotated[int, Field(ge=1000)] = 50_000


@parameters()
class NeighborsParams:
    """The k-nearest-neighbour graph.

    `n_neighbors` None means three times the perplexity. `method` auto chooses exact search for small data and the
    partition beyond. The partition visits `n_probes` cells a point (None: chosen by the numbers of points and of
    neighbours) and is refined until `recall`, measured on `sampled_queries` exact queries, is reached, or `max_rounds`
    rounds are spent.
    """

    n_neighbors: Count | None = None
    method: Literal["auto", "exact", "pynndescent", "partition"] = "auto"
    recall: Share = 0.95
    n_probes: Count | None = None
    max_rounds: Annotated[int, Field(ge=0)] = 6
    sampled_queries: Annotated[int, Field(ge=10)] = 1000


@parameters()
class AffinitiesParams:
    """Weights of the graph's edges: entropic at a perplexity, Gaussian with one `sigma`, or self-tuning.

    Self-tuning takes the distance to the `bandwidth_neighbor`-th neighbour as each point's sigma.
    """

    kind: Literal["entropic", "gaussian", "self-tuning"] = "entropic"
    perplexity: Annotated[float, Field(gt=1)] = 30.0
    solver: Literal["newton", "halley", "euler", "bisection", "brent", "ridder"] = "halley"
    order: Literal["density", "bounds", "mst", "path", "raster", "random", "oracle"] = "density"
    tolerance: Positive = 1e-10
    sigma: Positive = 1.0
    bandwidth_neighbor: Count = 7


@parameters()
class ComponentsParams:
    """What to do where the neighbour graph falls into pieces.

    `connect` them through closest pairs, embed the `largest` alone, or `error`.
    """

    disconnected: Literal["connect", "error", "largest"] = "connect"


@parameters()
class SymmetricAffinitiesParams:
    """W = (P + P^T) / 2: nothing to choose."""


@parameters()
class LandmarksParams:
    """The landmarks: how many, and how they are chosen.

    `n_landmarks` None means 1,000, or all distinct points where there are no more than 1,000 points.
    """

    n_landmarks: Annotated[int, Field(ge=2)] | None = None
    method: Literal["random", "spread", "kmeans", "kmeans++", "kmeans++ seeding", "minmax"] = "random"
    sample_points: Annotated[int, Field(ge=1000)] = 100_000


@parameters()
class LandmarkWeightsParams:
    """Z: each point as an affine combination of its `n_neighbors` nearest landmarks (K_Z; None: 5, or all of fewer)."""

    n_neighbors: Count | None = None
    regularization: Positive | None = None


@parameters()
class ReducedParams:
    """Z^T L Z and Z^T D Z: nothing to choose."""


@parameters()
class LandmarkEmbeddingParams:
    """The reduced eigenproblem.

    `n_components` None means two, or where points are clustered as many as clusters, below the number of landmarks.
    """

    n_components: Count | None = None


@parameters()
class EmbeddingParams:
    """The embedding: solver, and the residual |S u - theta u| to which it is refined.

    `refine` starts from the eigenvectors of coarse graphs and passes over the graph until `residual` or `max_passes`
    passes; `lll` is Z times the landmark eigenvectors, without a pass; `lll+refine` starts from both; `exact` runs an
    in-memory sparse eigensolver to machine precision.
    """

    solver: Literal["refine", "lll", "lll+refine", "exact"] = "refine"
    residual: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    max_passes: Annotated[int, Field(ge=0)] = 200

    @property
    def by_landmarks(self) -> bool:
        """Whether the landmarks' own eigenproblem is solved."""
        return self.solver in LANDMARK_SOLVERS

    @property
    def by_passes(self) -> bool:
        """Whether vectors are refined by passes over the graph."""
        return self.solver in REFINING_SOLVERS


@parameters()
class ClusteringParams:
    """Spectral clustering: k-means with restarts on the landmarks, then once over all points."""

    n_clusters: Count = 10
    n_restarts: Count = 20


@parameters()
class LayoutParams:
    """The descent of a nonlinear embedding.

    `objective` is set by the method. `strength` weighs the repulsion (None: 1, or 1e-4 where sums are not normalised).
    `direction` auto is gradient descent with momentum for t-SNE and the spectral direction with L-BFGS for the others;
    `learning_rate` is that of momentum (None: N / exaggeration) and the fixed step of other directions (None: a line
    search); `momentum` None is 0.8 while the attraction is exaggerated and 0.9 after. Attraction is `exaggeration`
    times stronger for the first `exaggerated_iterations`. The start is the spectral embedding at a standard deviation
    of `start_deviation`. `homotopy` above 1 follows as many strengths from 1e-6 of the one asked for, none exaggerated.

    A phase ends when the objective falls by less than a share `converged` over `window` iterations, the descent after
    `max_iterations` in all, or for each strength of a homotopy. `repulsion` sums to a relative error of `tolerance`,
    coarser in the first `schedule` iterations. `kappa` strongest neighbours make the spectral direction; every
    `snapshots` iterations the positions are kept (0: never).
    """

    objective: NonlinearMethod | None = None
    strength: Positive | None = None
    direction: Literal[
        "auto",
        "gradient-descent",
        "momentum",
        "fixed-point",
        "diagonal-hessian",
        "conjugate-gradients",
        "l-bfgs",
        "spectral",
        "spectral+l-bfgs",
        "spectral-minus",
    ] = "auto"
    learning_rate: Positive | None = None
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    exaggeration: Annotated[float, Field(ge=1)] | None = None
    exaggerated_iterations: Annotated[int, Field(ge=0)] | None = None
    start_deviation: Positive | None = None
    homotopy: Count = 1
    max_iterations: Count = 1000
    converged: Annotated[float, Field(ge=0, lt=1)] | None = None
    window: Count | None = None
    repulsion: Literal["auto", "exact", "barnes-hut", "fgt", "grid"] = "auto"
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    schedule: Annotated[int, Field(ge=0)] = 0
    kappa: Count = 7
    pairs: Count = 100
    snapshots: Annotated[int, Field(ge=0)] = 0


Group = TypeVar("Group")
fields_of: Callable[[Any], Any] = dataclasses.fields  # pydantic's dataclasses are dataclasses, which mypy cannot tell
values_of: Callable[[Any], dict[str, Any]] = dataclasses.asdict


@parameters()
class Parameters:
    """The parameters of all stages, and the seed of every random draw."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    partition: PartitionParams = PartitionParams()
    neighbors: NeighborsParams = NeighborsParams()
    affinities: AffinitiesParams = AffinitiesParams()
    components: ComponentsParams = ComponentsParams()
    symmetric_affinities: SymmetricAffinitiesParams = SymmetricAffinitiesParams()
    landmarks: LandmarksParams = LandmarksParams()
    landmark_weights: LandmarkWeightsParams = LandmarkWeightsParams()
    reduced: ReducedParams = ReducedParams()
    landmark_embedding: LandmarkEmbeddingParams = LandmarkEmbeddingParams()
    embedding: EmbeddingParams = EmbeddingParams()
    clustering: ClusteringParams = ClusteringParams()
    layout: LayoutParams = LayoutParams()

    @property
    def n_neighbors(self) -> int:
        """The neighbours a point: as asked, or three times the perplexity."""
        asked = self.neighbors.n_neighbors
        return asked if asked is not None else round(NEIGHBORS_PER_PERPLEXITY * self.affinities.perplexity)

    @property
    def n_components(self) -> int:
        """The dimensions of the embedding: as asked, or two."""
        return self.landmark_embedding.n_components or DEFAULT_COMPONENTS

    @property
    def n_landmarks(self) -> int:
        """The landmarks: as asked, or 1,000."""
        return self.landmarks.n_landmarks or DEFAULT_LANDMARKS

    @property
    def landmark_neighbors(self) -> int:
        """The landmarks a point is made of: as asked, or five."""
        return self.landmark_weights.n_neighbors or DEFAULT_LANDMARK_NEIGHBORS

    def resolved(self, method: str, most_landmarks: int = DEFAULT_LANDMARKS) -> "Parameters":
        """Return a copy in which what was left open is decided.

        `most_landmarks` is how many landmarks there can be at the most where their number was left open.
        """
        n_landmarks = self.landmarks.n_landmarks or max(2, min(DEFAULT_LANDMARKS, most_landmarks))
        components = self.landmark_embedding.n_components
        if components is None:
            clusters = min(self.clustering.n_clusters, n_landmarks - 1)  # one eigenvector more is the constant one
            components = clusters if method == "spectral-clustering" else DEFAULT_COMPONENTS
        decided: dict[str, dict[str, Any]] = {
            "neighbors": {"n_neighbors": self.n_neighbors},
            "landmarks": {"n_landmarks": n_landmarks},
            "landmark_weights": {
                "n_neighbors": self.landmark_weights.n_neighbors or min(DEFAULT_LANDMARK_NEIGHBORS, n_landmarks)
            },
            "landmark_embedding": {"n_components": components},
        }
        if method in OBJECTIVES:
            decided["layout"] = {"objective": method}
        return self.with_values(decided)

    def with_values(self, values: Mapping[str, Any]) -> "Parameters":
        """Return a copy with values replaced: {"seed": 1, "neighbors": {"n_neighbors": 15}, ...}.

        Raises ConfigError for an unknown stage or parameter, with the nearest name, and for a value not allowed.
        """
        groups = {field.name: getattr(self, field.name) for field in fields_of(self)}
        for name, value in values.items():
            if name not in groups:
                raise ConfigError(f"unknown stage {name!r}: {nearest_name(name, groups)}")
            if name == "seed":
                groups[name] = value
            elif isinstance(value, Mapping):
                groups[name] = replaced(name, groups[name], value)
            else:
                raise ConfigError(f"{name} takes a table of parameters, got {value!r}")
        return checked("", Parameters, groups)

    def as_dict(self) -> dict[str, Any]:
        """Return all parameters as plain values."""
        return values_of(self)


def replaced(stage: str, group: Group, values: Mapping[str, Any]) -> Group:
    """Return a copy of one stage's parameters with values replaced."""
    current = {field.name: getattr(group, field.name) for field in fields_of(group)}
    for name in values:
        if name not in current:
            raise ConfigError(f"unknown parameter {stage}.{name}: {nearest_name(name, current) if current else 'none'}")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    return checked(stage, type(group), {**current, **plain})


def checked(stage: str, make: Callable[..., Group], values: Mapping[str, Any]) -> Group:
    """Make a parameter object, or raise one ConfigError that says what came and what is allowed."""
    try:
        return make(**values)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False):
            name = ".".join(str(part) for part in (stage, *problem["loc"][:1]) if part)
            text = (
                problem["msg"]
                .replace("Input should be", "must be")
                .replace("greater than", ">")
                .replace("less than", "<")
            )
            text = text.replace("> or equal to", ">=").replace("< or equal to", "<=")
            kind = f" ({type(problem['input']).__name__})" if problem["type"].endswith("_type") else ""
            problems.append(f"{name} {text}, got {problem['input']!r}{kind}")
        raise ConfigError("; ".join(dict.fromkeys(problems))) from None


def parse_assignments(assignments: Iterable[str]) -> dict[str, dict[str, Any] | Any]:
    """Return nested values from `stage.parameter=value` strings, the form of the command line's --set."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator or not name:
            raise ConfigError(f"--set takes STAGE.PARAM=VALUE, got {assignment!r}")
        stage, dot, parameter = name.partition(".")
        if dot:
            table = values.setdefault(stage, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{stage} takes a table of parameters, got {table!r}")
            table[parameter] = parse_value(text)
        else:
            values[stage] = parse_value(text)
    return values


def parse_value(text: str) -> Any:
    """Return a TOML value; what is not one is a string. `none` stands for a value left to the library."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
