"""Walks a plan: reuses what is complete, runs what is missing, records seconds, peak memory and certificates."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.config.params import Parameters
from scalemani.config.stages import REFINE
from scalemani.engine.context import AddTasks, PointsInput, StageContext, StageGraph, StageTask
from scalemani.engine.graph import TaskGraph
from scalemani.engine.memory.peak import PeakMemory
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.memory_model import Batch
from scalemani.engine.task import EarlierResults
from scalemani.engine.workers.executor import Executor
from scalemani.errors import WARNINGS, ConfigError, DataError, NumericalError, ScalemaniWarning, StoreError
from scalemani.io.sources import NeighborLists, PointsSource
from scalemani.io.sources.side_data import AccompaniedPoints
from scalemani.kernels.machine.code_cache import distrust, is_compiled, writable_folder
from scalemani.kernels.machine.compile import COMPILING, PLAIN
from scalemani.runs.largest_component import STAGE, LargestComponent, largest_component, origins_of
from scalemani.runs.opened import Run
from scalemani.runs.outline import Outline, outline_run, outline_within, with_note_on_lists
from scalemani.runs.plan import Plan, PlannedStage, compile_seconds, expected_seconds, make_plan, with_counts
from scalemani.runs.preprocessing.computed import computed_once
from scalemani.runs.preprocessing.duplicates import distinct_rows
from scalemani.runs.preprocessing.following import follow_source
from scalemani.runs.survey import survey
from scalemani.stages.table import STAGES
from scalemani.store.groups import StageGroup
from scalemani.store.locks import RunLock
from scalemani.store.objects import damaged_object
from scalemani.store.places import remark_on
from scalemani.store.run_store import RunStore

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

    Everything that can be refused is refused before anything is written, but for a copy of points that Dask computes.

    Parameters
    ----------
    source : (N, D), the points.
    root : a folder, or s3://bucket/name.
    method : a name of `scalemani.config.routes.ROUTES`.
    block_rows : rows a block; None chooses them by the budget, or takes those of the run that is there.
    only : the one stage to run, whose inputs must be complete: the unit that a scheduler such as Airflow runs.

    Returns
    -------
    Run
        The run, opened for reading.

    Raises
    ------
    ConfigError, DataError
        Where parameters or points cannot be used.
    MemoryBudgetError, DiskSpaceError
        Where a stage does not fit the budget, or the run not the disk.
    StoreError
        Where the run cannot be written, or another run holds it.
    """
    with outlined(source, root, method, params, executor, block_rows) as outline:
        if only is not None and outline.solver is not None and only not in outline.keys:
            executor.progress.note(f"{only}: nothing to do, {outline.params.embedding.solver} does not need it")
            return Run(root)
        with open_for_writing(root, outline, executor, only) as target:
            run_plan(target, make_plan(target.store, outline, executor))
    return Run(root)


def plan_run(
    source: PointsSource,
    root: str | Path,
    method: str,
    params: Parameters,
    executor: Executor,
    block_rows: int | None = None,
) -> Plan:
    """Return the plan of a run, fit or not (`Plan.check`); what it writes is a copy of points that Dask computes.

    The copy goes at the end. Parameters are those of `run`.
    """
    with outlined(source, root, method, params, executor, block_rows, starting=executor.on_cluster) as outline:
        store = RunStore(root)
        plan = make_plan(store, outline, executor)
        while (component := largest_component(plan)) is not None:
            plan = component_plan(store, plan, component, executor)
    return plan


@contextlib.contextmanager
def outlined(
    source: PointsSource,
    root: str | Path,
    method: str,
    params: Parameters,
    executor: Executor,
    block_rows: int | None,
    starting: bool = True,
) -> Iterator[Outline]:
    """Yield the outline of a run of the distinct points of a source; parameters are those of `run`.

    Without `starting`, local processes are not: they would take longer to start than what they would read.
    """
    store = RunStore(root)
    store.check_free()
    requested, source = follow_source(params, source)
    started = executor.started() if starting else contextlib.nullcontext()
    with started, computed_once(source, root, executor, block_rows) as rows:
        surveyed = survey(distinct_rows(rows, requested, executor, block_rows), executor, block_rows)
        yield with_note_on_lists(outline_within(method, requested, surveyed, executor.driver_memory, store), params)


