"""All arrays of all stages."""

from collections.abc import Iterable
from types import ModuleType

from scalemani.config.methods import part_of
from scalemani.config.routes import PACKAGES
from scalemani.engine.reading import StoredStage
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


BY_STAGE = declared_in((affinities, embeddings, graph, landmarks, points))


def of_method(stage: str) -> type[StoredStage] | None:
    """Return the reader of the groups of a method's own stage; None for other stages."""
    module = part_of(PACKAGES.get(stage, ""), stage)
    return None if module is None else declared_in([module]).get(stage)


def arrays_of(stage: str) -> tuple[ArrayDescription, ...]:
    """Return the arrays that a stage stores; none where it has certificates alone."""
    stored = BY_STAGE.get(stage) or of_method(stage)
    return () if stored is None else stored.ARRAYS
