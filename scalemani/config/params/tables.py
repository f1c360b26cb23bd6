"""The tables of parameters of all stages together, and the seed: what open and resolved parameters have in common."""

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Field

from scalemani.config.methods import PixelsExtension, TableExtension, extensions
from scalemani.config.metrics import has_coordinates
from scalemani.config.params.by_stage import (
    AffinitiesParams,
    ClusteringParams,
    ComponentsParams,
    DiffusionCoordinatesParams,
    DoubtParams,
    DuplicatesParams,
    EmbeddingParams,
    LandmarkEmbeddingParams,
    LandmarksParams,
    LandmarkWeightsParams,
    NeighborsParams,
    NormalizedAffinitiesParams,
    PartitionParams,
    PointsParams,
    ReducedParams,
    SymmetricAffinitiesParams,
)
from scalemani.config.params.conditions import Table
from scalemani.config.params.fields import Mark, fields_of, marked_names, names_of, parameters, values_in, values_of
from scalemani.config.params.layout import LayoutParams
from scalemani.config.routes import ROUTES
from scalemani.config.routing import precomputed_input, route
from scalemani.config.stages import CLASSES, DUPLICATES, LEAVE_OUT, MADE_ROWS, SPECTRAL_START, WEIGHTS, Route

# The optional stages that a parameter of some value requests.
WANTED = {stage.name: stage.wanted for stages in ROUTES.values() for stage in stages if stage.wanted}


class PixelNeighbors(Protocol):
    """Neighbours of a pixel by their places, which a method adds to `neighbors.method`."""

    def takes_image(self, params: "Tables", /) -> bool:
        """Return whether points are an image or a video, and no table of its pixels."""
        ...

    def image(self, params: "Tables", n_pixels: int, /) -> tuple[int, int, int]:
        """Return frames, rows and columns of so many pixels."""
        ...

    def n_neighbors(self, params: "Tables", n_pixels: int, /) -> int:
        """Return the most neighbours that one of so many pixels has."""
        ...


@parameters()
class Tables:
    """The parameters of all stages, and the seed of every random draw."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    duplicates: DuplicatesParams = DuplicatesParams()
    points: PointsParams = PointsParams()
    partition: PartitionParams = PartitionParams()
    neighbors: NeighborsParams = NeighborsParams()
    affinities: AffinitiesParams = AffinitiesParams()
    components: ComponentsParams = ComponentsParams()
    symmetric_affinities: SymmetricAffinitiesParams = SymmetricAffinitiesParams()
    normalized_affinities: NormalizedAffinitiesParams = NormalizedAffinitiesParams()
    landmarks: LandmarksParams = LandmarksParams()
    landmark_weights: LandmarkWeightsParams = LandmarkWeightsParams()
    reduced: ReducedParams = ReducedParams()
    landmark_embedding: LandmarkEmbeddingParams = LandmarkEmbeddingParams()
    embedding: EmbeddingParams = EmbeddingParams()
    diffusion_coordinates: DiffusionCoordinatesParams = DiffusionCoordinatesParams()
    clustering: ClusteringParams = ClusteringParams()
    layout: LayoutParams = LayoutParams()
    doubt: DoubtParams = DoubtParams()

    @property
    def pixels(self) -> PixelNeighbors | None:
        """What decides the neighbours of pixels; None where points are no pixels."""
        if not self.neighbors.of_pixels:
            return None
        neighbors: PixelNeighbors = extensions(PixelsExtension)[self.neighbors.method].load()
        return neighbors

    @property
    def takes_image(self) -> bool:
        """Whether points are an image or a video, and no table of its pixels."""
        return self.pixels is not None and self.pixels.takes_image(self)

    @property
    def merges_duplicates(self) -> bool:
        """Whether equal rows are one point."""
        return self.duplicates.tolerance is not None

    @property
    def leaves_out_gaps(self) -> bool:
        """Whether rows with a gap are left out."""
        return self.points.missing == LEAVE_OUT

    @property
    def follows_classes(self) -> bool:
        """Whether affinities between points of different classes count less."""
        return self.symmetric_affinities.target_weight > 0

    @property
    def precomputed_input(self) -> str:
        """What the input has in place of points, in words; "" where it has points."""
        return precomputed_input(self.points.metric, self.affinities.kind)

    @property
    def may_fall_apart(self) -> bool:
        """Whether W may have several pieces, as nothing joins all of them."""
        known = not self.precomputed_input and has_coordinates(self.points.metric)
        return not known or self.components.disconnected == "separate"

    def route(self, method: str, weighted: bool = False) -> Route:
        """Return the stages of a method that these parameters need, of points with weights or without.

        Raises ConfigError for an unknown method, and for one that does not support a request.
        """
        start = SPECTRAL_START if self.layout.takes_spectral else self.layout.init
        points = self.points.metric, start, self.neighbors.method, self.affinities.kind
        wanted = {
            DUPLICATES.name: self.merges_duplicates,
            WEIGHTS.name: weighted or self.merges_duplicates,
            LEAVE_OUT: self.leaves_out_gaps,
            CLASSES.name: self.follows_classes,
            MADE_ROWS: not self.symmetric_affinities.stored,
            **{name: self.value(parameter) == value for name, (parameter, value) in WANTED.items()},
        }
        return route(method, self.embedding.resolved_solver, *points, [name for name, wants in wanted.items() if wants])

    def part(self, kind: type[Table]) -> Table:
        """Return the table of a class, which may be one that a method adds."""
        return next(table for table in values_in(self).values() if isinstance(table, kind))

    def value(self, name: str) -> Any:
        """Return one parameter by the name that it has on the command line: `seed`, `neighbors.recall`."""
        return attrgetter(name)(self)

    def as_dict(self) -> dict[str, Any]:
        """Return all parameters as plain values."""
        return values_of(self)

    def of_stage(self, stage: str) -> dict[str, Any]:
        """Return the parameters of a stage that its key holds: none that is marked and at its default."""
        table = getattr(self, stage, None)
        if table is None:
            return {}
        marked = marked_names(type(table), *Mark)
        return {
            field.name: getattr(table, field.name)
            for field in fields_of(table)
            if getattr(table, field.name) != field.default or field.name not in marked
        }


if not TYPE_CHECKING:  # checkers see the tables of stages that several methods share
    TABLES = {name: extension.load() for name, extension in extensions(TableExtension).items()}
    members = {"__module__": __name__, "__doc__": Tables.__doc__, "__annotations__": TABLES}
    members |= {name: made() for name, made in TABLES.items()}
    Tables = parameters()(type("Tables", (Tables,), members))

# The tuned numbers of each stage that has some.
TUNED: dict[str, frozenset[str]] = {
    stage: numbers
    for stage in names_of(Tables())
    if stage != "seed" and (numbers := marked_names(type(getattr(Tables(), stage)), Mark.TUNED))
}
