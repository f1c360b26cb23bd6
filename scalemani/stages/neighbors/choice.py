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

    `seconds` are by method, without leaves of sparse points. Where a function compares rows, they alone choose, and
    there is no `difficulty`.
    """

    resolved: str
    recall: float
    difficulty: Difficulty | None
    seconds: dict[str, float]

    @property
    def is_noted(self) -> bool:
        """Whether a run says what was chosen, and why: where it is not the usual search of points with coordinates."""
        return self.difficulty is None or self.difficulty.hard

    @property
    def text(self) -> str:
        """The note for users."""
        takes = ", ".join(f"{method} {seconds:.3g}" for method, seconds in self.seconds.items())
        if self.difficulty is None:
            return f"neighbors.method=auto is {self.resolved}: predicted processor seconds of the search: {takes}"
        retained, dimension = self.difficulty
        short = f"; cells may miss the requested recall of {self.recall}, neighbors.method=exact does not"
        return (
            f"neighbors.method=auto is {self.resolved}: sketches keep {retained:.2f} of the neighbours in a sample, "
            f"whose intrinsic dimension is {dimension:.0f}; predicted processor seconds of the search: {takes}"
            + short
            * (self.difficulty.hard and self.resolved == CELLS)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what a store holds."""
        return {**asdict(self), "difficulty": self.difficulty and self.difficulty._asdict()}


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


def choose_compared_search(sizes: Sizes) -> SearchChoice:
    """Return what finds the neighbours of points that a function compares: leaves, or all points where these take less.

    Seconds are those of a function that is quick; what any other takes more, it takes in both.
    """
    seconds = {"exact": exact_seconds(sizes), "leaves": leaves_seconds(sizes)}
    return SearchChoice(min(seconds, key=lambda method: seconds[method]), sizes.params.neighbors.recall, None, seconds)
