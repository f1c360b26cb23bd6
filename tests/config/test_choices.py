"""Names that type checkers are told of are those that a run takes."""

import typing

import pytest

from scalemani.config import choices
from scalemani.config.methods import OrderExtension, extensions
from scalemani.config.metrics import METRIC_NAMES, METRICS, SAME_METRICS, MappedMetric
from scalemani.config.objectives import OBJECTIVES, Kernel
from scalemani.config.params import by_stage, layout
from scalemani.config.params.fields import known_metric
from scalemani.config.stages import PRECOMPUTED
from scalemani.io.figures.look import LEGENDS, THEMES
from scalemani.kernels.landmarks.selection import LANDMARK_METHODS
from scalemani.kernels.repulsion.pair_sums import KERNELS


def literals_of(table, name):
    """Return the names in the type of a parameter, None left out."""
    hint = typing.get_type_hints(table)[name]
    return {name for name in typing.get_args(hint) if isinstance(name, str)} or {
        name for part in typing.get_args(hint) for name in typing.get_args(part)
    }


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        (choices.NamedMetric, {*METRIC_NAMES, *SAME_METRICS} - {PRECOMPUTED}),
        (choices.Power, {name for name in typing.get_args(choices.Power) if known_metric(name) == name}),
        (
            choices.CoordinateMetric,
            {*typing.get_args(MappedMetric), *(a for a, b in SAME_METRICS.items() if not METRICS[b].scipy)},
        ),
        (choices.Missing, literals_of(by_stage.PointsParams, "missing")),
        (choices.NeighborSearch, literals_of(by_stage.NeighborsParams, "method") - {"given"}),
        (choices.AffinityKind, literals_of(by_stage.AffinitiesParams, "kind")),
        (choices.BandwidthSolver, literals_of(by_stage.AffinitiesParams, "solver")),
        (choices.BandwidthOrder, {"density", "bounds", "oracle", *extensions(OrderExtension)}),
        (choices.Disconnected, literals_of(by_stage.ComponentsParams, "disconnected")),
        (choices.LandmarkRule, {*LANDMARK_METHODS}),
        (choices.Solver, {*typing.get_args(by_stage.Solver)}),
        (choices.ObjectiveName, {*OBJECTIVES}),
        (choices.RepulsionMethod, {*typing.get_args(layout.RepulsionMethod)}),
        (choices.Direction, literals_of(layout.LayoutParams, "direction")),
        (choices.Legend, {*LEGENDS}),
        (choices.ThemeName, {*THEMES}),
        (Kernel, {*KERNELS}),
    ],
)
def test_a_choice_lists_what_is_allowed(choice, allowed):
    names = typing.get_args(choice)
    assert len(names) == len(set(names))
    assert {*names} == allowed
