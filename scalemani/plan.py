"""What a run would do: stages, keys, blocks that are missing, memory. Plain data, made before anything is computed."""

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from dask.utils import format_bytes

from scalemani.chunked.executor import Executor
from scalemani.chunked.work import Dimensions, MemoryNeed
from scalemani.errors import ConfigError, DataError, MemoryBudgetError
from scalemani.params import Parameters
from scalemani.routes import Stage, route
from scalemani.stages.registry import STAGE_MODULES
from scalemani.store.groups import StageGroup
from scalemani.store.objects import digest
from scalemani.store.run_store import RunStore
from scalemani.survey import Survey

KEY_CHARACTERS = 16
MOST_POINTS = 2**31 - 1  # neighbours are stored as 32-bit rows
PROCESS_BYTES = 650 * 10**6  # the interpreter with numpy, scipy, numba, zarr and Dask loaded and the kernels compiled


@dataclass(frozen=True)
class PlannedStage:
    """One stage of a plan: where its results go, what is there already, and what it may use."""

    stage: Stage
    key: str
    params: dict[str, Any]
    group: StageGroup
    memory: int
    at_once: int
    cache_bytes: int

    def missing(self, n_blocks: int) -> str:
        """Return what is left to do, for people."""
        if self.group.complete:
            return "complete"
        done = sum(self.group.done(block) for block in range(n_blocks))
        return f"{n_blocks - done} of {n_blocks}" if self.stage.by_block else "all"


