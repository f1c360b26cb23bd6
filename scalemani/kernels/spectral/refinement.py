"""Refinement: from approximate vectors to those of the exact problem, by passes over the graph.

The leading eigenvectors of S = D^-1/2 W D^-1/2 are computed by a preconditioned block method in the manner of LOBPCG
[Knyazev 2001]: a step takes the residuals R of the Ritz vectors X, turns them into approximate solutions C of (I - S) C
= R with the help of coarse graphs, multiplies C by S, and finds the best vectors in the span of X, the directions P of
the step before and C by a Rayleigh-Ritz step. The eigenvalues theta of S are 1 - lambda of L v = lambda D v, with v =
D^-1/2 u. The trivial vector D^1/2 1 (theta = 1) is projected out.

One step makes one product S (block), that is one pass over the graph, through the caller's `apply`; between steps the
state is arrays, so that an interrupted run resumes. X and P are orthonormal and their Rayleigh quotients are
known from the step before [Duersch et al. 2018]: only inner products with C are new, which halves the algebra.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scalemani.errors import RankError
from scalemani.kernels.arrays.columns import (
    TILE,
    column_squares,
    combine_columns,
    inner_products,
    panels,
    residuals_into,
)
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.tiles import Mapper, slices
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace

FEWEST_GUARDS = 6
FEWEST_SPARE = 8
TRIVIAL_SHARE = 1e-10  # squared length that a start vector must keep when the trivial vector is projected out
DEPENDENT = 1e-6  # smaller eigenvalues of a Gram matrix of unit vectors are taken for rounding
STEPS_BETWEEN_GRAMS = 8  # after so many, the products of X and P are recomputed, in float64: rounding adds up


@dataclass(frozen=True)
class RefinementProblem:
    """What is refined.

    `apply`, X (N, n) to S X, a new array; `correct`, residuals R (N, a), which it may overwrite, to approximate
    solutions of (I - S) x = R; `trivial` (N,) the result of `unit_roots`; `workspace`, where steps run.
    """

    apply: Callable[[Any], np.ndarray]
    correct: Callable[[Any], np.ndarray]
    trivial: np.ndarray
    workspace: Workspace = IN_MEMORY


@dataclass(frozen=True)
class RefinementState:
    """A block of Ritz vectors and what the next step needs.

    `basis`, `images` (N, 2 m), float32 or float64: m Ritz vectors X, then up to m directions P of the last step,
    orthonormal, and their products with S; `quotients` (w, w) float64, B^T S B of the w columns B of `basis` in use;
    `values` (m,) float64, Ritz values theta, descending; `residuals` (m,), |S x - theta x| for the unit vectors x;
    `passes` made; `fresh`, whether `images` come from one product, made of X itself.
    """

    basis: np.ndarray
    images: np.ndarray
    quotients: np.ndarray
    values: np.ndarray
    residuals: np.ndarray
    passes: int = 0
    fresh: bool = True

    @property
    def vectors(self) -> np.ndarray:
        """The Ritz vectors X (N, m)."""
        return self.basis[:, : len(self.values)]

    @property
    def in_use(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns of `basis` and `images` that are in use."""
        width = len(self.quotients)
        return self.basis[:, :width], self.images[:, :width]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return a state as arrays, of the large ones the columns in use."""
        basis, images = self.in_use
        return {name: np.asarray(value) for name, value in vars(self).items()} | {"basis": basis, "images": images}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray], workspace: Workspace = IN_MEMORY) -> "RefinementState":
        """Return the state that gave `arrays`."""
        large = []
        for columns in (arrays["basis"], arrays["images"]):
            large.append(workspace.zeros((len(columns), 2 * len(arrays["values"])), columns.dtype))
            large[-1][:, : columns.shape[1]] = columns
        several: dict[str, Any] = {name: arrays[name] for name in ("quotients", "values", "residuals")}
        return cls(large[0], large[1], **several, passes=int(arrays["passes"]), fresh=bool(arrays["fresh"]))


def n_start_columns(n_components: int, n_points: int) -> int:
    """Return how many vectors a coarse graph should give: more than are iterated, so that none of those is missing."""
    width = n_columns(n_components, n_points)
    return width + max(FEWEST_SPARE, width // 4)


def n_columns(n_components: int, n_points: int) -> int:
    """Return how many vectors to iterate: guards in addition to the requested ones speed up their convergence."""
    guards = FEWEST_GUARDS + n_components // 5
    return max(1, min(n_components + guards, n_points - 1, max(n_components, n_points // 4)))


def random_columns(n_points: int, count: int, seed: int) -> np.ndarray:
    """Return standard normal columns (N, count) float32: each tile of rows has a separate stream."""
    out = np.empty((n_points, count), np.float32)
    for number, tile in enumerate(slices(n_points, TILE)):
        out[tile] = generator(seed, "refinement", number).standard_normal(out[tile].shape)
    return out


def initial_state(vectors: np.ndarray, problem: RefinementProblem, width: int) -> RefinementState:
    """Return the state from start vectors, after one pass: the best `width` vectors of their span.

    The vectors (N, n) are approximate eigenvectors u of S, columns of any scale, not orthogonal; they are overwritten.
    Dependent ones are dropped; a RankError is raised where none is left. Their dtype is that of the iteration: float32
    reaches residuals of 4e-6.
    """
    over, trivial = problem.workspace.over, np.asarray(problem.trivial, vectors.dtype)[:, np.newaxis]
    lengths, shares = column_squares(vectors, over), inner_products((trivial,), (vectors,), over)
    free = vectors
    combine_columns((vectors, trivial), np.vstack([np.eye(len(lengths)), -shares]), free, over)
    # What is left of a constant column is rounding.
    varying = column_squares(free, over) > TRIVIAL_SHARE * lengths
    free = free if varying.all() else np.ascontiguousarray(free[:, varying])
    state = _ritz_vectors(free, problem.apply(free), width, problem.workspace)
    if state is None:
        raise RankError("the vectors to refine are constant, zero or not finite: start from others")
    return state


def renewed(state: RefinementState, problem: RefinementProblem) -> RefinementState:
    """Return the state one pass later with products just made, without directions; its arrays are those of `state`."""
    vectors = problem.workspace.concatenate([state.vectors])
    following = _ritz_vectors(vectors, problem.apply(vectors), len(state.values), problem.workspace, state)
    if following is None:
        raise RankError("the vectors that are refined are no longer finite: ask for a larger residual")
    return replace(following, passes=state.passes + 1)


def _ritz_vectors(
    vectors: np.ndarray,
    products: np.ndarray,
    width: int,
    workspace: Workspace,
    reused: RefinementState | None = None,
) -> RefinementState | None:
    """Return the state of the best vectors in a span; None where the span is empty or not finite."""
    over, n_vectors = workspace.over, vectors.shape[1]
    both = inner_products((vectors,), (vectors, products), over, np.float64) if n_vectors else np.empty((0, 0))
    if both.size == 0 or not np.isfinite(both).all():
        return None
    values, coefficients = _ritz(both[:, :n_vectors], both[:, n_vectors:], width)
    shape = (len(vectors), 2 * len(values))
    if reused is not None and reused.basis.shape == shape:
        basis, images = reused.basis, reused.images
    else:
        basis, images = (workspace.empty(shape, vectors.dtype) for _ in range(2))
    combine_columns((vectors,), coefficients, basis, over)
    combine_columns((products,), coefficients, images, over)
    residuals = residuals_into(None, basis, images, values, over)
    return RefinementState(basis, images, np.diag(values), values, residuals, 1)


def step(state: RefinementState, problem: RefinementProblem, target: float) -> RefinementState:
    """Return the state one pass later. The arrays of `state` are reused for its successor.

    Vectors whose residual is within `target` take part, but add no new direction.
    """
    workspace, over = problem.workspace, problem.workspace.over
    active = np.flatnonzero(state.residuals > target)
    basis, images = state.in_use
    added = workspace.empty((len(basis), len(active)), basis.dtype)
    residuals_into(added, basis, images, state.values, over, active)
    added = problem.correct(added)
    added = _orthonormal(added, basis, np.asarray(problem.trivial, basis.dtype)[:, np.newaxis], workspace)
    products = problem.apply(added)
    overlap, projected = _joint_products(state, added, products, over)
    values, coefficients = _ritz(overlap, projected, len(state.values))
    coefficients = np.hstack([coefficients, _directions(coefficients, overlap, active)])
    following, images_of_it = state.basis, state.images
    combine_columns((basis, added), coefficients, following, over)
    combine_columns((images, products), coefficients, images_of_it, over)
    residuals = residuals_into(None, following, images_of_it, values, over)
    quotients = coefficients.T @ projected @ coefficients
    return RefinementState(following, images_of_it, quotients, values, residuals, state.passes + 1, False)


def _orthonormal(vectors: np.ndarray, basis: np.ndarray, trivial: np.ndarray, workspace: Workspace) -> np.ndarray:
    """Return unit vectors that span vectors (N, a) outside of an orthonormal basis; dependent ones are left out.

    They are orthogonal to a thousandth: the Rayleigh-Ritz step uses their true inner products.
    """
    over, n_known = workspace.over, basis.shape[1] + 1
    products = inner_products((basis, trivial, vectors), (vectors,), over)
    shares, gram = products[:n_known], products[n_known:]
    remainder = gram - shares.T @ shares
    # What is left of a vector within the span is rounding.
    remainder[:, np.diag(remainder) <= DEPENDENT * np.diag(gram)] = 0
    remainder = np.where(np.diag(remainder)[:, np.newaxis] > 0, remainder, 0)
    unit = _orthonormal_coefficients(remainder)
    out = workspace.empty((len(vectors), unit.shape[1]), vectors.dtype)
    combine_columns((basis, trivial, vectors), np.vstack([-shares @ unit, unit]), out, over)
    return out


def _joint_products(
    state: RefinementState, added: np.ndarray, products: np.ndarray, over: Mapper
) -> tuple[np.ndarray, np.ndarray]:
    """Return B^T B and B^T S B, (n, n) float64, of the state's basis and the added vectors side by side."""
    width, n_added = len(state.quotients), added.shape[1]
    basis, images = state.in_use
    overlap, projected = np.eye(width + n_added), np.zeros((width + n_added, width + n_added))
    projected[:width, :width] = state.quotients
    if state.passes % STEPS_BETWEEN_GRAMS == 0:
        both = inner_products((basis,), (basis, images), over, np.float64)
        overlap[:width, :width], projected[:width, :width] = both[:, :width], both[:, width:]
    both = inner_products((basis, added), (added, products), over)
    for whole, new in ((overlap, both[:, :n_added]), (projected, both[:, n_added:])):
        whole[:, width:] = new
        whole[width:, :width] = new[:width].T
    return overlap, (projected + projected.T) / 2


