"""A tuned number that is at its default is in no key: another default needs another version of its stage."""

import pytest

from scalemani.config.params import TUNED, Parameters
from scalemani.config.routes import ROUTES

# The version of a stage, and the defaults of its tuned numbers at that version. Whoever changes a default raises the
# version in `scalemani.config.stages`, then writes both here.
HELD = {
    "partition": (4, {"most_basis_rows": 10_000}),
    "neighbors": (
        10,
        {
            "exact_below": 20_000, "first_probes": 8, "missed": 1.6, "least_probes": 4, "most_probes": 32,
            "nearby_cells": 256, "nearby_per_probe": 16, "few_neighbors": 30, "few_candidates": 3.0,
            "first_candidates": 1.7, "later_candidates": 1.0, "most_visited": 30, "most_listed": 45,
            "rounding_share": 0.08, "close_share": 0.1,
        },
    ),
    "affinities": (1, {"trees": 10, "jitter": 0.4}),
    "components": (2, {"queries_per_component": 64, "most_queries": 8192, "least_bridge_weight": 1e-3}),
    "landmarks": (
        2, {"snap": True, "sigma": None, "update": "gaussian", "neighborhood": None, "geodesic": False,
            "eta": None, "projection": "none", "batch_points": None, "steps": 1000}
    ),
    "landmark_graph": (
        2, {"n_neighbors": None, "sigma": None, "neighborhood": 100, "covariances": "full"}
    ),
    "embedding": (6, {"float32_reaches": 4e-6}),
    "clustering": (2, {"settled": 1e-6, "most_passes": 100}),
    "layout": (
        5,
        {"jitter": 1e-4, "exact_up_to": 2000, "coarsest": 0.1, "doubled_for": 0.08, "least_strength": 1e-6},
    ),
}  # fmt: skip
# Where half of the default is not allowed for.
OTHERS = {
    "sigma": 0.5, "update": "sine", "neighborhood": 7, "eta": 2.0, "projection": "sphere", "batch_points": 70,
    "n_neighbors": 7, "covariances": "diagonal",
    **dict.fromkeys(("few_candidates", "first_candidates", "later_candidates"), 2.5),
}  # fmt: skip
STAGES = {stage.name: stage for route in ROUTES.values() for stage in route}


def test_every_tuned_number_is_held():
    assert {stage: set(numbers) for stage, (_, numbers) in HELD.items()} == {s: set(n) for s, n in TUNED.items()}


@pytest.mark.parametrize("stage", HELD)
def test_another_default_comes_with_another_version(stage):
    version, numbers = HELD[stage]
    found = {name: getattr(getattr(Parameters(), stage), name) for name in numbers}
    assert (STAGES[stage].version, found) == (version, numbers)


@pytest.mark.parametrize("stage", HELD)
def test_a_key_holds_a_tuned_number_only_where_it_was_set(stage):
    assert not set(TUNED[stage]) & set(Parameters().of_stage(stage))
    for name in TUNED[stage]:
        default = getattr(getattr(Parameters(), stage), name)
        other = OTHERS[name] if name in OTHERS else not default if isinstance(default, bool) else default / 2
        other = int(other) if type(default) is int else other
        changed = Parameters().with_values({stage: {name: other}})
        assert changed.of_stage(stage) == {**Parameters().of_stage(stage), name: other}
