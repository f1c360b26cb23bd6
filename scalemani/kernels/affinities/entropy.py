"""The entropy H of one point's Gaussian affinities, its derivatives in log beta, and a bracket of H = log K.

Entropies are in nats. Source: [EA] 2.2 and 2.3.1.
"""

import math
from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled, inlined_sums
from scalemani.kernels.machine.vector_math import LEAST_EXPONENT, exp_in_range

LARGEST = float(np.finfo(np.float64).max)
SMALLEST = float(np.finfo(np.float64).tiny)
LEAST_DIFFERENCE = 1e-306  # of squared distances: nearer ones tie, as the beta that separates them has no float64
LANES = 16  # rows are padded to a multiple of this, so that the vectorised loops have no scalar remainder
LARGEST_REST = 0.25  # p1 of theorem 2.2.2 lies in [3/4, 1)

MAX_STEPS = 2200  # halvings of a bracket as wide as float64 itself; the collapse of the bracket stops sooner


@compiled
def padded_length(n_neighbors: int) -> int:
    """Return the length of the scratch rows for `n_neighbors` neighbours."""
    return (n_neighbors + LANES - 1) // LANES * LANES


@compiled
def differences_from_nearest(squared_row: np.ndarray, differences: np.ndarray) -> int:
    """Write the differences of an ascending row (k,) to its smallest squared distance; return the number of ties at it.

    Neither the affinities nor their entropy change by the shift, and no exponential under- or overflows after it.
    `differences` (>= k,) float64 are infinite from k on.
    """
    nearest = np.float64(squared_row[0])
    n_ties = 0
    for m in range(squared_row.size):
        difference = np.float64(squared_row[m]) - nearest
        if difference < LEAST_DIFFERENCE:
            difference = np.float64(0.0)
            n_ties += 1
        differences[m] = difference
    differences[squared_row.size :] = np.inf
    return n_ties


@inlined_sums
def entropy_and_derivatives(
    differences: np.ndarray, exponentials: np.ndarray, masses: np.ndarray | None, beta: float
) -> tuple[float, float, float, float]:
    """Return the sum Z of exponentials, the entropy H, and its first two derivatives in log beta.

    With x_m = beta (d_m^2 - d_1^2) and its moments m_j = sum p x^j the formulas of thesis section 2.3.1 are free of
    beta: H = m1 + log Z, H' = m1^2 - m2, H'' = 2 (m1^2 - m2) + m3 - 3 m1 m2 + 2 m1^3.

    Parameters
    ----------
    differences : (padded_length,) float64, from `differences_from_nearest`
    exponentials : (padded_length,) float64; exp(-beta difference) is written
    masses : (padded_length,) float64, how many neighbours each stands for, not negative; None: one
    beta : above zero, in units of 1 / squared distance
    """
    total = first = second = third = 0.0
    for m in range(differences.size):
        x = min(beta * differences[m], -LEAST_EXPONENT)
        weight = exp_in_range(-x)
        exponentials[m] = weight
        if masses is not None:
            weight *= masses[m]
        total += weight
        weight *= x
        first += weight
        weight *= x
        second += weight
        third += weight * x
    scale = 1.0 / total
    mean = first * scale
    variance = second * scale - mean * mean
    skew = third * scale - 3.0 * mean * second * scale + 2.0 * mean * mean * mean
    return total, mean + math.log(total), -variance, skew - 2.0 * variance


class Problem(NamedTuple):
    """What is the same for all rows: K, and the brackets of theorem 2.2.2 in units of 1 / (difference of distances)."""

    n_neighbors: int
    perplexity: float
    log_perplexity: float
    tolerance: float
    lower_exponent: float  # beta_L (d_k^2 - d_1^2)
    upper_exponent: float  # beta_U (d_2^2 - d_1^2)
    scale_column: int  # see `scale_column`


def scale_column(n_neighbors: int, perplexity: float) -> int:
    """Return the column m of the difference d_m^2 - d_1^2 by which a warm start scales: the 2K-th neighbour.

    What one row hands to the next is beta (d_m^2 - d_1^2), which no shift or scale of the distances changes. On 60,000
    digits (k = 250, K = 30, order `density`) Euler's steps fall from 2.75 with beta itself to 2.40 / 2.12 / 2.09 with
    the difference at K / 2K / 3K, and k = 90 is best near 2K.
    """
    return min(round(2.0 * perplexity), n_neighbors) - 1


