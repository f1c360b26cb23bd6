"""The size of a map: it is doubled where that alone lowers the objective substantially.

Attraction, exaggerated, contracts a map to a tenth of its width. Its parts then push each other away over hundreds of
iterations, the longer the more points there are, since far ones hardly push. The objective of a larger map can be
evaluated at once.
"""

from dataclasses import replace

import numpy as np

from scalemani.config.params.parameters import FIRST_DOUBLING
from scalemani.descents.descent import State
from scalemani.descents.force_errors import ADAPT_EVERY
from scalemani.descents.problem import Problem
from scalemani.kernels.arrays.coordinates import moved
from scalemani.kernels.repulsion.pair_sums import PairSums

NEVER = 1.0  # a share of the objective that doubling a map does not take away
# Iterations of a phase from look to look: those at which the error of forces is measured, since a map that was doubled
# needs finer sums.
LOOK_EVERY = ADAPT_EVERY
# Of the error of forces, within five iterations: the parts of a map that was doubled draw together again. Of 70,000 and
# of a million digits it grew to 1.2 and 1.45 times as much.
ERROR_GROWTH = 1.5
# Of 8 bytes, for a mesh with its transforms and the fields of all threads: over maps as wide as those of few points
# get, and over the widest ones that are doubled, which have so many nodes at the finest usual step.
MESH_VALUES, WIDE_MESH_VALUES, FEW_POINTS = 37_500_000, 60_000_000, 150_000
WIDE_MESH_NODES, FINE_STEP = 2**24, 0.25


def mesh_values(n_points: int) -> int:
    """Return how many numbers of 8 bytes a mesh over a map of so many points takes, as far as maps are planned for."""
    return MESH_VALUES if n_points <= FEW_POINTS else WIDE_MESH_VALUES


def largest_radius(n_points: float, n_dims: int) -> float:
    """Return how far a point of a map that was doubled is from its middle at most.

    Spread evenly there is a point for every 2^d cubes as wide as the kernel; and a mesh is one that is planned for.
    """
    return min(n_points, WIDE_MESH_NODES * (FINE_STEP / 2) ** n_dims) ** (1 / n_dims)


def may_double(state: State) -> bool:
    """Return whether a map may be doubled after so many iterations of its phase."""
    return state.phase_iteration >= FIRST_DOUBLING and state.phase_iteration % LOOK_EVERY == 0


def doubled_if_lower(problem: Problem, sums: PairSums, state: State, least_fall: float) -> State:
    """Return the state with its map twice as large, where the objective falls by a share `least_fall`; else as it is.

    Where a window of the descent ends here, the next one starts from the value of the larger map. Velocities stay.
    """
    larger, reach = moved(state.positions, 1.0, state.positions, problem.workspace)
    if reach > largest_radius(problem.n_copies, larger.shape[1]):
        return state
    value = state.value if np.isfinite(state.value) else problem.value(state.positions, sums)
    larger_value = problem.value(larger, sums)
    if not value - larger_value >= least_fall * abs(value):
        return state
    reference = larger_value if state.reference == value else state.reference
    return replace(state, positions=larger, value=larger_value, reference=reference, gradient=None)
