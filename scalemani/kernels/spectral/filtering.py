"""A polynomial in S that damps what vectors have of far eigenvectors, by products with the graph alone.

The vectors of a graph of which some edges have changed err by what differs from neighbour to neighbour. Chebyshev's
polynomial of degree m leaves of all eigenvectors of S with eigenvalues up to DAMPED_UP_TO one part in
cosh(m arcosh(x_1)), where x_1 is the place of 1 if [-1, DAMPED_UP_TO] is [-1, 1]: of ten degrees one in 47. A step of
the refinement, which is for what lies above, takes as long as four products and leaves half.

Source: Zhou, Saad, Tiago and Chelikowsky 2006, Self-consistent-field calculations using Chebyshev-filtered subspace
iteration, algorithm 4.3.
"""

import math
from dataclasses import replace

import numpy as np

from scalemani.kernels.arrays.columns import TILE, inner_products, panels, residuals_into
from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.spectral.refinement import RefinementProblem, RefinementState, initial_state

DAMPED_UP_TO = 0.9  # what lies above is smooth enough for coarse graphs
MIDDLE, RADIUS = (DAMPED_UP_TO - 1) / 2, (DAMPED_UP_TO + 1) / 2
PLACE_OF_ONE = (1 - MIDDLE) / RADIUS
TO_SPARE = 1.1  # times as much as the target needs: a step that can be spared costs as much as four degrees
POLYNOMIALS = 3  # of which the second and third are short where residuals fall as they should
MOST_DEGREE = 16  # one part in 700: by then little is left that lies below


def filtered_state(
    vectors: np.ndarray, problem: RefinementProblem, width: int, n_wanted: int, target: float, most_passes: int
) -> RefinementState:
    """Return the state of the best `width` vectors in a span that polynomials have turned to the leading eigenvectors.

    Each of a few polynomials has the degree that the residuals of the first vectors ask for, and ends with a product by
    which these are measured again: what is smooth may be left over, and steps are for it.

    Parameters
    ----------
    vectors : (N, n) float32 or float64, approximate eigenvectors of S of any length; they are overwritten
    n_wanted : how many of the first have to come within the target
    target : of |S u - theta u| for unit vectors u
    most_passes : products of S with the vectors, of which two are made in any case
    """
    over, images = problem.workspace.over, problem.apply(vectors)
    ratio, passes = largest_residual(vectors[:, :n_wanted], images[:, :n_wanted], over) / target, 1
    for _ in range(POLYNOMIALS):
        degree = max(1, min(degree_for(ratio), most_passes - passes))
        state = initial_state(filtered(vectors, images, problem, degree), problem, width)
        passes += degree
        ratio = state.residuals[:n_wanted].max() / target
        if ratio <= 1 or passes >= most_passes:
            break
        vectors, images = (problem.workspace.concatenate([part]) for part in state.in_use)
    return replace(state, passes=passes)


def filtered(vectors: np.ndarray, images: np.ndarray, problem: RefinementProblem, degree: int) -> np.ndarray:
    """Return the polynomial of a degree in S, one at one, times vectors (N, n); all but the last product are made.

    Vectors and their products with S, `images`, are overwritten.
    """
    over, first = problem.workspace.over, 1 / PLACE_OF_ONE
    combine(images, vectors, vectors, (first / RADIUS, 0.0), over)
    before, current, factor = vectors, images, first
    for _ in range(degree - 1):
        following = 1 / (2 / first - factor)
        images = problem.apply(current)
        combine(images, current, before, (2 * following / RADIUS, factor * following), over)
        before, current, factor = current, images, following
    return current


def degree_for(ratio: float) -> int:
    """Return the degree of the polynomial that brings residuals of so many times the target within it."""
    wanted = math.acosh(max(1.0, TO_SPARE * ratio)) / math.acosh(PLACE_OF_ONE)
    return min(math.ceil(wanted), MOST_DEGREE)


def largest_residual(vectors: np.ndarray, images: np.ndarray, over: Mapper) -> float:
    """Return the largest |S u - theta u| of unit vectors u along vectors (N, n), by their images; 0 of zero columns."""
    products = inner_products((vectors,), (vectors, images), over, np.float64)
    squares, quotients = (np.diagonal(part) for part in np.hsplit(products, 2))
    lengths = np.sqrt(squares)
    nonzero = np.where(lengths > 0, lengths, 1.0)
    return float((residuals_into(None, vectors, images, quotients / nonzero**2, over) / nonzero).max())


def combine(
    images: np.ndarray, vectors: np.ndarray, before: np.ndarray, factors: tuple[float, float], over: Mapper
) -> None:
    """Write factors[0] (images - MIDDLE vectors) - factors[1] before, all (N, n), in the place of the images."""

    def of_panel(panel: slice) -> None:
        for tile in slices(panel.stop - panel.start, TILE):
            image, vector, other = (block[panel][tile] for block in (images, vectors, before))
            image -= MIDDLE * vector
            image *= factors[0]
            image -= factors[1] * other

    run(over(of_panel, panels(len(images))))
