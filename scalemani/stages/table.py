"""Every stage by its name, and what a module must have to be one.

The stages are those that the routes name. A stage's name is its module's: `STAGES["neighbors"]` is
`scalemani/stages/neighbors`.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from scalemani.config.routes import ROUTES
from scalemani.engine.needs import Held, Written
from scalemani.engine.sizes import Sizes, written
from scalemani.engine.work import StageWork
from scalemani.stages.arrays.catalogue import stored_stage


@dataclass(frozen=True)
class StageCode:
    """What a stage holds in memory, what it writes, at most, and how it is run; `run` returns its certificates."""

    memory: Callable[[Sizes], list[Held]]
    disk: Callable[[Sizes], list[Written]]
    run: Callable[[StageWork], dict[str, Any]]


def stage_code(name: str) -> StageCode:
    """Return the functions of the module of a stage; one without `disk` writes the arrays that it declares."""
    module = import_module(f"{__package__}.{name}")
    disk = getattr(module, "disk", functools.partial(declared, name))
    return StageCode(module.memory, disk, module.run)


def declared(name: str, sizes: Sizes) -> list[Written]:
    """List the arrays that a stage declares."""
    return written(stored_stage(name).ARRAYS, sizes)


STAGES = {stage.name: stage_code(stage.name) for stages in ROUTES.values() for stage in stages}
