"""Embeddings that one process makes and holds in work order, written in input order.

Rows brought to their places in a large array, a few places at a time.

Rows whose places lie all over an array in a mapped file touch a page each. So they first go to the part of the array
that they belong to, a stream for each part, and then to their places within it, in memory.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from scalemani.engine.context import Arrays, StageContext, StageTask
from scalemani.engine.memory.files import Table
from scalemani.engine.memory_model import Memory, Terms, array
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.arrays.workspace import Empty
from scalemani.stages.arrays.embeddings import StoredLandmarkCoordinates
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.shared.landmark_maps import stored_landmark_weights
from scalemani.stages.shared.side_data import write_rows
from scalemani.store.schema import ArrayDescription

PART_BYTES = 2**24  # of rows that are brought to their places in memory
LEAST_PART = 4096  # rows
Rows = TypeVar("Rows", bound=Table)


def reordered(
    values: np.ndarray, places: np.ndarray, empty: Empty = np.empty, part_bytes: int = PART_BYTES
) -> np.ndarray:
    """Return an array (N, d) float64 whose row `places[i]` is row i of the values.

    Parameters
    ----------
    values : (N, d) real, in memory or mapped.
    places : (N,) int, each of 0 to N - 1 once, in memory or mapped.
    empty : makes that array, and one of N row numbers; default `numpy.empty`, arrays of which are written in any order.
    """
    ordered = empty(values.shape, np.float64)
    if empty is np.empty:
        for panel in panels(len(ordered)):
            ordered[places[panel]] = values[panel]
        return ordered
    size = max(LEAST_PART, part_bytes // max(1, ordered.itemsize * ordered.shape[1]))
    within = empty(places.shape, np.int32)
    _bring_to_parts(values, places, size, ordered, within)
    for part in slices(len(ordered), size):
        rows = np.empty_like(ordered[part])
        rows[within[part]] = ordered[part]
        ordered[part] = rows
    return ordered


def _bring_to_parts(values: np.ndarray, places: np.ndarray, size: int, ordered: np.ndarray, within: np.ndarray) -> None:
    """Write every row somewhere in the part of `size` rows that its place is in, and its place within that part.

    Parameters
    ----------
    values, places : those of `reordered`.
    ordered, within : (N, d) and (N,) int32, written.
    """
    n_parts = -(-len(ordered) // size)
    ends = size * np.arange(n_parts)  # of what each part has so far
    for panel in panels(len(ordered)):
        parts, inside = np.divmod(places[panel], size)
        rows = values[panel]
        order, offsets = group_by(parts, n_parts)
        for part in np.flatnonzero(np.diff(offsets)):
            chosen = order[offsets[part] : offsets[part + 1]]
            target = slice(ends[part], ends[part] + len(chosen))
            ordered[target], within[target] = rows[chosen], inside[chosen]
            ends[part] = target.stop


def embedding_memory(sizes: Sizes) -> Memory:
    """Return what `write_embedding` takes: the embedding and rows, in work and in input order."""
    both = 2 * array("float64", sizes.dimensions.n_points, sizes.params.n_components + 1)
    return Memory(steps={"writing": Memory(points={"embedding and rows, in work and in input order": both})})


def pieces_read(sizes: Sizes) -> Terms:
    """Return what a stage takes that reads in which piece of a graph each point is."""
    return {"piece of each point": array("int64", sizes.dimensions.n_points)} if sizes.params.may_fall_apart else {}


def over_landmarks(
    task: StageTask, coordinates: np.ndarray, empty: Callable[[tuple[int, ...], DTypeLike], Rows]
) -> Rows:
    """Return Z times the coordinates (L, d) of the landmarks: (N, d) float64, in work order, in what `empty` makes."""
    stored = stored_landmark_weights(task.inputs)
    vectors = empty((task.dimensions.n_points, coordinates.shape[1]), np.float64)
    for block in range(task.dimensions.n_blocks):
        weights = stored.read_matrix(block, len(coordinates))
        vectors[slice(*task.dimensions.rows(block))] = weights @ coordinates
    return vectors


def in_input_order(task: StageTask, positions: np.ndarray, empty: Empty = np.empty) -> np.ndarray:
    """Return positions (N, d) of the order that a stage works in, in input order."""
    if StoredWorkPoints.STAGE not in task.inputs:
        return positions
    input_rows = task.stored(StoredWorkPoints).input_rows.read(empty)
    return reordered(positions, input_rows, empty)


def create_embedding(task: StageTask, described: ArrayDescription) -> None:
    """Create the array (N, d) of an embedding whose blocks tasks write."""
    task.output.create(task.dimensions.n_points, [described.sized(task.params.n_components)])


def write_solution(
    stored: StoredLandmarkCoordinates,
    eigenvalues: np.ndarray,
    vectors: np.ndarray,
    further: Arrays = MappingProxyType({}),
) -> None:
    """Write the eigenvalues (d,), the landmarks' coordinates (L, d), and further arrays, unless they are stored."""
    if not stored.group.committed(stored.SOLVED):
        arrays = {type(stored).eigenvalues: eigenvalues, type(stored).vectors: vectors, **further}
        stored.group.write_whole(arrays, stored.SOLVED)


def write_over_landmarks(context: StageContext, stored: StoredLandmarkCoordinates) -> None:
    """Write the embedding of all points, Z times the stored coordinates of the landmarks."""
    empty = context.workspace.empty
    write_embedding(context, type(stored).embedding, over_landmarks(context.task, stored.vectors.read(), empty), empty)


def write_embedding(
    context: StageContext,
    described: ArrayDescription,
    positions: np.ndarray,
    empty: Empty = np.empty,
    others: Arrays = MappingProxyType({}),
) -> None:
    """Write positions in input order, by blocks, from this process.

    Parameters
    ----------
    positions : (N, d) float64, in work order
    empty : makes the array (N, d) in input order: in memory, or in a mapped file
    others : row arrays (N, ...) that are written with them, in the order that the stage works in
    """
    write_rows(context, {described: in_input_order(context.task, positions, empty), **others})