def _orthonormal_coefficients(overlap: np.ndarray) -> np.ndarray:
    """Return C (n, r) with C^T overlap C = I that spans all but the directions that are `DEPENDENT`."""
    diagonal = np.diag(overlap)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    lengths, rotation = np.linalg.eigh(overlap * scale[:, None] * scale)
    independent = lengths > DEPENDENT * max(lengths[-1], np.finfo(np.float64).tiny)
    return scale[:, None] * (rotation[:, independent] / np.sqrt(lengths[independent]))


def _ritz(overlap: np.ndarray, projected: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `count` largest Ritz values of a span, and the coefficients of their unit vectors."""
    basis = _orthonormal_coefficients(overlap)
    within = basis.T @ projected @ basis
    values, rotation = np.linalg.eigh((within + within.T) / 2)
    return values[::-1][:count], (basis @ rotation[:, ::-1])[:, :count]


def _directions(coefficients: np.ndarray, overlap: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the directions of the step: what the active new vectors have outside of the old, orthonormal to the new.

    Shape (n, p), p at most the number of active ones: dependent columns are left out. The first m rows of
    `coefficients` (n, m) belong to the old vectors.
    """
    directions = coefficients[:, active]
    directions[: coefficients.shape[1]] = 0
    directions -= coefficients @ (coefficients.T @ (overlap @ directions))
    return directions @ _orthonormal_coefficients(directions.T @ overlap @ directions)


def refinement(
    state: RefinementState, problem: RefinementProblem, n_wanted: int, target: float, max_passes: int
) -> Iterator[RefinementState]:
    """Yield the states that follow, to the first with residuals of the wanted vectors within `target`, or `max_passes`.

    Passes are products with the graph, those of `state` included. Products are carried along by the steps, and their
    rounding errors add up: the last pass recomputes those of the vectors, so that the residuals of the last state
    are those of a product just made. The arrays of a state are overwritten when the next one is requested.
    """
    while state.passes < max_passes:
        reached = state.residuals[:n_wanted].max() <= target
        if reached and state.fresh:
            return
        last = reached or state.passes == max_passes - 1
        state = renewed(state, problem) if last else step(state, problem, target)
        yield state


def guard_vectors(state: RefinementState, n_components: int, workspace: Workspace = IN_MEMORY) -> np.ndarray:
    """Return the unit Ritz vectors u beyond those wanted, (N, g) float32."""
    beyond = state.basis[:, n_components : len(state.values)]
    guards = workspace.empty(beyond.shape, np.float32)
    for panel in panels(len(guards)):
        guards[panel] = beyond[panel]
    return guards


def refined_embedding(
    state: RefinementState, degrees: np.ndarray, n_components: int, workspace: Workspace = IN_MEMORY
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues lambda (d,) ascending, and the embedding v = D^-1/2 u, (N, d) in the dtype of the state.

    V^T D V = I, as scikit-learn's SpectralEmbedding scales it; the largest absolute entry of a column, the first of
    equals, is positive. `degrees` (N,) are those of W.
    """
    vectors = state.basis[:, :n_components]
    embedding = workspace.empty(vectors.shape, vectors.dtype)
    largest = np.zeros(vectors.shape[1], vectors.dtype)
    for panel in panels(len(embedding)):
        roots = np.sqrt(np.asarray(degrees[panel], np.float64)).astype(vectors.dtype)
        rows = embedding[panel]
        np.divide(vectors[panel], roots[:, np.newaxis], out=rows)
        extreme = rows[np.argmax(np.abs(rows), axis=0), np.arange(rows.shape[1])]
        largest = np.where(np.abs(extreme) > np.abs(largest), extreme, largest)
    signs = np.where(largest < 0, -1, 1).astype(vectors.dtype)
    for panel in panels(len(embedding)):
        embedding[panel] *= signs
    return 1 - state.values[:n_components], embedding
