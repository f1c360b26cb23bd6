"""Landmark methods compared at equal numbers of landmarks: `compare_landmarks`, a grid of methods and seeds.

Each cell reads what a run has stored and writes the stages from the landmarks on to a separate folder.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalemani.config.choices import LandmarkRule
from scalemani.config.metrics import no_coordinates
from scalemani.config.params import Parameters, checked_settings
from scalemani.config.routes import EIGENVECTOR_STAGES
from scalemani.config.routing import route
from scalemani.config.stages import EMBEDDING, LANDMARKS, POINTS, PRECOMPUTED, REFINING_SOLVERS, Stage
from scalemani.config.validation import check_count, check_seed
from scalemani.engine.context import PointsInput
from scalemani.engine.progress import Progress
from scalemani.engine.reading import RowsOfArray
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, ScalemaniError
from scalemani.interfaces.tuning import combinations
from scalemani.interfaces.wording import names_arguments
from scalemani.io.sources import open_points
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.quality import local_conditions, nystrom_kernel, nystrom_residuals, spacing_sigma
from scalemani.kernels.measures import Measure, mean_of, procrustes_error, quantile_of
from scalemani.runs.largest_component import Component
from scalemani.runs.opened import Run, opened_run
from scalemani.runs.outline import Outline, check_landmarks
from scalemani.runs.plan import Plan, make_plan
from scalemani.runs.survey import Survey
from scalemani.runs.walk import compute_stage, prepared_stage
from scalemani.runs.walk import run as compute_run
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.arrays.points import StoredPoints
from scalemani.store.run_store import RunStore

COMPARED: tuple[LandmarkRule, ...] = (
    "random",
    "spread",
    "kmeans",
    "kmeans++",
    "minmax",
    "dpp",
)  # those quick enough for any points
SAMPLED_POINTS = 10_000
HIGH_SHARE = 0.95  # of points that are nearer to a landmark, or have better conditioned weights
SETTINGS = ("points", "landmarks", "landmark_weights")
METHOD = "laplacian-eigenmaps"  # whose first stage ingests points that no run has
OF_LANDMARKS = frozenset(stage.name for stage in EIGENVECTOR_STAGES)  # the stages from the landmarks on
TRIAL = "trial"  # the key of what is computed: each trial has a separate folder
JUDGES = (*REFINING_SOLVERS, "exact")  # solvers whose embedding that of landmarks is compared with
SOLVER = "lll"  # the embedding that landmarks give without refinement


class LandmarkQuality(NamedTuple):
    """What landmarks of one method and seed are worth; distances are in the unit of the points.

    Attributes
    ----------
    method, seed, n_landmarks : how they were chosen, and L
    nystrom_error : the share of the trace of a Gaussian kernel of the points that Nystrom's formula leaves, in [0, 1]
    distance, high_distance : from points to their nearest landmark: the mean, and that which 95 % do not exceed
    largest_distance : of the points looked at
    condition, high_condition : of the systems that give points their weights over landmarks: the median, and that which
        95 % do not exceed; NaN where all points looked at are landmarks
    embedding_error : of the locally linear embedding over the landmarks against the refined one of the run, after
        Procrustes alignment, in [0, 1]; None where there is none
    seconds, memory : of the choice; memory in bytes, beyond what the process held before
    """

    method: str
    seed: int
    n_landmarks: int
    nystrom_error: Measure
    distance: Measure
    high_distance: Measure
    largest_distance: float
    condition: Measure
    high_condition: Measure
    embedding_error: float | None
    seconds: float
    memory: int


@dataclass(frozen=True)
class Comparison:
    """What all landmarks are compared on: a run, what is requested, the rows (M,) looked at, and the kernel's sigma."""

    run: Run
    requested: Parameters
    rows: np.ndarray
    sigma: float
    reference: np.ndarray | None
    executor: Executor


