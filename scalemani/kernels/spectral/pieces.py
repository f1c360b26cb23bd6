"""Eigenmaps of a graph in pieces: each piece solved by itself, and all of them laid out side by side.

Pieces are the connected components of W, numbered by size, the largest first. The eigenvectors of all pieces together
are one basis of many of a null space with a dimension for each; those of one piece are unique to rounding.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.columns import column_squares, panels, residuals_into, unit_roots
from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.graph.components import Components
from scalemani.kernels.graph.product import Rows, dirichlet_energies
from scalemani.kernels.graph.symmetric import row_sums
from scalemani.kernels.spectral.accuracy import UNKNOWN, Following, following_value
from scalemani.kernels.spectral.coarsening import DENSE_NODES, Level, coarser, row_slice
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps
from scalemani.kernels.spectral.eigenproblem import sign_rule, within_range
from scalemani.kernels.spectral.multilevel import LevelGraph, Multilevel
from scalemani.kernels.spectral.refinement import (
    guard_vectors,
    initial_state,
    n_columns,
    n_start_columns,
    refined_embedding,
    refinement,
)

MOVED = 3.0  # the eigenvalue 1 of the trivial vector, to below all others: to -2
ROW_GAP = 1.25  # between the middles of neighbouring pieces, over the sum of their radii


def numbered_by_size(components: Components) -> Components:
    """Return components with numbers by size, the largest first, equal ones by their first rows."""
    order = np.argsort(-components.sizes, kind="stable")
    numbers = np.empty(len(order), np.int32)
    numbers[order] = np.arange(len(order))
    return Components(numbers[components.labels], components.sizes[order])


class PieceTarget(NamedTuple):
    """How a piece is solved: components, whether by an exact solver, else to which residual, passes, dtype and seed."""

    n_components: int
    exact: bool
    residual: float
    max_passes: int
    dtype: type
    seed: int


class PieceMap(NamedTuple):
    """Eigenmaps of a piece of n points.

    `vectors` (n, e), v of L v = lambda D v with V^T D V = I, e at most n - 1; `eigenvalues` (e,) ascending and
    `residuals` (e,); what is known of those that follow, and the passes over the piece.
    """

    vectors: np.ndarray
    eigenvalues: np.ndarray
    residuals: np.ndarray
    following: Following
    passes: int


def piece_map(rows: Rows, target: PieceTarget, workspace: Workspace = IN_MEMORY) -> PieceMap:
    """Return the eigenmaps of a connected graph by its rows (indptr, indices, values); small ones are solved densely.

    Eigenvalues are sums of squares of the vectors as they are: none leaves [0, 2] or is lost in the rounding of 1.
    """
    n_points, passes, following = len(rows[0]) - 1, 0, UNKNOWN
    wanted, degrees = min(target.n_components, n_points - 1), workspace.as_large(row_sums(rows[2], rows[0]))
    if wanted == 0:
        return PieceMap(np.zeros((n_points, 0)), np.empty(0), np.empty(0), following, passes)
    by_lanczos = target.exact and n_points > DENSE_NODES
    if n_points <= DENSE_NODES:
        vectors, following = _dense(rows, degrees, wanted)
    elif by_lanczos:
        vectors = exact_eigenmaps(_matrix(rows), wanted).embedding
    else:
        vectors, following, passes = _refined(rows, degrees, wanted, target, workspace)
    unit, energies = workspace.empty(vectors.shape, np.float64), np.zeros(wanted)
    for panel in panels(n_points):
        of_rows = np.empty((panel.stop - panel.start, wanted))
        dirichlet_energies(row_slice(rows, panel.start, panel.stop), panel.start, vectors, of_rows)
        energies += of_rows.sum(axis=0)
        np.multiply(vectors[panel], np.sqrt(degrees[panel])[:, np.newaxis], out=unit[panel])
    eigenvalues = energies / column_squares(unit)
    order = np.argsort(eigenvalues, kind="stable")
    if (np.diff(order) != 1).any():
        unit[...], vectors, eigenvalues = unit[:, order], np.ascontiguousarray(vectors[:, order]), eigenvalues[order]
    eigenvalues = within_range(eigenvalues)
    if by_lanczos:
        following = following_value(_matrix(rows), 1 - eigenvalues, unit)
    graph = LevelGraph(Level(rows, degrees, np.empty(0, np.int32)), workspace)
    residuals = residuals_into(None, unit, graph.product(unit), 1 - eigenvalues, workspace.over)
    return PieceMap(vectors, eigenvalues, residuals, following, passes)


def _matrix(rows: Rows) -> sp.csr_matrix:
    indptr, indices, values = rows
    return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1,) * 2)


def _dense(rows: Rows, degrees: np.ndarray, n_wanted: int) -> tuple[np.ndarray, Following]:
    """Return the vectors (n, e) of a small graph, and the eigenvalue of S that follows."""
    roots, trivial = np.sqrt(degrees), unit_roots(degrees)
    matrix = _matrix(rows).toarray().astype(np.float64)
    matrix /= roots * roots[:, np.newaxis]
    matrix -= MOVED * trivial * trivial[:, np.newaxis]
    values, vectors = np.linalg.eigh(matrix)
    following = Following.one(max(-1.0, float(values[-n_wanted - 1])), len(degrees) * float(np.finfo(np.float64).eps))
    return sign_rule(vectors[:, : -n_wanted - 1 : -1] / roots[:, np.newaxis]), following


def _refined(
    rows: Rows, degrees: np.ndarray, n_wanted: int, target: PieceTarget, workspace: Workspace
) -> tuple[np.ndarray, Following, int]:
    """Return the vectors (n, e) of a large graph from its coarse graphs, what follows, and the passes over it."""
    n_points = len(degrees)
    coarse = Multilevel(list(coarser(rows, workspace)), workspace)
    start = coarse.eigenvectors(n_start_columns(n_wanted, n_points), target.seed)
    problem = coarse.problem(0)
    start = workspace.concatenate([start], target.dtype)
    state = initial_state(start, problem, n_columns(n_wanted, n_points))
    for following in refinement(state, problem, n_wanted, target.residual, target.max_passes):
        state = following
    _, vectors = refined_embedding(state, degrees, n_wanted, workspace)
    if len(state.values) == n_wanted:
        return vectors, UNKNOWN, state.passes
    guards = guard_vectors(state, n_wanted, workspace)
    return vectors, Following(state.values[n_wanted:], state.residuals[n_wanted:], guards), state.passes


def side_by_side(positions: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """Return a map of pieces next to each other in their first two dimensions, none over another.

    Each is centred, has one deviation in all columns, and fills a ball whose volume is its number of points. Pieces are
    put in rows, the largest first.

    Parameters
    ----------
    positions : (N, d) float64, the coordinates of each piece for itself
    pieces : (N,) int, its number, by size

    References
    ----------
    Coffman, Garey, Johnson and Tarjan, Performance bounds for level-oriented two-dimensional packing algorithms, 1980:
    next fit by decreasing height.
    """
    n_dims = positions.shape[1]
    sizes = np.bincount(pieces)
    radii = sizes ** (1.0 / n_dims)
    order, offsets = group_by(pieces, len(sizes))
    middles, placed = row_places(radii, n_dims), np.empty_like(positions)
    for piece in range(len(sizes)):
        rows = order[offsets[piece] : offsets[piece + 1]]
        centred = positions[rows] - positions[rows].mean(axis=0)
        deviations = centred.std(axis=0)
        centred /= np.where(deviations > 0, deviations, 1.0)
        farthest = np.sqrt(np.square(centred).sum(axis=1).max())
        placed[rows] = centred * (radii[piece] / farthest if farthest > 0 else 1.0) + middles[piece]
    return placed


def row_places(radii: np.ndarray, n_dims: int) -> np.ndarray:
    """Return the middles (P, d) of balls of these radii (P,), descending, in rows of about the height of them all."""
    middles, sides = np.zeros((len(radii), n_dims)), 2 * ROW_GAP * radii
    width = np.inf if n_dims == 1 else max(np.sqrt(np.square(sides).sum()), sides[0])
    left = top = 0.0
    height = sides[0]
    for piece, side in enumerate(sides):
        if left + side > width * (1 + 1e-12):
            left, top, height = 0.0, top + height, side
        middles[piece, :2] = (left + side / 2, top + side / 2)[:n_dims]
        left += side
    return middles
