"""Hermite and Taylor expansions of a Gaussian field in a box, and the translation of the first into the second.

With u = x - b the place of a source in a box around b, v = y - c that of a target in a box around c, and
h_n(t) = (-1)^n d^n/dt^n exp(-t^2), in every dimension
exp(-(y - x)^2) = sum_{m, n} u^m v^n (-1)^n h_{m+n}(c - b) / (m! n!).
A box of sources is known by its moments sum q u^m, m < order; a box of targets by the coefficients of v^n, n <= order:
one more, so that the gradient is a polynomial with as many terms as the moments. Translations are separable: an axis
at a time. There are always three axes; in the plane the first has one moment and one coefficient.
"""

import math

import numpy as np

from scalemani.kernels.machine.compile import compiled, compiled_sums, inlined_sums
from scalemani.methods.fast_gauss.kernels.boxes import Boxed

TERMS_STEP = 8
WORK_ROWS = 12
_0, _1, _2, _3, _4, _5, _6, _7 = (np.uint64(i) for i in range(TERMS_STEP))
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
    (2 reach + 1, order, order + 1 and zeros up to a multiple of TERMS_STEP).
    """
    n_terms = (order + TERMS_STEP) // TERMS_STEP * TERMS_STEP
    factors = np.zeros((2 * reach + 1, order, n_terms))
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


@compiled_sums
def translate(moments: np.ndarray, sources: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Write coefficients from moments along the last axis of these, which becomes the first.

    Two lines of moments and eight terms are summed side by side, in registers; the last line of an odd number is done
    twice.

    Parameters
    ----------
    moments : (m, rest, order) float64
    sources : (n, steps) int64, the row of `moments` that lies each step away, -1 for none
    factors : (steps, order, terms or more) float64, of `translations`
    out : (n, terms, rest) float64, written
    """
    _, rest, order = moments.shape
    for i in range(np.uint64(len(sources))):
        for b in range(_0, np.uint64(rest), _2):
            c = min(b + _1, np.uint64(rest) - _1)
            for n in range(_0, np.uint64(out.shape[1]), np.uint64(TERMS_STEP)):
                b0 = b1 = b2 = b3 = b4 = b5 = b6 = b7 = 0.0
                c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = 0.0
                for step in range(np.uint64(sources.shape[1])):
                    if sources[i, step] < 0:
                        continue
                    s = np.uint64(sources[i, step])
                    for m in range(np.uint64(order)):
                        x, y = moments[s, b, m], moments[s, c, m]
                        b0 += x * factors[step, m, n + _0]
                        b1 += x * factors[step, m, n + _1]
                        b2 += x * factors[step, m, n + _2]
                        b3 += x * factors[step, m, n + _3]
                        b4 += x * factors[step, m, n + _4]
                        b5 += x * factors[step, m, n + _5]
                        b6 += x * factors[step, m, n + _6]
                        b7 += x * factors[step, m, n + _7]
                        c0 += y * factors[step, m, n + _0]
                        c1 += y * factors[step, m, n + _1]
                        c2 += y * factors[step, m, n + _2]
                        c3 += y * factors[step, m, n + _3]
                        c4 += y * factors[step, m, n + _4]
                        c5 += y * factors[step, m, n + _5]
                        c6 += y * factors[step, m, n + _6]
                        c7 += y * factors[step, m, n + _7]
                sums = (b0, b1, b2, b3, b4, b5, b6, b7)
                others = (c0, c1, c2, c3, c4, c5, c6, c7)
                for term in range(np.uint64(min(TERMS_STEP, out.shape[1] - n))):
                    out[i, n + term, b], out[i, n + term, c] = sums[term], others[term]


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
    found, offsets, lines, value, slope = work[:4], work[4:7], work[7:10], work[10], work[11]
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
                found[0, j], found[1, j], found[2, j], found[3, j] = 0.0, line1[j], line2[j], line0[j]
        else:
            for j in range(count):
                found[0, j] = found[0, j] * x0[j] + found[3, j]
                found[1, j] = found[1, j] * x0[j] + line1[j]
                found[2, j] = found[2, j] * x0[j] + line2[j]
                found[3, j] = found[3, j] * x0[j] + line0[j]


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