@names_arguments(sigma="affinities.sigma", methods="landmarks.method")
def compare_landmarks(  # noqa: PLR0913 - what `select_landmarks` takes, and how much is looked at
    points: Any,
    n_landmarks: int | None = None,
    methods: Sequence[LandmarkRule] = COMPARED,
    seeds: Sequence[int] = (0,),
    *,
    sigma: float | None = None,
    n_sampled: int | None = SAMPLED_POINTS,
    settings: Mapping[str, Any] | None = None,
    workers: int | None = None,
    memory: str | int | None = None,
    progress: Progress | None = None,
) -> list[LandmarkQuality]:
    """Compare ways to choose landmarks, out of core, at equal numbers of them.

    Landmarks are those of a run with the same seed. All are judged by the same points, drawn at random, and by a kernel
    of the same bandwidth.

    Parameters
    ----------
    points : a run, opened or its folder or URL; or points (N, D), as `open_points` takes them. Points that no run has
        are written to a temporary folder first
    n_landmarks : L. None: as many as the run has, or 1,000, or all distinct points where these are fewer
    methods : of `select_landmarks`
    seeds : of the draws; each method is taken with each
    sigma : bandwidth of the kernel exp(-x^2 / 2 sigma^2) that Nystrom's formula approximates, in the unit of the
        points. None: that at which the kernels of L random points add up to two at one of them
    n_sampled : points looked at, of which a block is in memory; None: all
    settings : of landmarks, their weights, and points that no run has, by the names of --set: {"landmarks.snap": False,
        "landmark_weights.n_neighbors": 10, "points.metric": "cosine"}. Others are as in the run, or
        by default
    workers, memory : threads, and a budget such as "4GB"
    progress : is notified of every method and seed that is done

    Returns
    -------
    list of LandmarkQuality, by method, then by seed. With a run whose embedding is refined or exact, the points are
    also embedded by the landmarks, over its affinities. The first seconds of a method may hold the time in which its
    code is compiled or loaded

    Raises
    ------
    ConfigError
        For unknown methods and numbers out of range.
    DataError
        For points that cannot be used, and fewer distinct points than landmarks.
    StoreError
        Where the points of a run are not finished.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, sections 4.3 and
    4.8.1. Wachinger and Golland, arXiv:1503.03506, equation 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> random, farthest = compare_landmarks(load_digits().data[:500], 50, ["random", "minmax"])
    >>> farthest.largest_distance < random.largest_distance
    True
    """
    requested = dict(checked_settings(settings))
    for name in requested:
        if name.partition(".")[0] not in SETTINGS or name == "landmarks.method":
            raise ConfigError(
                f"settings takes parameters of {', '.join(SETTINGS)}, got {name}: methods are named in `methods`"
            )
    if n_landmarks is not None:
        requested["landmarks.n_landmarks"] = n_landmarks
    if n_sampled is not None:
        check_count(n_sampled, "n_sampled", 2)
    cells = combinations({"landmarks.method": methods, "seed": [check_seed(one) for one in seeds]})
    for cell in cells:
        Parameters().with_values({**requested, **cell, "affinities.sigma": sigma})
    executor = Executor.from_options(None, workers, memory, progress or Progress())
    with executor.started(), run_of(points, requested, executor) as run:
        reference = refined_embedding(run)
        embeds = {} if reference is None else {"embedding.solver": SOLVER}
        params = Parameters.of(run.params).with_values({**requested, **embeds})
        n_points, seed = run.dimensions.n_points, cells[0]["seed"]
        for cell in cells:
            check_landmarks(params.with_values(cell).as_resolved(run.method), n_points)
        if sigma is None:
            stored = RowsOfArray(run.stored(StoredPoints).points, n_points)
            sigma = spacing_sigma(stored, params.as_resolved(run.method).n_landmarks, seed)
        rows = sample_rows(seed, "landmarks/compared", n_points, n_sampled or n_points)
        comparison = Comparison(run, params, rows, sigma, reference, executor)
        executor.progress.start("landmarks", len(cells), "selection")
        return [quality_of(comparison, cell) for cell in cells]


@contextlib.contextmanager
def run_of(points: Any, requested: Mapping[str, Any], executor: Executor) -> Iterator[Run]:
    """Yield the run that is passed, or one of the points, in a folder that is removed when the block ends."""
    there = opened_run(points)
    of_points = {name: value for name, value in requested.items() if name.startswith("points.")}
    params = Parameters().with_values(of_points)
    if there is not None and of_points and params.points.metric != there.metric:
        raise ConfigError(f"the points of the run are compared by {there.metric}: leave out points.metric")
    if PRECOMPUTED in (params.points.metric, there and there.metric):
        raise DataError("landmarks are chosen among points, and metric=precomputed stands for neighbours: give points")
    if compared := no_coordinates(params.points.metric if there is None else there.metric):
        raise ConfigError(f"landmarks are chosen by coordinates, and {compared}: take another metric")
    if there is not None:
        yield there
        return
    with tempfile.TemporaryDirectory(prefix="scalemani-") as folder:
        quiet = replace(executor, progress=Progress())
        yield compute_run(open_points(points), Path(folder) / "run", METHOD, params, quiet, only="points")


def refined_embedding(run: Run) -> np.ndarray | None:
    """Return the spectral embedding (N, d) of a run in input order, where it was refined by passes or is exact."""
    refined = EMBEDDING.name in run.keys and run.params.embedding.solver in JUDGES
    if not refined or not run.group(EMBEDDING.name).complete:
        return None
    return run.stored(StoredEmbedding).embedding.read()


