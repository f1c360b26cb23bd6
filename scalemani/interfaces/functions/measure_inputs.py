"""Checks of what the measures of quality are given, and the points that they look at."""

from typing import Any

import numpy as np

from scalemani.config.validation import check_count, check_seed, check_shape
from scalemani.errors import DataError
from scalemani.interfaces.functions.landmarks import checked_metric
from scalemani.io.sources import points_in_memory, rows_in_memory
from scalemani.io.sources.label_values import values_of
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.rows.compressed import Points


def sampled(n_points: int, n_sampled: int | None, random_state: Any, name: str) -> np.ndarray:
    """Return the rows to look at, ascending."""
    seed = check_seed(random_state)
    wanted = n_points if n_sampled is None else check_count(n_sampled, "n_sampled")
    return sample_rows(seed, f"measures/{name}", n_points, wanted)


def measured_rows(points: Any, metric: str) -> Points:
    """Return points (N, D), sparse ones sparse, in whose Euclidean distances those of a metric ascend."""
    return rows_in_memory(points, checked_metric(metric, "what is measured are points"))


def check_both(points: Any, embedding: Any, metric: str) -> tuple[Points, np.ndarray]:
    """Return points, as `measured_rows` does, and their embedding as tables of as many rows, at least three."""
    table, positions = measured_rows(points, metric), points_in_memory(embedding, "embedding")
    check_shape(table.shape, "points", 3)
    if table.shape[0] != len(positions):
        raise DataError(
            f"embedding has {len(positions)} rows, points {table.shape[0]}: give one position for each point"
        )
    return table, positions


def check_alike(one: Any, reference: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return two tables of one shape."""
    first, second = points_in_memory(one, "embedding"), points_in_memory(reference, "reference")
    if first.shape != second.shape:
        raise DataError(f"embedding {first.shape} and reference {second.shape} must have one shape (N, d)")
    return first, second


def check_labels(labels: Any, name: str, n_points: int | None) -> np.ndarray:
    """Return classes (N,), or raise DataError."""
    classes = labels if isinstance(labels, np.ndarray) else values_of(labels, name)
    if classes.ndim != 1 or len(classes) == 0 or (n_points is not None and len(classes) != n_points):
        wanted = "(N,)" if n_points is None else f"({n_points},)"
        raise DataError(f"{name} must be one class for each point, {wanted}, got shape {classes.shape}")
    if classes is not labels and classes.dtype.kind == "U" and (n_missing := int(np.count_nonzero(classes == ""))):
        raise DataError(f"{name} must be classes, got {n_missing} points without one: leave them out, or give them one")
    if classes.dtype.kind == "f" and not np.array_equal(classes, np.rint(classes)):
        raise DataError(f"{name} must be classes, got numbers with fractions or NaN: round them, or group them first")
    try:
        np.unique(classes)
    except TypeError as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in classes}))
        raise DataError(
            f"{name} must be classes of one type, got objects of {kinds}, which have no order: leave out points "
            "without a class, or give them one"
        ) from error
    return classes


def check_neighbors(indices: Any, n_points: int) -> np.ndarray:
    """Return rows of neighbours (N, k) of N points, or raise DataError."""
    neighbors = np.asarray(indices)
    if neighbors.ndim != 2 or neighbors.dtype.kind not in "iu" or len(neighbors) != n_points or neighbors.size == 0:
        raise DataError(
            f"indices must be (N, k) integers with N = {n_points} points, got {neighbors.dtype} {neighbors.shape}: "
            "give graph.indices"
        )
    if neighbors.min() < 0 or neighbors.max() >= n_points:
        raise DataError(
            f"indices must be rows of points in [0, {n_points}), got {neighbors.min()} to {neighbors.max()}"
        )
    ordered = np.sort(neighbors, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1) | (neighbors == np.arange(n_points)[:, None]).any(axis=1)
    if twice.any():
        raise DataError(
            f"indices must name k different points other than the point itself, row {int(np.argmax(twice))} does not"
        )
    return neighbors
