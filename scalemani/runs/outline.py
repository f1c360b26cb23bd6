"""What is decided of a run before its store is looked at: its parameters, its stages, and the keys of their results."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dask.utils import format_bytes

from scalemani.config.params import Parameters
from scalemani.config.routes import takes_labels
from scalemani.config.stages import REFINE, Stage
from scalemani.errors import ConfigError
from scalemani.runs.parameters import decide_parameters
from scalemani.runs.survey import Survey
from scalemani.store.objects import digest

KEY_CHARACTERS = 16
SOLVER = "solver"  # in the plan that a store keeps: what embedding.solver=auto was resolved to, and by which figure


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
