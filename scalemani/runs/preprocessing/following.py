"""Parameters that follow the points: the metric, how many neighbors are given, the size of an image."""

from scalemani.config.params import Parameters
from scalemani.config.stages import GIVEN_LISTS, PRECOMPUTED
from scalemani.errors import (
    ConfigError,
    DataError,
)
from scalemani.io.sources import DistanceMatrix, GivenAffinities, NeighborLists, PixelRows, PointsSource
from scalemani.io.sources.side_data import (
    AccompaniedPoints,
    GivenLists,
    Pairs,
    map_points,
    points_of,
    side_data_of,
    with_side_data,
)
from scalemani.kernels.rows.metrics import EUCLIDEAN

OF_PIXELS = ("gaussian", "ensemble")  # affinities that are made of the pixels themselves


def follow_source(asked: Parameters, source: PointsSource) -> tuple[Parameters, PointsSource]:
    """Return parameters that ask for what is given, and this in the geometry of their metric.

    Of lists or distances it has as many neighbours as are asked for.
    """
    if isinstance(source, AccompaniedPoints):
        if source.side.weights is not None and asked.neighbors.by_window:
            raise ConfigError(
                "pixels have no weights: leave out --weights (sample_weight), or take another neighbors.method"
            )
        params, points = follow_source(follow_lists(asked, source.side.lists), source.points)
        found, joining = source.with_points(points_of(points)), side_data_of(points).pairs
        return params, found if joining is None else with_side_data(found, pairs=joining)
    source = map_points(asked.points.metric, source)
    if asked.neighbors.by_window:
        return follow_image(asked, source), source
    if isinstance(source, GivenAffinities) != asked.affinities.precomputed:
        raise ConfigError(
            "affinities go with affinities.kind=precomputed, and points or neighbours with another kind: this kind is "
            f"{asked.affinities.kind}, and what was given is {source.description}"
        )
    if isinstance(source, GivenAffinities):
        return asked.with_values({"points": {"metric": PRECOMPUTED}}), source
    if not isinstance(source, NeighborLists | DistanceMatrix):
        return asked, source
    given = source.n_neighbors
    wanted = asked.neighbors.n_neighbors or (
        given if isinstance(source, NeighborLists) else min(given, asked.n_neighbors)
    )
    if wanted > given:
        raise ConfigError(
            f"neighbors.n_neighbors must be at most {given}, the neighbours a point that are given, got {wanted}"
        )
    asked = asked.with_values({"neighbors": {"n_neighbors": wanted}})
    if isinstance(source, NeighborLists):
        return asked, source if wanted == given else source.nearest(wanted)
    lists = source.nearest(wanted)
    pairs = source.closest_pairs(lists) if asked.components.disconnected == "connect" else None
    return asked, lists if pairs is None else with_side_data(lists, pairs=Pairs(pairs))


def follow_lists(asked: Parameters, lists: GivenLists | None) -> Parameters:
    """Return parameters that ask for as many neighbours as lists beside the points have, or fewer."""
    if lists is None:
        return asked
    if asked.neighbors.method != GIVEN_LISTS:
        raise ConfigError(
            f"neighbour lists were given, and neighbors.method={asked.neighbors.method} finds others: leave out one of "
            "the two"
        )
    listed = lists.indices.shape[1]
    wanted = asked.neighbors.n_neighbors or listed
    if wanted > listed:
        raise ConfigError(
            f"neighbors.n_neighbors must be at most {listed}, the neighbours a point that are given, got {wanted}"
        )
    return asked.with_values({"neighbors": {"n_neighbors": wanted}})


def follow_image(asked: Parameters, source: PointsSource) -> Parameters:
    """Return parameters that know the image whose pixels are given; refuse an image that its window does not fit."""
    if asked.points.metric != EUCLIDEAN or asked.affinities.kind not in (None, *OF_PIXELS):
        raise ConfigError(
            f"neighbors.method=window takes points.metric={EUCLIDEAN} and affinities.kind={' or '.join(OF_PIXELS)}, "
            f"got {asked.points.metric} and {asked.affinities.kind}: change these, or take another neighbors.method"
        )
    if isinstance(source, PixelRows):
        _, rows, columns = source.image
        asked = asked.with_values({"neighbors": {"image_rows": rows, "image_columns": columns}})
    given = asked.neighbors
    if given.image_rows is None or given.image_columns is None:
        raise ConfigError(
            f"neighbors.method=window takes an image, got {source.description}: give an image or a video, or with a "
            "table of pixels neighbors.image_rows and neighbors.image_columns"
        )
    frames, rows, columns = given.image(source.shape[0])
    if frames * rows * columns != source.shape[0]:
        raise DataError(
            f"{source.description} has {source.shape[0]} pixels, which are no frames of {rows} x {columns}: correct "
            "neighbors.image_rows and neighbors.image_columns"
        )
    if min(rows, columns) < given.window:
        raise DataError(
            f"an image of {rows} x {columns} pixels is smaller than its window of {given.window} x {given.window}: "
            "lower neighbors.window, or give a larger image"
        )
    if frames > 1 and given.frames >= frames:
        raise ConfigError(f"neighbors.frames must be below the {frames} frames of the video, got {given.frames}")
    return asked
