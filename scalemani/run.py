"""Walks a plan: keeps what is complete, runs what is missing, records seconds, peak memory and certificates."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from scalemani.chunked.executor import Executor
from scalemani.chunked.memory import PeakMemory
from scalemani.chunked.resident import release
from scalemani.chunked.work import Dimensions, StageTask, StageWork
from scalemani.errors import StoreError
from scalemani.params import Parameters
from scalemani.plan import DIMENSIONS, Plan, PlannedStage, make_plan
from scalemani.sources import PointsSource
from scalemani.stages import points as points_stage
from scalemani.stages.registry import STAGE_MODULES
from scalemani.store.groups import StageGroup, parsed
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
            self.dimensions = Dimensions(**plan["dimensions"])
            self.params = Parameters().with_values(plan["params"])
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
        return {stage: group.record for stage, group in groups.items() if group.complete}

    @property
    def certificates(self) -> dict[str, dict[str, Any]]:
        """What each finished stage measured about how good its result is."""
        return {stage: record["certificates"] for stage, record in self.records().items()}

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
            store.save_plan(plan.as_dict())
            for planned in plan.stages:
                held.check()
                if only is None or planned.stage.name == only:
                    run_stage(plan, planned, executor, source, found)
    return Run(root)


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
    plan = make_plan(RunStore(root), method, params, survey(source, executor, block_rows), executor)
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
        for planned in plan.stages:
            damaged = planned.group.damaged_units(executor.workers)
            if damaged:
                executor.progress.note(
                    f"{planned.stage.name}: {len(damaged)} damaged or lost, computed anew: {damaged[:5]}"
                )
                planned.group.forget(damaged)
        yield store, plan, held


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
