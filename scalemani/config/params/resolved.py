"""Resolved parameters: what a run uses, made once of open ones, checked and frozen. Nothing in them is left open."""

from dataclasses import field

from scalemani.config.params.by_stage import (
    AffinitiesParams,
    AffinityKind,
    EmbeddingParams,
    LandmarkEmbeddingParams,
    LandmarksParams,
    LandmarkWeightsParams,
    NeighborsParams,
)
from scalemani.config.params.fields import Count, CountOrZero, Part, PartOrZero, Positive, Weight, parameters
from scalemani.config.params.layout import LayoutParams
from scalemani.config.params.tables import Tables


@parameters()
class ResolvedNeighbors(NeighborsParams):
    """The neighbour graph, with the number of neighbours."""

    n_neighbors: Count = field()


@parameters()
class ResolvedAffinities(AffinitiesParams):
    """Affinities of a kind; the perplexity of others than entropic ones stands for none."""

    kind: AffinityKind = field()
    perplexity: Positive = field()


@parameters()
class ResolvedLandmarks(LandmarksParams):
    """The landmarks, with their number."""

    n_landmarks: Count = field()


@parameters()
class ResolvedLandmarkWeights(LandmarkWeightsParams):
    """Z, with the number of landmarks that a point is made of."""

    n_neighbors: Count = field()


@parameters()
class ResolvedLandmarkEmbedding(LandmarkEmbeddingParams):
    """The reduced eigenproblem, with the number of components."""

    n_components: Count = field()


@parameters()
class ResolvedEmbedding(EmbeddingParams):
    """The embedding, with the residual to which it is refined."""

    residual: Part = field()


@parameters()
class ResolvedLayout(LayoutParams):
    """The descent of a method that has an objective; None stays where a direction has no use for a number."""

    objective: str = field()
    strength: Weight = field()
    early_exaggeration: Positive = field()
    exaggerated_iterations: CountOrZero = field()
    converged: PartOrZero = field()
    window: Count = field()

    @property
    def relative_strength(self) -> float:
        """The weight of the repulsion over that of the attraction, at the end of the descent."""
        return self.strength / self.late_exaggeration


@parameters()
class Resolved(Tables):
    """The parameters that a run uses: those of its method and its points where nothing was requested."""

    neighbors: ResolvedNeighbors = field()
    affinities: ResolvedAffinities = field()
    landmarks: ResolvedLandmarks = field()
    landmark_weights: ResolvedLandmarkWeights = field()
    landmark_embedding: ResolvedLandmarkEmbedding = field()
    embedding: ResolvedEmbedding = field()
    layout: LayoutParams = field()

    @property
    def descent(self) -> ResolvedLayout:
        """The parameters of the descent; raises TypeError for a method without one."""
        if not isinstance(self.layout, ResolvedLayout):
            raise TypeError("the method has no objective, and no descent")
        return self.layout

    @property
    def perplexity(self) -> float:
        """The perplexity."""
        return self.affinities.perplexity

    @property
    def n_neighbors(self) -> int:
        """The neighbours a point."""
        return self.neighbors.n_neighbors

    @property
    def affinity_neighbors(self) -> int:
        """The nearest of the neighbours that have an affinity: None stands for all."""
        return self.neighbors.n_neighbors if self.affinities.n_neighbors is None else self.affinities.n_neighbors

    @property
    def n_components(self) -> int:
        """The dimensions of the embedding."""
        return self.landmark_embedding.n_components

    @property
    def n_landmarks(self) -> int:
        """The landmarks."""
        return self.landmarks.n_landmarks

    @property
    def landmark_neighbors(self) -> int:
        """The landmarks a point is made of."""
        return self.landmark_weights.n_neighbors

    @property
    def residual(self) -> float:
        """The residual to which the embedding is refined."""
        return self.embedding.residual


RESOLVED_TABLES: dict[str, type] = {
    "neighbors": ResolvedNeighbors,
    "affinities": ResolvedAffinities,
    "landmarks": ResolvedLandmarks,
    "landmark_weights": ResolvedLandmarkWeights,
    "landmark_embedding": ResolvedLandmarkEmbedding,
    "embedding": ResolvedEmbedding,
}
