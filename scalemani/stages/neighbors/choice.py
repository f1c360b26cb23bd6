"""Which search for neighbours `auto` is: cells, leaves or exact search, by the points and what each takes."""

from dataclasses import asdict, dataclass
from typing import Any

from scalemani.engine.sizes import Sizes
from scalemani.kernels.neighbors.difficulty import Difficulty, measure_difficulty
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import map_rows
from scalemani.stages.neighbors.counts import cells_seconds, exact_seconds, leaves_seconds

CELLS = "partition"
WORTH = 1.25  # times the seconds of cells that may miss the target: what exact search of sparse points may take


@dataclass(frozen=True)
class SearchChoice:
    """The search that `auto` is resolved to, what was measured on a sample, and predicted processor seconds.

    `seconds` are by method, without leaves of sparse points.
    """

    resolved: str
    recall: float
    difficulty: Difficulty
    seconds: dict[str, float]

    @property
    def text(self) -> str:
        """The note for users."""
        retained, dimension = self.difficulty
        takes = ", ".join(f"{method} {seconds:.3g}" for method, seconds in self.seconds.items())
        short = f"; cells may miss the requested recall of {self.recall}, neighbors.method=exact does not"
        return (
            f"neighbors.method=auto is {self.resolved}: sketches keep {retained:.2f} of the neighbours in a sample, "
            f"whose intrinsic dimension is {dimension:.0f}; predicted processor seconds of the search: {takes}"
            + short
            * (self.difficulty.hard and self.resolved == CELLS)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what a store holds."""
        return {**asdict(self), "difficulty": self.difficulty._asdict()}


def choose_search(sample: Points, sizes: Sizes) -> SearchChoice:
    """Return what finds the neighbours of points: cells, or what is quicker where cells of sketches lose them.

    Leaves take dense points alone.

    Parameters
    ----------
    sample : (m, D), points as they were passed
    """
    params, sparse = sizes.params, sizes.dimensions.sparse
    difficulty = measure_difficulty(map_rows(sample, params.points.metric), params.partition.sketch_dimensions)
    seconds = {CELLS: cells_seconds(sizes, difficulty), "exact": exact_seconds(sizes)}
    if not sparse:
        seconds["leaves"] = leaves_seconds(sizes)
    resolved = CELLS
    if difficulty.hard:
        other, worth = (CELLS, WORTH) if sparse else ("leaves", 1.0)
        resolved = "exact" if seconds["exact"] <= worth * seconds[other] else other
    return SearchChoice(resolved, params.neighbors.recall, difficulty, seconds)
