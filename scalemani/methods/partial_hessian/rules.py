"""The spectral direction with the diagonal of the repulsion's Hessian, and the rate at the end of spectral descents.

B = 4 L+ + mu I + diag(h), h the diagonal of the Hessian of the repulsion where that is positive: B stays positive
definite, and what it solves descends. h is computed by sums over all pairs, every `layout.renewal` iterations.

Near a minimum x* steps of one multiply the distance to it by B^-1 H - I, whose norm r in the metric of B is the rate of
theorem 3.3.1. Eigenvalues lambda of B^-1 H lie in [1 - r, 1 + r], and a step of length a has the rate
max |1 - a lambda|. E - E* then falls by the square of the rate. Motions of the whole map, along which E does not
change, are left out. Source: [PH] 3.3.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scalemani.config.params import LayoutParams
from scalemani.descents.directions import (
    FACTORED_UP_TO,
    MOST_STEPS,
    SOLVED_TO,
    Direction,
    Memory,
    Operator,
    ShiftedLaplacian,
    conjugate_gradients,
    shifted_laplacian,
)
from scalemani.descents.parts import DescentPart, Ended
from scalemani.descents.phases import Phase
from scalemani.descents.problem import Problem
from scalemani.engine.memory_model import array
from scalemani.errors import ConfigError
from scalemani.kernels.arrays.coordinates import norm
from scalemani.kernels.descent import PairCurvature
from scalemani.kernels.repulsion.pair_sums import ExactSums
from scalemani.methods.partial_hessian.kernels import extreme, metric_of, rigid_motions
from scalemani.methods.partial_hessian.parameters import PartialHessianParams

DIFFERENCE = 1e-5  # of the root mean square of positions, over which gradients are differenced: errs by 1e-9
TIGHT, MANY_STEPS = 1e-9, 5000  # conjugate gradients where B^-1 is to be exact and B is not factored
LAST = 10  # falls of the objective, by which its decrease is measured
START_SEED = 3


@dataclass
class RenewedDiagonal:
    """B of one diagonal (N, d), factored once for as long as that serves."""

    laplacian: ShiftedLaplacian
    _solved: dict[bytes, list[Operator]] = field(default_factory=dict)

    def product(self, vectors: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """Return B V of vectors (N, d)."""
        image = self.laplacian.product(vectors)
        image += diagonal * vectors
        return image

    def solve(self, vectors: np.ndarray, diagonal: np.ndarray, tight: bool = False) -> np.ndarray:
        """Return B^-1 V: factored for few points, else by conjugate gradients to a tenth, or `tight`."""
        if len(vectors) <= FACTORED_UP_TO:
            columns = zip(self._factored(diagonal), vectors.T, strict=True)
            return np.stack([solve(np.ascontiguousarray(column)) for solve, column in columns], axis=1)
        accuracy = (TIGHT, MANY_STEPS) if tight else (SOLVED_TO, MOST_STEPS)
        product = functools.partial(self.product, diagonal=diagonal)
        return conjugate_gradients(product, vectors, self.laplacian.diagonal[:, np.newaxis] + diagonal, *accuracy)

    def _factored(self, diagonal: np.ndarray) -> list[Operator]:
        name = diagonal.tobytes()
        if name not in self._solved:
            self._solved.clear()
            self._solved[name] = [self.laplacian.factored(column) for column in diagonal.T]
        return self._solved[name]


def laplacian_of(phase: Phase, problem: Problem) -> ShiftedLaplacian:
    """Return 4 L+ + mu I of a phase's affinities, as the spectral direction has it."""
    return shifted_laplacian(problem.rows, phase.kappa, problem.scale * problem.exaggeration, problem.workspace.over)


def positive_diagonal(problem: Problem, positions: np.ndarray) -> np.ndarray:
    """Return the diagonal (N, d) of the Hessian of the repulsion, zero where it is not positive."""
    curvature = PairCurvature(
        problem.objective.kernel, problem.objective.combine, problem.strength, problem.workspace.over
    )
    positive, repulsive = curvature.diagonals(positions, curvature.weights(positions))
    return np.maximum(positive - repulsive[:, np.newaxis], 0.0)


