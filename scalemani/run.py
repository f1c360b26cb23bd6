"""Walks a plan: keeps what is complete, runs what is missing, records seconds, peak memory and certificates."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from scalemani.chunked.executor import Executor
from scalemani.chunked.memory import PeakMemory
from scalemani.chunked.resident import release
from scalemani.chunked.work import ROWS_PER_TILE, Dimensions, StageTask, StageWork
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.largest import STAGE, Component, Within, input_rows, largest_component, within
from scalemani.params import Parameters
from scalemani.plan import DIMENSIONS, Plan, PlannedStage, make_plan
from scalemani.sources import PointsSource
from scalemani.stages import points as points_stage
from scalemani.stages.registry import STAGE_MODULES
from scalemani.store.committed import parsed
from scalemani.store.groups import StageGroup
from scalemani.store.locks import Held
from scalemani.store.objects import damaged_object
from scalemani.store.run_store import PLAN, RunStore
from scalemani.survey import Survey, survey

INPUTS = "inputs.json"


class Run:
    """A run as it stands in its store: arrays in input order, parameters, and the record of every finished stage."""

    def __init__(self, root: str | Path) -> None:
        self.store = RunStore.open(root)
        plan = self.store.load_plan()
        try:
            self.method: str = plan["method"]
            self.keys: dict[str, str] = dict(plan["keys"])
            self.dimensions = checked_dimensions(plan["dimensions"])
            self.params = Parameters().with_values(plan["params"])
            self._within = [Within(**entry) for entry in plan["within"]]
        except (KeyError, TypeError, ValueError) as error:
            raise damaged_object(f"{self.store.root}/{PLAN}", str(error)) from error

    def group(self, stage: str) -> StageGroup:
        """Return the group of a stage of this run."""
        if stage not in self.keys:
            raise StoreError(f"{self.method} has no stage {stage!r}; its stages: {', '.join(self.keys)}")
        return self.store.group(stage, self.keys[stage], self.dimensions.block_rows)

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the record of every finished stage: parameters, certificates, seconds, peak memory in bytes."""
        groups = {stage: self.group(stage) for stage in self.keys}
        return {stage: checked_record(group) for stage, group in groups.items() if group.complete}

    @property
    def certificates(self) -> dict[str, dict[str, Any]]:
        """What each finished stage measured about how good its result is."""
        return {stage: record["certificates"] for stage, record in self.records().items()}

    @property
    def n_input_points(self) -> int:
        """How many points were given, those of components that were left out among them."""
        return self._within[0].n_points if self._within else self.dimensions.n_points

    @property
    def input_rows(self) -> np.ndarray | None:
        """The row (M,) of the given points that each row of the results belongs to; None where that is every row."""
        return input_rows(self.store, self._within)

    def of_results(self, values: np.ndarray) -> np.ndarray:
        """Return those of values (N, ...) in input order that belong to the rows (M, ...) of the results."""
        rows = self.input_rows
        return values if rows is None else values[rows]

    def of_input(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Return values (M, ...) of the rows of the results in input order (N, ...), `fill` in rows left out."""
        rows = self.input_rows
        if rows is None:
            return values
        filled = np.full((self.n_input_points, *values.shape[1:]), fill, values.dtype)
        filled[rows] = values
        return filled

    @property
    def embedding(self) -> zarr.Array:
        """The embedding (n_points, n_components) as a zarr array, rows in input order."""
        return self._finished(self.last_stage).array("embedding")

    @property
    def last_stage(self) -> str:
        """The stage that holds the embedding: the descent of nonlinear methods, else the spectral embedding."""
        for stage in ("layout", "embedding"):
            if stage in self.keys:
                return stage
        raise StoreError(
            f"{self.store.root} was last run with method {self.method}, which has no embedding: run it with another "
            "method, which goes on from the same graph"
        )

    @property
    def eigenvalues(self) -> np.ndarray:
        """The eigenvalues (n_components,) of L v = lambda D v that belong to the columns of the embedding."""
        return self._finished("embedding").read("eigenvalues")

    @property
    def labels(self) -> zarr.Array:
        """The clusters (n_points,) of spectral clustering, rows in input order."""
        return self._finished("clustering").array("labels")

    def _finished(self, stage: str) -> StageGroup:
        group = self.group(stage)
        if not group.complete:
            raise StoreError(f"stage {stage} of {self.store.root} is not finished: run the same command again")
        return group


def checked_dimensions(values: dict[str, Any]) -> Dimensions:
    """Return the dimensions in a plan; raise ValueError where they cannot be those of any points."""
    found = Dimensions(**values)
    counts = (found.n_points, found.n_features, found.block_rows)
    whole = all(isinstance(count, int) and not isinstance(count, bool) and 0 < count < 2**63 for count in counts)
    if not whole or found.block_rows % ROWS_PER_TILE or not isinstance(found.dtype, str):
        raise ValueError(f"dimensions {values}")
    np.dtype(found.dtype)
    return found


def checked_record(group: StageGroup) -> dict[str, Any]:
    """Return the record of a finished stage, if it has what every record has."""
    record = group.record
    numbers = isinstance(record.get("seconds"), int | float) and isinstance(record.get("peak_memory"), int)
    if not isinstance(record.get("certificates"), dict) or not numbers:
        raise damaged_object(f"{group.objects.root}/complete.json", "not the record of a stage")
    return record


def open_run(root: str | Path) -> Run:
    """Open a run for reading."""
    return Run(root)


def run(
    source: PointsSource,
    root: str | Path,
    method: str,
    params: Parameters,
    executor: Executor,
    block_rows: int | None = None,
    only: str | None = None,
) -> Run:
    """Compute what is missing of a run and return it.

    Everything that can be refused is refused before anything is written. `only` runs one stage, whose inputs must be
    complete: the unit that a scheduler such as Airflow runs.
    """
    RunStore(root).check_free()
    with executor.started():
        found = survey(source, executor, block_rows)
        with prepared(root, method, params, found, executor, only) as (store, plan, held):
            run_stages(Walk(store, executor, held, only), plan, source, found)
    return Run(root)


@dataclass(frozen=True)
class Walk:
    """What stays the same while a run goes through its plans: its store and lock, where tasks run, the one stage."""

    store: RunStore
    executor: Executor
    held: Held
    only: str | None


def run_stages(walk: Walk, plan: Plan, source: PointsSource, found: Survey) -> None:
    """Run the stages of a plan; with the largest component alone, where the graph falls apart, those of its plan.

    What finds the component is one unit: `only` the stage that finds it goes on until it is in one piece.
    """
    if largest_component(plan) is None:
        walk.store.save_plan(plan.as_dict())
    names = [planned.stage.name for planned in plan.stages]
    for place, planned in enumerate(plan.stages):
        walk.held.check()
        if walk.only in (None, names[place]) or (plan.within and place <= names.index(STAGE)):
            run_stage(plan, planned, walk.executor, source, found)
        component = largest_component(plan) if names[place] == STAGE else None
        if component is not None:
            if walk.only is None or names.index(walk.only) >= place:
                run_component(walk, plan, component)
            return


def run_component(walk: Walk, plan: Plan, component: Component) -> None:
    """Run the stages of the plan of a component."""
    found = survey(component, walk.executor)
    smaller = plan_component(walk.store, plan, component, found, walk.executor)
    smaller.check_disk(walk.only)
    take_back_damage(smaller, walk.executor)
    run_stages(walk, smaller, component, found)


def plan_component(store: RunStore, plan: Plan, component: Component, found: Survey, executor: Executor) -> Plan:
    """Return the plan of a component; what its points cannot serve is said to be of them."""
    try:
        return make_plan(store, plan.method, plan.params, found, executor, within(plan))
    except (ConfigError, DataError) as error:
        raise type(error)(f"{component.description}: {error}") from error


def plan_run(
    source: PointsSource,
    root: str | Path,
    method: str,
    params: Parameters,
    executor: Executor,
    block_rows: int | None = None,
) -> Plan:
    """Return the plan of a run; nothing is written."""
    RunStore(root).check_free()
    store = RunStore(root)
    plan = make_plan(store, method, params, survey(source, executor, block_rows), executor)
    while (component := largest_component(plan)) is not None:
        plan = plan_component(store, plan, component, survey(component, executor), executor)
    plan.check_disk()
    return plan


@contextlib.contextmanager
def prepared(
    root: str | Path, method: str, params: Parameters, found: Survey, executor: Executor, only: str | None
) -> Iterator[tuple[RunStore, Plan, Held]]:
    """Check the plan, then open or create the store, hold its lock and take back what was damaged."""
    first = make_plan(RunStore(root), method, params, found, executor)
    if only is not None:
        first.planned(only)
    first.check_disk(only)
    store = RunStore.create(root)
    with store.locked(executor.wait, executor.progress.note) as held:
        store.objects.sweep()
        executor.check_reach(store.root)
        plan = make_plan(store, method, params, found, executor)
        take_back_damage(plan, executor)
        yield store, plan, held


def take_back_damage(plan: Plan, executor: Executor) -> None:
    """Take back the marks of all that is not what was committed."""
    for planned in plan.stages:
        damaged = planned.group.damaged_units(executor.workers)
        if damaged:
            executor.progress.note(
                f"{planned.stage.name}: {len(damaged)} damaged or lost, computed anew: {damaged[:5]}"
            )
            planned.group.forget(damaged)


def run_stage(plan: Plan, planned: PlannedStage, executor: Executor, source: PointsSource, found: Survey) -> None:
    """Run one stage if it is not complete, on the inputs that are there now."""
    group, name = planned.group, planned.stage.name
    inputs = {input_name: plan.planned(input_name).group for input_name in planned.stage.inputs}
    unfinished = [input_name for input_name, input_group in inputs.items() if not input_group.complete]
    if unfinished:
        raise StoreError(f"stage {name} reads {', '.join(unfinished)}, not finished yet: run these stages first")
    contents = {input_name: input_group.content_digest for input_name, input_group in inputs.items()}
    if group.units and parsed(group.objects.get(INPUTS)) != contents:
        executor.progress.note(f"{name}: its input changed or is not known any more, computed anew")
        group.forget(group.units)
    if group.complete:
        return
    group.objects.set_json(INPUTS, contents)
    task = StageTask(name, plan.dimensions, plan.params, inputs, group, planned.fit.cache_bytes, planned.fit.in_memory)
    work = StageWork(task, executor, planned.at_once, planned.fit.in_one_process, planned.needs)
    started = time.perf_counter()
    with PeakMemory() as peak:
        if name == "points":
            group.objects.set_json(DIMENSIONS, plan.as_dict()["dimensions"])
            certificates = points_stage.ingest(work, source, found)
        else:
            certificates = STAGE_MODULES[name].run(work)
    release()
    group.finish(
        {
            "stage": name,
            "key": planned.key,
            "version": planned.stage.version,
            "params": planned.params,
            "certificates": certificates,
            "seconds": round(time.perf_counter() - started, 3),
            "memory_before": peak.before,
            "peak_memory": peak.bytes,
            "projected_memory": planned.memory,
        }
    )
