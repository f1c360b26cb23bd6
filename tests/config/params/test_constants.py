"""Numbers that no key holds: whoever changes one raises the version of the stage whose results it changes.

`constants.json` has the version and a digest of the constants of each stage. After raising versions in
`scalemani.config.stages`, `python -m tests.config.params.test_constants` writes the new digests; it refuses a stage
whose constants are others at the same version. Where results stay the same bits, remove the entry of the stage first.
"""

import importlib
import json
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, get_origin, get_type_hints

import pytest

from scalemani.config.params import TUNED, Parameters
from scalemani.config.routes import ROUTES

LOCK = Path(__file__).with_name("constants.json")
# The modules whose numbers decide the result of a stage; tables of parameters have theirs for every stage.
MODULES = {
    "layout": (
        *("descents.descent", "descents.directions", "descents.force_errors", "descents.phases", "descents.problem"),
        *("descents.repulsion", "kernels.descent", "kernels.graph.attraction"),
    ),
    "embedding": ("kernels.spectral.refinement",),
    "coarse_graphs": ("kernels.spectral.coarsening",),
    "coarse_embedding": ("kernels.spectral.multilevel",),
    "reduced": ("kernels.spectral.reduced", "stages.reduced"),
    "landmark_embedding": ("kernels.spectral.eigenproblem",),
}
# Where half of the default is not allowed for.
OTHERS = {
    "sigma": 0.5, "update": "sine", "neighborhood": 7, "eta": 2.0, "projection": "sphere", "batch_points": 70,
    "sweeps": 2, "n_neighbors": 7, "covariances": "diagonal", "few_candidates": 2.5, "distances": "squared",
}  # fmt: skip


def constants_of(table):
    """Return the names of the constants of a table of parameters."""
    return [name for name, hint in get_type_hints(type(table)).items() if get_origin(hint) is ClassVar]


VERSIONS = {stage.name: stage.key.version for route in ROUTES.values() for stage in route}
STAGES = sorted({*MODULES, *TUNED, *(name for name in VERSIONS if constants_of(getattr(Parameters(), name, None)))})


def numbers_of(module):
    found = vars(importlib.import_module(f"scalemani.{module}"))
    return {name: value for name, value in found.items() if name.isupper() and type(value) in (int, float)}


def constants(stage):
    """Return names and values of what decides the result of a stage and is not in its key, in whichever module."""
    table = getattr(Parameters(), stage, None)
    own = {name: getattr(table, name) for name in (*TUNED.get(stage, ()), *constants_of(table))}
    return {
        (name, repr(value))
        for found in (own, *map(numbers_of, MODULES.get(stage, ())))
        for name, value in found.items()
    }


def locked(stage):
    text = json.dumps(sorted(constants(stage)))
    return {"version": VERSIONS[stage], "digest": sha256(text.encode()).hexdigest()[:16]}


@pytest.mark.parametrize("stage", STAGES)
def test_other_constants_come_with_another_version(stage):
    assert json.loads(LOCK.read_text())[stage] == locked(stage), __doc__


@pytest.mark.parametrize("stage", TUNED)
def test_a_key_holds_a_tuned_number_only_where_it_was_set(stage):
    assert not set(TUNED[stage]) & set(Parameters().of_stage(stage))
    for name in TUNED[stage]:
        default = getattr(getattr(Parameters(), stage), name)
        other = OTHERS[name] if name in OTHERS else not default if isinstance(default, bool) else default / 2
        other = int(other) if type(default) is int else other
        changed = Parameters().with_values({stage: {name: other}})
        assert changed.of_stage(stage) == {**Parameters().of_stage(stage), name: other}


@pytest.mark.parametrize("stage", STAGES)
def test_no_key_holds_a_constant(stage):
    table = getattr(Parameters(), stage, None)
    assert not set(constants_of(table)) & set(Parameters().of_stage(stage))


def write_lock():
    """Write the digests of stages that have another version or no entry; refuse others whose constants changed."""
    before = json.loads(LOCK.read_text()) if LOCK.exists() else {}
    after = {stage: locked(stage) for stage in STAGES}
    same = [name for name, now in after.items() if before.get(name, now)["version"] == now["version"]]
    if changed := [name for name in same if before.get(name, after[name]) != after[name]]:
        raise SystemExit(f"other constants at the same version: raise that of {', '.join(changed)}")
    LOCK.write_text(json.dumps(after, indent=1) + "\n")


if __name__ == "__main__":
    write_lock()
