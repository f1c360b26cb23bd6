"""Search directions p with B p = -g, B positive definite: what a descent moves along.

A direction keeps what it has learnt in a dictionary of arrays, its memory, which is handed in and returned: a descent
can be stopped and stored after any step, and resumes with the same bits.

The spectral direction has B = 4 L+ + mu I, the Hessian of the attraction. L+ is the Laplacian of the affinities,
sparsified to the `kappa` strongest neighbours of each point; for Student's attraction it is taken at X = 0, where
log(1 + d^2) = d^2. Up to `FACTORED_UP_TO` points B is factored once (sparse LU of a symmetric matrix). The time of that
grows as N^2.8 on graphs of high-dimensional data; beyond, conjugate gradients solve to a tenth, which is enough: they
start from zero and B is positive definite, so that what they return descends wherever they are stopped.

Source: [PH] 3.3 of the thesis.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from scalemani.kernels.arrays.coordinates import add_multiple, dot
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.descent import Motion, PairCurvature, momentum_step
from scalemani.kernels.graph.attraction import AffinityRows, attraction_gradient, strongest_neighbors
from scalemani.kernels.graph.symmetric import row_sums

FACTORED_UP_TO = 5000
EXACT_SHIFT = 1e-10  # of the least degree, [PH] 3.3: keeps a factored B from being singular
ITERATIVE_SHIFT = 1e-3  # of the mean degree: what conjugate gradients can resolve in a dozen steps
SOLVED_TO, MOST_STEPS = 0.1, 12
Operator = Callable[[np.ndarray], np.ndarray]

Memory = Mapping[str, np.ndarray]
# Chooses p (N, d) at positions X with gradient g by what it remembers, and returns what to remember; an empty memory
# starts afresh.
Direction = Callable[[np.ndarray, np.ndarray, Memory], tuple[np.ndarray, Memory]]
LEAST_CURVATURE = 1e-10  # relative, of an update pair: below it y.s is rounding and the pair is left out
LEAST_SHARE = 0.1  # of the positive parts of the Hessian's diagonal, for the whole of it to be trusted
CURVATURE_TOLERANCE, CURVATURE_STEPS = 0.1, 50  # [PH] 3.4: conjugate gradients of SD- end at either


@dataclass(frozen=True)
class ShiftedLaplacian:
    """B = 4 factor L + mu I of affinities in CSR form."""

    rows: AffinityRows
    degrees: np.ndarray = field(repr=False)
    factor: float
    shift: float
    over: Mapper = map

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal of B (N,)."""
        return 4 * self.factor * self.degrees + self.shift

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Return B V of vectors (N, d) float64."""
        out = attraction_gradient(self.rows, vectors, "quadratic", np.empty_like(vectors), self.over)
        out *= self.factor
        add_multiple(out, self.shift, vectors)
        return out

    def solve(self, vectors: np.ndarray) -> np.ndarray:
        """Return B^-1 V to a tenth."""
        return conjugate_gradients(self.product, vectors, self.diagonal[:, np.newaxis], SOLVED_TO, MOST_STEPS)

    def factored(self, added: np.ndarray | float = 0.0) -> Operator:
        """Return (B + diag(added))^-1 of an addition (N,) as an operator, by one sparse factorisation."""
        matrix = sp.csr_matrix((self.rows.values.astype(np.float64), self.rows.indices, self.rows.indptr))
        matrix = sp.diags_array(self.diagonal + added) - 4 * self.factor * matrix
        return scipy.sparse.linalg.splu(
            sp.csc_matrix(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        ).solve


def spectral_operator(rows: AffinityRows, kappa: int, factor: float, over: Mapper = map) -> Operator:
    """Return g -> (4 factor L+ + mu I)^-1 g of the B of `shifted_laplacian`."""
    laplacian = shifted_laplacian(rows, kappa, factor, over)
    return laplacian.factored() if rows.n_points <= FACTORED_UP_TO else laplacian.solve


def shifted_laplacian(rows: AffinityRows, kappa: int, factor: float, over: Mapper = map) -> ShiftedLaplacian:
    """Return B = 4 factor L+ + mu I of symmetric affinities, sparsified; mu is as small as its solution allows."""
    strongest = strongest_neighbors(rows, kappa)
    degrees = row_sums(strongest.values, strongest.indptr)
    if rows.n_points <= FACTORED_UP_TO:
        shift = EXACT_SHIFT * float(degrees[degrees > 0].min())
    else:
        shift = ITERATIVE_SHIFT * float(degrees.mean())
    return ShiftedLaplacian(strongest, degrees, factor, 4 * factor * shift, over)


def conjugate_gradients(
    product: Operator,
    right: np.ndarray,
    diagonal: np.ndarray,
    tolerance: float,
    most_steps: int,
    guess: np.ndarray | None = None,
) -> np.ndarray:
    """Return V (N, d) float64 with product(V) = right, by conjugate gradients from a guess, else from zero.

    The columns share one recurrence, as one vector of N d numbers. `product` is symmetric and positive definite,
    `diagonal` (N, 1) or (N, d), positive, the preconditioner; `tolerance` bounds the norm of the residual relative to
    that of the right side.
    """
    solution = np.zeros_like(right) if guess is None else guess.copy()
    residual = right.copy() if guess is None else right - product(guess)
    target = tolerance**2 * dot(right, right)
    scaled = residual / diagonal
    along, slope = scaled, dot(residual, scaled)
    for _ in range(most_steps):
        if dot(residual, residual) <= target:
            break
        image = product(along)
        length = slope / dot(along, image)
        add_multiple(solution, length, along)
        add_multiple(residual, -length, image)
        scaled = residual / diagonal
        earlier, slope = slope, dot(residual, scaled)
        add_multiple(scaled, slope / earlier, along)
        along = scaled
    return solution


def preconditioned(apply: Operator) -> Direction:
    """Return p = -B^-1 g for a B that does not change: `apply` maps g to B^-1 g."""
    return lambda positions, gradient, memory: (-apply(gradient), {})


def of_copies(direction: Direction, masses: np.ndarray | None) -> Direction:
    """Return the direction of one of the copies that a point stands for, by their gradient over their number (N,)."""
    if masses is None:
        return direction
    return lambda positions, gradient, memory: direction(positions, gradient / masses[:, np.newaxis], memory)


def conjugate_direction(positions: np.ndarray, gradient: np.ndarray, memory: Memory) -> tuple[np.ndarray, Memory]:
    """Return -g + beta p of the step before: nonlinear conjugate gradients, Polak-Ribiere.

    With restarts where the direction would not descend.
    """
    chosen = -gradient
    if memory:
        earlier = memory["gradient"]
        weight = max(0.0, (dot(gradient, gradient) - dot(gradient, earlier)) / dot(earlier, earlier))
        add_multiple(chosen, weight, memory["direction"])
        if dot(chosen, gradient) >= 0:
            chosen = -gradient
    return chosen, {"gradient": gradient, "direction": chosen}


def limited_memory(
    positions: np.ndarray,
    gradient: np.ndarray,
    memory: Memory,
    n_pairs: int,
    apply: Operator | None = None,
    scale: float = 1.0,
) -> tuple[np.ndarray, Memory]:
    """Return the direction of L-BFGS with so many pairs of steps and changes of the gradient.

    `apply` is its guess of the inverse Hessian. Without one the guess is a multiple of the identity: `scale` at first,
    then s.y / y.y of the last pair.
    """
    known = range(sum(name.startswith("step_") for name in memory))  # a stored memory comes in the order of its names
    steps, changes = ([memory[f"{name}_{i}"] for i in known] for name in ("step", "change"))
    if memory:
        step, change = positions - memory["positions"], gradient - memory["gradient"]
        if dot(step, change) > LEAST_CURVATURE * np.sqrt(dot(step, step) * dot(change, change)):
            steps, changes = [*steps, step][-n_pairs:], [*changes, change][-n_pairs:]
    if apply is None:
        factor = dot(steps[-1], changes[-1]) / dot(changes[-1], changes[-1]) if steps else scale
        apply = functools.partial(np.multiply, factor)
    learnt = {"positions": positions, "gradient": gradient}
    learnt |= {f"step_{i}": step for i, step in enumerate(steps)}
    learnt |= {f"change_{i}": change for i, change in enumerate(changes)}
    return -two_loops(gradient, steps, changes, apply), learnt


def two_loops(
    gradient: np.ndarray, steps: Sequence[np.ndarray], changes: Sequence[np.ndarray], apply: Operator
) -> np.ndarray:
    """Return the product of the inverse Hessian of L-BFGS with a gradient (Nocedal and Wright 2006, algorithm 7.4)."""
    pairs = [(step, change, dot(step, change)) for step, change in zip(steps, changes, strict=True)]
    remainder, shares = gradient.copy(), []
    for step, change, curvature in reversed(pairs):
        shares.append(dot(step, remainder) / curvature)
        add_multiple(remainder, -shares[-1], change)
    remainder = apply(remainder)
    for (step, change, curvature), share in zip(pairs, reversed(shares), strict=True):
        add_multiple(remainder, share - dot(change, remainder) / curvature, step)
    return remainder


def with_momentum(
    positions: np.ndarray,
    gradient: np.ndarray,
    memory: Memory,
    rate: float,
    momentum: float,
    longest: float = 5.0,
    workspace: Workspace = IN_MEMORY,
) -> tuple[np.ndarray, Memory]:
    """Return the new velocity of gradient descent with momentum and a gain for each coordinate, as the peers run it.

    `rate` multiplies g / 4 (peers leave the factor 4 of the gradient out); no point moves further than `longest`.
    """
    before = Motion(**memory) if memory else Motion(np.zeros_like(gradient), np.ones_like(gradient))
    after = momentum_step(gradient, before, rate / 4, momentum, longest, workspace)
    return after.velocity, after._asdict()


def by_diagonal(
    positions: np.ndarray, gradient: np.ndarray, memory: Memory, curvature: PairCurvature, attractive: np.ndarray
) -> tuple[np.ndarray, Memory]:
    """Return -g divided by the diagonal of the Hessian, whose attractive part is 4 D+ (N,).

    B is the diagonal of 4 L + 8 L^xx, and where that is small or negative, of its positive parts 4 L+ + 8 L^xx. The
    rank-one part of the Hessian of normalised objectives is left out: it is negative.
    """
    curvatures, repulsive = curvature.diagonals(positions, curvature.weights(positions))
    positive = attractive[:, np.newaxis] + curvatures
    whole = positive - repulsive[:, np.newaxis]
    return -gradient / np.where(whole > LEAST_SHARE * positive, whole, positive), {}


def spectral_minus(
    positions: np.ndarray, gradient: np.ndarray, memory: Memory, curvature: PairCurvature, laplacian: ShiftedLaplacian
) -> tuple[np.ndarray, Memory]:
    """Return the direction SD-, by conjugate gradients from that of the step before.

    B = 4 L+ + 8 L^xx_ii, with the repulsive Hessian's blocks of one coordinate.
    """
    weights = curvature.weights(positions)
    curvatures, _ = curvature.diagonals(positions, weights)

    def product(vectors: np.ndarray) -> np.ndarray:
        image = laplacian.product(vectors)
        image += curvature.product(positions, weights, vectors)
        return image

    diagonal = laplacian.diagonal[:, np.newaxis] + curvatures
    solve = functools.partial(conjugate_gradients, product, -gradient, diagonal, CURVATURE_TOLERANCE, CURVATURE_STEPS)
    chosen = solve(memory.get("direction"))
    if dot(chosen, gradient) >= 0:
        chosen = solve()  # what ends early need not descend from another start than zero
    return chosen, {"direction": chosen}
