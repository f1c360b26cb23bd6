"""Exact nearest neighbours by looking at every row, with sketch distances as lower bounds."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.neighbors.rerank import LIMIT_SLACK, Neighbors
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.distances import squared_row_distance
from scalemani.kernels.rows.products import (
    PANEL_ROWS,
    QUERY_GROUP,
    build_panels,
    center_queries,
    middle_row,
    multiply_panel,
    number_lanes,
)
from scalemani.kernels.rows.smallest import POOL_MARGIN, append_within, insert_neighbor

# What float32 may add to a sketch distance, as a share of the lengths that went into it: some 20 times the rounding
# of projections and products seen in practice. It costs a few more exact distances; too little would lose neighbours.
ROUNDING_SHARE = 1e-5
CHUNK_QUERIES = 252  # centred queries, in whole groups, that stay in the second-level cache while the panels go by


class SketchedRows(NamedTuple):
    """Points, their sketches, and the unit of length of the sketches."""

    points: Points  # (n, D)
    sketches: np.ndarray  # (n, s) float32
    scale: float  # of the sketch basis


@compiled
def exact_neighbors(
    queries: SketchedRows,
    query_labels: np.ndarray,
    rows: SketchedRows,
    start: int,
    known: Neighbors,
    limits: np.ndarray,
) -> Neighbors:
    """Return the nearest of the known neighbours and a block of rows, by exact distance, ties by index.

    Blocks of rows are taken one after the other, or each by itself and joined by `merge_neighbors`. Exact as long as
    float32 rounding stays under ROUNDING_SHARE of the lengths of the sketches.

    Parameters
    ----------
    query_labels : (n,) int, the index of each query, which is never its own neighbour; -1 for a query that is no row
    known : (n, k) neighbours, none of them among the rows
    limits : (n,) distances beyond which no neighbour is wanted, inf for none; the lists are complete up to them

    Returns
    -------
    Neighbors (n, k) in the dtypes of `known`
    """
    indices, distances = known.indices.copy(), known.distances.copy()
    query_points, row_points = queries.points, rows.points  # fields taken in a loop would be counted as references
    reaches = np.minimum(limits, distances[:, -1].astype(np.float64))
    scale = rows.scale
    rounded = np.empty(1, dtype=distances.dtype)
    center = middle_row(rows.sketches)
    panels, norms = build_panels(rows.sketches, center)
    lengths = np.sqrt(squared_lengths(queries.sketches))
    longest, widest = _greatest_of_panels(np.sqrt(squared_lengths(rows.sketches))), _greatest_of_panels(norms.ravel())
    centered = np.empty((CHUNK_QUERIES, rows.sketches.shape[1]), dtype=np.float32)
    bases = np.zeros(CHUNK_QUERIES, dtype=np.float32)
    products = np.empty((QUERY_GROUP, PANEL_ROWS), dtype=np.float32)
    numbers = np.empty(PANEL_ROWS, dtype=np.int32)
    squares = np.empty(PANEL_ROWS + POOL_MARGIN, dtype=np.float32)
    near = np.empty(squares.size, dtype=np.int32)
    for chunk in range(0, query_labels.size, CHUNK_QUERIES):
        members = np.arange(chunk, min(chunk + CHUNK_QUERIES, query_labels.size))
        center_queries(queries.sketches, members, center, centered, bases)
        for p in range(panels.shape[0]):
            number_lanes(numbers, p * PANEL_ROWS)
            for first in range(0, members.size, QUERY_GROUP):
                multiply_panel(centered, bases, first, panels, norms, p, products)
                for j in range(first, min(first + QUERY_GROUP, members.size)):
                    i = members[j]
                    reach = reaches[i] / scale + ROUNDING_SHARE * (lengths[i] + longest[p])
                    bound = reach**2 + ROUNDING_SHARE * (bases[j] + widest[p])
                    n_near = append_within(products, j - first, bound, numbers, squares, near, 0)
                    for row in near[:n_near]:
                        if start + row != query_labels[i] and row < row_points.shape[0]:
                            limit = reaches[i] ** 2 * LIMIT_SLACK
                            square = squared_row_distance(query_points, i, row_points, row, limit)
                            if square <= limit:
                                rounded[0] = np.sqrt(square)  # in the dtype of the lists, so that ties stay ties
                                insert_neighbor(indices, distances, i, start + row, rounded[0])
                                reaches[i] = min(reaches[i], distances[i, -1])
    return Neighbors(indices, distances)


@compiled
def squared_lengths(sketches: np.ndarray) -> np.ndarray:
    """Return the squared lengths (n,) float64 of `sketches` (n, s) float32."""
    squares = np.zeros(sketches.shape[0])
    for i in range(sketches.shape[0]):
        for d in range(sketches.shape[1]):
            squares[i] += np.float64(sketches[i, d]) ** 2
    return squares


@compiled
def _greatest_of_panels(values: np.ndarray) -> np.ndarray:
    """Return the greatest finite one of each run of 128 `values`: (ceil(n / 128),) float64."""
    greatest = np.zeros((values.size + PANEL_ROWS - 1) // PANEL_ROWS)
    for i in range(values.size):
        if np.isfinite(values[i]):
            greatest[i // PANEL_ROWS] = max(greatest[i // PANEL_ROWS], values[i])
    return greatest
