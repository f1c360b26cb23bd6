"""Tasks as one Dask graph: a layer for each step, what waits for what, and sums as trees.

A graph is data. `as_dask` makes of it what every scheduler of Dask's takes, and draws.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

SPLIT_EVERY = 4  # parts that one task of a tree combines, as in Dask's own reductions

Key = tuple[str, str]  # a layer, and a unit of it as messages and dashboards name it
Combine = Callable[[Any, Any], Any]
UnitFunction = Callable[[Any], Any]


class Task(NamedTuple):
    """What computes a unit, or combines results; `needs` are the tasks that are done before it."""

    unit: Any
    needs: tuple[Key, ...]


@dataclass(frozen=True)
class Layer:
    """The tasks of one step: function(unit) of each, or function(one, other) over the results of what each needs.

    `rows` gives the first row of a block and the one after its last, where units are blocks or block ranges.
    """

    function: Callable[..., Any]
    combines: bool
    tasks: Mapping[Key, Task]
    rows: Callable[[int], tuple[int, int]] | None = None

    def name_of(self, key: Key) -> str:
        """Return what a task is called in messages."""
        return f"sum {key[1]}" if self.combines else f"block {unit_name(self.tasks[key].unit, self.rows)}"


class Calls(NamedTuple):
    """How a scheduler calls the functions of a graph, and the annotations of the tasks of units.

    `unit` returns of a function what is called with a unit and with the results of the tasks that it had to wait for,
    `combine` what is called with all the results that are combined.
    """

    unit: Callable[[UnitFunction], Callable[..., Any]]
    combine: Callable[[Combine], Callable[..., Any]]
    annotations: Mapping[str, Any] = {}


@dataclass
class TaskGraph:
    """Layers of tasks that are computed together, named after run and stage; each needs tasks of those before it."""

    name: str
    layers: dict[str, Layer] = field(default_factory=dict)

    def units(
        self,
        function: UnitFunction,
        units: Iterable[Any],
        step: str = "",
        needs: Callable[[Any], Iterable[Key]] | None = None,
        rows: Callable[[int], tuple[int, int]] | None = None,
    ) -> list[Key]:
        """Add function(unit) of every unit; return their keys.

        Parameters
        ----------
        units : numbers, block ranges, or lazy values of Dask, which are computed first
        needs : the keys of the tasks that are done before that of a unit, which takes nothing of their results
        rows : as of `Layer`
        """
        layer, tasks = self._unused_name(step), dict[Key, Task]()
        for place, unit in enumerate(units):
            key = layer, str(place) if isinstance(unit, Delayed) else unit_name(unit)
            tasks[key if key not in tasks else (layer, f"{key[1]}, {place}")] = Task(
                unit, tuple(needs(unit)) if needs else ()
            )
        return self._add(layer, Layer(function, False, tasks, rows))

    def units_in_turn(self, function: UnitFunction, units: Iterable[Any], step: str = "") -> list[Key]:
        """Add function(unit) of every unit, each of which waits for the one before; return their keys."""
        layer, tasks = self._unused_name(step), dict[Key, Task]()
        for place, unit in enumerate(units):
            tasks[layer, str(place)] = Task(unit, ((layer, str(place - 1)),) if place else ())
        return self._add(layer, Layer(function, False, tasks))

    def tree(self, combine: Combine, parts: Sequence[Key]) -> Key | None:
        """Add the tree that combines parts in their order; return the key of its root, None without parts."""
        level = list(parts)
        while len(level) > 1:
            layer = self._unused_name("sum", after=parts[0][0])
            groups = [tuple(level[start : start + SPLIT_EVERY]) for start in range(0, len(level), SPLIT_EVERY)]
            tasks = {(layer, str(place)): Task(None, group) for place, group in enumerate(groups)}
            level = self._add(layer, Layer(combine, True, tasks))
        return level[0] if level else None

    def all_of(self, keys: Sequence[Key]) -> Key | None:
        """Add the tree of what is None once all of some tasks are done; return the key of its root."""
        return self.tree(nothing, keys)

    @property
    def unit_keys(self) -> list[Key]:
        """The keys of all units."""
        return [key for layer in self.layers.values() if not layer.combines for key in layer.tasks]

    @property
    def edges(self) -> set[tuple[Key, Key]]:
        """What needs what: pairs of a task that is done before, and one that waits for it."""
        return {
            (before, key)
            for layer in self.layers.values()
            for key, task in layer.tasks.items()
            for before in task.needs
        }

    @property
    def edges_of_layers(self) -> Counter[tuple[str, str]]:
        """How many edges go from a layer to a layer."""
        return Counter((before[0], key[0]) for before, key in self.edges)

    def without(self, keys: Collection[Key]) -> "TaskGraph":
        """Return the graph without some tasks and all that wait for them."""
        gone, left = set(keys), dict[str, Layer]()
        for name, layer in self.layers.items():
            gone |= {key for key, task in layer.tasks.items() if gone.intersection(task.needs)}
            tasks = {key: task for key, task in layer.tasks.items() if key not in gone}
            left |= {name: replace(layer, tasks=tasks)} if tasks else {}
        return TaskGraph(self.name, left)

    def as_dask(self, calls: Calls, suffix: str = "", known: Mapping[Key, Any] | None = None) -> HighLevelGraph:
        """Return the graph as Dask takes it, keys with a suffix; of some tasks what they would return is `known`."""
        layers, dependencies, others = dict[str, MaterializedLayer](), dict[str, set[str]](), list[HighLevelGraph]()
        for name, layer in self.layers.items():
            of_dask = functools.partial(task_of_dask, (calls.combine if layer.combines else calls.unit)(layer.function))
            tasks = {
                suffixed(key, suffix): (functools.partial(known.__getitem__, key),)
                if known and key in known
                else of_dask(layer, task, suffix)
                for key, task in layer.tasks.items()
            }
            layers[name + suffix] = MaterializedLayer(tasks, None if layer.combines else dict(calls.annotations))
            before = {other for task in layer.tasks.values() for other, _ in task.needs} - {name}
            dependencies[name + suffix] = {other + suffix for other in before}
            lazy = [task.unit for task in layer.tasks.values() if isinstance(task.unit, Delayed)]
            dependencies[name + suffix].update(*(value.__dask_layers__() for value in lazy))
            others += [value.dask for value in lazy]
        return HighLevelGraph.merge(*others, HighLevelGraph(layers, dependencies))

    def _unused_name(self, step: str, after: str = "") -> str:
        """Return a name for another layer: that of the graph, or of a layer, and the step.

        Dask's pages group tasks by what precedes a dash with a number behind it: levels of a tree are one group.
        """
        name = ".".join(filter(None, [after or self.name, step]))
        return name if name not in self.layers else f"{name}-{len(self.layers)}"

    def _add(self, name: str, layer: Layer) -> list[Key]:
        self.layers[name] = layer
        return list(layer.tasks)


def task_of_dask(call: Callable[..., Any], layer: Layer, task: Task, suffix: str) -> tuple[Any, ...]:
    """Return a task as Dask describes it: a function and its arguments, among which keys stand for results."""
    needs = [suffixed(key, suffix) for key in task.needs]
    if isinstance(task.unit, Delayed):
        return call, task.unit.key, *needs
    return (call, *needs) if layer.combines else (functools.partial(call, task.unit), *needs)


def suffixed(key: Key, suffix: str) -> Key:
    """Return the key of a task in a graph whose layers have a suffix."""
    return key[0] + suffix, key[1]


def unit_name(unit: Any, rows: Callable[[int], tuple[int, int]] | None = None) -> str:
    """Return the number of a block, or the first and last of a block range; with `rows` of blocks, these too."""
    first, last = (unit[0], unit[-1]) if isinstance(unit, list | range) else (unit, unit)
    name = str(first) if first == last else f"{first} to {last}"
    return (
        name
        if rows is None or not isinstance(first, int)
        else f"{name} (rows {rows(first)[0]} to {rows(last)[1] - 1} of its arrays)"
    )


def parts_held(count: int) -> int:
    """Return how many parts of so many are held at once: of each level those that wait, and two sums of a task."""
    levels = max(1, math.ceil(math.log(max(count, 1), SPLIT_EVERY)))
    return min(max(count, 1), levels * (SPLIT_EVERY - 1) + 1) + 2 * (count > 1)


def nothing(one: Any, other: Any) -> None:
    """Return None: what is combined of tasks of which nothing is wanted but that they are done."""
