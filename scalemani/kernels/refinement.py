"""Refinement: from approximate vectors to those of the exact problem, by passes over the graph.

Chebyshev-filtered subspace iteration on S = D^-1/2 W D^-1/2 [Zhou, Saad, Tiago & Chelikowsky 2006, algorithm 3.1]: a
block of more vectors than wanted is multiplied by a Chebyshev polynomial of S that is small on [-1, cut] and grows
above, then a Rayleigh-Ritz step turns the block into approximate eigenvectors. Eigenvalues theta of S are 1 - lambda
of L v = lambda D v, with v = D^-1/2 u. The trivial vector D^1/2 1 (theta = 1) is projected out.

One step makes one product S (block), that is one pass over the graph, through the caller's `apply`; between steps the
state is plain arrays, so that any run can stop and go on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from scalemani.errors import ConvergenceError, RankError
from scalemani.kernels.draws import generator
from scalemani.kernels.eigenproblem import sign_rule
from scalemani.kernels.tall import (
    TILE,
    Mapper,
    combined,
    gram,
    panels,
    recurrence,
    residual_norms,
    without_direction,
)

LOWEST = -1.0  # no eigenvalue of S is below
# (degree, growth) of the first cycles: the error of a coarse start is rough, and a high cut removes it soonest. The cut
# is where a polynomial of the degree grows by `growth` at theta = 1; measured against cutting at the block's edge,
# the residual after 20 passes is three times smaller. The last of them only helps where it can be the last at all.
FIRST_CYCLES = ((5, 20.0), (7, 8.0), (7, 4.0))
FINISHING_GROWTH = 8.0
LEAST_DEGREE = 5
FEW_GUARDS, MANY_GUARDS = 20, 38
MODEST_TARGET = 1e-4
MOST_DEGREE = 36  # one long cycle grows more than two of half the degree
SAFETY = 2.0  # the residual falls by less than the polynomial's growth: aim below what is asked
TRIVIAL_SHARE = 1e-10  # squared length that a start vector must keep when the trivial vector is projected out
RANK_TOLERANCE = 1e-11  # eigenvalues of the scaled Gram matrix below are rounding of float32 columns

Apply = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class RefinementState:
    """A block of vectors on its way. At rest (`position` 0) `previous` holds Ritz vectors X and `current` S X.

    `previous`, `current` (N, m) float32 or float64; `values` (m,) float64, Ritz values theta, descending; `residuals`
    (m,), |S x - theta x| for the unit vectors x of the last rest; `passes` made; `cycle`, Rayleigh-Ritz steps done;
    `position`, degree reached in the running cycle, of `degree`; `cut`, the upper end of the damped interval.
    """

    previous: np.ndarray
    current: np.ndarray
    values: np.ndarray
    residuals: np.ndarray
    passes: int = 0
    cycle: int = 0
    position: int = 0
    degree: int = 0
    cut: float = 0.0


def n_columns(n_components: int, n_points: int, target: float = 1e-3) -> int:
    """Return how many vectors to iterate: guards beside the wanted ones make those converge sooner.

    Parameters: `n_components` wanted of `n_points`; `target`, the residual asked for: a small one pays for more guards.
    """
    guards = (FEW_GUARDS if target >= MODEST_TARGET else MANY_GUARDS) + n_components // 2
    return max(1, min(n_components + guards, n_points - 1, max(n_components, n_points // 4)))


def unit_roots(degrees: np.ndarray) -> np.ndarray:
    """Return the trivial vector: the square roots (N,) float64 of the degrees, as a unit vector."""
    roots = np.sqrt(np.asarray(degrees, np.float64))
    return roots / np.sqrt(gram(roots[:, None], roots[:, None])[0, 0])


def random_columns(n_points: int, count: int, seed: int, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Return standard normal columns (N, count): each tile of rows has its own stream."""
    out: np.ndarray = np.empty((n_points, count), dtype)
    for first in range(0, n_points, TILE):
        rows = out[first : first + TILE]
        rows[:] = generator(seed, "refinement", first // TILE).standard_normal(rows.shape)
    return out


def initial_state(vectors: np.ndarray, trivial: np.ndarray, apply: Apply, over: Mapper = map) -> RefinementState:
    """Return the state at rest from start vectors, after one pass.

    Parameters: `vectors` (N, m), embedding coordinates v (Z X~, or those of a coarse graph), columns of any
    scale, not orthogonal; their dtype is that of the iteration (float32 reaches residuals of 2e-6); `trivial` (N,), the
    result of `unit_roots`; `apply`, X (N, m) to S X, a new array. Dependent columns are dropped; RankError when
    none is left.
    """
    scaled = np.empty_like(vectors)
    for panel in panels(len(vectors)):
        scaled[panel] = vectors[panel] * trivial[panel, None]
    lengths = np.diag(gram(scaled, scaled, over))
    scaled = without_direction(scaled, trivial, over)
    # What is left of a constant column is rounding.
    scaled = scaled[:, np.diag(gram(scaled, scaled, over)) > TRIVIAL_SHARE * lengths]
    return _rayleigh_ritz(scaled, apply(scaled), RefinementState(scaled, scaled, np.empty(0), np.empty(0)), over)


def step(
    state: RefinementState, apply: Apply, trivial: np.ndarray, n_wanted: int, target: float, over: Mapper = map
) -> RefinementState:
    """Return the state one pass later; at rest again after the last pass of a cycle.

    Parameters: as of `initial_state`; `n_wanted`, the leading vectors whose residual should reach `target`: they decide
    the degree and the cut of a cycle when it begins. The arguments are left as they are.
    """
    if state.position == 0:
        state = _new_cycle(state, n_wanted, target, over)
    centre, half = (state.cut + LOWEST) / 2, (state.cut - LOWEST) / 2
    if state.position < state.degree:
        product = recurrence(apply(state.current), state.current, state.previous, centre, 2 / half, over)
        return replace(
            state, previous=state.current, current=product, position=state.position + 1, passes=state.passes + 1
        )
    filtered = without_direction(state.current, trivial, over)
    return _rayleigh_ritz(filtered, apply(filtered), state, over)


def _new_cycle(state: RefinementState, n_wanted: int, target: float, over: Mapper) -> RefinementState:
    """Choose degree and cut, and make the first-degree polynomial, for which S X is already known."""
    edge = 1 - float(state.values[-1])
    wanted = 1 - float(state.values[min(n_wanted, len(state.values)) - 1])
    needed = max(2.0, SAFETY * float(state.residuals[:n_wanted].max()) / target)
    if state.cycle < len(FIRST_CYCLES) or (state.cycle == len(FIRST_CYCLES) and needed <= FINISHING_GROWTH):
        degree, growth = FIRST_CYCLES[state.cycle - 1]
        rough = float(np.arccosh(min(growth, needed)) / degree) ** 2 / 2
    else:
        rate = 2 * np.sqrt(max(edge - wanted, float(np.finfo(np.float32).eps)) / 2)
        degree, rough = int(np.clip(np.ceil(np.arccosh(needed) / rate), LEAST_DEGREE, MOST_DEGREE)), 0.0
    cut = 1 - min(max(edge, rough, 1e-6), 1.9)
    centre, half = (cut + LOWEST) / 2, (cut - LOWEST) / 2
    first = recurrence(state.current.copy(), state.previous, None, centre, 1 / half, over)
    return replace(state, current=first, position=1, degree=degree, cut=cut)


def _rayleigh_ritz(vectors: np.ndarray, images: np.ndarray, state: RefinementState, over: Mapper) -> RefinementState:
    """Return the state at rest with the Ritz vectors of the span of `vectors`, whose products are `images`."""
    overlap, projected = gram(vectors, vectors, over), gram(vectors, images, over)
    if overlap.size == 0 or not np.isfinite(overlap).all():
        raise RankError("the vectors to refine are constant, zero or not finite: start from others")
    scale = 1 / np.sqrt(np.diag(overlap))
    lengths, rotation = np.linalg.eigh(overlap * scale[:, None] * scale)
    kept = lengths > RANK_TOLERANCE * lengths[-1]
    basis = scale[:, None] * (rotation[:, kept] / np.sqrt(lengths[kept]))
    values, rotation = np.linalg.eigh(basis.T @ ((projected + projected.T) / 2) @ basis)
    basis, values = basis @ rotation[:, ::-1], values[::-1]
    vectors, images = combined(vectors, basis, over), combined(images, basis, over)
    return RefinementState(
        vectors,
        images,
        values,
        residual_norms(images, vectors, values, over),
        passes=state.passes + 1,
        cycle=state.cycle + 1,
    )


def refined(
    state: RefinementState,
    apply: Apply,
    trivial: np.ndarray,
    n_wanted: int,
    target: float,
    max_passes: int,
    over: Mapper = map,
) -> RefinementState:
    """Return the first state at rest with residuals of the wanted vectors within `target`, or past `max_passes`."""
    while state.position or (state.residuals[:n_wanted].max() > target and state.passes < max_passes):
        state = step(state, apply, trivial, n_wanted, target, over)
    return state


def check_converged(state: RefinementState, n_wanted: int, target: float) -> None:
    """Raise ConvergenceError when a wanted vector has not reached the target."""
    worst = float(state.residuals[:n_wanted].max()) if len(state.residuals) >= n_wanted else np.inf
    if not worst <= target:
        raise ConvergenceError(
            f"refinement stopped at residual {worst:.1e} after {state.passes} passes, where {target:.0e} was asked: "
            "allow more passes, or a larger residual"
        )


def refined_embedding(state: RefinementState, degrees: np.ndarray, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues lambda (d,) ascending, and the embedding v = D^-1/2 u, (N, d) in the dtype of the state.

    V^T D V = I, as scikit-learn's SpectralEmbedding scales it; the largest absolute entry of a column is positive.
    """
    roots = np.sqrt(np.asarray(degrees, np.float64)).astype(state.previous.dtype)
    return 1 - state.values[:n_components], sign_rule(state.previous[:, :n_components] / roots[:, None])
