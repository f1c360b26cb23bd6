"""Maps that are doubled: where the objective falls far enough, never twice at one look, never beyond their points."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.objectives import OBJECTIVES
from scalemani.config.params.layout import FIRST_DOUBLING
from scalemani.descents import phases
from scalemani.descents.descent import State
from scalemani.descents.phases import ERROR_GROWTH, LOOK_EVERY, NEVER, Phase, descend, doubled_if_lower, may_double
from scalemani.descents.problem import problem_of
from scalemani.descents.repulsion import largest_radius, make_repulsion, mesh_values
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.repulsion.convolution import padded_lengths
from scalemani.kernels.repulsion.particle_mesh import fitted_mesh, mesh_rule

N_CLUSTERS, MEMBERS = 30, 20
FALL = 0.08


@pytest.fixture(scope="module")
def problem():
    """Return t-SNE of clusters whose members all attract each other."""
    block = np.ones((MEMBERS, MEMBERS)) - np.eye(MEMBERS)
    matrix = sp.csr_matrix(sp.block_diag([block] * N_CLUSTERS, format="csr"))
    rows = AffinityRows(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data.astype(np.float32)
    )
    return problem_of(rows, OBJECTIVES["t-sne"], 1.0)


@pytest.fixture(scope="module")
def sums():
    return make_repulsion("exact", "student", 1e-3)


@pytest.fixture
def small_map():
    """Return clusters on a circle, drawn together to a fraction of the width at which they are apart."""
    draws, angles = np.random.default_rng(0), 2 * np.pi * np.arange(N_CLUSTERS) / N_CLUSTERS
    centres = np.repeat(np.column_stack([np.cos(angles), np.sin(angles)]), MEMBERS, axis=0)
    positions = 2 * centres + draws.normal(size=centres.shape) / 50
    return positions - positions.mean(axis=0)


def test_a_map_is_doubled_once_at_a_look_and_its_objective_falls(problem, sums, small_map):
    before = State(small_map, phase_iteration=FIRST_DOUBLING, memory={"velocity": np.ones_like(small_map)})
    after = doubled_if_lower(problem, sums, before, FALL)
    np.testing.assert_allclose(after.positions, 2 * small_map, atol=1e-12)
    first = problem.value(small_map, sums)
    assert after.value == problem.value(after.positions, sums) <= (1 - FALL) * first
    assert after.memory is before.memory
    assert after.phase_iteration == before.phase_iteration


def test_a_window_starts_from_the_value_of_the_larger_map_and_only_one_that_ended_here(problem, sums, small_map):
    value = problem.value(small_map, sums)
    ended = doubled_if_lower(problem, sums, State(small_map, value=value, reference=value), FALL)
    assert ended.reference == ended.value < value
    within = doubled_if_lower(problem, sums, State(small_map, value=value, reference=9.0), FALL)
    assert within.reference == 9.0


def test_a_map_stays_where_the_objective_does_not_fall_far_enough(problem, sums, small_map):
    state = State(small_map)
    fall = 1 - problem.value(2 * small_map, sums) / problem.value(small_map, sums)
    assert doubled_if_lower(problem, sums, state, fall * 1.001) is state
    assert doubled_if_lower(problem, sums, state, fall * 0.999) is not state


def test_a_map_grows_no_wider_than_its_points_allow(problem, sums, small_map):
    wide = small_map * (0.51 * np.sqrt(len(small_map)) / np.abs(small_map).max())
    state = State(wide)
    assert doubled_if_lower(problem, sums, state, -10.0) is state  # at any value
    assert doubled_if_lower(problem, sums, State(wide / 1.1), -10.0) is not state
    copies = replace(problem, masses=np.full(len(wide), 4.0))
    assert doubled_if_lower(copies, sums, state, -10.0) is not state


def test_a_map_grows_no_wider_than_a_mesh_is_planned_for():
    assert [largest_radius(n, 2) for n in (100, 10_000, 10**7, 10**9)] == pytest.approx([10, 100, 512, 512])
    assert [largest_radius(n, 3) for n in (1000, 10**9)] == pytest.approx([10, 32])
    rule = mesh_rule("student", 1e-3, 10**7, 2)
    reach = largest_radius(10**7, 2)
    mesh = fitted_mesh(np.full(2, -reach), np.full(2, reach), rule)
    transform = np.prod([length / 2 + 1 for length in padded_lengths(mesh.shape, np.inf)])
    # Two sets of charges, the spectrum of as many complex numbers, and the kernel's transform: made once, used twice.
    taken = np.prod(mesh.shape) * 4 * rule.dtype.itemsize + transform * (8 + 2 * rule.dtype.itemsize)
    assert taken <= 8 * mesh_values(10**7)


def test_maps_are_looked_at_from_the_third_window_on():
    looks = [n for n in range(400) if may_double(State(np.zeros((1, 2)), phase_iteration=n))]
    assert looks == list(range(FIRST_DOUBLING, 400, LOOK_EVERY))


def descent(problem, start, doubled_for):
    phase = Phase("momentum", FIRST_DOUBLING + LOOK_EVERY + 5, length=5.0, doubled_for=doubled_for)
    return descend(problem, [phase], "exact", start)


def width(state):
    return float(np.ptp(state.positions, axis=0).max())


def test_a_descent_doubles_its_map_at_the_first_look_and_goes_on_to_the_same_bits_from_any_state(problem, small_map):
    states = list(descent(problem, State(small_map), FALL))
    plain = list(descent(problem, State(small_map), NEVER))
    np.testing.assert_array_equal(states[FIRST_DOUBLING - 2].positions, plain[FIRST_DOUBLING - 2].positions)
    assert width(states[FIRST_DOUBLING - 1]) == pytest.approx(2 * width(plain[FIRST_DOUBLING - 1]), rel=1e-9)
    for number in (FIRST_DOUBLING - 2, FIRST_DOUBLING - 1, FIRST_DOUBLING + 7):
        stored = State.of_arrays(states[number].arrays())
        *_, last = descent(problem, stored, FALL)
        np.testing.assert_array_equal(last.positions, states[-1].positions)


def test_the_sums_of_a_map_that_was_doubled_are_finer_before_its_parts_draw_together(problem, small_map, spy):
    asked = spy(phases, "adapt_tolerance", lambda *given: given[-1])
    phase = Phase("momentum", FIRST_DOUBLING + LOOK_EVERY + 1, length=5.0, doubled_for=FALL)
    widths = [width(state) for state in descend(problem, [phase], "grid", State(small_map))]
    doubled = [widths[n] > 1.9 * widths[n - 1] for n in range(LOOK_EVERY - 1, len(widths) - 1, LOOK_EVERY)]
    assert asked == [ERROR_GROWTH if each else 1.0 for each in doubled]
    assert ERROR_GROWTH in asked
    assert 1.0 in asked
