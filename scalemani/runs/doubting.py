"""The doubt of a finished run: one more stage on what its store holds, without its points at hand."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from scalemani.config.params import Parameters
from scalemani.config.params.effects import RunConfiguration, conditions, why_idle
from scalemani.config.routing import refusal_of_doubt
from scalemani.config.stages import DOUBT
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.runs.opened import Run
from scalemani.runs.outline import key_of
from scalemani.runs.plan import check_memory, check_projected, counted, planned_stage
from scalemani.runs.walk import INPUTS, compute_stage, locked_run
from scalemani.stages.arrays.points import StoredWeights


def measure_doubt(run: Run, executor: Executor, settings: Mapping[str, Any] = MappingProxyType({})) -> Run:
    """Compute the stage `doubt` of a finished run where it is missing, and return the run with it.

    The run in the store is then this one: the same as if it had been requested by doubt.measured.

    Parameters
    ----------
    run : of a method that has the stage
    executor : where tasks run, and the budget
    settings : parameters of the stage by the names of --set, such as {"doubt.null_points": 1000}

    Raises
    ------
    ConfigError
        For other parameters, and a run that is not finished, has no such stage, or started from weights or affinities.
    MemoryBudgetError, DiskSpaceError
        Where the stage does not fit.
    """
    unfinished = [name for name in run.keys if not run.group(name).complete]
    if unfinished:
        raise ConfigError(f"{run.store.root} is not finished ({', '.join(unfinished)}): run its command again first")
    for name in settings:
        if name == "doubt.measured":
            raise ConfigError(f"doubt measures it, whatever {name} is: leave it out")
        if not name.startswith(f"{DOUBT.name}."):
            raise ConfigError(f"doubt takes parameters of its stage, doubt.NAME, got {name}: leave it out")
    weighted, chosen = StoredWeights.STAGE in run.keys, run.params
    why = refusal_of_doubt(run.method, chosen.embedding.solver, chosen.affinities.kind, weighted)
    if why:
        raise ConfigError(f"{run.store.root} has no doubt of its points: {why}")
    requested = Parameters.of(run.params).with_values({**settings, "doubt.measured": True})
    params = requested.resolved(run.method, run.dimensions.n_points)
    check_effects(run, requested)
    stage = next(one for one in params.route(run.method, weighted) if one.name == DOUBT.name)
    inputs = {name: run.group(name) for name in stage.inputs}
    key = key_of(stage, params, [run.keys[name] for name in stage.inputs if name not in stage.key.without])
    with executor.started(), locked_run(run.store.root, executor) as target:
        group = target.store.group(stage.name, key, run.dimensions.block_rows)
        sizes = Sizes(run.dimensions, params, stores_rounds=executor.keep, **counted(inputs))
        planned = planned_stage(stage, key, group, sizes, tuple(executor.processes))
        contents = {name: one.content_digest for name, one in inputs.items()}
        if group.units and group.objects.intact(INPUTS) != contents:
            group.forget(group.units)
        if not group.complete:
            check_memory({stage.name: planned.fit}, executor.processes, run.dimensions.block_rows)
            check_projected(target.store.root, target.store.objects.free_bytes(), [planned], "")
            group.objects.set_json(INPUTS, contents)
            fit = planned.fit
            compute_stage(
                planned,
                StageTask(stage.name, run.dimensions, params, inputs, group, fit.cache, fit.in_memory),
                executor,
            )
        target.store.save_plan({**run.plan, "params": params.as_dict(), "keys": {**run.keys, stage.name: key}})
    return type(run)(run.store.root)


def check_effects(run: Run, requested: Parameters) -> None:
    """Refuse parameters of the stage that have no effect on a run, and those of the run that exclude the stage."""
    here = RunConfiguration(run.method, requested, requested, frozenset({*run.keys, DOUBT.name}), {})
    of_stage = f"{DOUBT.name}."
    for name, ways in conditions().items():
        if name.startswith(of_stage) or any(one.on.startswith(of_stage) for one in ways):
            why = why_idle(name, here)
            if why is not None:
                raise ConfigError(f"{name}={here.requested(name)} does not go with doubt of this run: {why.reason}")