@dataclass(frozen=True)
class WritableRun:
    """A run that is being written: its store and lock, where tasks run, and the one requested stage, if any.

    `checked` are the groups whose objects were looked at since it was opened: each is once.
    """

    store: RunStore
    lock: RunLock
    executor: Executor
    only: str | None
    checked: set[str] = field(default_factory=set)


@contextlib.contextmanager
def open_for_writing(root: str | Path, outline: Outline, executor: Executor, only: str | None) -> Iterator[WritableRun]:
    """Refuse a run that does not fit; then open or create its store, and hold its lock.

    Parameters
    ----------
    root : a folder, or s3://bucket/name.
    executor : where tasks run, how long to wait for the lock, and where messages go.
    only : the one requested stage, None for all.

    Raises
    ------
    MemoryBudgetError, DiskSpaceError
        Where a stage does not fit the budget, or the run not the disk; nothing is written then.
    StoreLockedError
        Where another run holds the store.
    """
    plan = make_plan(RunStore(root), outline, executor)
    if only is not None:
        plan.planned(only)
    plan.check(only)
    with locked_run(root, executor, only) as target:
        for note in outline.notes:
            executor.progress.warn(note)
        if outline.solver is not None and outline.solver.resolved != REFINE:
            executor.progress.warn(outline.solver.text)
        if outline.search is not None and outline.search.is_noted:
            executor.progress.note(outline.search.text)
        yield target


@contextlib.contextmanager
def locked_run(root: str | Path, executor: Executor, only: str | None = None) -> Iterator[WritableRun]:
    """Open or create a store, and hold its lock. Parameters and errors are those of `open_for_writing`."""
    store = RunStore.create(root)
    with store.locked(executor.wait, executor.progress.note) as lock:
        store.mark()  # a run that ended meanwhile and had done nothing has removed it
        store.objects.sweep()
        executor.check_reach(store.root)
        for remark in filter(None, (remark_on(store.root), distrust())):
            executor.progress.warn(remark)
        yield WritableRun(store, lock, executor, only)


def run_plan(target: WritableRun, plan: Plan) -> None:
    """Run the stages of a plan; where its graph falls apart, the rest is the plan of the largest component, and so on.

    The store may have changed until its lock was held, so `plan` is to be made under the lock. Finding the component is
    one unit: running `components` alone repeats it until the component is connected.
    """
    store, executor, only, outline = target.store, target.executor, target.only, plan.outline
    forget_damaged(plan, target)
    if not outline.origins:
        note_complete(plan, target)
    if outline.earlier is None and largest_component(plan) is None:
        store.save_plan(plan.as_dict())
    note_expected(plan, target)
    names = [planned.stage.name for planned in plan.stages]
    last = names.index(STAGE) if STAGE in names else -1  # of those that find the component
    for position, planned in enumerate(plan.stages):
        target.lock.check()
        if only in (None, names[position]) or (outline.origins and position <= last):
            prepared = prepared_stage(plan, planned, executor)
            if prepared is not None:
                compute_stage(*prepared, executor, outline.survey.points)
        component = largest_component(plan) if position == last else None
        if component is not None:
            if only is None or names.index(only) >= position:
                rest = component_plan(store, plan, component, executor)
                rest.check(only)
                run_plan(target, rest)
            return
    if outline.earlier is not None:  # until then the run in the store is the one that points are appended to
        store.save_plan(plan.as_dict())


def component_plan(store: RunStore, plan: Plan, component: LargestComponent, executor: Executor) -> Plan:
    """Plan the run of the largest component of the graph of a plan; errors name the component that they are about.

    Raises DataError where points were appended to a run of all points.
    """
    outline, points, described = plan.outline, component.points, component.points.description
    if outline.earlier is not None:
        raise DataError(
            f"with the appended points the graph falls apart, and only {described} would be left: the run stays as it "
            "was; embed all points in another run"
        )
    points.column_names = outline.survey.points.source.column_names
    source, requested = AccompaniedPoints(points, outline.survey.side.of_rows(component.rows)), outline.requested
    if isinstance(points, NeighborLists):
        requested = requested.with_values({"neighbors": {"n_neighbors": points.n_neighbors}})
    try:
        of_component = outline_run(plan.method, requested, survey(source, executor), origins_of(plan))
        return make_plan(store, replace(of_component, solver=outline.solver), executor)
    except (ConfigError, DataError) as error:
        raise type(error)(f"{described}: {error}") from error


