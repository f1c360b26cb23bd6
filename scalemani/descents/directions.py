"""Search directions p with B p = -g, B positive definite: what a descent moves along.

A direction keeps what it has learnt in a dictionary of arrays, its memory, which is handed in and returned: a descent
can be stopped and stored after any step, and resumes with the same bits. Source: [PH] 3.3 of the thesis.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from scalemani.descents.laplacian import ShiftedLaplacian, conjugate_gradients
from scalemani.kernels.arrays.coordinates import add_multiple, dot
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.descent.curvature import PairCurvature
from scalemani.kernels.descent.momentum import Motion, momentum_step

Memory = Mapping[str, np.ndarray]
LEAST_CURVATURE = 1e-10  # relative, of an update pair: below it y.s is rounding and the pair is left out
LEAST_SHARE = 0.1  # of the positive parts of the Hessian's diagonal, for the whole of it to be trusted
CURVATURE_TOLERANCE, CURVATURE_STEPS = 0.1, 50  # [PH] 3.4: conjugate gradients of SD- end at either


class Direction(Protocol):
    """A way to choose p at positions X with gradient g."""

    def choose(self, positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
        """Return p (N, d) and what to remember; an empty memory starts afresh."""


@dataclass(frozen=True)
class Preconditioned:
    """p = -B^-1 g for a B that does not change: `apply` maps g to B^-1 g."""

    apply: Callable[[np.ndarray], np.ndarray]

    def choose(self, positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
        """Return -B^-1 g."""
        return -self.apply(gradient), {}


@dataclass(frozen=True)
class ConjugateGradients:
    """Nonlinear conjugate gradients, Polak-Ribiere with restarts where the direction would not descend."""

    def choose(self, positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
        """Return -g + beta p of the step before."""
        chosen = -gradient
        if memory:
            earlier = memory["gradient"]
            weight = max(0.0, (dot(gradient, gradient) - dot(gradient, earlier)) / dot(earlier, earlier))
            add_multiple(chosen, weight, memory["direction"])
            if dot(chosen, gradient) >= 0:
                chosen = -gradient
        return chosen, {"gradient": gradient, "direction": chosen}


@dataclass(frozen=True)
class LimitedMemory:
    """L-BFGS with `pairs` pairs; `apply` is its guess of the inverse Hessian.

    Without one the guess is a multiple of the identity: `scale` at first, then s.y / y.y of the last pair.
    """

    pairs: int
    apply: Callable[[np.ndarray], np.ndarray] | None = None
    scale: float = 1.0

    def choose(self, positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
        """Return the direction of the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4)."""
        steps, changes = [], []
        if memory:
            steps = [memory[f"step_{i}"] for i in range(self._count(memory))]
            changes = [memory[f"change_{i}"] for i in range(len(steps))]
            step, change = positions - memory["positions"], gradient - memory["gradient"]
            if dot(step, change) > LEAST_CURVATURE * np.sqrt(dot(step, step) * dot(change, change)):
                steps, changes = [*steps, step][-self.pairs :], [*changes, change][-self.pairs :]
        chosen = self._two_loops(gradient, steps, changes)
        learnt = {"positions": positions, "gradient": gradient}
        learnt |= {f"step_{i}": step for i, step in enumerate(steps)}
        learnt |= {f"change_{i}": change for i, change in enumerate(changes)}
        return chosen, learnt

    @staticmethod
    def _count(memory: Memory) -> int:
        return sum(name.startswith("step_") for name in memory)

    def _two_loops(self, gradient: np.ndarray, steps: list[np.ndarray], changes: list[np.ndarray]) -> np.ndarray:
        curvatures = [dot(step, change) for step, change in zip(steps, changes, strict=True)]
        remainder, shares = gradient.copy(), []
        for step, change, curvature in reversed(list(zip(steps, changes, curvatures, strict=True))):
            shares.append(dot(step, remainder) / curvature)
            add_multiple(remainder, -shares[-1], change)
        if self.apply is not None:
            remainder = self.apply(remainder)
        else:
            remainder *= curvatures[-1] / dot(changes[-1], changes[-1]) if steps else self.scale
        for step, change, curvature, share in zip(steps, changes, curvatures, reversed(shares), strict=True):
            add_multiple(remainder, share - dot(change, remainder) / curvature, step)
        return -remainder


@dataclass(frozen=True)
class Momentum:
    """Gradient descent with momentum and a gain for each coordinate, as the peers run it.

    `rate` multiplies g / 4 (peers leave the factor 4 of the gradient out); no point moves further than `longest`.
    """

    rate: float
    momentum: float = 0.8
    longest: float = 5.0
    workspace: Workspace = IN_MEMORY

    def choose(self, positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
        """Return the new velocity."""
        before = Motion(**memory) if memory else Motion(np.zeros_like(gradient), np.ones_like(gradient))
        after = momentum_step(gradient, before, self.rate / 4, self.momentum, self.longest, self.workspace)
        return after.velocity, after._asdict()


@dataclass(frozen=True)
class OfCopies:
    """The direction of one of the copies that a point stands for: it sees their gradient over their number (N,)."""

    direction: Direction
    masses: np.ndarray = field(repr=False)

    def choose(self, positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
        """Return what the direction chooses by the gradient of a copy."""
        return self.direction.choose(positions, gradient / self.masses[:, np.newaxis], memory)


@dataclass(frozen=True)
class HessianDiagonal:
    """B is the diagonal of 4 L + 8 L^xx, and where that is small or negative, of its positive parts 4 L+ + 8 L^xx.

    The rank-one part of the Hessian of normalised objectives is left out: it is negative.
    """

    curvature: PairCurvature
    attractive: np.ndarray = field(repr=False)  # 4 D+ (N,)

    def choose(self, positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
        """Return -g divided by the diagonal."""
        curvatures, repulsive = self.curvature.diagonals(positions, self.curvature.weights(positions))
        positive = self.attractive[:, np.newaxis] + curvatures
        whole = positive - repulsive[:, np.newaxis]
        return -gradient / np.where(whole > LEAST_SHARE * positive, whole, positive), {}


@dataclass(frozen=True)
class SpectralMinus:
    """SD-: B = 4 L+ + 8 L^xx_ii, with the repulsive Hessian's blocks of one coordinate, by conjugate gradients."""

    laplacian: ShiftedLaplacian
    curvature: PairCurvature

    def choose(self, positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
        """Return the direction, by conjugate gradients from that of the step before."""
        weights = self.curvature.weights(positions)
        curvatures, _ = self.curvature.diagonals(positions, weights)

        def product(vectors: np.ndarray) -> np.ndarray:
            image = self.laplacian.product(vectors)
            image += self.curvature.product(positions, weights, vectors)
            return image

        diagonal = self.laplacian.diagonal[:, np.newaxis] + curvatures
        guess = memory.get("direction")
        chosen = conjugate_gradients(product, -gradient, diagonal, CURVATURE_TOLERANCE, CURVATURE_STEPS, guess)
        if (
            dot(chosen, gradient) >= 0
        ):  # conjugate gradients that end early need not descend from another start than zero
            chosen = conjugate_gradients(product, -gradient, diagonal, CURVATURE_TOLERANCE, CURVATURE_STEPS)
        return chosen, {"direction": chosen}
