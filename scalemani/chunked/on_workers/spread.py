"""Panels spread over the workers: what runs functions on them, and makes tall blocks of panels that are objects."""

import contextlib
import functools
import itertools
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from scalemani.chunked.on_workers.rows import FOLDER, Place, StoredPanels
from scalemani.chunked.work import PARTS_LEDGER, StageWork
from scalemani.errors import StoreError
from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.tall import DistantRows, Tall, columns_of
from scalemani.kernels.arrays.workspace import Empty, Workspace
from scalemani.store.groups import block_unit
from scalemani.workers.executor import write_ledger
from scalemani.workers.folds import runs_of

# Of a graph in panels on workers. Steps over panels cost a cluster of few workers many times what the driver takes by
# itself: at a million points and two workers two minutes for six seconds. More points than these are too many for the
# memory of one machine: W, coarse graphs and vectors take up to 1.6 kB a point.
SPREAD_ROWS = 2**24
OVER = "over_"  # in the names of steps in the ledger of parts
MOST_IN_PANEL = 2**23  # nonzeros of a coarse graph, whose rows fill up: 128 a row, 300 MB with their numbers


class SpreadWorkspace(Workspace):
    """A workspace whose large arrays are panels of objects: none is ever written twice."""

    def large(self, shape: tuple[int, ...], dtype: DTypeLike) -> Tall:
        """Return rows that are to be written by panels."""
        return self.empty(shape, dtype)

    def replacing(self, values: Tall) -> Tall:
        """Return other rows of the same shape: a task that is given twice reads what it read before."""
        return self.large(values.shape, values.dtype)

    def compact(self, values: Tall) -> Tall:
        """Return rows that lie next to each other where they are read."""
        return columns_of(values, slice(None), compact=True)


class Spread:
    """A stage's panels on the workers.

    Parameters
    ----------
    work : the stage.
    """

    def __init__(self, work: StageWork) -> None:
        self.work = work
        self.place = Place(work.task.output.root, work.task.output.path, work.task.cache_bytes)
        self._name, self._numbers, self._steps = uuid.uuid4().hex[:12], itertools.count(), itertools.count()
        self._removals: dict[str, weakref.finalize] = {}
        self.workspace = SpreadWorkspace(self.over, cast(Empty, self.rows))

    def over(self, function: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        """Return function(unit) of panels, or of tuples that begin with one, in order: many of them in one task.

        What the function refers to has to be small and picklable, and so has what it returns.
        """
        step = f"{OVER}{next(self._steps)}"
        runs = [(run.start, [units[number] for number in run]) for run in runs_of(len(units))]
        part = functools.partial(over_run, function, self.work.task.stage, f"{self.place.path}/", step)
        parts = self.work.executor.spread(part, runs, self.work.batch)
        return list(itertools.chain.from_iterable(parts))

    def rows(self, shape: tuple[int, ...], dtype: DTypeLike) -> DistantRows:
        """Return rows that are to be written; their objects go with the last reference to them on the driver."""
        made = StoredPanels(self.new_name(), shape, np.dtype(dtype), self.place)
        self.remove_with(made, made.name)
        return made

    def keep(self, name: str) -> None:
        """Leave the objects of a name where they are until they are removed."""
        if name in self._removals:
            self._removals.pop(name).detach()

    def remove(self, name: str) -> None:
        """Remove the objects of a name; what cannot be removed goes when the stage ends."""
        self._removals.pop(name, None)
        with contextlib.suppress(StoreError):
            self.place.objects.delete_below(f"{FOLDER}/{name}")

    def new_name(self) -> str:
        """Return a name that no other objects of the stage have, of this process or of one before it."""
        return f"{self._name}-{next(self._numbers)}"

    def remove_with(self, owner: object, name: str) -> None:
        """Have the objects of a name removed once nothing refers to their owner."""
        self._removals[name] = weakref.finalize(owner, self.remove, name)
        self._removals[name].atexit = False  # a run that ends early goes on from them

    def put(self, values: np.ndarray) -> DistantRows:
        """Write an array of the driver as panels."""
        made = self.rows(values.shape, values.dtype)

        def write(panel: slice) -> None:
            made.write(panel, values[panel])

        self.work.executor.over(write, panels(len(values)))
        return made

    def fetch(self, rows: DistantRows, out: np.ndarray) -> np.ndarray:
        """Return all rows, read into an array of the driver."""

        def read(panel: slice) -> None:
            out[panel] = rows[panel]

        self.work.executor.over(read, panels(len(rows)))
        return out


def is_spread(n_rows: int) -> bool:
    """Return whether a graph of so many rows is worked on by panels on workers where there are some."""
    return n_rows > SPREAD_ROWS


def n_spread_levels(levels: Sequence[tuple[int, int]]) -> int:
    """Return how many coarse graphs are on workers, from their nodes and nonzeros: the first ones, never the last."""
    for number, (nodes, nonzeros) in enumerate(levels[:-1]):
        if not is_spread(nodes) or nonzeros / len(panels(nodes)) > MOST_IN_PANEL:
            return number
    return len(levels) - 1


def over_run(
    function: Callable[[Any], Any], stage: str, path: str, step: str, run: tuple[int, Sequence[Any]]
) -> list[Any]:
    """Return function(unit) of the units of a run.

    Parameters
    ----------
    function : of a unit.
    stage, path, step : what the ledger calls it.
    run : the number of its first unit, and the units.
    """
    with write_ledger(stage, path + block_unit(run[0], step), PARTS_LEDGER):
        return [function(unit) for unit in run[1]]
