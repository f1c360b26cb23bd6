"""Hermite and Taylor expansions of a Gaussian field in a box, translation of the first into the second, and errors.

With u = x - b the place of a source in a box around b, v = y - c that of a target in a box around c, and
h_n(t) = (-1)^n d^n/dt^n exp(-t^2), in every dimension
exp(-(y - x)^2) = sum_{m, n} u^m v^n (-1)^n h_{m+n}(c - b) / (m! n!).
A box of sources is known by its moments sum q u^m, m < order; a box of targets by the coefficients of v^n, n <= order:
one more, so that the gradient is a polynomial with as many terms as the moments. Translations are separable: an axis
at a time. There are always three axes; in the plane the first has one moment and one coefficient.

A-priori bounds on the error are those printed in the thesis, and one for `FastGauss`. All are for
K = exp(-|y - x|^2) and boxes of side sqrt(2) r, whose points lie within r / sqrt(2) of the centre along every axis.

*Errata of the thesis.* Equations (5.5) to (5.7) sum the charges where they need absolute values: with charges of both
signs they can even be 0. The second term of (5.7) is a square; expanding one truncated series into another loses the
retained part of the first times the tail of the second, which is of first order. With r = 1/2 the slack of the first
term hides that (at orders up to 15 the largest error is 0.41 of the bound). The product form of Greengard and Strain
(1991) that (5.5) corrects, a product of tails of one dimension, is too small from two dimensions on.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled, inlined_sums, square_of
from scalemani.methods.fast_gauss.kernels.boxes import Boxed, Grid

WORK_ROWS = 12
CHUNK = 256  # points of a box that are worked on together: what is kept of each stays in the first-level cache


def hermite_functions(x: float, count: int) -> np.ndarray:
    """Return h_0(x), ..., h_{count - 1}(x): h_{n+1} = 2 x h_n - 2 n h_{n-1}."""
    values = np.zeros(max(count, 2))
    values[0] = math.exp(-x * x)
    values[1] = 2.0 * x * values[0]
    for n in range(1, count - 1):
        values[n + 1] = 2.0 * x * values[n] - 2.0 * n * values[n - 1]
    return values[:count]


def translations(order: int, side: float, reach: int) -> np.ndarray:
    """Return the factors that take moments of sources to coefficients of targets along one axis.

    Factor [s, m, n] = (-1)^n h_{m+n}(c - b) / (m! n!) is for sources s - reach boxes after the targets;
    (2 reach + 1, order, order + 1).
    """
    factors = np.empty((2 * reach + 1, order, order + 1))
    for step in range(2 * reach + 1):
        values = hermite_functions((reach - step) * side, 2 * order)
        for m in range(order):
            for n in range(order + 1):
                factors[step, m, n] = (-1.0) ** n * values[m + n] / (math.factorial(m) * math.factorial(n))
    return factors


@compiled
def box_moments(boxed: Boxed, charges: np.ndarray, boxes: np.ndarray, moments: np.ndarray) -> None:
    """Write the moments of the points of some boxes, about the centres of these.

    Parameters
    ----------
    charges : (N,) float64, in that order
    boxes : (n,) int64, numbers of boxes
    moments : (n, m0, m1, m2) float64, written
    """
    _, n0, n1, _ = moments.shape
    offsets, layer, line, left = np.zeros((3, CHUNK)), np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
    moments[:] = 0.0
    for b in range(len(boxes)):
        stop = boxed.starts[boxes[b] + 1]
        for first in range(boxed.starts[boxes[b]], stop, CHUNK):
            count = np.uint64(min(CHUNK, stop - first))
            _write_offsets(boxed.points, np.uint64(first), count, boxed.centers[boxes[b]], offsets)
            for j in range(count):
                layer[j] = charges[np.uint64(first) + j]
            for m0 in range(n0):
                for j in range(count):
                    line[j] = layer[j]
                for m1 in range(n1):
                    _add_power_sums(line, offsets[2], count, left, moments[b, m0, m1])
                    for j in range(count):
                        line[j] *= offsets[1, j]
                for j in range(count):
                    layer[j] *= offsets[0, j]


@compiled
def _write_offsets(points: np.ndarray, first: int, count: int, center: np.ndarray, offsets: np.ndarray) -> None:
    """Write points[first : first + count] (N, d) minus the center (3,) into the last d rows of `offsets`."""
    n_dims = np.uint64(points.shape[1])
    for k in range(n_dims):
        axis = np.uint64(3) - n_dims + k
        for j in range(count):
            offsets[axis, j] = points[first + j, k] - center[axis]


@inlined_sums
def _add_power_sums(weights: np.ndarray, x: np.ndarray, count: int, left: np.ndarray, sums: np.ndarray) -> None:
    """Add sum_j w_j x_j^m to sums[m], four powers in one go over the first `count` points."""
    n_sums = len(sums)
    for j in range(count):
        left[j] = weights[j]
    for m in range(0, n_sums, 4):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(count):
            w0 = left[j]
            w1 = w0 * x[j]
            w2 = w1 * x[j]
            w3 = w2 * x[j]
            left[j] = w3 * x[j]
            s0 += w0
            s1 += w1
            s2 += w2
            s3 += w3
        sums[m] += s0
        if m + 1 < n_sums:
            sums[m + 1] += s1
        if m + 2 < n_sums:
            sums[m + 2] += s2
        if m + 3 < n_sums:
            sums[m + 3] += s3


def translate(moments: np.ndarray, sources: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Write coefficients from moments along the last axis of these, which becomes the first.

    Parameters
    ----------
    moments : (m, rest, order) float64
    sources : (n, steps) int64, the row of `moments` that lies each step away, -1 for none
    factors : (steps, order, terms) float64, of `translations`
    out : (n, terms, rest) float64, written
    """
    _, rest, order = moments.shape
    n_terms = factors.shape[2]
    coefficients = np.zeros((len(sources), rest, n_terms))
    for step, factor in enumerate(factors):
        near = np.flatnonzero(sources[:, step] >= 0)
        terms = moments[sources[near, step]].reshape(-1, order) @ factor  # one product of all: many small ones are slow
        coefficients[near] += terms.reshape(-1, rest, n_terms)
    out[:] = coefficients.transpose(0, 2, 1)


