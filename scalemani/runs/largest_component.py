"""The largest component of a graph that falls apart, embedded alone: its points, as the source of a run of their own.

A run that was told to keep the largest component computes the graph of all points, and where that has several
components, goes on with a plan of the points of the largest one: their digest gives it keys of its own in the same
store. Nothing is stored for the other points; `input_rows` says to which row of the points a row of a result belongs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from scalemani.memory.kept import gather_rows
from scalemani.runs.plan import Plan
from scalemani.stages.components import KEPT_ROWS
from scalemani.store.groups import StageGroup
from scalemani.store.run_store import RunStore

STAGE = "components"


@dataclass(frozen=True)
class Within:
    """Points of which one component was kept: how many they are, in which blocks, and the key of their components."""

    n_points: int
    block_rows: int
    components: str

    def rows(self, store: RunStore) -> np.ndarray:
        """Return the rows (M,) of the kept component, ascending."""
        return store.group(STAGE, self.components, self.block_rows).read(KEPT_ROWS)


class Component:
    """The points of a component, read from the stage that holds all points: a source like any other."""

    preferred_rows = None
    sequential = False

    def __init__(self, points: StageGroup, rows: np.ndarray, description: str) -> None:
        array = points.array("points")
        self.shape = (len(rows), int(array.shape[1]))
        self.dtype = np.dtype(array.dtype)
        self.description = description
        self._points, self._rows = points, rows

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the component: (stop - start, D)."""
        return gather_rows(self._points, "points", self._rows[start:stop], 0)


def largest_component(plan: Plan) -> Component | None:
    """Return the largest component where a plan's graph is known to fall apart and only that is wanted."""
    if not any(planned.stage.name == STAGE for planned in plan.stages):
        return None
    group = plan.planned(STAGE).group
    if not group.complete or not group.has(KEPT_ROWS):
        return None
    rows = group.read(KEPT_ROWS)
    description = f"the largest component, {len(rows)} of {plan.dimensions.n_points} points"
    return Component(plan.planned("points").group, rows, description)


def within(plan: Plan) -> tuple[dict[str, Any], ...]:
    """Return what the plan of a component of a plan's points says of where these come from."""
    known = Within(plan.dimensions.n_points, plan.dimensions.block_rows, plan.planned(STAGE).key)
    return (*plan.within, asdict(known))


def input_rows(store: RunStore, chain: Sequence[Within]) -> np.ndarray | None:
    """Return the rows (M,) of the input that a component (of a component ...) has; None where nothing was left out."""
    rows: np.ndarray | None = None
    for one in chain:
        kept = one.rows(store)
        rows = kept if rows is None else rows[kept]
    return rows
