"""What methods add to a descent: other sums of the repulsion, search directions, and certificates of its end."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scalemani.config.methods import DescentExtension, extensions
from scalemani.config.params import LayoutParams, ResolvedLayout
from scalemani.descents.descent import State
from scalemani.descents.directions import Direction
from scalemani.descents.problem import Problem
from scalemani.kernels.repulsion.pair_sums import PairSums

if TYPE_CHECKING:
    from scalemani.descents.phases import Phase


class Ended(NamedTuple):
    """A descent at its end: the last sums, and the curve (n, 3) of iterations, values and gradient norms."""

    problem: Problem
    params: ResolvedLayout
    state: State
    sums: PairSums
    curve: np.ndarray


class DescentPart:
    """What a method adds to the descents that want it: nothing, but for what it overrides."""

    def check_parameters(self, params: LayoutParams, n_points: int, weighted: bool) -> None:
        """Refuse parameters before a descent of so many points starts, which may be `weighted`."""

    def held(self, params: LayoutParams, n_points: int) -> Mapping[str, float]:
        """Return the bytes that are held in addition, and what for."""
        return {}

    def prepared(self, problem: Problem, params: ResolvedLayout, rows: np.ndarray | None) -> Problem:
        """Return the problem that is solved instead; `rows` (N,) are the input rows of its points, None: in order."""
        return problem

    def direction(self, phase: "Phase", problem: Problem) -> Direction:
        """Return a direction of the extension's `directions`."""
        raise NotImplementedError(phase.direction)

    def certificates(self, ended: Ended) -> Mapping[str, Any]:
        """Return what is known of the end."""
        return {}


def parts_of(params: LayoutParams) -> list[DescentPart]:
    """Return what methods add to a descent of some parameters."""
    return [one.load()() for one in extensions(DescentExtension).values() if one.wanted(params)]
