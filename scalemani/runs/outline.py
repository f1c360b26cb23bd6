"""What is decided of a run before its store is looked at: parameters, solver, stages, and the keys of results."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dask.utils import format_bytes

from scalemani.config.params import Parameters
from scalemani.config.routes import takes_labels
from scalemani.config.stages import AUTO, LLL, REFINE, Stage
from scalemani.engine.needs import PROCESS_BYTES, memory_need
from scalemani.engine.sizes import Sizes
from scalemani.errors import ConfigError
from scalemani.runs.parameters import decide_parameters
from scalemani.runs.survey import Survey
from scalemani.stages.table import STAGES
from scalemani.store.objects import digest
from scalemani.store.run_store import PLAN, RunStore

KEY_CHARACTERS = 16
SOLVER = "solver"  # in the plan that a store keeps: what embedding.solver=auto was resolved to, and by which figure
STAGE = "embedding"


@dataclass(frozen=True)
class Earlier:
    """A run that points were appended to: its keys by stage, its points, and the digest of those that follow."""

    keys: Mapping[str, str]
    n_points: int
    appended: str

    def as_dict(self) -> dict[str, Any]:
        """Return what a store keeps: after how many points, and the digest of those that follow."""
        return {"after": self.n_points, "content": self.appended}


@dataclass(frozen=True)
class SolverChoice:
    """What `auto` is resolved to; bytes that a refinement takes in the driver, and that it may use (0: no limit)."""

    resolved: str
    needed: int
    memory: int

    @property
    def text(self) -> str:
        """What users are told of it."""
        takes = f"refinement takes {format_bytes(self.needed)} of the driver's memory"
        if self.resolved == REFINE:
            return f"embedding.solver=auto is refine: {takes}"
        return (
            f"embedding.solver=auto is lll: {takes}, which was given {format_bytes(self.memory)}; the embedding is "
            "that of the landmarks (landmarks.n_landmarks); with a larger --memory it is refined"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what a store keeps."""
        return asdict(self)


@dataclass(frozen=True)
class Outline:
    """A method on given points.

    `asked` are the parameters as they were given and `params` as they are used; `notes` say what has no effect; `keys`
    are by stage; `survey` is that of the points; `origins` say where points come from that are a component; `earlier`
    is the run that points were appended to; `solver` is what `auto` was resolved to, None where it was not asked for.
    """

    method: str
    asked: Parameters
    params: Parameters
    notes: tuple[str, ...]
    stages: tuple[Stage, ...]
    keys: dict[str, str]
    survey: Survey
    origins: tuple[dict[str, Any], ...] = ()
    earlier: Earlier | None = None
    solver: SolverChoice | None = None

    def leaves_out(self, name: str) -> bool:
        """Return whether a stage belongs to a solver that `auto` was not resolved to."""
        return self.solver is not None and name not in self.keys

    @property
    def n_appended(self) -> int:
        """How many points were appended to an earlier run."""
        return 0 if self.earlier is None else self.survey.dimensions.n_points - self.earlier.n_points


def outline_run(
    method: str,
    asked: Parameters,
    survey: Survey,
    origins: tuple[dict[str, Any], ...] = (),
    earlier: Earlier | None = None,
) -> Outline:
    """Decide what a run computes, after checking that its parameters fit the data.

    Parameters
    ----------
    method : a name of `scalemani.config.routes.ROUTES`.

    Raises
    ------
    ConfigError, DataError
        Where the parameters contradict each other, or the points cannot serve them.
    """
    side = survey.side
    stages = asked.route(method, side.weights is not None)
    if side.labels is None and any(stage.reads_labels for stage in stages):
        weight = f"symmetric_affinities.target_weight={asked.symmetric_affinities.target_weight:g}"
        who = method if takes_labels(method) else f"{method} with {weight}"
        raise ConfigError(f"{who} learns from labels: give one a point with --labels FILE, or as y of fit")
    params, notes = decide_parameters(asked, method, survey, stages)
    keys: dict[str, str] = {}
    for stage in stages:
        inputs = [keys[name] for name in stage.inputs if name not in stage.follows] or [survey.content]
        for reads, part in (
            (stage.reads_labels, side.labels),
            (stage.reads_start, side.init),
            (stage.reads_landmarks, side.landmarks),
            (stage.reads_weights, side.weights),
            (stage.reads_duplicates, side.duplicates),
            (stage.reads_pairs, side.pairs),
        ):
            if reads and part is not None:
                inputs.append(part.digest)
        if earlier is not None and stage.continues:
            inputs += [earlier.keys[name] for name in stage.continues if name in earlier.keys]
            inputs.append(f"continued version {stage.continued_version}")
        seed = params.seed if stage.seeded else None
        content = json.dumps([stage.name, stage.version, stage_params(stage, params), seed, inputs], sort_keys=True)
        keys[stage.name] = digest(content.encode())[:KEY_CHARACTERS]
    return Outline(method, asked, params, notes, stages, keys, survey, origins, earlier)


def stage_params(stage: Stage, params: Parameters) -> dict[str, Any]:
    """Return the parameters on which a stage's result depends: its own, and those it also reads by their stage."""
    read = {name: params.of_stage(name) for name in stage.also_reads}
    for name in stage.parameters:
        group, _, parameter = name.partition(".")
        if parameter in (keyed := params.of_stage(group)):
            read[name] = keyed[parameter]
    return {**params.of_stage(stage.name), **read}


def outline_within(method: str, requested: Parameters, survey: Survey, memory: int | None, store: RunStore) -> Outline:
    """Return the outline of a run whose driver may use so many bytes (None: no limit); errors: `outline_run`.

    A run that is resumed keeps its solver, however much memory there is now.

    Parameters
    ----------
    store : of the run, which may not be there yet.
    """
    outline = outline_run(method, requested, survey)
    if requested.embedding.solver != AUTO or STAGE not in outline.keys:
        return outline
    choice = solver_choice(outline, memory, store)
    if choice.resolved != REFINE:
        outline = outline_run(method, requested.with_values({"embedding": {"solver": choice.resolved}}), survey)
    return replace(outline, solver=choice)


def solver_choice(outline: Outline, memory: int | None, store: RunStore) -> SolverChoice:
    """Return what `auto` is resolved to, from the outline of a run that refines."""
    params = outline.params
    sizes = Sizes(outline.survey.dimensions, params, None, outline.survey.side.weights is not None)
    need = memory_need(STAGES[STAGE].memory(sizes))
    # Arrays with a row for each point are mapped files where memory has no room for them.
    needed = PROCESS_BYTES + need.total(1) - need.growing
    # Landmarks are points, a descent holds W on the driver in any case, and pieces are solved one by one.
    separate = params.components.disconnected == "separate"
    always_refines = bool(params.given_instead) or separate or params.layout.objective is not None
    fits = always_refines or not memory or needed <= memory
    return SolverChoice(stored_solver(outline, store) or (REFINE if fits else LLL), needed, memory or 0)


def stored_solver(outline: Outline, store: RunStore) -> str | None:
    """Return the solver of the last run in a store, where that resolved `auto` or refined for the same points."""
    plan = store.objects.intact(PLAN) or {}
    try:
        points = plan["within"][0]["components"] if plan["within"] else plan["keys"]["points"]
        same = plan["method"] == outline.method and points in (outline.keys["points"], outline.keys.get("components"))
        solver = plan[SOLVER]["resolved"] if SOLVER in plan else plan["params"]["embedding"]["solver"]
    except (KeyError, TypeError, IndexError):  # of an older version, or damaged: what it says is decided anew
        return None
    return solver if same and (SOLVER in plan or solver == REFINE) else None
