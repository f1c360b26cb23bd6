"""The search over a grid: runs in one store, which share points, graph and Z, each scored when it is there.

Cells whose graphs differ in their number of neighbours alone share the widest of these: each takes the affinities of
its own first columns. A candidate that cannot be run is reported, and the others run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, DiskSpaceError, MemoryBudgetError, NumericalError, ScalemaniError
from scalemani.interfaces.tuning.results import Cell, Stage, Tuning
from scalemani.interfaces.tuning.scores import SCORES, Judge
from scalemani.io.sources import PointsSource, map_points
from scalemani.runs.incoming.computing import computed_once
from scalemani.runs.incoming.following import follow_source
from scalemani.runs.incoming.merging import merge_duplicates
from scalemani.runs.opened import Run
from scalemani.runs.outline import Outline, outline_run
from scalemani.runs.plan import make_plan
from scalemani.runs.survey import Survey, survey
from scalemani.runs.walk import WritableRun, locked_run, run_plans
from scalemani.stages.arrays.affinities import StoredAffinities
from scalemani.store.run_store import RunStore

# What is wrong with one run and not with the others; of a store or a cluster all of them would fail.
OF_ONE_RUN = (ConfigError, DataError, MemoryBudgetError, DiskSpaceError, NumericalError)
OF_ONE_CELL = (*OF_ONE_RUN, np.linalg.LinAlgError)
NEIGHBORS, AFFINITY_NEIGHBORS = "neighbors.n_neighbors", "affinities.n_neighbors"


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


@dataclass(frozen=True)
class Candidate:
    """A cell of a grid: its values by name, the method, and the parameters, or the error of invalid ones."""

    values: Mapping[str, Any]
    method: str
    params: Parameters | ScalemaniError
    computed_as: Mapping[str, int] | None = None


class Prepared(NamedTuple):
    """A candidate that can be run: what it computes, and the points as it takes them."""

    candidate: Candidate
    outline: Outline
    source: PointsSource


def valid_params(candidates: Sequence[Candidate]) -> list[Parameters]:
    """Return the parameters of the candidates that have any.

    Raises the first candidate's error where none has, and ConfigError where they open the points in several ways.
    """
    valid = [one.params for one in candidates if isinstance(one.params, Parameters)]
    if not valid:
        raise next(one.params for one in candidates if isinstance(one.params, ScalemaniError))
    if len({(params.given_instead, params.neighbors.takes_image) for params in valid}) > 1:
        raise ConfigError(
            "affinities, neighbour lists, the pixels of images and points are tuned one at a time: give candidates of "
            "one kind"
        )
    return valid


def search(
    points: SurveyedPoints, root: str | Path, candidates: Sequence[Candidate], scores: Sequence[str], judge: Judge
) -> Tuning:
    """Run every candidate in one store, score it, and make the best one the run that the store opens.

    The first of `scores` ranks. Raises the first candidate's error where none can be run.
    """
    executor, told = points.executor, points.executor.progress
    RunStore(root).check_free()
    with executor.started(), computed_once(points.source, root, executor, points.block_rows) as rows:
        points = replace(points, source=rows)
        prepared = shared_graph(points, root, [prepare(points, root, candidate) for candidate in candidates])
        refused = [found for found in prepared if not isinstance(found, Prepared)]
        if len(refused) == len(prepared):
            raise refused[0]
        cells: list[Cell] = []
        with locked_run(root, executor) as target:
            found: list[Run | Exception] = []
            for number, (candidate, ready) in enumerate(zip(candidates, prepared, strict=True), 1):
                shown = ", ".join(f"{name}={value}" for name, value in candidate.values.items())
                told.note(f"cell {number} of {len(candidates)}: {shown}")
                cell, outcome = run_cell(target, candidate, ready, scores, judge)
                if cell.failure is not None:
                    told.warn(f"cell {number} of {len(candidates)} failed: {shown}: {cell.failure}")
                cells.append(cell)
                found.append(outcome)
            if isinstance(first_failure := found[0], Exception) and all(isinstance(one, Exception) for one in found):
                raise first_failure
            tuning = Tuning(str(root), tuple(cells), tuple(scores))
            if tuning.best_index_ is not None and isinstance(best := found[tuning.best_index_], Run):
                target.store.save_plan(best.plan)
    return tuning


def prepare(points: SurveyedPoints, root: str | Path, candidate: Candidate) -> Prepared | ScalemaniError:
    """Return what a candidate computes, or why it cannot be run; nothing is written."""
    if isinstance(candidate.params, ScalemaniError):
        return candidate.params
    try:
        outline, source = points.outline(candidate.method, candidate.params)
        make_plan(RunStore(root), outline, points.executor).check()
    except OF_ONE_RUN as error:
        return error
    return Prepared(candidate, outline, source)


def shared_graph(
    points: SurveyedPoints, root: str | Path, prepared: Sequence[Prepared | ScalemaniError]
) -> list[Prepared | ScalemaniError]:
    """Return candidates that take their affinities from the widest of their graphs."""
    widths = [found.outline.params.n_neighbors for found in prepared if has_affinities(found)]
    if len(set(widths)) < 2:
        return list(prepared)
    widest = max(widths)
    return [widened(points, root, found, widest) if has_affinities(found) else found for found in prepared]


def has_affinities(found: Prepared | ScalemaniError) -> TypeGuard[Prepared]:
    """Return whether a candidate can be run and has affinities."""
    return isinstance(found, Prepared) and StoredAffinities.STAGE in found.outline.keys


def widened(points: SurveyedPoints, root: str | Path, found: Prepared, widest: int) -> Prepared | ScalemaniError:
    """Return a candidate with its own affinities on a graph of so many neighbours."""
    used = found.outline.params
    computed_as = {NEIGHBORS: widest, AFFINITY_NEIGHBORS: used.affinity_neighbors}
    # What was left open followed the narrower graph.
    asked = found.outline.asked.with_values(
        {
            "neighbors": {"n_neighbors": widest},
            "affinities": {"n_neighbors": used.affinity_neighbors, "perplexity": used.affinities.perplexity},
        }
    )
    return prepare(points, root, replace(found.candidate, params=asked, computed_as=computed_as))


def run_cell(
    target: WritableRun,
    candidate: Candidate,
    found: Prepared | ScalemaniError,
    scores: Sequence[str],
    judge: Judge,
) -> tuple[Cell, Run | Exception]:
    """Run and score one candidate; return the cell, and the run, or why there is none or no score of it."""
    if isinstance(found, ScalemaniError):
        return Cell(dict(candidate.values), candidate.method, failure=str(found)), found
    try:
        plan = make_plan(target.store, found.outline, target.executor)
        plan.check()
        for note in found.outline.notes:
            target.executor.progress.warn(note)
        run_plans(target, plan, found.source)
        run = Run(target.store.root)
        measured = {name: SCORES[name].of_run(run, judge) for name in scores}
    except OF_ONE_CELL as error:
        return Cell(dict(candidate.values), candidate.method, failure=str(error)), error
    stages = {name: Stage(run.keys[name], record["seconds"]) for name, record in run.records().items()}
    computed_as = dict(found.candidate.computed_as or {})
    return Cell(dict(candidate.values), candidate.method, measured, stages, computed_as), run
