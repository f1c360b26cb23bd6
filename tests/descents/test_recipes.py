"""What a method does when nothing is asked, and when something is."""

import numpy as np
import pytest

from scalemani.config.params import Parameters, ResolvedLayout
from scalemani.descents.phases import NEVER, phases_of


def resolved(method, **values) -> ResolvedLayout:
    """Return the descent of a method, with what was left open decided."""
    return Parameters().with_values({"layout": values}).resolved(method).descent


def test_t_sne_is_exaggerated_first():
    early, late = phases_of(resolved("t-sne"), 70_000)
    assert (early.exaggeration, late.exaggeration) == (12.0, 1.0)
    assert (early.length, late.length) == (70_000 / 12, 70_000)
    assert early.most_iterations + late.most_iterations == 1000
    assert late.converged > 0 == early.converged
    assert (early.momentum, late.momentum) == (0.9, 0.9)


def test_late_exaggeration_lasts_after_the_early_one_with_its_learning_rate():
    early, late = phases_of(resolved("t-sne", late_exaggeration=4.0), 70_000)
    assert (early.exaggeration, late.exaggeration) == (12.0, 4.0)
    assert (early.length, late.length) == (70_000 / 12, 70_000 / 4)
    assert [phase.exaggeration for phase in phases_of(resolved("s-sne", late_exaggeration=2.0), 9)] == [2.0]


def test_the_momentum_of_the_exaggeration_is_its_own_where_it_is_given():
    def momenta(**values):
        return [phase.momentum for phase in phases_of(resolved("t-sne", **values), 70_000)]

    assert momenta(exaggerated_momentum=0.3) == [0.3, 0.9]
    assert momenta(exaggerated_momentum=0.3, momentum=0.7) == [0.3, 0.7]
    assert momenta(momentum=0.7) == [0.7, 0.7]


@pytest.mark.parametrize("exaggerated", [20, 75, 130])
def test_an_accuracy_schedule_goes_on_through_the_exaggeration(exaggerated):
    numbers = {"exaggerated_iterations": exaggerated, "schedule": 100, "tolerance": 1e-3}
    phases = phases_of(resolved("t-sne", **numbers), 70_000)
    allowed = [phase.tolerance_at(number) for phase in phases for number in range(phase.most_iterations)]
    expected = [0.1 * 0.01 ** (min(iteration, 100) / 100) for iteration in range(1000)]
    np.testing.assert_allclose(allowed, expected, rtol=1e-12)


def test_l_bfgs_remembers_fewer_pairs_beside_the_spectral_direction():
    pairs = {
        name: phases_of(resolved("s-sne", direction=name), 1000)[0].pairs for name in ("l-bfgs", "spectral+l-bfgs")
    }
    assert pairs == {"l-bfgs": 100, "spectral+l-bfgs": 10}  # as the parameter's description promises
    assert resolved("s-sne", direction="spectral").pairs is None


def test_only_maps_that_momentum_has_made_are_doubled():
    early, late = phases_of(resolved("t-sne"), 70_000)
    assert (early.doubled_for, late.doubled_for) == (NEVER, 0.08)
    assert phases_of(resolved("t-sne", doubled_for=0.3), 70_000)[-1].doubled_for == 0.3
    for asked in (resolved("t-sne", init="given"), resolved("t-sne", direction="spectral"), resolved("s-sne")):
        assert {phase.doubled_for for phase in phases_of(asked, 70_000)} == {NEVER}


@pytest.mark.parametrize("most", [1, 20, 74, 75, 76])
def test_no_more_iterations_than_asked(most):
    phases = phases_of(resolved("t-sne", max_iterations=most), 1000)
    assert sum(phase.most_iterations for phase in phases) == most


def test_a_homotopy_ends_at_the_strength_asked_for():
    asked = resolved("elastic-embedding", homotopy=50, strength=100.0)
    phases = phases_of(asked, 720)
    assert asked.strength == 100.0
    np.testing.assert_allclose([phase.strength for phase in phases], np.geomspace(1e-6, 1, 50))
    assert {(phase.converged, phase.window) for phase in phases} == {(1e-6, 1)}
    heeded = resolved("elastic-embedding", homotopy=3, converged=1e-3, window=4)
    assert {(phase.converged, phase.window) for phase in phases_of(heeded, 720)} == {(1e-3, 4)}


def test_what_is_asked_is_done():
    asked = resolved("s-sne", direction="l-bfgs", pairs=7, tolerance=1e-2, schedule=30, converged=1e-7, window=3)
    (phase,) = phases_of(asked, 1000)
    assert (phase.direction, phase.pairs, phase.tolerance, phase.schedule) == ("l-bfgs", 7, 1e-2, 30)
    assert (phase.converged, phase.window, phase.length) == (1e-7, 3, None)
    (phase,) = phases_of(resolved("s-sne", direction="spectral", kappa=11, converged=0.0), 1000)
    assert (phase.kappa, phase.coarsest, phase.converged) == (11, 0.1, 0.0)  # which is never
    assert asked.start_deviation == 1.0
    assert resolved("t-sne").start_deviation < 1.0
    assert asked.strength == 1.0