def quality_of(comparison: Comparison, cell: Mapping[str, Any]) -> LandmarkQuality:
    """Choose landmarks by the method and the seed of a cell, and say what they are worth."""
    run, reference = comparison.run, comparison.reference
    requested = comparison.requested.with_values(cell)
    params = requested.as_resolved(run.method)
    method, seed = params.landmarks.method, params.seed
    with tempfile.TemporaryDirectory(prefix="scalemani-") as folder:
        try:
            plan = run_trial(comparison, requested, Path(folder) / "trial")
        except ScalemaniError as error:
            raise type(error)(f"landmarks by {method}: {error}") from error
        chosen = plan.planned(LANDMARKS.name).group
        record, landmarks, from_refined = chosen.record, StoredLandmarks(chosen).points.read(), None
        if reference is not None:
            embedding = StoredEmbedding(plan.planned(EMBEDDING.name).group).embedding.read()
            from_refined = procrustes_error(embedding, reference)
    residuals, distances, conditions = sampled_errors(comparison, landmarks)
    n_points, solved = run.dimensions.n_points, conditions[~np.isnan(conditions)]
    n_systems = round(n_points * len(solved) / len(conditions))  # points that are landmarks have none
    comparison.executor.progress.advance()
    return LandmarkQuality(
        method,
        seed,
        len(landmarks),
        mean_of(residuals, n_points),
        mean_of(distances, n_points),
        quantile_of(distances, HIGH_SHARE, n_points),
        float(distances.max()),
        quantile_of(solved, 0.5, n_systems),
        quantile_of(solved, HIGH_SHARE, n_systems),
        from_refined,
        record["seconds"],
        max(0, record["peak_memory"] - record["memory_before"]),
    )


def run_trial(comparison: Comparison, requested: Parameters, folder: Path) -> Plan:
    """Choose landmarks for the points of a run and, where it is compared with, embed them; return the plan of all.

    The stages from the landmarks on are written to a folder, the others are those of the run. Raises MemoryBudgetError
    or DiskSpaceError where a stage does not fit.
    """
    run, dimensions = comparison.run, comparison.run.dimensions
    params = requested.as_resolved(run.method)
    stages: tuple[Stage, ...] = (POINTS, LANDMARKS)
    if comparison.reference is not None:
        whole = route(run.method, SOLVER, params.points.metric)
        stages = whole[: [stage.name for stage in whole].index(EMBEDDING.name) + 1]
    keys = {stage.name: TRIAL if stage.name in OF_LANDMARKS else run.keys[stage.name] for stage in stages}
    points = Component(
        run.stored(StoredPoints), np.arange(dimensions.n_points), dimensions, f"points of {run.store.root}"
    )
    surveyed = Survey(dimensions, PointsInput(points, (), 0), "", float(dimensions.row_bytes), dimensions.n_points)
    quiet = replace(comparison.executor, progress=Progress())  # what is warned of is that no embedding was refined
    plan = make_plan(RunStore.create(folder), Outline(run.method, requested, params, (), stages, keys, surveyed), quiet)
    there = [one if one.key == TRIAL else replace(one, group=run.group(one.stage.name)) for one in plan.stages]
    plan = replace(plan, stages=tuple(there))
    plan.check()
    for planned in plan.stages:
        if planned.key == TRIAL:
            prepared = prepared_stage(plan, planned, quiet)
            if prepared is not None:
                compute_stage(*prepared, quiet, plan.outline.survey.points)
    return plan


def sampled_errors(comparison: Comparison, landmarks: np.ndarray) -> np.ndarray:
    """Return Nystrom residuals, distances and condition numbers of the points looked at: (3, M) float64."""
    rows, dimensions = comparison.rows, comparison.run.dimensions
    one_block = dimensions.block_rows * dimensions.row_bytes  # stays in memory for the tiles that follow
    points = RowsOfArray(comparison.run.stored(StoredPoints).points, dimensions.n_points, one_block)
    prepared, kernel = prepare_landmarks(landmarks), nystrom_kernel(landmarks, comparison.sigma)
    params = comparison.requested.as_resolved(comparison.run.method)
    n_neighbors, added = params.landmark_neighbors, params.landmark_weights.regularization
    errors = np.empty((3, len(rows)))

    def measure(tile: slice) -> None:
        some = points[rows[tile]]
        indices, squares = nearest_landmarks(some, prepared, n_neighbors)
        conditions = local_conditions(some, landmarks, indices, added)
        errors[:, tile] = nystrom_residuals(some, kernel), np.sqrt(squares[:, 0]), conditions

    comparison.executor.over(measure, list(slices(len(rows), TILE_ROWS)))
    return errors
