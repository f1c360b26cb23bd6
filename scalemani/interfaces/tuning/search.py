"""The search over a grid: runs in one store that share points, graph and Z; their scores as a table and as files.

Cells whose graphs differ in their number of neighbours alone share the widest of these: each takes the affinities of
its first columns. A candidate that cannot be run is reported, and the others run.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, DiskSpaceError, MemoryBudgetError, NumericalError, ScalemaniError
from scalemani.interfaces.tuning.scores import SCORES, Judge, settings_of
from scalemani.io.export.atomic import replaced_file
from scalemani.io.sources import PointsSource
from scalemani.kernels.measures import Measure
from scalemani.runs.opened import Run
from scalemani.runs.outline import Outline, outline_within, with_note_on_lists
from scalemani.runs.plan import make_plan
from scalemani.runs.preprocessing.computed import computed_once
from scalemani.runs.preprocessing.duplicates import distinct_rows
from scalemani.runs.preprocessing.following import follow_source
from scalemani.runs.survey import Survey, survey
from scalemani.runs.walk import WritableRun, locked_run, run_plan
from scalemani.stages.arrays.affinities import StoredAffinities
from scalemani.store.run_store import RunStore

if TYPE_CHECKING:
    from scalemani.interfaces.estimators.fitting import Embedder

NO_SCORE = Measure(np.nan, np.nan, 0)
CSV, JSON, PICTURE, FRONT = "tuning.csv", "tuning.json", "tuning.png", "front.png"
CERTAIN = 2.0  # standard errors of a difference that data decide


class Stage(NamedTuple):
    """A finished stage of a cell: its key, and the seconds that it took when it was computed."""

    key: str
    seconds: float


@dataclass(frozen=True)
class Cell:
    """One combination of a grid: its values by name, its scores and stages by theirs, or why it failed.

    `computed_as` are the parameters that replaced requested ones in its computation, where it shares a graph.
    """

    values: dict[str, Any]
    method: str
    scores: dict[str, Measure] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    computed_as: dict[str, int] = field(default_factory=dict)
    failure: str | None = None

    @property
    def keys(self) -> dict[str, str]:
        """The keys of the stages by their names."""
        return {name: stage.key for name, stage in self.stages.items()}


@dataclass
class Tuning:
    """The cells of a grid, compared.

    Attributes
    ----------
    store : str
        The store of all runs; it opens as the best one.
    cells : tuple of Cell
        In the order of the grid.
    scoring : tuple of str
        Names of the scores; the first one ranks.
    best_estimator_ : estimator
        Fitted at the best values, where estimators were tuned.
    """

    store: str
    cells: tuple[Cell, ...]
    scoring: tuple[str, ...]
    best_estimator_: "Embedder | None" = None

    @property
    def names(self) -> list[str]:
        """The names of the parameters that the grid has values of."""
        return list(dict.fromkeys(name for cell in self.cells for name in cell.values))

    @property
    def best_index_(self) -> int | None:
        """The number of the cell with the best score, the first of several; None where none has a score."""
        values = self.signed_scores()
        return None if np.all(np.isnan(values)) else int(np.nanargmax(values))

    @property
    def best_params_(self) -> dict[str, Any]:
        """The values of the best cell; empty where no cell has a score."""
        return {} if self.best_index_ is None else self.cells[self.best_index_].values

    @property
    def best_score_(self) -> float:
        """The score of the best cell; NaN where no cell has one."""
        return float("nan") if self.best_index_ is None else self.cells[self.best_index_].scores[self.scoring[0]].value

    @property
    def undecided_(self) -> list[int]:
        """The numbers of the cells that the first score does not tell from the best by two standard errors.

        Cells whose run is that of the best are none: the method reads nothing that differs. Errors are taken as
        independent. The same points are looked at in all cells, so that differences are known better than that.
        """
        best, first = self.best_index_, self.scoring[0]
        if best is None:
            return []
        of_best, run_of_best = self.cells[best].scores[first], self.cells[best].keys
        others = [(number, cell) for number, cell in enumerate(self.cells) if cell.keys != run_of_best]
        scored = [(number, cell.scores[first]) for number, cell in others if first in cell.scores]
        return [
            number
            for number, one in scored
            if abs(one.value - of_best.value) <= CERTAIN * np.hypot(one.error, of_best.error)
        ]

    @property
    def front_(self) -> list[int]:
        """The numbers of the cells that none exceeds in both of the first two scores, by the first; empty of one."""
        if len(self.scoring) < 2:
            return []
        signed = np.column_stack([self.signed_scores(name) for name in self.scoring[:2]])
        known = np.flatnonzero(~np.isnan(signed).any(axis=1))
        front = [
            number
            for number in known
            if not ((signed[known] >= signed[number]).all(axis=1) & (signed[known] > signed[number]).any(axis=1)).any()
        ]
        return sorted(map(int, front), key=lambda number: (signed[number, 0], number))

    @property
    def results_(self) -> dict[str, np.ndarray]:
        """The table of all cells, a column a name, as scikit-learn's `cv_results_`.

        `params`; `param_<name>` of each name; `<score>` and `<score>_error`, its standard error, of each score; `rank`,
        from 1 for the best; `seconds` of the stages that it does not share; `failure`, None where there is none.
        """
        signed, shared, rows = self.signed_scores(), set(self.shared_seconds), []
        for cell, value in zip(self.cells, signed, strict=True):
            row = {"params": cell.values} | {f"param_{name}": cell.values.get(name) for name in self.names}
            for name in self.scoring:
                row[name], row[f"{name}_error"], _ = cell.scores.get(name, NO_SCORE)
            row["rank"] = None if np.isnan(value) else 1 + int(np.sum(signed > value))
            unshared = sum(stage.seconds for name, stage in cell.stages.items() if name not in shared)
            rows.append({**row, "seconds": np.nan if cell.failure else float(unshared), "failure": cell.failure})
        return {name: column([row[name] for row in rows]) for name in rows[0]}

    @property
    def shared_seconds(self) -> dict[str, float]:
        """The seconds of the stages that were computed once for several cells, all that have them."""
        computed: dict[str, list[Stage]] = {}
        for cell in self.cells:
            for name, stage in cell.stages.items():
                computed.setdefault(name, []).append(stage)
        shared = {name: stages for name, stages in computed.items() if len(stages) > 1}
        return {
            name: one.seconds for name, (one, *others) in shared.items() if {other.key for other in others} == {one.key}
        }

    @property
    def n_failed(self) -> int:
        """How many cells failed."""
        return sum(cell.failure is not None for cell in self.cells)

    def signed_scores(self, name: str | None = None) -> np.ndarray:
        """Return a score, by default the first, of every cell (n,), more being better; NaN where it has none."""
        named = name or self.scoring[0]
        values = np.array([cell.scores.get(named, NO_SCORE).value for cell in self.cells])
        return values if SCORES[named].more_is_better else -values

    def write(self, folder: str | Path) -> list[Path]:
        """Write the table as `tuning.csv` and everything as `tuning.json`; return the files."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        columns = {name: column for name, column in self.results_.items() if name != "params"}
        with (
            replaced_file(target / CSV, through_links=False) as file,
            io.TextIOWrapper(file, "utf-8", newline="") as text,
        ):
            writer = csv.writer(text)
            writer.writerow(columns)
            writer.writerows(zip(*(map(plain, values) for values in columns.values()), strict=True))
        with replaced_file(target / JSON, through_links=False) as file:
            file.write((json.dumps(self.as_dict(), indent=1, default=str) + "\n").encode())
        return [target / CSV, target / JSON]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values: scores, the best cell, seconds that are shared, and all cells."""
        cells = []
        for cell in self.cells:
            scores = {name: measure._asdict() for name, measure in cell.scores.items()}
            seconds = {name: stage.seconds for name, stage in cell.stages.items()}
            cells.append({**vars(cell), "scores": scores, "seconds": seconds})
        chosen = {"best_index": self.best_index_, "undecided": self.undecided_, "front": self.front_}
        results = {**chosen, "shared_seconds": self.shared_seconds, "cells": cells}
        return {"store": self.store, "scoring": list(self.scoring), **results}


def plain(value: Any) -> Any:
    """Return a value as a table of text holds it: nothing for a score that is not there."""
    return "" if isinstance(value, float) and np.isnan(value) else value


def column(values: list[Any]) -> np.ndarray:
    """Return values as a column, those that are not all real numbers as objects."""
    if all(isinstance(value, float) for value in values):
        return np.array(values)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


# What is wrong with one run and not with the others; of a store or a cluster all of them would fail.
OF_ONE_CELL = (ConfigError, DataError, MemoryBudgetError, DiskSpaceError, NumericalError, np.linalg.LinAlgError)
NEIGHBORS, AFFINITY_NEIGHBORS = "neighbors.n_neighbors", "affinities.n_neighbors"


@dataclass
class SurveyedPoints:
    """Points that several runs take, each in its metric; they are read once for each, and each merging of equal rows.

    `source` (N, D); `block_rows` as in `run`.
    """

    source: PointsSource
    executor: Executor
    block_rows: int | None = None
    _seen: dict[object, Survey] = field(default_factory=dict)

    def outline(self, root: str | Path, method: str, params: Parameters) -> Outline:
        """Return what a run of the points at `root` computes; errors are of `run`."""
        requested, source = follow_source(params, self.source)
        known = params.points, params.duplicates.tolerance, source.shape
        if known not in self._seen:
            source = distinct_rows(source, params, self.executor, self.block_rows)
            self._seen[known] = survey(source, self.executor, self.block_rows)
        store, seen = RunStore(root), self._seen[known]
        return with_note_on_lists(outline_within(method, requested, seen, self.executor.driver_memory, store), params)


@dataclass(frozen=True)
class Candidate:
    """A cell of a grid: its values by name, the method, and the parameters, or the error of invalid ones."""

    values: Mapping[str, Any]
    method: str
    params: Parameters | ScalemaniError
    computed_as: Mapping[str, int] | None = None


class Prepared(NamedTuple):
    """A candidate that can be run, and what it computes."""

    candidate: Candidate
    outline: Outline


def valid_params(candidates: Sequence[Candidate]) -> list[Parameters]:
    """Return the parameters of the candidates that have any.

    Raises the first candidate's error where none has, and ConfigError where they open the points in several ways.
    """
    valid = [one.params for one in candidates if isinstance(one.params, Parameters)]
    if not valid:
        raise next(one.params for one in candidates if isinstance(one.params, ScalemaniError))
    if len({(params.precomputed_input, params.takes_image) for params in valid}) > 1:
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
    executor, progress = points.executor, points.executor.progress
    candidates = [with_settings(one, settings_of(scores)) for one in candidates]
    RunStore(root).check_free()
    with executor.started(), computed_once(points.source, root, executor, points.block_rows) as rows:
        points = replace(points, source=rows)
        prepared = [attempt(prepare, points, root, candidate) for candidate in candidates]
        widest = max(map(graph_width, prepared))
        prepared = [
            attempt(widened, points, root, one, widest) if 0 < graph_width(one) < widest else one for one in prepared
        ]
        if all(isinstance(one, Exception) for one in prepared):
            raise prepared[0]
        cells: list[Cell] = []
        with locked_run(root, executor) as target:
            outcomes = []
            for number, (candidate, ready) in enumerate(zip(candidates, prepared, strict=True), 1):
                shown = ", ".join(f"{name}={value}" for name, value in candidate.values.items())
                progress.note(f"cell {number} of {len(candidates)}: {shown}")
                outcomes.append(attempt(run_cell, target, ready, scores, judge))
                if isinstance(outcomes[-1], Exception):
                    cells.append(Cell(dict(candidate.values), candidate.method, failure=str(outcomes[-1])))
                    progress.warn(f"cell {number} of {len(candidates)} failed: {shown}: {outcomes[-1]}")
                else:
                    cells.append(outcomes[-1][0])
            if all(isinstance(one, Exception) for one in outcomes):
                raise outcomes[0]
            tuning = Tuning(str(root), tuple(cells), tuple(scores))
            if tuning.best_index_ is not None:
                target.store.save_plan(outcomes[tuning.best_index_][1].plan)
    return tuning


def attempt(compute: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call returns, or the error that is of one cell alone."""
    try:
        return compute(*arguments)
    except OF_ONE_CELL as error:
        return error


