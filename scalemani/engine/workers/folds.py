"""Parts that are combined where they are computed, so that a driver is sent few of them and holds fewer."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

MOST_PARTS = 512  # that reach the driver: more than the tasks that most clusters run at once
Part = TypeVar("Part")


class OrderedFold:
    """Parts combined in the order of their units, whatever the order in which they come."""

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._early: dict[int, Any] = {}
        self._next = 0
        self.total: Any = None

    def add(self, index: int, part: Any) -> None:
        """Take the part of a unit; it is kept until those before it are there."""
        self._early[index] = part
        while self._next in self._early:
            following = self._early.pop(self._next)
            self.total = following if self._next == 0 else self._combine(self.total, following)
            self._next += 1


def map_graph(name: str, function: Callable[[Any], Any], units: Sequence[Any]) -> dict[Any, Any]:
    """Return the graph of function(unit) of every unit, a task each."""
    # Of tasks that need nothing, Dask begins the one with the last key.
    return {
        (name, f"{len(units) - place:09d}"): (functools.partial(function, unit),) for place, unit in enumerate(units)
    }


def fold_graph(
    name: str, function: Callable[[Any], Any], combine: Callable[[Any, Any], Any], units: Sequence[Any]
) -> dict[Any, Any]:
    """Return the graph of function(unit) of all units, combined in their order; the total is the last key.

    Dask computes parts in the order in which they are combined: few are held.
    """
    graph: dict[Any, Any] = {(name, place): (functools.partial(function, unit),) for place, unit in enumerate(units)}
    graph[f"{name}-total", 0] = name, 0
    graph |= {
        (f"{name}-total", place): (combine, (f"{name}-total", place - 1), (name, place))
        for place in range(1, len(units))
    }
    return graph


def runs_of(count: int, together: int = 1) -> list[range]:
    """Return the numbers below `count` as at most MOST_PARTS runs, of `together` at least: a function of both alone."""
    width = max(together, -(-count // MOST_PARTS))
    return [range(start, min(start + width, count)) for start in range(0, count, width)]


def folded(
    function: Callable[[Any, int], Part], combine: Callable[[Part, Part], Part], task: Any, run: Sequence[int]
) -> Part:
    """Return function(task, number) of the numbers of a run, combined in order."""
    return functools.reduce(combine, (function(task, number) for number in run))
