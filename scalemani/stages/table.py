"""Every stage by its name, and what a module must have to be one.

The stages are those that the routes name. A stage's name is its module's, in the package that the stage declares:
`STAGES["neighbors"]` is `scalemani/stages/neighbors`. A module is loaded when its stage is first needed.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from scalemani.config.routes import PACKAGES
from scalemani.engine.needs import Held, Written
from scalemani.engine.sizes import Sizes, written
from scalemani.engine.work import StageWork
from scalemani.stages.arrays.catalogue import arrays_of


@dataclass(frozen=True)
class StageCode:
    """What a stage holds in memory, what it writes, at most, and how it is run; `run` returns its certificates."""

    memory: Callable[[Sizes], list[Held]]
    disk: Callable[[Sizes], list[Written]]
    run: Callable[[StageWork], dict[str, Any]]


@functools.cache
def stage_code(name: str) -> StageCode:
    """Return the functions of the module of a stage; one without `disk` writes the arrays that it declares."""
    module = import_module(f"{PACKAGES[name]}.{name}")
    disk = getattr(module, "disk", functools.partial(declared, name))
    return StageCode(module.memory, disk, module.run)


def declared(name: str, sizes: Sizes) -> list[Written]:
    """List the arrays that a stage declares."""
    return written(arrays_of(name), sizes)


class StageTable(Mapping[str, StageCode]):
    """The stages by their names, in the order of the routes."""

    def __getitem__(self, name: str) -> StageCode:
        return stage_code(name)

    def __iter__(self) -> Iterator[str]:
        return iter(PACKAGES)

    def __len__(self) -> int:
        return len(PACKAGES)


STAGES = StageTable()
