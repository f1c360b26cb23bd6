"""Which of the requested parameters have an effect, by the conditions of their fields.

A note names a parameter that was set and has no effect, and no key holds it: one file of parameters serves several
methods and any number of points. Where a parameter needs what another one rules out, as an exaggeration for no
iterations, both are refused.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from scalemani.config.params.conditions import Acts, Table, conditions_of
from scalemani.config.params.fields import names_of
from scalemani.config.params.parameters import Parameters, names_of_parameters
from scalemani.errors import ConfigError

DEFAULTS = Parameters()


@dataclass(frozen=True)
class RunConfiguration:
    """What decides which parameters have an effect in a run.

    `params` are decided; `stages` are those whose parameters are read: by stages that are run, and by the placement of
    new points. `used` has the values that are used for any request: the methods of "neighbors.method" and
    "layout.repulsion", None where there is none, and the number of POINTS.
    """

    method: str
    params: Parameters
    request: Parameters
    stages: frozenset[str]
    used: Mapping[str, Any]

    def value(self, name: str) -> Any:
        """Return the value of a parameter that is in use."""
        return self.used[name] if name in self.used else self.params.value(name)

    def requested(self, name: str) -> Any:
        """Return the value of a parameter that was requested."""
        return self.request.value(name)

    def part(self, kind: type[Table]) -> Table:
        """Return the parameters of a class that are in use."""
        return self.params.part(kind)


class Idle(NamedTuple):
    """Why a parameter has no effect, and whether the request contradicts itself."""

    reason: str
    refused: bool = False


@functools.cache
def conditions() -> Mapping[str, tuple[Acts, ...]]:
    """Return the conditions of all parameters that have some, by the names of --set."""
    return {
        f"{stage}.{name}": tuple(of_field)
        for stage in names_of(DEFAULTS)
        if stage != "seed"
        for name, of_field in conditions_of(type(getattr(DEFAULTS, stage))).items()
    }


def effective_parameters(
    here: RunConfiguration, decide: Callable[[Parameters], Parameters]
) -> tuple[Parameters, tuple[str, ...]]:
    """Return the decided parameters without the requested ones that have no effect, and a note on each of these.

    Raises ConfigError for those that contradict other parameters. A value that is decided anyway has no note.
    """
    idle = {name: why for name in names_of_parameters() if (why := why_idle(name, here))}
    if not idle:
        return here.params, ()
    params = decide(here.request.with_values({name: DEFAULTS.value(name) for name in idle}))
    notes = {
        name: f"{name}={here.requested(name)} has no effect: {why.reason}"
        for name, why in idle.items()
        if here.requested(name) != params.value(name)
    }
    if refusals := [note for name, note in notes.items() if idle[name].refused]:
        raise ConfigError("; ".join(refusals))
    return params, tuple(notes.values())


def why_idle(name: str, here: RunConfiguration) -> Idle | None:
    """Return why a parameter has no effect; None where it has one or was not set."""
    if here.requested(name) == DEFAULTS.value(name):
        return None
    if not is_read(name, here):
        return Idle(f"no stage of {here.method} with embedding.solver={here.params.embedding.solver} reads it")
    failed = ((one.why_not(here), one.required) for one in conditions().get(name, ()))
    return next((Idle(*why) for why in failed if why[0]), None)


def is_read(name: str, here: RunConfiguration) -> bool:
    """Return whether a stage that is run, or the placement of new points, reads a parameter."""
    if name == "affinities.perplexity" and here.requested("neighbors.n_neighbors") is None:
        return "neighbors" in here.stages
    return name == "seed" or name.partition(".")[0] in here.stages