@dataclass(frozen=True)
class Plan:
    """The stages of a method on given points, in order."""

    method: str
    params: Parameters
    dimensions: Dimensions
    stages: tuple[PlannedStage, ...]

    def planned(self, name: str) -> PlannedStage:
        """Return one stage of the plan by its name."""
        for planned in self.stages:
            if planned.stage.name == name:
                return planned
        raise ConfigError(
            f"{self.method} has no stage {name!r}; its stages: {', '.join(s.stage.name for s in self.stages)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what the store keeps of the plan."""
        return {
            "method": self.method,
            "params": self.params.as_dict(),
            "dimensions": dataclasses.asdict(self.dimensions),
            "keys": {planned.stage.name: planned.key for planned in self.stages},
        }


def make_plan(store: RunStore, method: str, params: Parameters, found: Survey, executor: Executor) -> Plan:
    """Return the plan of a run, after checking that its parameters fit the data and its stages fit the memory."""
    stages = route(method, params.embedding.solver)
    params = params.resolved(method)
    check_against_data(params, found.dimensions, {stage.name for stage in stages})
    keys: dict[str, str] = {}
    for stage in stages:
        inputs = [keys[name] for name in stage.inputs] or [found.content]
        seed = params.seed if stage.seeded else None
        content = json.dumps([stage.name, stage.version, stage_params(stage, params), seed, inputs], sort_keys=True)
        keys[stage.name] = digest(content.encode())[:KEY_CHARACTERS]
    dimensions = with_stored_blocks(store, keys["points"], found.dimensions)
    planned = []
    for stage in stages:
        need = STAGE_MODULES[stage.name].memory(dimensions, params)
        at_once, cache_bytes = fit(stage.name, need, executor, dimensions)
        total = PROCESS_BYTES + need.fixed + at_once * need.per_task + cache_bytes
        group = store.group(stage.name, keys[stage.name], dimensions.block_rows)
        planned.append(
            PlannedStage(stage, keys[stage.name], stage_params(stage, params), group, total, at_once, cache_bytes)
        )
    return Plan(method, params, dimensions, tuple(planned))


def stage_params(stage: Stage, params: Parameters) -> dict[str, Any]:
    """Return the parameters on which a stage's result depends: its own, and those it also reads by their stage."""
    groups = params.as_dict()
    return {**groups.get(stage.name, {}), **{name: groups[name] for name in stage.also_reads}}


def with_stored_blocks(store: RunStore, key: str, dimensions: Dimensions) -> Dimensions:
    """Return the dimensions with the rows a block that were fixed when these points were first ingested."""
    stored = store.objects.get_json(f"stages/points/{key}/dimensions.json")
    return Dimensions(**stored) if stored else dimensions


def fit(name: str, need: MemoryNeed, executor: Executor, dimensions: Dimensions) -> tuple[int, int]:
    """Return how many tasks of a stage run at once and the bytes of its cache, or refuse the budget."""
    at_once = min(executor.workers, max(dimensions.n_blocks, 1))
    if executor.memory is None:
        return at_once, need.cache
    available = executor.memory - PROCESS_BYTES - need.fixed
    if available < need.per_task:
        least = PROCESS_BYTES + need.fixed + need.per_task
        raise MemoryBudgetError(
            f"stage {name} needs {format_bytes(least)} with one task at a time ({format_bytes(PROCESS_BYTES)} for the "
            f"process, {format_bytes(need.fixed)} for what all tasks share, {format_bytes(need.per_task)} for a block "
            f"of {dimensions.block_rows} rows), the budget is {format_bytes(executor.memory)}: raise --memory to "
            f"{format_bytes(least)}, or start a new run with smaller blocks (--block-rows)"
        )
    at_once = min(at_once, available // max(need.per_task, 1))
    return at_once, min(need.cache, available - at_once * need.per_task)


def check_against_data(params: Parameters, dimensions: Dimensions, stages: Collection[str]) -> None:
    """Refuse parameters that the data cannot serve, before any work; those of stages that are not run do not matter."""
    n_points, k, n_landmarks = dimensions.n_points, params.n_neighbors, params.landmarks.n_landmarks
    if n_points < 3:
        raise DataError(f"points has {n_points} rows, at least 3 are needed: give more points")
    if n_points > MOST_POINTS:
        raise DataError(f"points has {n_points} rows, at most {MOST_POINTS} can be embedded at once: give fewer points")
    if k >= n_points:
        raise DataError(
            f"N={n_points} points, need more than n_neighbors (k={k}): give more points, or a smaller "
            "neighbors.n_neighbors or affinities.perplexity"
        )
    if "affinities" in stages:
        check_affinities(params)
    if "landmarks" in stages:
        check_landmarks(params, n_points)
    if "clustering" in stages and params.clustering.n_clusters > n_landmarks:
        raise ConfigError(
            f"clustering.n_clusters must be at most landmarks.n_landmarks={n_landmarks}, got "
            f"{params.clustering.n_clusters}"
        )


def check_affinities(params: Parameters) -> None:
    """Refuse a perplexity or bandwidth that the neighbours cannot serve."""
    k, perplexity = params.n_neighbors, params.affinities.perplexity
    if params.affinities.kind == "entropic" and perplexity >= k:
        raise ConfigError(
            f"affinities.perplexity must be < n_neighbors (k={k}), got {perplexity:g}: 3 to 5 neighbours a unit of "
            "perplexity are usual"
        )
    if params.affinities.kind == "self-tuning" and params.affinities.bandwidth_neighbor > k:
        raise ConfigError(
            f"affinities.bandwidth_neighbor must be at most n_neighbors (k={k}), "
            f"got {params.affinities.bandwidth_neighbor}"
        )


def check_landmarks(params: Parameters, n_points: int) -> None:
    """Refuse numbers of landmarks, of their neighbours and of components that do not fit each other or the points."""
    n_landmarks = params.landmarks.n_landmarks
    if n_landmarks > n_points:
        raise ConfigError(f"landmarks.n_landmarks must be at most N={n_points}, got {n_landmarks}")
    if params.landmark_weights.n_neighbors > n_landmarks:
        raise ConfigError(
            f"landmark_weights.n_neighbors must be at most landmarks.n_landmarks={n_landmarks}, "
            f"got {params.landmark_weights.n_neighbors}"
        )
    if params.n_components >= n_landmarks:
        raise ConfigError(
            f"landmark_embedding.n_components must be below landmarks.n_landmarks={n_landmarks}, got "
            f"{params.n_components}; landmarks.n_landmarks must be at least {params.n_components + 1}"
        )
