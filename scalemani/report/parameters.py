"""Parameters of a run beside their defaults, and the commands that repeat it."""

import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from scalemani.params import TUNED, Parameters
from scalemani.routes import CLASSES, DUPLICATES, WEIGHTS
from scalemani.runs.opened import Run


class Parameter(NamedTuple):
    """A parameter of a stage that the run has; `tuned` for those that few have a reason to change."""

    name: str
    value: Any
    default: Any
    tuned: bool

    @property
    def changed(self) -> bool:
        """Whether it differs from what would have been taken had nothing been asked."""
        return bool(self.value != self.default)


def parameters_beside_defaults(run: Run) -> Iterator[Parameter]:
    """Yield the parameters of the stages of a run; defaults are those for its method and its number of points."""
    default = Parameters().resolved(run.method, run.dimensions.n_points).as_dict()
    values = run.params.as_dict()
    yield Parameter("seed", values["seed"], default["seed"], False)
    for stage in [known.name for known in run.route]:
        for name, value in values.get(stage, {}).items():
            yield Parameter(f"{stage}.{name}", value, default[stage][name], name in TUNED.get(stage, ()))


def commands(run: Run) -> tuple[str, ...]:
    """Return the commands that make the same run anew, and go on from it; POINTS stands for the points."""
    asked = ["scalemani", "embed", "POINTS", "RUN", "--method", run.method]
    for parameter in parameters_beside_defaults(run):
        if parameter.name == "points.metric" and parameter.changed:
            asked += ["--metric", str(parameter.value)]
        elif parameter.changed and parameter.value is not None and parameter.name != "layout.objective":
            asked += ["--set", f"{parameter.name}={written(parameter.value)}"]
    if CLASSES.name in run.keys:
        asked += ["--labels", "LABELS"]
    if weighs(run):
        asked += ["--weights", "WEIGHTS"]
    return shlex.join(asked), "scalemani info RUN", "scalemani measure RUN", "scalemani report RUN"


def weighs(run: Run) -> bool:
    """Return whether weights were given: those of rows that are one point alone add up to the number of rows."""
    if WEIGHTS.name not in run.keys:
        return False
    if DUPLICATES.name not in run.keys:
        return True
    found = run.certificates
    total = found.get(WEIGHTS.name, {}).get("total_weight")
    return total is not None and bool(total != found[DUPLICATES.name]["rows"])


def written(value: Any) -> str:
    """Return a value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
