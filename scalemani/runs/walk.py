"""Walks a plan: keeps what is complete, runs what is missing, records seconds, peak memory and certificates."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scalemani.chunked.work import PointsInput, StageTask, StageWork
from scalemani.errors import WARNINGS, ConfigError, DataError, ScalemaniWarning, StoreError
from scalemani.memory.peak import PeakMemory
from scalemani.memory.process import PROCESS
from scalemani.params import Parameters
from scalemani.runs.largest_component import STAGE, Component, largest_component, within
from scalemani.runs.opened import Run
from scalemani.runs.plan import Plan, PlannedStage, make_plan, with_counts
from scalemani.sources import PointsSource
from scalemani.stages.table import STAGES
from scalemani.store.committed import intact_description
from scalemani.store.groups import StageGroup
from scalemani.store.locks import RunLock
from scalemani.store.objects import damaged_object
from scalemani.store.run_store import RunStore
from scalemani.survey import Survey, survey
from scalemani.workers.executor import Executor

INPUTS = "inputs.json"


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
        with prepared(root, method, params, found, executor, only) as (store, plan, lock):
            run_stages(Walk(store, executor, lock, only), plan, source, found)
    return Run(root)


@dataclass(frozen=True)
class Walk:
    """What stays the same while a run goes through its plans: its store and lock, where tasks run, the one stage."""

    store: RunStore
    executor: Executor
    lock: RunLock
    only: str | None


def run_stages(walk: Walk, plan: Plan, source: PointsSource, found: Survey) -> None:
    """Run the stages of a plan; with the largest component alone, where the graph falls apart, those of its plan.

    What finds the component is one unit: `only` the stage that finds it goes on until it is in one piece.
    """
    if largest_component(plan) is None:
        walk.store.save_plan(plan.as_dict())
    names = [planned.stage.name for planned in plan.stages]
    for place, planned in enumerate(plan.stages):
        walk.lock.check()
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
    smaller.check(walk.only)
    take_back_damage(smaller, walk.executor)
    run_stages(walk, smaller, component, found)


def plan_component(store: RunStore, plan: Plan, component: Component, found: Survey, executor: Executor) -> Plan:
    """Return the plan of a component; what its points cannot serve is said to be of them."""
    try:
        return make_plan(store, plan.method, plan.asked, found, executor, within(plan))
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
    plan.check()
    return plan


@contextlib.contextmanager
def prepared(
    root: str | Path, method: str, params: Parameters, found: Survey, executor: Executor, only: str | None
) -> Iterator[tuple[RunStore, Plan, RunLock]]:
    """Check the plan, then open or create the store, hold its lock and take back what was damaged."""
    first = make_plan(RunStore(root), method, params, found, executor)
    if only is not None:
        first.planned(only)
    first.check(only)
    store = RunStore.create(root)
    with store.locked(executor.wait, executor.progress.note) as lock:
        store.objects.sweep()
        executor.check_reach(store.root)
        plan = make_plan(store, method, params, found, executor)
        take_back_damage(plan, executor)
        for note in plan.notes:
            executor.progress.note(note)
        yield store, plan, lock


def take_back_damage(plan: Plan, executor: Executor) -> None:
    """Take back the marks of all that is not what was committed."""
    for planned in plan.stages:
        damaged = planned.group.damaged_units(executor.workers)
        if damaged:
            executor.progress.warn(
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
    if group.units and intact_description(group.objects.get(INPUTS)) != contents:
        executor.progress.warn(f"{name}: its input changed or is not known any more, computed anew")
        group.forget(group.units)
    if group.complete:
        for kind, message in given_warnings(group):
            executor.progress.warn(message, kind)
        return
    planned = with_counts(plan, planned)
    group.objects.set_json(INPUTS, contents)
    task = StageTask(name, plan.dimensions, plan.params, inputs, group, planned.fit.need.cache, planned.fit.in_memory)
    points = PointsInput(source, found.tile_digests, found.constant_features)
    work = StageWork(task, executor, planned.at_once, planned.fit.in_one_process, planned.batch, points)
    started = time.perf_counter()
    with PeakMemory() as peak:
        certificates = STAGES[name].run(work)
    PROCESS.free()
    group.mark_complete(
        {
            "stage": name,
            "key": planned.key,
            "version": planned.stage.version,
            "params": planned.params,
            "certificates": certificates,
            "warnings": work.warnings,
            "seconds": round(time.perf_counter() - started, 3),
            "memory_before": peak.before,
            "peak_memory": peak.bytes,
            "projected_memory": planned.memory,
        }
    )


def given_warnings(group: StageGroup) -> list[tuple[type[ScalemaniWarning], str]]:
    """Return the warnings that a finished stage gave, from its record: they hold for its result whoever asks for it."""
    found = group.record.get("warnings", [])
    try:
        return [(WARNINGS[kind], str(message)) for kind, message in found]
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_object(f"{group.objects.root}/complete.json", f"warnings are {found!r}") from error
