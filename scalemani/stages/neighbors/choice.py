"""Which search for neighbours `auto` is: cells, leaves or exact search, by the points and what each takes."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from scalemani.engine.sizes import Sizes
from scalemani.kernels.neighbors.difficulty import Difficulty, measure_difficulty
from scalemani.kernels.rows.metrics import map_rows
from scalemani.stages.neighbors.counts import exact_seconds, leaves_seconds


@dataclass(frozen=True)
class SearchChoice:
    """The search that `auto` is resolved to, what was measured on a sample, and predicted processor seconds."""

    resolved: str
    difficulty: Difficulty
    exact_seconds: float
    leaves_seconds: float

    @property
    def text(self) -> str:
        """What users are told of it."""
        kept, dimension = self.difficulty
        return (
            f"neighbors.method=auto is {self.resolved}: sketches keep {kept:.2f} of the neighbours in a sample, "
            f"whose intrinsic dimension is {dimension:.0f}; leaves take some {self.leaves_seconds:.3g} processor "
            f"seconds, exact search {self.exact_seconds:.3g}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what a store keeps."""
        return {**asdict(self), "difficulty": self.difficulty._asdict()}


def choose_search(sample: np.ndarray, sizes: Sizes) -> SearchChoice | None:
    """Return what finds the neighbours of points that cells of sketches lose; None where these find them.

    Parameters
    ----------
    sample : (m, D), points as they were given
    """
    params = sizes.params
    found = measure_difficulty(map_rows(sample, params.points.metric), params.partition.sketch_dimensions)
    if not found.hard:
        return None
    exact, leaves = exact_seconds(sizes), leaves_seconds(sizes)
    return SearchChoice("exact" if exact <= leaves else "leaves", found, exact, leaves)
