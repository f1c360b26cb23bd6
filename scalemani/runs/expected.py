"""About how many seconds the stages of a run take, before they run: what they are to each other is what counts."""

from collections.abc import Sequence
from typing import NamedTuple

from scalemani.runs.plan import Plan, PlannedStage
from scalemani.stages.neighbors.counts import exact_seconds


class Usual(NamedTuple):
    """Seconds of a stage on two processors: of few points, of a million, the power of their number, of compiling."""

    least: float
    of_million: float
    power: float = 1.0
    compiling: float = 0.0


# Digits of 784 bytes. A descent makes fewer iterations the more points there are.
USUAL = {
    "points": Usual(0.02, 2.0),
    "partition": Usual(0.2, 7.0, compiling=2.6),
    "work_points": Usual(0.03, 5.5, compiling=0.1),
    "neighbors": Usual(0.2, 20.0, compiling=1.1),
    "affinities": Usual(0.03, 2.0, compiling=0.8),
    "components": Usual(0.01, 0.6, compiling=0.3),
    "symmetric_affinities": Usual(0.04, 5.0, compiling=0.7),
    "landmarks": Usual(0.12, 1.5, compiling=1.8),
    "coarse_graphs": Usual(0.03, 6.0, compiling=0.6),
    "coarse_embedding": Usual(0.08, 3.5, compiling=1.0),
    "embedding": Usual(0.06, 3.0, compiling=0.5),
    "layout": Usual(0.0, 36.0, power=0.72, compiling=4.5),
}
OTHER = Usual(0.1, 3.0)
PROCESSORS = 2  # that the numbers above were measured with


def compile_seconds(stages: Sequence[PlannedStage]) -> float:
    """Return about how long stages compile where nothing is compiled yet."""
    return sum(USUAL.get(planned.stage.name, OTHER).compiling for planned in stages)


def expected_seconds(plan: Plan, stages: Sequence[PlannedStage], compiling: bool) -> dict[str, float]:
    """Return about how long each of some stages takes, by its name, with what it compiles if it has to."""
    millions, found = plan.dimensions.n_points / 1e6, {}
    for planned in stages:
        name = planned.stage.name
        usual = USUAL.get(name, OTHER)
        growing = usual.of_million * millions**usual.power
        predicted = search_seconds(plan) if name == "neighbors" else None
        found[name] = usual.least + compiling * usual.compiling + (growing if predicted is None else predicted)
    return found


def search_seconds(plan: Plan) -> float | None:
    """Return the predicted seconds of the search for neighbours; None where no sample of the points says any."""
    choice, method = plan.outline.search, plan.params.neighbors.method_for(plan.dimensions.n_points)
    if choice is not None:
        return choice.seconds[choice.resolved] / PROCESSORS
    return exact_seconds(plan.sizes) / PROCESSORS if method == "exact" else None
