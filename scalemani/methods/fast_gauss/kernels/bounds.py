"""A-priori bounds on the error of the fast Gauss transform: as printed in the thesis, and one for `FastGauss`.

All are for K = exp(-|y - x|^2) and boxes of side sqrt(2) r, whose points lie within r / sqrt(2) of the centre along
every axis.

*Errata of the thesis.* Equations (5.5) to (5.7) sum the charges where they need absolute values: with charges of both
signs they can even be 0. The second term of (5.7) is a square; expanding one truncated series into another loses the
kept part of the first times the tail of the second, which is of first order. With r = 1/2 the slack of the first
term hides that (at orders up to 15 the largest error is 0.41 of the bound). The product form of Greengard and Strain
(1991) that (5.5) corrects is too small from two dimensions on, see `product_bound`.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled, square_of
from scalemani.methods.fast_gauss.kernels.boxes import Grid
from scalemani.methods.fast_gauss.kernels.expansions import hermite_functions

LAST_TERM = 140  # beyond, r^s / sqrt(s!) < 1e-120 for every order that is allowed
LEAST_OFFSET = 1e-9  # of a side: what rounding may make of an offset of zero
STEEPEST = math.sqrt(0.5)  # exp(-t^2) is steepest here


class AxisErrors(NamedTuple):
    """Along one axis, by how many boxes apart (0, 1, ...): (n,) each.

    Attributes
    ----------
    most : the largest exp(-t^2).
    steepest : its largest slope.
    error : of its expansion.
    slope_error : of the slope of its expansion.
    """

    most: np.ndarray
    steepest: np.ndarray
    error: np.ndarray
    slope_error: np.ndarray


def _tail_form(total_charge: float, ratio: float, tail: float, order: int, n_dims: int) -> float:
    """Return Q (1 - ratio)^-d sum_{k < d} C(d, k) (1 - ratio^p)^k tail^{d - k}."""
    terms = (math.comb(n_dims, k) * (1.0 - ratio**order) ** k * tail ** (n_dims - k) for k in range(n_dims))
    return total_charge * sum(terms) / (1.0 - ratio) ** n_dims


def hermite_bound(total_charge: float, order: int, n_dims: int, ratio: float = 0.5) -> float:
    """Return thesis equation (5.5), after Baxter and Roussos (2002): the error of a Hermite expansion alone.

    *Erratum of the thesis.* It sums the charges q, which may cancel; what bounds the error is the sum of |q|.

    Parameters
    ----------
    total_charge : sum of |q|
    ratio : r, with boxes of side sqrt(2) r
    """
    return _tail_form(total_charge, ratio, ratio**order / math.sqrt(math.factorial(order)), order, n_dims)


def product_bound(total_charge: float, order: int, n_dims: int, ratio: float = 0.5) -> float:
    """Return the form of 1991 that `hermite_bound` corrects: it takes the d-dimensional tail for a product of tails.

    Parameters
    ----------
    total_charge, order, n_dims, ratio : those of `hermite_bound`
    """
    return total_charge * (ratio**order / ((1.0 - ratio) * math.sqrt(math.factorial(order)))) ** n_dims


def taylor_bound(total_charge: float, order: int, n_dims: int, ratio: float = 0.5) -> float:
    """Return thesis equation (5.6), the error of a Taylor expansion alone: the same as `hermite_bound`.

    Parameters
    ----------
    total_charge, order, n_dims, ratio : those of `hermite_bound`
    """
    return hermite_bound(total_charge, order, n_dims, ratio)


def translated_bound(total_charge: float, order: int, n_dims: int, ratio: float = 0.5) -> float:
    """Return thesis equation (5.7) as printed, for a Hermite expansion made into a Taylor one.

    *Erratum of the thesis.* The second term is a square; what it stands for is of first order in the tail. The slack of
    the first term covers it at r = 1/2.

    Parameters
    ----------
    total_charge, order, n_dims, ratio : those of `hermite_bound`
    """
    wide = math.sqrt(2.0) * ratio
    second = _tail_form(1.0, wide, wide**order / math.sqrt(math.factorial(order)), order, n_dims)
    return taylor_bound(total_charge, order, n_dims, ratio) + total_charge * second * second


def axis_errors(order: int, furthest: int, side: float, offset: float) -> AxisErrors:
    """Return what sources and targets at most `furthest` boxes apart can do, in one dimension.

    The series of exp(-(y - x)^2) in the offsets u and v converges everywhere; moments m < order and coefficients
    n <= order are kept. What is lost is at most the sum of rho^{m+n} |h_{m+n}(D)| / (m! n!) over the other m and n,
    with D the distance between the centres and rho the largest offset; the slope loses n / rho times as much.

    Parameters
    ----------
    offset : the largest distance of a point to the centre of its box along an axis, at most side / 2.
    """
    steps, rho = np.arange(furthest + 1), max(offset, LEAST_OFFSET * side)
    nearest = np.maximum(steps * side - 2.0 * rho, 0.0)
    steep = np.maximum(nearest, STEEPEST)
    lost = _lost_terms(order)
    powers = np.array([math.exp(s * math.log(rho) - math.lgamma(s + 1)) for s in range(LAST_TERM)])
    values = np.abs([hermite_functions(step * side, LAST_TERM) for step in steps]) * powers
    return AxisErrors(
        np.exp(-(nearest**2)), 2.0 * steep * np.exp(-(steep**2)), values @ lost[0], values @ lost[1] / rho
    )


@functools.cache
def _lost_terms(order: int) -> np.ndarray:
    """Return (2, LAST_TERM): over the lost terms with m + n = s, the sums of C(s, n) and of n C(s, n)."""
    sums = np.zeros((2, LAST_TERM))
    for s in range(order, LAST_TERM):
        terms = [n for n in range(s + 1) if n > order or s - n >= order]
        sums[:, s] = sum(math.comb(s, n) for n in terms), sum(n * math.comb(s, n) for n in terms)
    return sums


@compiled
def pair_errors(axis: AxisErrors, steps: np.ndarray, reach: int, summed: bool) -> tuple[float, float]:
    """Return bounds on the errors of K and of the length of its gradient, for two boxes.

    Within reach a product of factors at most k_i, each wrong by at most e_i, is wrong by prod(k_i + e_i) - prod k_i;
    beyond, the kernel itself is left out.

    Parameters
    ----------
    steps : (d,) int, how many boxes apart the two are
    """
    beyond = steps.max() > reach
    if summed and not beyond:
        return 0.0, 0.0
    kept, wrong = 1.0, 1.0
    for step in steps:
        kept *= axis.most[step]
        wrong *= axis.most[step] + axis.error[step]
    squares = 0.0
    for step in steps:
        exact = axis.steepest[step] * kept / axis.most[step]
        found = (axis.steepest[step] + axis.slope_error[step]) * wrong / (axis.most[step] + axis.error[step])
        squares += square_of(exact if beyond else found - exact)
    return (kept if beyond else wrong - kept), np.sqrt(squares)


@compiled
def worst_errors(
    axis: AxisErrors,
    reach: int,
    keys: np.ndarray,
    summed: np.ndarray,
    others: np.ndarray,
    sizes: np.ndarray,
    grid: Grid,
) -> tuple[float, float]:
    """Return bounds on the errors of S and of the length of grad S over the boxes of targets `keys` (n,).

    Parameters
    ----------
    axis : of at least max(grid.reaches) + 1 steps.
    keys : (n,) int64, of the boxes of targets, ascending.
    summed : (n,) bool, where pairs are summed.
    others : (m,) int64, keys of the boxes of sources, ascending.
    sizes : (m,) float64, the sum of |q| in each of those.
    grid : whose `reaches` say how many boxes away each pair of boxes is looked at; all further ones count as just
        beyond.
    """
    layers, lines, columns = grid.reaches
    rows = (2 * layers + 1) * (2 * lines + 1)
    sums, slopes, left = np.zeros(len(keys)), np.zeros(len(keys)), np.full(len(keys), sizes.sum())
    steps, head = np.zeros(3, np.int64), 0
    n_dims = int((grid.reaches > 0).sum())
    for row in range(rows):
        steps[0], steps[1] = abs(row // (2 * lines + 1) - layers), abs(row % (2 * lines + 1) - lines)
        move = (row // (2 * lines + 1) - layers) * grid.strides[0] + (row % (2 * lines + 1) - lines) * grid.strides[1]
        head = 0
        for i in range(len(keys)):
            middle = keys[i] + move
            while head < len(others) and others[head] < middle - columns:
                head += 1
            at = head
            while at < len(others) and others[at] <= middle + columns:
                steps[2] = abs(others[at] - middle)
                error, slope_error = pair_errors(axis, steps[3 - n_dims :], reach, summed[i])
                sums[i] += sizes[at] * error
                slopes[i] += sizes[at] * slope_error
                left[i] -= sizes[at]
                at += 1
    for i in range(len(keys)):
        sums[i] += max(left[i], 0.0) * axis.most[columns + 1]
        slopes[i] += max(left[i], 0.0) * axis.steepest[columns + 1]
    return sums.max(), slopes.max()
