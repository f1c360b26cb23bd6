"""Where points and labels come from: arrays in memory, files, stores, all read by blocks of rows."""

from scalemani.sources.annotated import take_representation
from scalemani.sources.base import PointsSource
from scalemani.sources.dask_arrays import DaskPoints
from scalemani.sources.distance_matrix import DistanceMatrix
from scalemani.sources.given_affinities import GivenAffinities
from scalemani.sources.labels import named_labels, open_columns, open_labels
from scalemani.sources.neighbor_lists import NeighborLists
from scalemani.sources.opening import (
    columns_shown,
    has_names,
    is_in_memory,
    is_stored,
    open_points,
    points_in_memory,
    rows_in_memory,
)
from scalemani.sources.opening_affinities import open_affinities, opener_instead
from scalemani.sources.opening_lists import open_lists
from scalemani.sources.pixels import PixelRows, open_pixels
from scalemani.sources.side_data import map_points

__all__ = [
    "DaskPoints",
    "DistanceMatrix",
    "GivenAffinities",
    "NeighborLists",
    "PixelRows",
    "PointsSource",
    "columns_shown",
    "has_names",
    "is_in_memory",
    "is_stored",
    "map_points",
    "named_labels",
    "open_affinities",
    "open_columns",
    "open_labels",
    "open_lists",
    "open_pixels",
    "open_points",
    "opener_instead",
    "points_in_memory",
    "rows_in_memory",
    "take_representation",
]
