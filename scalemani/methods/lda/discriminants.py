"""Linear discriminants by landmarks: two passes of sums over the points, then a projection of each point.

The first pass gives the span in which directions are looked for, that of the landmarks' moments, and the means of the
classes; the second the scatter of the points in it. A third multiplies the scatter of all features with the directions,
which certifies them.
"""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from scalemani.engine.context import Arrays, StageContext, StageTask
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import Sizes
from scalemani.errors import RankError
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.methods.lda.kernels import ScatterProblem, discriminants, row_space
from scalemani.stages.arrays.embeddings import StoredReduction, component_values, embedding_rows
from scalemani.stages.arrays.points import StoredPoints
from scalemani.stages.shared.moments import Moments, center_of, moments_memory, summed_moments, tiles_of
from scalemani.stages.shared.output import create_embedding
from scalemani.stages.shared.tiles import fold_tiles, sums_held
from scalemani.store.invariants.models import PROJECTIONS
from scalemani.store.invariants.spectral import CENTRED, ORTHONORMAL_COLUMNS
from scalemani.store.invariants.values import A_SHARE, DESCENDING, NOT_NEGATIVE

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey

DIMENSIONS = {"direction": "the dimensions of what discriminants are found in, at most D and L"}


class StoredDiscriminants(StoredReduction, stage="discriminants"):
    """Linear discriminants of classes, in the span of the landmarks' moments."""

    embedding = embedding_rows("(points - mean) @ axes, rows in input order", PROJECTIONS, CENTRED)
    eigenvalues = component_values(
        "the share of the scatter of each component that lies between classes, descending", A_SHARE, DESCENDING
    )
    mean = Whole("feature", "float64", "the points' mean", "as given").of_any_numbers(
        "the embedding is checked to be centred by it"
    )
    axes = Whole("feature component", "float64", "the directions", "1 / as given").of_any_numbers(
        "the embedding that is made of them is checked"
    )
    span = Whole("feature direction", "float64", "orthonormal axes of what directions are found in").with_invariants(
        ORTHONORMAL_COLUMNS
    )
    errors = Whole(
        "figure", "float64", "the certificates: backward error, bound of the shares, scatter off the span"
    ).with_invariants(NOT_NEGATIVE)


TILES_TOGETHER = 64  # whose scatter is added where it is computed; another number would change the last bits
MOST_CLASSES = 1000  # that the plan of memory has room for
OUTSIDE_IS_ROUNDING = 1e-13  # of the scatter: less off the span than rounding leaves of the sums
SPAN_UNIT, ERRORS_UNIT = "span", "errors"


def memory(sizes: Sizes) -> Memory:
    """Return what the sums take, the span of the landmarks' moments, and the scatter in it."""
    features, n_landmarks, width = sizes.dimensions.n_features, sizes.params.n_landmarks, sizes.params.n_components
    rank, rows = min(features, n_landmarks), sizes.dimensions.block_rows
    scatter = array("float64", rank, rank)
    return moments_memory(sizes, min(MOST_CLASSES, sizes.dimensions.n_points)) + Memory(
        process={
            "moments, centred, and their singular vectors": 4 * array("float64", n_landmarks, features),
            "scatter on the way up the tree": sums_held(sizes.dimensions.n_points, TILES_TOGETHER) * scatter,
            "axes of their span": 2 * array("float64", features, rank),
            "scatter, its eigenvectors, and what LAPACK works in": 4 * scatter,
        },
        task={
            "scatter of a run of tiles": 3 * scatter,
            "coordinates of a tile": 2 * array("float64", TILE_ROWS, rank),
            "scatter times directions": 3 * array("float64", features, width),
            "points of a block in float64, projected": array("float64", rows, features + width),
        },
    )


def run(context: StageContext) -> dict[str, Any]:
    """Find the directions and project the points; certify how far apart they hold the classes, how exactly."""
    task, output = context.task, StoredDiscriminants(context.task.output)
    if not task.output.committed(ERRORS_UNIT):
        solve(context, summed_moments(context))
    create_embedding(task, StoredDiscriminants.embedding)
    context.map_blocks(projected_block)
    residual, share_error_bound, outside = output.errors.read().tolist()
    return {
        "between_shares": output.eigenvalues.read().tolist(),
        "residual": residual,
        "share_error_bound": share_error_bound,
        "outside_share": outside,
    }


def solve(context: StageContext, moments: Moments) -> None:
    """Write the mean, the directions, and how exact these are."""
    task, output = context.task, StoredDiscriminants(context.task.output)
    mean = center_of(task) + moments.shift
    span = row_space(moments.centered())
    if span.shape[1] < task.params.n_components:
        raise RankError(
            f"{task.params.n_components} components were requested of landmarks that span {span.shape[1]} dimensions: "
            "take more landmarks or fewer components"
        )
    task.output.write_whole({StoredDiscriminants.mean: mean, StoredDiscriminants.span: span}, SPAN_UNIT)
    scatter = fold_tiles(context, scatter_of_tiles, np.add, TILES_TOGETHER, "scatter")
    means = moments.sums / moments.counts[:, np.newaxis] - moments.shift
    solution = discriminants(scatter, means @ span, moments.counts, task.params.n_components)
    shares, axes = solution.eigenvalues, span @ solution.vectors
    task.output.write_whole({StoredDiscriminants.eigenvalues: shares, StoredDiscriminants.axes: axes}, output.SOLVED)
    images = fold_tiles(context, images_of_tiles, np.add, TILES_TOGETHER, "residuals")
    problem = ScatterProblem(shares, axes, images, means, moments.counts)
    outside = max(0.0, 1.0 - float(np.trace(scatter)) / moments.total_scatter)
    spans_all = outside <= OUTSIDE_IS_ROUNDING or span.shape[1] == span.shape[0]
    errors = np.array([problem.backward_error(), problem.share_error(span, scatter, spans_all), outside])
    task.output.write_whole({StoredDiscriminants.errors: errors}, ERRORS_UNIT)


def images_of_tiles(task: StageTask, tiles: range) -> np.ndarray:
    """Return the scatter of consecutive tiles of points, in all features, times the directions: (D, d)."""
    output = StoredDiscriminants(task.output)
    mean, axes = output.mean.read_once(), output.axes.read_once()
    centred = (tile - mean for tile, _, _ in tiles_of(task, tiles))
    return functools.reduce(np.add, (part.T @ (part @ axes) for part in centred))


def scatter_of_tiles(task: StageTask, tiles: range) -> np.ndarray:
    """Return the scatter (r, r) of consecutive tiles of points in the span."""
    output = StoredDiscriminants(task.output)
    mean, span = output.mean.read_once(), output.span.read_once()
    parts = ((tile - mean) @ span for tile, _, _ in tiles_of(task, tiles))
    return functools.reduce(np.add, (part.T @ part for part in parts))


def projected_block(task: StageTask, block: int) -> Arrays:
    """Return the coordinates of one block of points in input order."""
    output = StoredDiscriminants(task.output)
    mean, axes = output.mean.read_once(), output.axes.read_once()
    points = task.stored(StoredPoints).points.read_block(block)
    tiles = (dense_rows(points[first : first + TILE_ROWS]) for first in range(0, points.shape[0], TILE_ROWS))
    rows = [(tile - mean) @ axes for tile in tiles]
    return {StoredDiscriminants.embedding: np.concatenate(rows)}


def most_components(survey: "Survey") -> int | None:
    """Return how many discriminants there are, by features and classes; None without labels."""
    if survey.side.labels is None:
        return None
    return min(survey.dimensions.n_features, len(survey.side.labels.counts) - 1)
