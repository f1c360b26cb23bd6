"""Every stage by its name, what a module must have to be one, and the arrays that each stage stores.

The stages are those that the routes name. A stage's name is its module's, in the package that the stage declares:
`STAGES["neighbors"]` is `scalemani/stages/neighbors`. A module is loaded when its stage is first needed.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from scalemani.config.params import Resolved
from scalemani.config.routes import PACKAGES
from scalemani.config.stages import Stage
from scalemani.engine.context import StageContext, Steps
from scalemani.engine.memory_model import Disk, Memory
from scalemani.engine.reading import StoredStage
from scalemani.engine.sizes import Sizes, written
from scalemani.stages.arrays import affinities, embeddings, graph, landmarks, points
from scalemani.store.schema import ArrayDescription


def declared_in(modules: Iterable[ModuleType]) -> dict[str, type[StoredStage]]:
    """Return the stages that modules describe the arrays of, by their names."""
    return {
        stored.STAGE: stored
        for module in modules
        for stored in vars(module).values()
        if isinstance(stored, type) and issubclass(stored, StoredStage) and "STAGE" in vars(stored)
    }


SHARED = Stage("", ()).package  # the package of stages that several methods share
BY_STAGE = declared_in((affinities, embeddings, graph, landmarks, points))


def of_method(stage: str) -> type[StoredStage] | None:
    """Return the reader of the groups of a stage that a method declares; None for other stages."""
    package = PACKAGES.get(stage, SHARED)
    return None if package == SHARED else declared_in([import_module(f"{package}.{stage}")]).get(stage)


def arrays_of(stage: str) -> tuple[ArrayDescription, ...]:
    """Return the arrays that a stage stores; none where it has certificates alone."""
    stored = BY_STAGE.get(stage) or of_method(stage)
    return () if stored is None else stored.ARRAYS


@dataclass(frozen=True)
class StageCode:
    """What a stage takes of memory and of the disk, at most, and how it is run; `run` returns its certificates.

    `graphs` yields the graphs of tasks that it has Dask compute, as far as they follow from what is planned.

    A method's stage may bound the number of components by the survey of the points, refuse parameters before work
    starts, and take landmarks that are points alone.
    """

    memory: Callable[[Sizes], Memory]
    disk: Callable[[Sizes], Disk]
    run: Callable[[StageContext], dict[str, Any]]
    graphs: Callable[[StageContext], Steps]
    most_components: Callable[[Any], int | None] | None = None
    check_parameters: Callable[[Resolved], None] | None = None
    landmarks_are_points: bool = False


@functools.cache
def stage_code(name: str) -> StageCode:
    """Return the functions of the module of a stage; one without `disk` writes the arrays that it declares."""
    module = import_module(f"{PACKAGES[name]}.{name}")
    disk = getattr(module, "disk", functools.partial(declared, name))
    most, check = getattr(module, "most_components", None), getattr(module, "check_parameters", None)
    graphs = getattr(module, "graphs", unknown_graphs)
    return StageCode(
        module.memory, disk, module.run, graphs, most, check, getattr(module, "LANDMARKS_ARE_POINTS", False)
    )


def unknown_graphs(context: StageContext) -> Steps:
    """Yield that the graphs of a stage are not known before it runs."""
    yield "its tasks are known once it runs"


def declared(name: str, sizes: Sizes) -> Disk:
    """Return what the arrays that a stage declares take."""
    return Disk(written(arrays_of(name), sizes))


class StageTable(Mapping[str, StageCode]):
    """The stages by their names, in the order of the routes."""

    def __getitem__(self, name: str) -> StageCode:
        return stage_code(name)

    def __iter__(self) -> Iterator[str]:
        return iter(PACKAGES)

    def __len__(self) -> int:
        return len(PACKAGES)


STAGES = StageTable()