def note_complete(plan: Plan, target: WritableRun) -> None:
    """Say which stages are complete, and where all of them are that there is nothing to do."""
    complete = [planned.stage.name for planned in plan.stages if planned.group.complete]
    if len(complete) == len(plan.stages):
        target.executor.progress.note("nothing to do: every stage is complete")
    elif complete:
        target.executor.progress.note(f"complete from before: {', '.join(complete)}")


def note_expected(plan: Plan, target: WritableRun) -> None:
    """Say how long the run is expected to take, and what of it is compiling."""
    to_do = [one for one in plan.stages if not one.group.complete and target.only in (None, one.stage.name)]
    compiling = 0.0 if PLAIN or is_compiled() else compile_seconds(to_do)
    if compiling:
        how_often = "once on this machine" if writable_folder() else "which are not cached (scalemani doctor says why)"
        target.executor.progress.note(f"compiling kernels, {how_often}: about {compiling:.0f} s")
    target.executor.progress.expect(expected_seconds(plan, to_do, compiling > 0))


def forget_damaged(plan: Plan, target: WritableRun) -> None:
    """Remove the marks of all units that are not what was committed, so that they are computed anew.

    One stage alone looks at what it reads and has written: looking at all of a run takes as long as reading it.
    """
    only = None if plan.outline.origins or plan.outline.earlier is not None else target.only
    looked_at = [one.stage.name for one in plan.stages] if only is None else [only, *plan.planned(only).stage.inputs]
    for planned in plan.stages:
        if planned.group.path in target.checked or planned.stage.name not in looked_at:
            continue
        target.checked.add(planned.group.path)
        damaged = planned.group.damaged_units(target.executor.workers)
        if damaged:
            target.executor.progress.warn(
                f"{planned.stage.name}: {len(damaged)} damaged or lost, computed anew: {damaged[:5]}"
            )
            planned.group.forget(damaged)


def prepared_stage(plan: Plan, planned: PlannedStage, executor: Executor) -> tuple[PlannedStage, StageTask] | None:
    """Return a stage with its task on the inputs that are there now; None where it is complete.

    Parameters
    ----------
    planned : the stage, one of the plan's.

    Raises
    ------
    StoreError
        Where an input is not complete.
    """
    group, name = planned.group, planned.stage.name
    inputs = inputs_of(plan, planned)
    unfinished = [input_name for input_name, input_group in inputs.items() if not input_group.complete]
    if unfinished:
        raise StoreError(f"stage {name} reads {', '.join(unfinished)}, not finished yet: run these stages first")
    earlier = earlier_results(plan, planned)
    contents = {input_name: input_group.content_digest for input_name, input_group in inputs.items()}
    if earlier is not None:
        contents |= {f"earlier {name}": one.content_digest for name, one in earlier.groups.items()}
    if group.units and group.objects.intact(INPUTS) != contents:
        executor.progress.warn(f"{name}: its input changed or is not known any more, computed anew")
        group.forget(group.units)
    if group.complete:
        for kind, message in stored_warnings(group):
            executor.progress.warn(message, kind)
        return None
    planned = with_counts(plan, planned)
    group.objects.set_json(INPUTS, contents)
    return planned, task_of(plan, planned)


def inputs_of(plan: Plan, planned: PlannedStage) -> dict[str, StageGroup]:
    """Return the groups that a stage reads, by their stages."""
    inputs = {name: plan.planned(name).group for name in planned.stage.inputs}
    if plan.outline.earlier is None:
        return inputs
    continued = (name for name in planned.stage.key.continues if name != planned.stage.name)
    return inputs | {name: plan.planned(name).group for name in continued}  # of this run: it is read from there too


