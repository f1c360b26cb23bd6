"""Refinement: from approximate vectors to those of the exact problem, by passes over the graph.

The leading eigenvectors of S = D^-1/2 W D^-1/2 by a preconditioned block method in the manner of LOBPCG [Knyazev 2001]:
a step takes the residuals R of the Ritz vectors X and approximate solutions C of (I - S) C = R from coarse graphs,
multiplies both by S, and finds the best vectors in the span of X, the directions P of the step before, C and R by a
Rayleigh-Ritz step. R beside C smooths what the coarse graphs cannot see, without a further product. The
eigenvalues theta of S are 1 - lambda of L v = lambda D v, with v = D^-1/2 u. The trivial vector D^1/2 1 (theta = 1) is
projected out.

One step makes one product S (block), that is one pass over the graph, through the caller's `apply`; between steps the
state is plain arrays, so that any run can stop and go on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from scalemani.errors import RankError
from scalemani.kernels.draws import generator
from scalemani.kernels.eigenproblem import sign_rule
from scalemani.kernels.large_arrays import concatenated, empty, zeros
from scalemani.kernels.tall import (
    TILE,
    Mapper,
    combine,
    gram,
    joint_gram,
    residuals_into,
    subtract_projections,
    without_direction,
)

FEWEST_GUARDS = 6
FEWEST_SPARE = 8
TRIVIAL_SHARE = 1e-10  # squared length that a start vector must keep when the trivial vector is projected out
DEPENDENT = 1e-6  # smaller eigenvalues of a Gram matrix of unit vectors are taken for rounding

Apply = Callable[[np.ndarray], np.ndarray]
Correct = Callable[[np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class RefinementState:
    """A block of Ritz vectors and what the next step needs.

    `basis`, `images` (N, 2 m), float32 or float64: Ritz vectors X, then directions P of the last step (zero columns
    where there are none), orthonormal, and their products with S; `values` (m,) float64, Ritz values theta, descending;
    `residuals` (m,), |S x - theta x| for the unit vectors x; `passes` made; `fresh`, whether `images` come from one
    product, made of X itself.
    """

    basis: np.ndarray
    images: np.ndarray
    values: np.ndarray
    residuals: np.ndarray
    passes: int = 0
    fresh: bool = True

    @property
    def vectors(self) -> np.ndarray:
        """The Ritz vectors X (N, m)."""
        return self.basis[:, : len(self.values)]


def n_start_columns(n_components: int, n_points: int) -> int:
    """Return how many vectors a coarse graph should give: more than are iterated, so that none of those is missing."""
    width = n_columns(n_components, n_points)
    return width + max(FEWEST_SPARE, width // 4)


def n_columns(n_components: int, n_points: int) -> int:
    """Return how many vectors to iterate: guards beside the wanted ones make those converge sooner."""
    guards = FEWEST_GUARDS + n_components // 5
    return max(1, min(n_components + guards, n_points - 1, max(n_components, n_points // 4)))


def random_columns(n_points: int, count: int, seed: int, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Return standard normal columns (N, count): each tile of rows has its own stream."""
    out: np.ndarray = np.empty((n_points, count), dtype)
    for first in range(0, n_points, TILE):
        rows = out[first : first + TILE]
        rows[:] = generator(seed, "refinement", first // TILE).standard_normal(rows.shape)
    return out


def initial_state(
    vectors: np.ndarray, trivial: np.ndarray, apply: Apply, width: int, over: Mapper = map
) -> RefinementState:
    """Return the state from start vectors, after one pass: the best `width` vectors of their span.

    Parameters: `vectors` (N, n), approximate eigenvectors u of S, columns of any scale, not orthogonal; their dtype is
    that of the iteration (float32 reaches residuals of 4e-6); `trivial` (N,), the result of `unit_roots`; `apply`,
    X (N, n) to S X, a new array. Dependent columns are dropped; RankError when none is left.
    """
    lengths = np.diag(gram(vectors, vectors, over))
    free = without_direction(vectors, trivial, over)
    # What is left of a constant column is rounding.
    varied = np.diag(gram(free, free, over)) > TRIVIAL_SHARE * lengths
    free = free if varied.all() else np.ascontiguousarray(free[:, varied])
    products = apply(free)
    overlap, projected = joint_gram((free,), (products,), over)
    if overlap.size == 0 or not np.isfinite(overlap).all():
        raise RankError("the vectors to refine are constant, zero or not finite: start from others")
    values, coefficients = _ritz(overlap, projected, width)
    basis, images = (zeros((len(free), 2 * len(values)), free.dtype) for _ in range(2))
    combine((free,), coefficients, basis, over)
    combine((products,), coefficients, images, over)
    return RefinementState(basis, images, values, residuals_into(None, basis, images, values, over), 1)


def step(
    state: RefinementState, apply: Apply, correct: Correct, trivial: np.ndarray, target: float, over: Mapper = map
) -> RefinementState:
    """Return the state one pass later. The arrays of `state` are given away: those of its successor are the same ones.

    Parameters: as of `initial_state`; `correct(residuals, out)` writes approximate solutions of (I - S) x = residuals,
    (N, a), into `out`; vectors whose residual is within `target` take part, but ask for nothing new.
    """
    active = np.flatnonzero(state.residuals > target)
    added = empty((len(state.basis), 2 * len(active)), state.basis.dtype)
    residuals_into(added[:, len(active) :], state.basis, state.images, state.values, over, active)
    correct(added[:, len(active) :], added[:, : len(active)])
    _orthonormalize(added, (state.basis, trivial[:, None]), over)
    bases, images = (state.basis, added), (state.images, apply(added))
    overlap, projected = joint_gram(bases, images, over, added.dtype)
    values, coefficients = _ritz(overlap, projected, len(state.values))
    coefficients = np.hstack([coefficients, _directions(coefficients, overlap)])
    combine(bases, coefficients, state.basis, over)
    combine(images, coefficients, state.images, over)
    residuals = residuals_into(None, state.basis, state.images, values, over)
    return RefinementState(state.basis, state.images, values, residuals, state.passes + 1, False)


def _orthonormalize(vectors: np.ndarray, others: tuple[np.ndarray, ...], over: Mapper) -> None:
    """Make vectors (N, a) orthonormal, also to `others`, in place; a dependent column becomes zero.

    What is lost to rounding here is lost before the product with S is made: a basis that is orthonormal already lets
    the Rayleigh-Ritz step combine vectors and products without enlarging their rounding errors.
    """
    subtract_projections(vectors, others, over)
    coefficients = np.zeros((vectors.shape[1], vectors.shape[1]))
    unit = _orthonormal_coefficients(gram(vectors, vectors, over), DEPENDENT)
    coefficients[:, : unit.shape[1]] = unit
    combine((vectors,), coefficients, vectors, over)
    subtract_projections(vectors, others, over)


def _orthonormal_coefficients(overlap: np.ndarray, tolerance: float) -> np.ndarray:
    """Return C (n, r) with C^T overlap C = I that spans all but the directions below the tolerance."""
    diagonal = np.diag(overlap)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    lengths, rotation = np.linalg.eigh(overlap * scale[:, None] * scale)
    kept = lengths > tolerance * max(lengths[-1], np.finfo(np.float64).tiny)
    return scale[:, None] * (rotation[:, kept] / np.sqrt(lengths[kept]))


def _ritz(overlap: np.ndarray, projected: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `count` largest Ritz values of a span, and the coefficients of their unit vectors."""
    basis = _orthonormal_coefficients(overlap, DEPENDENT)
    values, rotation = np.linalg.eigh(basis.T @ ((projected + projected.T) / 2) @ basis)
    return values[::-1][:count], (basis @ rotation[:, ::-1])[:, :count]


def _directions(coefficients: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """Return coefficients of what the new vectors took from beside the old ones, orthonormal and free of the new.

    Shape (n, m), as `coefficients`, whose first m rows belong to the old vectors; columns that are dependent are zero.
    """
    count = coefficients.shape[1]
    beside = coefficients.copy()
    beside[:count] = 0
    beside -= coefficients @ (coefficients.T @ (overlap @ beside))
    found = np.zeros_like(coefficients)
    unit = beside @ _orthonormal_coefficients(beside.T @ overlap @ beside, DEPENDENT)
    found[:, : unit.shape[1]] = unit
    return found


def refined(
    state: RefinementState,
    apply: Apply,
    correct: Correct,
    trivial: np.ndarray,
    n_wanted: int,
    target: float,
    max_passes: int,
    over: Mapper = map,
) -> RefinementState:
    """Return the first state with residuals of the wanted vectors within `target`, or at `max_passes`.

    Products are carried along by the steps, and their rounding errors add up: the last pass computes those of the
    vectors anew, so that the residuals returned are those of a product just made.
    """
    while state.passes < max_passes:
        reached = state.residuals[:n_wanted].max() <= target
        if reached and state.fresh:
            break
        if reached or state.passes == max_passes - 1:
            passes, vectors = state.passes, concatenated([state.vectors])
            del state  # its arrays are the largest there are
            renewed = initial_state(vectors, trivial, apply, vectors.shape[1], over)
            state = replace(renewed, passes=passes + renewed.passes)
        else:
            state = step(state, apply, correct, trivial, target, over)
    return state


def refined_embedding(state: RefinementState, degrees: np.ndarray, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues lambda (d,) ascending, and the embedding v = D^-1/2 u, (N, d) in the dtype of the state.

    V^T D V = I, as scikit-learn's SpectralEmbedding scales it; the largest absolute entry of a column is positive.
    """
    roots = np.sqrt(np.asarray(degrees, np.float64)).astype(state.basis.dtype)
    return 1 - state.values[:n_components], sign_rule(state.basis[:, :n_components] / roots[:, None])
