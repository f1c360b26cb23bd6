"""A descent as state, start and step: it can be stopped and stored after any step, and resumes with the same bits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from scalemani.descents.directions import Direction, Memory
from scalemani.descents.problem import Evaluation, Problem
from scalemani.errors import ConvergenceError, NumericalError
from scalemani.kernels.arrays.coordinates import dot, moved, norm
from scalemani.kernels.repulsion.pair_sums import PairSums

SUFFICIENT_DECREASE = 1e-4  # of the slope, the first Wolfe condition
BACKTRACK = 0.5
MOST_HALVINGS = 20
GROWTH_INTERVAL = 5
REACH = 1.0  # of the map's extent, the most that a coordinate may move in a step that is searched
LARGEST_COORDINATE = 1e7  # an embedding that reaches this far has exploded: no method needs a fraction of it


@dataclass(frozen=True)
class State:
    """Where a descent stands.

    positions (N, d) float64; `iteration` in all, `phase_iteration` in the phase numbered `phase`; `value` of the
    objective at the positions, NaN where it was not computed, and `reference`, that at the end of the last window;
    `step` length last accepted, 0 where none made the objective fall; `gradient` where it is known at the positions,
    and `gradient_norm` before the last step; the direction's memory; `ended_after`, iterations of the phase before;
    `tolerance_factor`, times the tolerance is what approximate sums are set to, so that their measured error is within
    the tolerance.
    """

    positions: np.ndarray
    phase: int = 0
    phase_iteration: int = 0
    iteration: int = 0
    evaluations: int = 0
    ended_after: int = 0
    value: float = np.nan
    reference: float = np.nan
    step: float = 1.0
    gradient_norm: float = np.nan
    tolerance_factor: float = 1.0
    gradient: np.ndarray | None = None
    memory: Memory = field(default_factory=dict)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all of the state as arrays, for storage."""
        known = {} if self.gradient is None else {"gradient": self.gradient}
        memory = {f"memory_{name}": values for name, values in self.memory.items()}
        return {
            "positions": self.positions,
            "counts": np.array([getattr(self, name) for name in COUNTS]),
            "numbers": np.array([getattr(self, name) for name in NUMBERS]),
            **known,
            **memory,
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "State":
        """Return the state that `arrays()` was made of."""
        memory = {name.removeprefix("memory_"): arrays[name] for name in arrays if name.startswith("memory_")}
        counts = dict(zip(COUNTS, arrays["counts"].tolist(), strict=True))
        numbers = dict(zip(NUMBERS, arrays["numbers"].tolist(), strict=True))
        return cls(arrays["positions"], **counts, **numbers, gradient=arrays.get("gradient"), memory=memory)


COUNTS = ("phase", "phase_iteration", "iteration", "evaluations", "ended_after")
NUMBERS = ("value", "reference", "step", "gradient_norm", "tolerance_factor")


@dataclass(frozen=True)
class FixedStep:
    """The same step each time: for directions that scale themselves, and forces that are only approximate.

    `needs_values` says of a line search whether it compares values of the objective.
    """

    length: float = 1.0
    needs_values: bool = False

    def accept(
        self, problem: Problem, sums: PairSums, state: State, gradient: np.ndarray, direction: np.ndarray
    ) -> State:
        """Return the state one step on.

        Parameters
        ----------
        gradient, direction : ndarray (N, d) float64
            At the positions of the state.

        Raises
        ------
        ConvergenceError
            Where a coordinate is no finite number or beyond 1e7: no point comes back from there.
        """
        positions, largest = moved(state.positions, self.length, direction, problem.workspace)
        if not largest < LARGEST_COORDINATE:
            raise ConvergenceError(
                f"iteration {state.iteration + 1} moved a point to {largest:.3g}, where it cannot come back from: "
                "lower the learning rate or the strength, or use a line search; the last good state is retained"
            )
        return replace(state, positions=positions, step=self.length, value=np.nan, gradient=None)


@dataclass(frozen=True)
class Backtracking:
    """Halve the step until the objective falls enough; the first step tried is 1, then the last one accepted.

    Every fifth search tries twice that, up to `longest`: without it a step that has once been short stays so.
    Source: [PH] 3.4, where it may not grow again.
    """

    longest: float = 1.0
    needs_values: bool = True

    def accept(
        self, problem: Problem, sums: PairSums, state: State, gradient: np.ndarray, direction: np.ndarray
    ) -> State:
        """Return the first state on the way that satisfies the condition, with its gradient.

        The positions are the same where none does. Parameters are those of `FixedStep.accept`.
        """
        slope, length = dot(gradient, direction), state.step
        if state.phase_iteration % GROWTH_INTERVAL == GROWTH_INTERVAL - 1:
            length = min(self.longest, length / BACKTRACK)
        extent, longest = float(np.abs(state.positions).max()), float(np.abs(direction).max())
        if extent > 0 and longest > 0:
            length = min(length, REACH * extent / longest)
        for trial in range(1, MOST_HALVINGS + 2):
            positions, largest = moved(state.positions, length, direction, problem.workspace)
            evaluation = try_evaluate(problem, sums, positions) if largest < LARGEST_COORDINATE else None
            if evaluation is not None and evaluation.value <= state.value + SUFFICIENT_DECREASE * length * slope:
                return replace(
                    state,
                    positions=positions,
                    value=evaluation.value,
                    step=length,
                    gradient=evaluation.gradient,
                    evaluations=state.evaluations + trial,
                )
            length *= BACKTRACK
        return replace(state, evaluations=state.evaluations + MOST_HALVINGS + 1, step=0.0)


LineSearch: TypeAlias = FixedStep | Backtracking


def try_evaluate(problem: Problem, sums: PairSums, positions: np.ndarray) -> Evaluation | None:
    """Return the objective at positions that a line search tries, None where they are too far apart to be summed."""
    try:
        return problem.evaluate(positions, sums)
    except NumericalError:
        return None


def step(problem: Problem, sums: PairSums, direction: Direction, search: LineSearch, state: State) -> State:
    """Return the state after one iteration.

    Positions are centred at their mean: objectives see differences only, and approximate forces would drift.

    Raises
    ------
    ConvergenceError
        Where a coordinate is no finite number or beyond 1e7.
    """
    gradient, value, evaluations = state.gradient, state.value, state.evaluations
    if gradient is None or (search.needs_values and np.isnan(value)):
        value, gradient = problem.evaluate(state.positions, sums, search.needs_values)
        evaluations += 1
    chosen, memory = direction(state.positions, gradient, state.memory)
    if problem.still is not None:
        chosen[problem.still] = 0.0
    before = replace(state, value=value, evaluations=evaluations, gradient_norm=norm(gradient))
    after = search.accept(problem, sums, before, gradient, chosen)
    return replace(after, iteration=state.iteration + 1, phase_iteration=state.phase_iteration + 1, memory=memory)
