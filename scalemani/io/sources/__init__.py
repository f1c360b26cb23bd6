"""Where points and labels come from: arrays in memory, files, stores, all read by blocks of rows."""

from scalemani.io.sources.array_files import PixelRows, open_pixels
from scalemani.io.sources.base import PointsSource
from scalemani.io.sources.columns import in_order_of, names_of
from scalemani.io.sources.labels import named_labels, open_columns, open_labels
from scalemani.io.sources.lazy import DaskPoints
from scalemani.io.sources.opening import (
    columns_shown,
    is_in_memory,
    is_stored,
    is_table,
    open_points,
    points_in_memory,
    rows_in_memory,
    take_representation,
    with_names_of,
    with_same_columns,
)
from scalemani.io.sources.precomputed import DistanceMatrix, NeighborLists, open_lists
from scalemani.io.sources.precomputed_affinities import PrecomputedAffinities, open_affinities, opener_instead
from scalemani.io.sources.side_data import map_points

__all__ = [
    "DaskPoints",
    "DistanceMatrix",
    "NeighborLists",
    "PixelRows",
    "PointsSource",
    "PrecomputedAffinities",
    "columns_shown",
    "in_order_of",
    "is_in_memory",
    "is_stored",
    "is_table",
    "map_points",
    "named_labels",
    "names_of",
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
    "with_names_of",
    "with_same_columns",
]
