"""Parameters that follow the points: the metric, the number of neighbors, the size of an image."""

from typing import Protocol

from scalemani.config.methods import PixelsExtension, extensions
from scalemani.config.params import Parameters
from scalemani.config.stages import INPUT_LISTS, PRECOMPUTED
from scalemani.errors import ConfigError
from scalemani.io.sources import DistanceMatrix, NeighborLists, PointsSource, PrecomputedAffinities
from scalemani.io.sources.side_data import (
    AccompaniedPoints,
    Pairs,
    PrecomputedLists,
    map_points,
    points_of,
    side_data_of,
    with_side_data,
)


class FollowedPixels(Protocol):
    """Neighbours of a pixel by their places, which a method adds, as they follow an image."""

    def follow_image(self, params: Parameters, source: PointsSource, /) -> Parameters:
        """Return parameters that know the image of the pixels; refuse an image that it does not take."""
        ...


def follow_source(params: Parameters, source: PointsSource) -> tuple[Parameters, PointsSource]:
    """Return parameters that match the source, and the source in the geometry of their metric.

    Of lists or distances it has as many neighbours as are requested.
    """
    if isinstance(source, AccompaniedPoints):
        if source.side.weights is not None and params.neighbors.of_pixels:
            raise ConfigError(
                "pixels have no weights: leave out --weights (sample_weight), or take another neighbors.method"
            )
        params, points = follow_source(follow_lists(params, source.side.lists), source.points)
        followed, joining = source.with_points(points_of(points)), side_data_of(points).pairs
        return params, followed if joining is None else with_side_data(followed, pairs=joining)
    source = map_points(params.points.metric, source)
    if params.neighbors.of_pixels:
        pixels: FollowedPixels = extensions(PixelsExtension)[params.neighbors.method].load()
        return pixels.follow_image(params, source), source
    if isinstance(source, PrecomputedAffinities) != params.affinities.precomputed:
        raise ConfigError(
            "affinities go with affinities.kind=precomputed, and points or neighbours with another kind: this kind is "
            f"{params.affinities.kind}, and the input is {source.description}"
        )
    if isinstance(source, PrecomputedAffinities):
        return params.with_values({"points": {"metric": PRECOMPUTED}}), source
    if not isinstance(source, NeighborLists | DistanceMatrix):
        return params, source
    available = source.n_neighbors
    wanted = params.neighbors.n_neighbors or (
        available if isinstance(source, NeighborLists) else min(available, params.usual_neighbors)
    )
    if wanted > available:
        raise ConfigError(
            f"neighbors.n_neighbors must be at most {available}, the neighbours a point in the input, got {wanted}"
        )
    params = params.with_values({"neighbors": {"n_neighbors": wanted}})
    if isinstance(source, NeighborLists):
        return params, source if wanted == available else source.nearest(wanted)
    lists = source.nearest(wanted)
    pairs = source.closest_pairs(lists) if params.components.disconnected == "connect" else None
    return params, lists if pairs is None else with_side_data(lists, pairs=Pairs(pairs))


def follow_lists(params: Parameters, lists: PrecomputedLists | None) -> Parameters:
    """Return parameters that request as many neighbours as lists that accompany the points have, or fewer."""
    if lists is None:
        return params
    if params.neighbors.method != INPUT_LISTS:
        raise ConfigError(
            f"neighbour lists were passed, and neighbors.method={params.neighbors.method} computes others: leave out "
            "one of the two"
        )
    listed = lists.indices.shape[1]
    wanted = params.neighbors.n_neighbors or listed
    if wanted > listed:
        raise ConfigError(
            f"neighbors.n_neighbors must be at most {listed}, the neighbours a point in the lists, got {wanted}"
        )
    return params.with_values({"neighbors": {"n_neighbors": wanted}})