def task_of(plan: Plan, planned: PlannedStage) -> StageTask:
    """Return the task of a stage of a plan."""
    name, group, fit = planned.stage.name, planned.group, planned.fit
    inputs, earlier = inputs_of(plan, planned), earlier_results(plan, planned)
    return StageTask(name, plan.dimensions, plan.params, inputs, group, fit.cache, fit.in_memory, earlier)


def compute_stage(
    planned: PlannedStage, task: StageTask, executor: Executor, points: PointsInput | None = None
) -> None:
    """Compute what is missing of a stage, and mark it complete with its record.

    Parameters
    ----------
    task : of the stage, whose inputs are complete.
    points : what the stage `points` reads, and side data; None for a stage that reads neither.
    """
    name, group, context = task.stage, task.output, context_of(planned, task, executor, points)
    started, compiled = time.perf_counter(), COMPILING.total
    executor.progress.begin(name)
    with PeakMemory() as peak:
        certificates = STAGES[name].run(context)
    PROCESS.free()
    check_certificates(name, certificates)
    group.mark_complete(
        {
            "stage": name,
            "key": planned.key,
            "version": planned.stage.key.version,
            "params": planned.params,
            "certificates": certificates,
            "warnings": context.warnings,
            "seconds": round(time.perf_counter() - started, 3),
            "memory_before": peak.before,
            "peak_memory": peak.bytes,
            "projected_memory": planned.memory,
        }
    )
    executor.progress.end(name, COMPILING.total - compiled)


def context_of(planned: PlannedStage, task: StageTask, executor: Executor, points: PointsInput | None) -> StageContext:
    """Return the context of a stage; parameters are those of `compute_stage`."""
    fit = planned.fit
    batch = Batch(task.stage, task.output.path, fit.memory)
    return StageContext(task, executor, fit.at_once, fit.in_one_process, batch, points)


def planned_graphs(plan: Plan, executor: Executor) -> dict[str, list[TaskGraph | str]]:
    """Return of each stage that is not complete the graphs that it would have Dask compute; none is.

    Between them stands in words what the driver does. Graphs are those of what is missing, with as many tasks as the
    memory that is planned has room for; they have tasks of appended points for blocks that may then be reused.
    """
    graphs = dict[str, list[TaskGraph | str]]()
    for planned in plan.stages:
        if not planned.group.complete:
            context = context_of(planned, task_of(plan, planned), executor, plan.outline.survey.points)
            steps = STAGES[planned.stage.name].graphs(context)
            graphs[planned.stage.name] = [step if isinstance(step, str) else graph_of(context, step) for step in steps]
    return graphs


def graph_of(context: StageContext, tasks: AddTasks) -> TaskGraph:
    """Return the tasks that a function adds to an empty graph of a stage."""
    graph = StageGraph(context)
    tasks(graph)
    return graph.tasks


def check_certificates(stage: str, certificates: dict[str, Any]) -> None:
    """Refuse a result of which a certificate is not a finite number: its parameters left the range of floats."""
    bad = [
        f"{name} {value}" for name, value in certificates.items() if isinstance(value, float) and not np.isfinite(value)
    ]
    if bad:
        raise NumericalError(
            f"{stage}: what measures its result is not finite ({', '.join(bad)}), so that the stage is not finished: "
            "give parameters of ordinary size, and points without values of very different size"
        )


def earlier_results(plan: Plan, planned: PlannedStage) -> EarlierResults | None:
    """Return what a stage continues where points were appended to a run; None for others."""
    earlier, continues = plan.outline.earlier, planned.stage.key.continues
    if earlier is None or not continues:
        return None
    store, rows = RunStore(planned.group.root), plan.dimensions.block_rows
    groups = {name: store.group(name, earlier.keys[name], rows) for name in continues if name in earlier.keys}
    return EarlierResults(earlier.n_points, groups) if len(groups) == len(continues) else None


def stored_warnings(group: StageGroup) -> list[tuple[type[ScalemaniWarning], str]]:
    """Return the warnings of a finished stage, from its record: they hold for its result in every run that reads it."""
    warnings = group.record.get("warnings", [])
    try:
        return [(WARNINGS[kind], str(message)) for kind, message in warnings]
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_object(f"{group.objects.root}/complete.json", f"warnings are {warnings!r}") from error
