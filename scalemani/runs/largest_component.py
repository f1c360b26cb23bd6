"""The largest component of a graph that falls apart, embedded alone: its points, as the source of a separate run.

A run that is to embed the largest component computes the graph of all points, and where that has several components,
continues with a plan of the points of the largest one: their digest gives it separate keys in the same store. Nothing
is stored for the other points; `input_rows` says to which row of the points a row of a result belongs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.config.stages import PRECOMPUTED
from scalemani.engine.reading import SparseRowsReader
from scalemani.engine.task import Dimensions
from scalemani.io.sources import NeighborLists, PointsSource
from scalemani.io.sources.neighbor_tables import NeighborTable
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.runs.plan import Plan
from scalemani.stages.arrays.affinities import StoredComponents
from scalemani.stages.arrays.points import StoredPoints
from scalemani.store.run_store import RunStore

STAGE = StoredComponents.STAGE


@dataclass(frozen=True)
class Origin:
    """Points of which a component is selected: how many they are, in which blocks, and the key of their components."""

    n_points: int
    block_rows: int
    components: str

    def rows(self, store: RunStore) -> np.ndarray:
        """Return the rows (M,) of the selected component, ascending."""
        return StoredComponents(store.group(STAGE, self.components, self.block_rows)).kept_rows.read()


class Component(PointsSource):
    """The points of a component, read from the stage that holds all points: a source like any other."""

    def __init__(self, points: StoredPoints, rows: np.ndarray, dimensions: Dimensions, description: str) -> None:
        self.shape = (len(rows), dimensions.n_features)
        self.dtype = np.dtype(dimensions.dtype)
        self.description = description
        self._points, self.rows = points.points, rows
        if isinstance(self._points, SparseRowsReader):
            self.nonzeros = self._points.count(rows)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the component: (stop - start, D)."""
        return dense_rows(self._points.gather(self.rows[start:stop]))

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) of the component of sparse points."""
        return sp.csr_matrix(self._points.gather(self.rows[start:stop]))


class LargestComponent(NamedTuple):
    """The points of the largest component, a source, and their rows (M,), ascending, among all points."""

    points: PointsSource
    rows: np.ndarray


def lists_within(points: StoredPoints, rows: np.ndarray, description: str) -> NeighborLists:
    """Return the neighbour lists of some rows (M,), ascending, among these alone: all as long as the shortest is then.

    Neighbours beyond them are those that affinities do not join.
    """
    stored = points.points.gather(rows)
    k = stored.shape[1] // 2
    numbers = np.searchsorted(rows, stored[:, :k].astype(np.int64))
    inside = rows[np.minimum(numbers, len(rows) - 1)] == stored[:, :k]
    order = np.argsort(~inside, axis=1, kind="stable")[:, : int(inside.sum(axis=1).min())]
    indices, distances = (np.take_along_axis(part, order, axis=1) for part in (numbers, stored[:, k:]))
    return NeighborLists(NeighborTable.of(indices, distances, description))


def largest_component(plan: Plan) -> LargestComponent | None:
    """Return the largest component where a plan's graph is known to fall apart and only that is requested."""
    if not any(planned.stage.name == STAGE for planned in plan.stages):
        return None
    components = StoredComponents(plan.planned(STAGE).group)
    if not components.group.complete or not components.keeps_largest:
        return None
    rows = components.kept_rows.read()
    description = f"the largest component, {len(rows)} of {plan.dimensions.n_points} points"
    points = StoredPoints(plan.planned(StoredPoints.STAGE).group)
    if plan.params.points.metric == PRECOMPUTED:
        return LargestComponent(lists_within(points, rows, description), rows)
    return LargestComponent(Component(points, rows, plan.dimensions, description), rows)


def origins_of(plan: Plan) -> tuple[dict[str, Any], ...]:
    """Return where the points of a component of a plan's points come from, outermost first, as the store holds it."""
    origin = Origin(plan.dimensions.n_points, plan.dimensions.block_rows, plan.planned(STAGE).key)
    return (*plan.outline.origins, asdict(origin))


def input_rows(store: RunStore, origins: Sequence[Origin]) -> np.ndarray | None:
    """Return the rows (M,) of the input that a component (of a component ...) has; None where nothing was left out."""
    rows: np.ndarray | None = None
    for origin in origins:
        selected = origin.rows(store)
        rows = selected if rows is None else rows[selected]
    return rows
