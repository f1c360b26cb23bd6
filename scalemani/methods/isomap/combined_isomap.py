"""Isomap of points that are combinations of landmarks: paths between all points, reduced to the landmarks' problem.

With K = -J D^2 J / 2 of the shortest paths between all points, coordinates are Z v sqrt(lambda), Z^T K Z v = lambda
Z^T Z v: the best that combinations of landmarks can say of an Isomap of all points. Each point takes a search of the
whole graph; no matrix of N columns is kept. Source: [LLL] 4.1 and 4.3, with the matrix of Isomap for A.
"""

import operator
from typing import Any

import numpy as np

from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.spectral.linear import centered_products, kernel_components
from scalemani.methods.isomap.geodesics import (
    StoredGeodesics,
    edges_of_graph,
    graph_memory,
)
from scalemani.methods.isomap.isomap import (
    certificate_memory,
    certified_by_sample,
    check_parameters,
    most_components,
)
from scalemani.methods.isomap.kernels import UndirectedEdges, geodesic_distances, unit_edges
from scalemani.stages.arrays.embeddings import StoredLandmarkCoordinates, combined_rows, component_values
from scalemani.stages.shared.landmark_maps import weights_at
from scalemani.stages.shared.moments import gram_memory, summed_gram
from scalemani.stages.shared.output import embedding_memory, over_landmarks, write_embedding, write_solution
from scalemani.stages.shared.tiles import fold_tiles, sums_held
from scalemani.store.invariants.spectral import SQUARES_ARE_EIGENVALUES
from scalemani.store.invariants.values import DESCENDING, POSITIVE

__all__ = ["LANDMARKS_ARE_POINTS", "check_parameters", "memory", "most_components", "run"]
LANDMARKS_ARE_POINTS = True  # paths lead from point to point


class StoredCombinedIsomap(StoredLandmarkCoordinates, stage="combined_isomap"):
    """Isomap of points that are combinations of landmarks."""

    embedding = combined_rows(SQUARES_ARE_EIGENVALUES)
    eigenvalues = component_values(
        "the leading eigenvalues of the centred squares of all distances along the graph, halved, on combinations of "
        "landmarks, descending",
        POSITIVE,
        DESCENDING,
    )
    vectors = Whole("landmark component", "float64", "the coordinates of the landmarks", "as given").of_any_numbers(
        "the embedding that is made of them is checked"
    )


def memory(sizes: Sizes) -> Memory:
    """Return what edges of the whole graph take, Z, sums of the landmarks, and the reduced problem."""
    n_points, n_landmarks, together = sizes.dimensions.n_points, sizes.params.n_landmarks, StoredGeodesics.TOGETHER
    square = array("float64", n_landmarks, n_landmarks)
    return (
        graph_memory(sizes)
        + gram_memory(sizes)
        + embedding_memory(sizes)
        + certificate_memory(sizes)
        + Memory(
            process={"products on the way up the tree": sums_held(n_points, 1) * square},
            task={
                "paths from some points, their squares, and what a search keeps": array(
                    "float64", n_points, 2 * together + 2
                ),
                "squares of a tile's paths times Z, and its products": array("float64", TILE_ROWS, n_landmarks)
                + 3 * square,
            },
            points={"Z": 2 * array("float64", n_points, 2 * sizes.params.landmark_neighbors)},
            # As summed and centred, with Z' Z, its factor, whitened, and what LAPACK works in.
            steps={"solving": Memory({"reduced problem": 8 * square})},
        )
    )


def run(context: StageContext) -> dict[str, Any]:
    """Sum over paths from all points, solve and embed; certify how far that is from an Isomap of all points."""
    task, output = context.task, StoredCombinedIsomap(context.task.output)
    gram, exponent = summed_gram(context), unit_edges(task.once(edges_of_graph))[1]
    products = fold_tiles(context, products_of_tiles, operator.add, 1, "paths")
    kernel = centered_products(-0.25 * (products + products.T), gram)
    solution, *_ = kernel_components(kernel, gram, task.params.n_components)
    write_solution(output, np.ldexp(solution.eigenvalues, 2 * exponent), np.ldexp(solution.vectors, exponent))
    empty = context.workspace.empty
    placed = over_landmarks(task, solution.vectors, empty)
    certified = certified_by_sample(task.stored(StoredGeodesics), placed, exponent)
    write_embedding(context, StoredCombinedIsomap.embedding, np.ldexp(placed, exponent, out=placed), empty)
    return certified


def products_of_tiles(task: StageTask, tiles: range) -> np.ndarray:
    """Return what consecutive tiles of points add to Z^T D^2 Z (L, L), D the lengths of all paths at unit scale."""
    edges, weights = task.once(edges_at_unit_scale), task.once(all_weights)
    total = np.zeros((task.params.n_landmarks,) * 2)
    for tile in tiles:
        rows = np.arange(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, task.dimensions.n_points))
        images = np.empty((len(rows), task.params.n_landmarks))
        for first in range(0, len(rows), StoredGeodesics.TOGETHER):
            some = slice(first, first + StoredGeodesics.TOGETHER)
            images[some] = np.square(geodesic_distances(edges, rows[some])) @ weights
        total += weights[rows].T @ images
    return total


def edges_at_unit_scale(task: StageTask) -> UndirectedEdges:
    """Return the edges of the graph whose squares of paths are in the range of float64."""
    return unit_edges(task.once(edges_of_graph))[0]


def all_weights(task: StageTask) -> Any:
    """Return Z (N, L), which all paths of a process are combined by."""
    return weights_at(task, np.arange(task.dimensions.n_points))