def entropy_problem(n_neighbors: int, perplexity: float, tolerance: float) -> Problem:
    """Return the constants of rows of k neighbours, for a perplexity 1 < K < k; K may be larger with masses.

    Theorem 2.2.2 is applied to the shifted distances: the shift leaves the entropy alone and turns the theorem's
    d_k^4 - d_1^4 into the smaller (d_k^2 - d_1^2)^2.
    """
    log_ratio = math.log(max(n_neighbors / perplexity, 1.0))
    rest = rest_mass(n_neighbors, perplexity)
    return Problem(
        n_neighbors,
        float(perplexity),
        math.log(perplexity),
        float(tolerance),
        max(n_neighbors / (n_neighbors - 1.0) * log_ratio, math.sqrt(log_ratio)),
        math.log((n_neighbors - 1.0) * (1.0 - rest) / rest),
        scale_column(n_neighbors, perplexity),
    )


def rest_mass(n_neighbors: int, perplexity: float) -> float:
    """Return 1 - p1 in (0, 1/4]: p1 of thesis equation (2.11), 2 (1-p1) log(k / (2 (1-p1))) = log min(sqrt(2k), K).

    The rest and not p1 itself, which rounds to 1 for a perplexity close to 1.
    """
    target = math.log(min(math.sqrt(2.0 * n_neighbors), perplexity))
    low, high = 0.0, 2.0 * LARGEST_REST
    while low < (middle := 0.5 * (low + high)) < high:  # u log(k/u) increases for u < k/e
        if middle * math.log(n_neighbors / middle) < target:
            low = middle
        else:
            high = middle
    return 0.5 * low


@compiled
def bracket(differences: np.ndarray, n_ties: int, problem: Problem) -> tuple[float, float]:
    """Return beta_L and beta_U with H(beta_L) >= log K >= H(beta_U), for a row of differences that has a root.

    The theorem assumes d_1 < d_2. With 1 < t < K ties beta_U comes from the mass q off the ties:
    H <= log t + q log(e k / q), and q = g / (2 log(2 e k / g)) with g = log(K / t) keeps that under log K.
    """
    exponent = problem.upper_exponent
    if n_ties > 1:
        gap = math.log(problem.perplexity / n_ties)
        mass = gap / (2.0 * math.log(2.0 * math.e * problem.n_neighbors / gap))
        exponent = math.log(problem.n_neighbors / (n_ties * mass))
    upper = min(exponent / differences[n_ties], LARGEST)
    lower = min(problem.lower_exponent / differences[problem.n_neighbors - 1], 0.5 * upper)
    return max(lower, SMALLEST), upper


@compiled
def brackets(squared_distances: np.ndarray, problem: Problem) -> np.ndarray:
    """Return beta_L and beta_U (n, 2) float64 of rows (n, k); `LARGEST` both where at least K neighbours tie."""
    n_rows, n_neighbors = squared_distances.shape
    bounds = np.full((n_rows, 2), LARGEST)
    differences = np.empty(padded_length(n_neighbors))
    for i in range(n_rows):
        n_ties = differences_from_nearest(squared_distances[i], differences)
        if n_ties < problem.perplexity:
            bounds[i] = bracket(differences, n_ties, problem)
    return bounds


@compiled
def bracket_of_masses(
    differences: np.ndarray, masses: np.ndarray, n_ties: int, problem: Problem
) -> tuple[float, float]:
    """Return beta_L and beta_U as `bracket` does, for neighbours that stand for several each: masses (k,) float64.

    The mass t of the ties is above zero and below K, that of all, c, above K. With q off the ties,
    H <= log t + q log(e c / (t q)): `bracket` has that for t >= 1 and the larger c instead of c / t. A mean of the
    differences is at most (c - t) / c of the last.
    """
    ties, total = masses[:n_ties].sum(), masses.sum()
    gap, ratio = math.log(problem.perplexity / ties), total / ties
    mass = gap / (2.0 * math.log(2.0 * math.e * ratio / gap))
    upper = min(math.log(ratio / mass) / differences[n_ties], LARGEST)
    log_ratio = math.log(total / problem.perplexity)
    exponent = max(total / (total - ties) * log_ratio, math.sqrt(log_ratio))
    lower = min(exponent / differences[problem.n_neighbors - 1], 0.5 * upper)
    return max(lower, SMALLEST), upper


class Row(NamedTuple):
    """One row's problem: the shifted squared distances, scratch for their exponentials, log K, tolerance on |F|.

    `masses` say how many neighbours each stands for; None: one.
    """

    differences: np.ndarray
    exponentials: np.ndarray
    target: float
    tolerance: float
    masses: np.ndarray | None = None


class Root(NamedTuple):
    """A solved row: its exponentials are those of `beta`, with sum `total`; steps are evaluations after the first."""

    beta: float
    total: float
    residual: float
    steps: int


@compiled
def value_at(row: Row, beta: float) -> tuple[float, float]:
    """Return Z and F = H - log K at beta."""
    total, entropy, _, _ = entropy_and_derivatives(row.differences, row.exponentials, row.masses, beta)
    return total, entropy - row.target
