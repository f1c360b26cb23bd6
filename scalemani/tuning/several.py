"""Several runs over the same points in one store: the points are surveyed once, objects checked once, stages shared."""

from dataclasses import dataclass, field

from scalemani.errors import ConfigError, DataError, DiskSpaceError, MemoryBudgetError, NumericalError
from scalemani.params import Parameters
from scalemani.runs.incoming.following import follow_source
from scalemani.runs.incoming.merging import merge_duplicates
from scalemani.runs.opened import Run
from scalemani.runs.outline import Outline, outline_run
from scalemani.runs.plan import make_plan
from scalemani.runs.walk import WritableRun, run_plans
from scalemani.sources import PointsSource, map_points
from scalemani.survey import Survey, survey
from scalemani.workers.executor import Executor

# What is wrong with one run and not with those beside it; of a store or a cluster all of them would fail.
OF_ONE_RUN = (ConfigError, DataError, MemoryBudgetError, DiskSpaceError, NumericalError)


@dataclass
class SurveyedPoints:
    """Points that several runs take, each in its metric; they are read once for each, and each merging of equal rows.

    `source` (N, D); `block_rows` as in `run`.
    """

    source: PointsSource
    executor: Executor
    block_rows: int | None = None
    _seen: dict[object, tuple[PointsSource, Survey]] = field(default_factory=dict)

    def outline(self, method: str, params: Parameters) -> tuple[Outline, PointsSource]:
        """Return what a run of these points computes, and the points as it takes them; errors are those of `run`."""
        asked, source = follow_source(params, map_points(params.points.metric, self.source))
        known = params.points.metric, params.duplicates.tolerance, source.shape
        if known not in self._seen:
            source = merge_duplicates(source, params, self.executor, self.block_rows)
            self._seen[known] = source, survey(source, self.executor, self.block_rows)
        source, surveyed = self._seen[known]
        return outline_run(method, asked, surveyed), source


def run_outlined(target: WritableRun, outline: Outline, source: PointsSource) -> Run:
    """Compute what is missing of one of several runs and return it; errors are those of `run`."""
    plan = make_plan(target.store, outline, target.executor)
    plan.check()
    for note in outline.notes:
        target.executor.progress.warn(note)
    run_plans(target, plan, source)
    return Run(target.store.root)