def measured_decrease(curve: np.ndarray) -> float | None:
    """Return by which factor a fall of the objective was smaller than the one before, over the last; None without any.

    That is the factor of E - E* an iteration, of a descent that converges linearly.
    """
    falls = -np.diff(curve[-LAST - 2 :, 1])
    if len(falls) < 2 or (np.diff(curve[-LAST - 2 :, 0]) != 1).any() or not (falls > 0).all():
        return None
    return float((falls[-1] / falls[0]) ** (1 / (len(falls) - 1)))


class PartialHessian(DescentPart):
    """The direction with a diagonal, and the rate."""

    def check_parameters(self, params: LayoutParams, n_points: int, weighted: bool) -> None:
        """Refuse points that stand for several: second derivatives know no weights."""
        if weighted:
            raise ConfigError(
                "the direction spectral+diagonal and layout.measured_rate know no weights: leave them out"
            )

    def held(self, params: LayoutParams, n_points: int) -> Mapping[str, float]:
        """Return what is held in addition: diagonals and what is like them, of up to three dimensions."""
        return {"second derivatives of the repulsion": array("float64", n_points, 6 * 3)}

    def direction(self, phase: Phase, problem: Problem) -> Direction:
        """Return p = -B^-1 g; the diagonal and its age are remembered."""
        renewal = phase.params.renewal if isinstance(phase.params, PartialHessianParams) else 1
        metric = RenewedDiagonal(laplacian_of(phase, problem))

        def chosen(positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
            age = int(memory["age"][0]) if memory else renewal
            diagonal = positive_diagonal(problem, positions) if age >= renewal else memory["diagonal"]
            after = {"diagonal": diagonal, "age": np.array([1 if age >= renewal else age + 1])}
            return -metric.solve(gradient, diagonal), after

        return chosen

    def certificates(self, ended: Ended) -> Mapping[str, Any]:
        """Return the rate at the end, where it was requested, and the decrease that follows and that was made."""
        params, state = ended.params, ended.state
        if not isinstance(params, PartialHessianParams) or not params.measured_rate:
            return {}
        problem = replace(ended.problem, exaggeration=params.late_exaggeration)
        exact = problem.pairs or ExactSums(problem.objective.kernel, problem.workspace.over)
        positions = state.positions
        size = norm(positions - positions.mean(axis=0)) / np.sqrt(positions.size)

        def hessian(vectors: np.ndarray) -> np.ndarray:
            length = DIFFERENCE * size / (norm(vectors) / np.sqrt(vectors.size))
            ahead = problem.evaluate(positions + length * vectors, exact, with_value=False).gradient.copy()
            behind = problem.evaluate(positions - length * vectors, exact, with_value=False).gradient
            return (ahead - behind) / (2 * length)

        phase = Phase(params.direction, 1, kappa=params.kappa)
        of_laplacian = RenewedDiagonal(laplacian_of(phase, problem))
        by_diagonal = params.direction != "spectral"
        diagonal = positive_diagonal(problem, positions) if by_diagonal else np.zeros_like(positions)
        metric = metric_of(
            functools.partial(of_laplacian.product, diagonal=diagonal),
            functools.partial(of_laplacian.solve, diagonal=diagonal, tight=True),
            rigid_motions(positions, turns=problem.pull is None),
        )
        start = np.random.default_rng(START_SEED).normal(size=positions.shape)
        first = extreme(hessian, metric, 1.0, start)
        second = extreme(hessian, metric, 1.0 + first.value, start)
        ends = sorted([1.0 + first.value, 1.0 + first.value + second.value])
        length = state.step if state.step > 0 else 1.0
        at_length = max(abs(1.0 - length * end) for end in ends)
        return {
            "rate": abs(first.value),
            "rate_residual": first.residual,
            "least_curvature": ends[0],
            "largest_curvature": ends[1],
            "last_step": state.step,
            "predicted_decrease": at_length**2 if at_length < 1 else None,
            "measured_decrease": measured_decrease(ended.curve),
        }
