"""Landmarks chosen in another way for the points of a run, whose store stays as it is.

The stages from the landmarks on read what the run has stored and write to a folder beside it.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from scalemani.config.params import Parameters
from scalemani.config.routes import EIGENVECTOR_STAGES
from scalemani.config.routing import route
from scalemani.config.stages import (
    EMBEDDING,
    LANDMARKS,
    POINTS,
    REFINING_SOLVERS,
    Stage,
)
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.runs.largest_component import Component
from scalemani.runs.opened import Run
from scalemani.runs.outline import Outline
from scalemani.runs.plan import Plan, make_plan
from scalemani.runs.survey import Survey
from scalemani.runs.walk import run_stage
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.arrays.points import StoredPoints
from scalemani.store.run_store import RunStore

TRIAL = "trial"  # the key of what is computed: a trial has a folder of its own
JUDGES = (*REFINING_SOLVERS, "exact")  # solvers whose embedding that of landmarks is compared with
SOLVER = "lll"  # the embedding that landmarks give without refinement


@dataclass(frozen=True)
class LandmarkTrial:
    """What a trial found.

    `landmarks` (L, D); the locally linear `embedding` (N, d) over them in input order, None where there is no graph;
    `seconds` and bytes of `memory` beyond those of the process before, of the choice of the landmarks alone.
    """

    landmarks: np.ndarray
    embedding: np.ndarray | None
    seconds: float
    memory: int


def refined_embedding(run: Run) -> np.ndarray | None:
    """Return the spectral embedding (N, d) of a run in input order, where it was refined by passes or is exact."""
    name = EMBEDDING.name
    if name not in run.keys or run.params.embedding.solver not in JUDGES or not run.group(name).complete:
        return None
    return np.asarray(StoredEmbedding(run.group(name)).embedding.zarr()[...])


def try_landmarks(run: Run, params: Parameters, folder: Path, executor: Executor, embed: bool) -> LandmarkTrial:
    """Choose landmarks for the points of a run, and embed the points by them.

    Parameters
    ----------
    run : whose points, and with `embed` whose affinities, are complete
    params : of the run, with those of the landmarks; to embed, with `SOLVER`

    Raises
    ------
    MemoryBudgetError, DiskSpaceError
        Where a stage does not fit.
    """
    own = [stage for stage in EIGENVECTOR_STAGES if embed or stage is LANDMARKS]
    stages = stages_to_embedding(run, params) if embed else (POINTS, LANDMARKS)
    quiet = replace(executor, progress=Progress())  # what is warned of is that no embedding was refined
    plan = trial_plan(run, params, stages, {stage.name for stage in own}, folder, quiet)
    plan.check()
    stored, every = StoredPoints(run.group(POINTS.name)), np.arange(run.dimensions.n_points)
    points = Component(stored, every, run.dimensions, f"points of {run.store.root}")
    for planned in plan.stages:
        if planned.key == TRIAL:
            run_stage(plan, planned, quiet, points)
    landmarks = plan.planned(LANDMARKS.name).group
    record, embedding = landmarks.record, None
    if embed:
        embedding = np.asarray(StoredEmbedding(plan.planned(EMBEDDING.name).group).embedding.zarr()[...])
    grown = max(0, record["peak_memory"] - record["memory_before"])
    return LandmarkTrial(StoredLandmarks(landmarks).points.read(), embedding, record["seconds"], grown)


def stages_to_embedding(run: Run, params: Parameters) -> tuple[Stage, ...]:
    """Return the stages of a run's method by landmarks alone, up to the embedding."""
    stages = route(run.method, SOLVER, params.points.metric)
    return stages[: [stage.name for stage in stages].index(EMBEDDING.name) + 1]


def trial_plan(
    run: Run, params: Parameters, stages: tuple[Stage, ...], own: set[str], folder: Path, executor: Executor
) -> Plan:
    """Return a plan whose own stages write to a folder and whose others are those of the run."""
    dimensions = run.dimensions
    keys = {stage.name: TRIAL if stage.name in own else run.keys[stage.name] for stage in stages}
    surveyed = Survey(dimensions, "", (), 0, float(dimensions.row_bytes), dimensions.n_points)
    outline = Outline(run.method, params, params, (), stages, keys, surveyed)
    plan = make_plan(RunStore.create(folder), outline, executor)
    there = [
        planned if planned.key == TRIAL else replace(planned, group=run.group(planned.stage.name))
        for planned in plan.stages
    ]
    return replace(plan, stages=tuple(there))
