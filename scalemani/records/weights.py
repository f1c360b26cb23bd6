"""How many equal points each point stands for."""

from collections.abc import Mapping
from typing import ClassVar

from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.groups import StageGroup
from scalemani.store.schema import ArrayDescription


class StoredWeights(StoredStage):
    """How many equal points each point stands for, in work order; computed where points have weights."""

    STAGE: ClassVar = "weights"
    WEIGHTS: ClassVar = ArrayDescription(
        STAGE, "weights", "rows", ("point",), "float64", "1", "the weight of each point, at least one"
    )
    ARRAYS: ClassVar = (WEIGHTS,)

    @property
    def weights(self) -> ArrayReader:
        """The weight (N,) float64 of each point, in work order."""
        return self.reader(self.WEIGHTS)


def stored_weights(inputs: Mapping[str, StageGroup]) -> ArrayReader | None:
    """Return the weights (N,) float64 of the points in work order, from a stage's inputs; None where all are one."""
    return StoredWeights(inputs[StoredWeights.STAGE]).weights if StoredWeights.STAGE in inputs else None