def with_settings(candidate: Candidate, settings: Mapping[str, Any]) -> Candidate:
    """Return a candidate with parameters that scores need; an error of its own stays."""
    if isinstance(candidate.params, ScalemaniError) or not settings:
        return candidate
    return replace(candidate, params=candidate.params.with_values(settings))


def prepare(points: SurveyedPoints, root: str | Path, candidate: Candidate) -> Prepared:
    """Return what a candidate computes, or raise why it cannot be run; nothing is written."""
    if isinstance(candidate.params, ScalemaniError):
        raise candidate.params
    outline = points.outline(root, candidate.method, candidate.params)
    make_plan(RunStore(root), outline, points.executor).check()
    return Prepared(candidate, outline)


def graph_width(prepared: Prepared | Exception) -> int:
    """Return how many neighbours the graph of affinities of a candidate has; 0 where there is none."""
    if isinstance(prepared, Exception) or StoredAffinities.STAGE not in prepared.outline.keys:
        return 0
    return prepared.outline.params.n_neighbors


def widened(points: SurveyedPoints, root: str | Path, prepared: Prepared, widest: int) -> Prepared:
    """Return a candidate with its affinities on a graph of so many neighbours."""
    used = prepared.outline.params
    computed_as = {NEIGHBORS: widest, AFFINITY_NEIGHBORS: used.affinity_neighbors}
    # What was left open followed the narrower graph.
    params = prepared.outline.requested.with_values(
        {**computed_as, "affinities.perplexity": used.affinities.perplexity}
    )
    return prepare(points, root, replace(prepared.candidate, params=params, computed_as=computed_as))


def run_cell(target: WritableRun, ready: Prepared | Exception, scores: Sequence[str], judge: Judge) -> tuple[Cell, Run]:
    """Run and score one candidate; return the cell and the run, or raise why there is none."""
    if isinstance(ready, Exception):
        raise ready
    candidate = ready.candidate
    plan = make_plan(target.store, ready.outline, target.executor)
    plan.check()
    for note in ready.outline.notes:
        target.executor.progress.warn(note)
    run_plan(target, plan)
    run = Run(target.store.root)
    measured = {name: SCORES[name].of_run(run, judge) for name in scores}
    stages = {name: Stage(run.keys[name], record["seconds"]) for name, record in run.records().items()}
    cell = Cell(dict(candidate.values), candidate.method, measured, stages, dict(candidate.computed_as or {}))
    return cell, run