@inlined_sums
def evaluate(
    coefficients: np.ndarray, points: np.ndarray, first: int, count: int, center: np.ndarray, work: np.ndarray
) -> None:
    """Write gradient and S of some points of a box, from its coefficients.

    Parameters
    ----------
    coefficients : (n0, n1, n2) float64
    points : (N, d) float64
    first, count : the points are points[first : first + count], at most CHUNK
    center : (3,) float64, of the box
    work : (WORK_ROWS, CHUNK) float64; the first three rows become the gradient, the fourth S
    """
    n0, n1, _ = coefficients.shape
    field, offsets, lines, value, slope = work[:4], work[4:7], work[7:10], work[10], work[11]
    x0, x1, x2, line0, line1, line2 = offsets[0], offsets[1], offsets[2], lines[0], lines[1], lines[2]
    for j in range(count):
        x0[j] = 0.0
    _write_offsets(points, first, count, center, offsets)
    for i0 in range(n0 - 1, -1, -1):
        for i1 in range(n1 - 1, -1, -1):
            _polynomial(coefficients[i0, i1], x2, count, value, slope)
            if i1 == n1 - 1:
                for j in range(count):
                    line0[j], line1[j], line2[j] = value[j], 0.0, slope[j]
            else:
                for j in range(count):
                    line1[j] = line1[j] * x1[j] + line0[j]
                    line0[j] = line0[j] * x1[j] + value[j]
                    line2[j] = line2[j] * x1[j] + slope[j]
        if i0 == n0 - 1:
            for j in range(count):
                field[0, j], field[1, j], field[2, j], field[3, j] = 0.0, line1[j], line2[j], line0[j]
        else:
            for j in range(count):
                field[0, j] = field[0, j] * x0[j] + field[3, j]
                field[1, j] = field[1, j] * x0[j] + line1[j]
                field[2, j] = field[2, j] * x0[j] + line2[j]
                field[3, j] = field[3, j] * x0[j] + line0[j]


@inlined_sums
def _polynomial(coefficients: np.ndarray, x: np.ndarray, count: int, value: np.ndarray, slope: np.ndarray) -> None:
    """Write sum_n c_n x^n and its derivative, for an odd or even number of terms, two in one go over the points."""
    n, odd = len(coefficients), len(coefficients) % 2
    if odd:
        for j in range(count):
            value[j], slope[j] = coefficients[n - 1], 0.0
    else:
        a, b = coefficients[n - 1], coefficients[n - 2]
        for j in range(count):
            value[j], slope[j] = a * x[j] + b, a
    for i in range(n - 3 + (0 if odd else -1), -1, -2):
        a, b = coefficients[i + 1], coefficients[i]
        for j in range(count):
            middle = value[j] * x[j] + a
            slope[j] = (slope[j] * x[j] + value[j]) * x[j] + middle
            value[j] = middle * x[j] + b


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
    n <= order are retained. What is lost is at most the sum of rho^{m+n} |h_{m+n}(D)| / (m! n!) over the other m and n,
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
    product, wrong = 1.0, 1.0
    for step in steps:
        product *= axis.most[step]
        wrong *= axis.most[step] + axis.error[step]
    squares = 0.0
    for step in steps:
        exact = axis.steepest[step] * product / axis.most[step]
        perturbed = (axis.steepest[step] + axis.slope_error[step]) * wrong / (axis.most[step] + axis.error[step])
        squares += square_of(exact if beyond else perturbed - exact)
    return (product if beyond else wrong - product), np.sqrt(squares)


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
    sums, slopes, left = np.zeros(len(keys)), np.zeros(len(keys)), np.full(len(keys), sizes.sum())
    steps, n_dims = np.zeros(3, np.int64), int((grid.reaches > 0).sum())
    for row in range((2 * layers + 1) * (2 * lines + 1)):
        layer, line = row // (2 * lines + 1) - layers, row % (2 * lines + 1) - lines
        steps[0], steps[1] = abs(layer), abs(line)
        move, head = layer * grid.strides[0] + line * grid.strides[1], 0
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
