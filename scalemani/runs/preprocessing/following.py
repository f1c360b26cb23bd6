"""Parameters that follow the points: the metric, the number of neighbors, the size of an image."""

from scalemani.config.params import Parameters
from scalemani.config.stages import GIVEN_LISTS, PRECOMPUTED
from scalemani.errors import (
    ConfigError,
    DataError,
)
from scalemani.io.sources import DistanceMatrix, NeighborLists, PixelRows, PointsSource, PrecomputedAffinities
from scalemani.io.sources.side_data import (
    AccompaniedPoints,
    Pairs,
    PrecomputedLists,
    map_points,
    points_of,
    side_data_of,
    with_side_data,
)
from scalemani.kernels.rows.metrics import EUCLIDEAN

OF_PIXELS = ("gaussian", "ensemble")  # affinities that are made of the pixels themselves


def follow_source(params: Parameters, source: PointsSource) -> tuple[Parameters, PointsSource]:
    """Return parameters that match the source, and the source in the geometry of their metric.

    Of lists or distances it has as many neighbours as are requested.
    """
    if isinstance(source, AccompaniedPoints):
        if source.side.weights is not None and params.neighbors.by_window:
            raise ConfigError(
                "pixels have no weights: leave out --weights (sample_weight), or take another neighbors.method"
            )
        params, points = follow_source(follow_lists(params, source.side.lists), source.points)
        followed, joining = source.with_points(points_of(points)), side_data_of(points).pairs
        return params, followed if joining is None else with_side_data(followed, pairs=joining)
    source = map_points(params.points.metric, source)
    if params.neighbors.by_window:
        return follow_image(params, source), source
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
    if params.neighbors.method != GIVEN_LISTS:
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


def follow_image(params: Parameters, source: PointsSource) -> Parameters:
    """Return parameters that know the image of the pixels; refuse an image that its window does not fit."""
    if params.points.metric != EUCLIDEAN or params.affinities.kind not in (None, *OF_PIXELS):
        raise ConfigError(
            f"neighbors.method=window takes points.metric={EUCLIDEAN} and affinities.kind={' or '.join(OF_PIXELS)}, "
            f"got {params.points.metric} and {params.affinities.kind}: change these, or take another neighbors.method"
        )
    if isinstance(source, PixelRows):
        _, rows, columns = source.image
        params = params.with_values({"neighbors": {"image_rows": rows, "image_columns": columns}})
    neighbors = params.neighbors
    if neighbors.image_rows is None or neighbors.image_columns is None:
        raise ConfigError(
            f"neighbors.method=window takes an image, got {source.description}: give an image or a video, or with a "
            "table of pixels neighbors.image_rows and neighbors.image_columns"
        )
    frames, rows, columns = neighbors.image(source.shape[0])
    if frames * rows * columns != source.shape[0]:
        raise DataError(
            f"{source.description} has {source.shape[0]} pixels, which are no frames of {rows} x {columns}: correct "
            "neighbors.image_rows and neighbors.image_columns"
        )
    if min(rows, columns) < neighbors.window:
        raise DataError(
            f"an image of {rows} x {columns} pixels is smaller than its window of {neighbors.window} x "
            f"{neighbors.window}: lower neighbors.window, or give a larger image"
        )
    if frames > 1 and neighbors.frames >= frames:
        raise ConfigError(f"neighbors.frames must be below the {frames} frames of the video, got {neighbors.frames}")
    return params
