"""Determinantal landmarks: exact draws of a fixed size, and an approximation by rejection.

Exact draws (k-DPP) are sets J with a probability in proportion to det(K_J) among the sets of one size. Everything is
decided by the eigenvectors of K, (N, N): N^2 numbers and N^3 operations.

The approximation, algorithm 2, keeps a probability D_i for every point, which each landmark t multiplies by
f(|x_i - x_t|) for the points near it. D only ever falls. So no D has to be known before its point is proposed: points
are proposed in proportion to bounds of D, first all one, and the proposal i is taken with probability D_i / bound_i,
which is a draw in proportion to D for any bounds. D_i is computed from the landmarks alone, and becomes the
bound of i. Of N points only those are read that are proposed.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, lstsq
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from scalemani.errors import ConfigError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.landmarks.selection import Choice, sample_of
from scalemani.kernels.machine.compile import compiled, square_of
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.distances import squared_row_distance

MOST_POINTS = 5000  # of which the kernel and its eigenvectors take 400 MB, and minutes
GEODESIC_NEIGHBORS = 10  # of each point, along which shortest paths go


@dataclass(frozen=True)
class DeterminantalChoice(Choice):
    """How determinantal landmarks are chosen.

    Parameters
    ----------
    sigma : bandwidth of the kernel, in the unit of the points; None: by `spacing_sigma`
    update : f of the distance x by which a landmark lowers the probability of points. "gaussian":
        1 - exp(-x^2 / (2 sigma^2)); "sine": sin^2(x / tau) up to its first peak and one beyond, with tau = sqrt(2)
        sigma, at which the two begin alike
    neighborhood : m, the points nearest to a landmark, itself left out, whose probability it lowers; all as near as the
        m-th are among them. None: all points
    geodesic : whether the exact kernel is of lengths of shortest paths, else of Euclidean distances
    """

    sigma: float | None = None
    update: str = "gaussian"
    neighborhood: int | None = None
    geodesic: bool = False


class Spectrum(NamedTuple):
    """Eigenvalues (r,) ascending, positive, and eigenvectors (N, r) of a kernel of numerical rank r, float64."""

    values: np.ndarray
    vectors: np.ndarray


def euclidean_kernel(points: np.ndarray, sigma: float) -> np.ndarray:
    """Return exp(-|x_i - x_j|^2 / (2 sigma^2)) of points (N, D): (N, N) float64."""
    table = np.asarray(points, dtype=np.float64) / sigma
    return np.exp(-0.5 * cdist(table, table, "sqeuclidean"))


def geodesic_kernel(points: np.ndarray, sigma: float) -> np.ndarray:
    """Return the Gaussian kernel of the lengths of shortest paths over the graph of nearest neighbours.

    Parameters
    ----------
    points : (N, D) real
    sigma : in the unit of the points

    Returns
    -------
    (N, N) float64, zero between points that no path joins. Unlike the kernel of Euclidean distances it can have
    negative eigenvalues: `kernel_spectrum` leaves them out

    References
    ----------
    [DPP] 3.1
    """
    table = np.asarray(points, dtype=np.float64) / sigma
    n_points = len(table)
    n_listed = min(GEODESIC_NEIGHBORS + 1, n_points)
    indices, squares = nearest_landmarks(table, table, n_listed)
    bounds = np.arange(0, indices.size + 1, n_listed)
    # An explicit zero is an edge of length zero, and repeated points are neighbours of each other.
    edges = sp.csr_matrix((np.sqrt(squares.ravel()), indices.ravel(), bounds), shape=(n_points, n_points))
    lengths = shortest_path(edges, method="D", directed=False)
    return np.exp(-0.5 * np.minimum(lengths, lengths.T) ** 2)  # a path and its way back are summed in other orders


def kernel_spectrum(kernel: np.ndarray) -> Spectrum:
    """Return the spectrum of a symmetric kernel (N, N), without eigenvalues that rounding cannot tell from zero.

    Negative eigenvalues are left out: what remains is the nearest positive semidefinite kernel.

    Raises
    ------
    ConfigError
        For more than `MOST_POINTS` rows.
    """
    refuse_large(len(kernel))
    values, vectors = eigh(kernel)
    positive = values > len(kernel) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    return Spectrum(values[positive], vectors[:, positive])


def refuse_large(n_points: int) -> None:
    """Refuse more points than the kernel can be decomposed of."""
    if n_points > MOST_POINTS:
        raise ConfigError(
            f"exact determinantal sampling decomposes a kernel of N x N, for N up to {MOST_POINTS}, and these are "
            f"{n_points} points; take method 'dpp', which approximates it, or fewer points"
        )


def draw_k_dpp(spectrum: Spectrum, n_drawn: int, random: np.random.Generator) -> np.ndarray:
    """Return rows (n_drawn,) int64 in the order drawn, with probability proportional to det(K_J) among sets of a size.

    Parameters
    ----------
    n_drawn : k, at most the rank of the kernel

    Raises
    ------
    ConfigError
        For a kernel of a rank below `n_drawn`: every set of that size has the determinant zero.

    References
    ----------
    Kulesza and Taskar, k-DPPs: fixed-size determinantal point processes, 2011, algorithms 1 and 2.
    """
    rank = len(spectrum.values)
    if n_drawn > rank:
        raise ConfigError(
            f"{n_drawn} landmarks were requested, but their kernel has rank {rank} in double precision; ask for at "
            "most that, or give a smaller sigma"
        )
    logarithms = log_elementary_polynomials(spectrum.values, n_drawn)
    chosen, left = np.zeros(rank, dtype=bool), n_drawn
    uniforms: np.ndarray = random.random(rank)
    for number in range(rank, 0, -1):
        if left == 0:
            break
        # The share of the polynomial of the first `number` eigenvalues that holds the last of them.
        held = np.log(spectrum.values[number - 1]) + logarithms[left - 1, number - 1] - logarithms[left, number]
        if uniforms[number - 1] < np.exp(held):
            chosen[number - 1] = True
            left -= 1
    return draw_from_span(spectrum.vectors[:, chosen], random)


def draw_dpp(spectrum: Spectrum, random: np.random.Generator) -> np.ndarray:
    """Return rows (m,) int64 of any number, in the order drawn, J with probability det(K_J) / det(K + I).

    References
    ----------
    [DPP] algorithm 1.
    """
    chosen = random.random(len(spectrum.values)) < spectrum.values / (spectrum.values + 1.0)
    return draw_from_span(spectrum.vectors[:, chosen], random)


def draw_annealed(
    kernel: np.ndarray, rows: np.ndarray, exponent: float, n_swaps: int, random: np.random.Generator
) -> np.ndarray:
    """Return rows (k,) int64 of a Metropolis chain of swaps whose sets tend to det(K_J)^s, from `rows` (k,).

    References
    ----------
    [DPP] (2).
    """
    current, n_points = rows.copy(), len(kernel)
    others = np.setdiff1d(np.arange(n_points), current)
    if not len(others):
        return current
    logarithm = np.linalg.slogdet(kernel[np.ix_(current, current)])[1]
    for one, other, uniform in random.random((n_swaps, 3)):
        place, outside = int(one * len(current)), int(other * len(others))
        proposed = current.copy()
        proposed[place] = others[outside]
        sign, of_proposed = np.linalg.slogdet(kernel[np.ix_(proposed, proposed)])
        ratio = exponent * (of_proposed - logarithm) if exponent else 0.0
        if (sign > 0 or not exponent) and np.log(uniform) < ratio:
            others[outside], current, logarithm = current[place], proposed, of_proposed
    return current


def nystrom_error(kernel: np.ndarray, rows: np.ndarray) -> float:
    """Return tr(K) - tr(K_XJ K_JJ^+ K_JX) of a kernel (N, N) and rows J (k,)."""
    if not len(rows):
        return float(np.trace(kernel))
    solved = lstsq(kernel[np.ix_(rows, rows)], kernel[rows])[0]
    return max(0.0, float(np.trace(kernel) - np.vdot(kernel[rows], solved)))


def expected_error(spectrum: Spectrum, n_drawn: int) -> float:
    """Return the mean of `nystrom_error` over draws of k rows by det(K_J): (k + 1) e_{k+1} / e_k of the eigenvalues."""
    if n_drawn >= len(spectrum.values):
        return 0.0
    logarithms = log_elementary_polynomials(spectrum.values, n_drawn + 1)[:, -1]
    return float((n_drawn + 1) * np.exp(logarithms[n_drawn + 1] - logarithms[n_drawn]))


def log_elementary_polynomials(values: np.ndarray, degree: int) -> np.ndarray:
    """Return the logarithms of the elementary symmetric polynomials of the first n values, for all n.

    In logarithms nothing overflows: a thousand eigenvalues of ten have polynomials of 1e1000 and more.

    Parameters
    ----------
    values : (r,) positive
    degree : the largest, at most r

    Returns
    -------
    (degree + 1, r + 1) float64; entry (l, n) is log e_l(values[:n]), minus infinity for l > n
    """
    logarithms = np.full((degree + 1, len(values) + 1), -np.inf)
    logarithms[0] = 0.0
    for number, logarithm in enumerate(np.log(values), start=1):
        logarithms[1:, number] = np.logaddexp(logarithms[1:, number - 1], logarithm + logarithms[:-1, number - 1])
    return logarithms


def draw_from_span(vectors: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return as many rows as there are orthonormal columns (N, m), each drawn by its squared norm off those before.

    The rows B are projected off the one drawn, B_i: their squared norms fall by their squared products with the unit
    vector of what was left of B_i.
    """
    n_drawn = vectors.shape[1]
    squares = np.einsum("nm,nm->n", vectors, vectors)
    directions = np.zeros((n_drawn, n_drawn))
    rows = np.empty(n_drawn, dtype=np.int64)
    uniforms: np.ndarray = random.random(n_drawn)
    for step in range(n_drawn):
        sums = np.cumsum(squares)
        # Rounding of the product can reach the whole sum, which is first reached by the last row that has a norm.
        row = min(int(np.searchsorted(sums, uniforms[step] * sums[-1], side="right")), int(np.argmax(sums)))
        rows[step] = row
        rest = vectors[row] - directions[:step].T @ (directions[:step] @ vectors[row])
        rest -= directions[:step].T @ (directions[:step] @ rest)  # once more: rounding leaves a part of them
        directions[step] = rest / np.linalg.norm(rest)
        squares = np.maximum(squares - (vectors @ directions[step]) ** 2, 0.0)
        squares[rows[: step + 1]] = 0.0
    return rows


PROPOSED = 1024  # rows that are proposed together, and read together
SUM_BLOCK = 1024  # points per partial sum of the bounds
READ_PER_LANDMARK = 64  # rows: where fewer than one in so many proposals is taken, the probabilities have died out
SAME_SHAPE = np.sqrt(2.0)  # tau / sigma at which sin^2(x / tau) and 1 - exp(-x^2 / 2 sigma^2) begin alike
NO_REPULSION = 75.0  # (x / sigma)^2 at which exp(-x^2 / 2 sigma^2) is below half of the last bit of one


class Draw(NamedTuple):
    """Rows (l,) int64 in the order drawn, what was measured on the way, and whether any point was repelled.

    Fewer rows than requested where the probabilities are used up.
    """

    rows: np.ndarray
    certificates: dict[str, float]
    repelled: bool


class _Taken(NamedTuple):
    """Landmarks so far: points, squared distances up to which they repel, rows; `count` of them, and the proposals."""

    points: np.ndarray
    reaches: np.ndarray
    rows: np.ndarray
    count: np.ndarray  # (2,) int64


class _Rule(NamedTuple):
    """What a landmark does: f at a scale, up to a reach, or to the `position`-th of the sample (-1: none)."""

    scale: float
    sine: bool
    reach: float
    sample: np.ndarray
    position: int


def draw_repulsive(points: PointsByRow, choice: DeterminantalChoice, sigma: float) -> Draw:
    """Return rows drawn one after the other in proportion to D, which falls to zero at rows that were drawn.

    A landmark costs one look at the others for every point proposed; no distance between a landmark and all points is
    computed but those to the sample that settle its m-th neighbour.

    Parameters
    ----------
    points : N points, of which at most `PROPOSED` are read at a time, and the sample where m is set
    choice : of a number of landmarks that the distinct points are enough for. The m-th neighbour is that of the same
        share of its sample: exact where these are all points, and a random estimate beyond
    sigma : in the unit of the points

    Returns
    -------
    Draw: no two rows have equal coordinates. Fewer than there should be landmarks where every D is zero in double
    precision, or where more than `READ_PER_LANDMARK` points a landmark had to be read, and `sample_points`

    References
    ----------
    [DPP] 3.2, algorithm 2.
    """
    n_points, n_landmarks, rule = len(points), choice.n_landmarks, _rule_of(points, choice, sigma)
    taken = _Taken(
        np.empty((n_landmarks, rule.sample.shape[1]), dtype=rule.sample.dtype),
        np.empty(n_landmarks),
        np.empty(n_landmarks, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    bounds = np.ones(n_points)
    sums = np.add.reduceat(bounds, np.arange(0, n_points, SUM_BLOCK))
    most_read, n_read, batch, repelled = max(choice.sample_points, READ_PER_LANDMARK * n_landmarks), 0, 0, False
    while taken.count[0] < n_landmarks and sums.any() and n_read <= most_read:
        uniforms = generator(choice.seed, "landmarks/dpp", batch).random((PROPOSED, 2))
        rows = _proposed_rows(bounds, sums, uniforms[:, 0])
        distinct, places = np.unique(rows, return_inverse=True)
        n_read += int(np.count_nonzero(bounds[distinct] == 1.0))
        lowered = bounds[distinct]
        values = np.ascontiguousarray(points[distinct])
        _take(values, rows, places, uniforms[:, 1] * bounds[rows], lowered, taken, rule)
        repelled = repelled or bool(np.any((lowered > 0.0) & (lowered < 1.0)))
        bounds[distinct] = lowered
        for block in np.unique(distinct // SUM_BLOCK):
            sums[block] = bounds[block * SUM_BLOCK : (block + 1) * SUM_BLOCK].sum()
        batch += 1
    n_taken, n_proposed = (int(count) for count in taken.count)
    return Draw(taken.rows[:n_taken], {"acceptance": n_taken / n_proposed}, repelled)


def _rule_of(points: PointsByRow, choice: DeterminantalChoice, sigma: float) -> _Rule:
    """Return the rule with the sample in which the m-th neighbour of a landmark is looked for."""
    n_points, rows, position = len(points), np.zeros(0, dtype=np.int64), -1
    if choice.neighborhood is not None and choice.neighborhood < n_points - 1:
        rows = sample_of(points, choice)
        # Among all points a landmark finds itself first; in a sample it is hardly ever found.
        scaled = round(choice.neighborhood * len(rows) / n_points) - 1
        position = choice.neighborhood if len(rows) == n_points else max(scaled, 0)
    sample = points[rows]
    if choice.update == "sine":
        scale = SAME_SHAPE * sigma
        return _Rule(scale, True, (0.5 * np.pi * scale) ** 2, sample, position)
    return _Rule(sigma, False, NO_REPULSION * sigma**2, sample, position)


@compiled
def _proposed_rows(bounds: np.ndarray, sums: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Return rows drawn in proportion to `bounds`, whose blocks add up to `sums`; none of them has a bound of zero."""
    rows = np.empty(uniforms.shape[0], dtype=np.int64)
    ends = np.cumsum(sums)
    for number in range(rows.shape[0]):
        target = uniforms[number] * ends[-1]
        block = min(np.searchsorted(ends, target, side="right"), ends.shape[0] - 1)
        while sums[block] == 0.0:
            block -= 1
        left = target - (ends[block - 1] if block > 0 else 0.0)
        for row in range(block * SUM_BLOCK, min((block + 1) * SUM_BLOCK, bounds.shape[0])):
            if bounds[row] > 0.0:
                rows[number] = row  # that of the last one, should rounding have left more than there is
                if left < bounds[row]:
                    break
                left -= bounds[row]
    return rows


@compiled
def _take(
    values: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    thresholds: np.ndarray,
    lowered: np.ndarray,
    taken: _Taken,
    rule: _Rule,
) -> None:
    """Take the proposals whose D is above their thresholds, in order, and lower the bounds of all."""
    for number in range(rows.shape[0]):
        place, count = places[number], taken.count[0]
        if count == taken.rows.shape[0]:
            return
        taken.count[1] += 1
        probability = _probability(values, place, thresholds[number], taken, rule)
        lowered[place] = min(lowered[place], probability)
        if probability > thresholds[number]:
            lowered[place] = 0.0
            taken.points[count] = values[place]
            taken.rows[count] = rows[number]
            taken.reaches[count] = min(rule.reach, _sample_reach(values, place, rule))
            taken.count[0] += 1


@compiled
def _probability(values: np.ndarray, place: int, threshold: float, taken: _Taken, rule: _Rule) -> float:
    """Return D of a point, or what bounds it from above where that is no more than the threshold."""
    product = 1.0
    for landmark in range(taken.count[0]):
        square = squared_row_distance(values, place, taken.points, landmark, taken.reaches[landmark])
        if square == 0.0:
            return 0.0
        if square <= taken.reaches[landmark]:
            ratio = np.sqrt(square) / rule.scale
            product *= square_of(np.sin(ratio)) if rule.sine else -np.expm1(-0.5 * ratio * ratio)
        if product <= threshold:
            return product
    return product


@compiled
def _sample_reach(values: np.ndarray, place: int, rule: _Rule) -> float:
    """Return the squared distance to the `position`-th of the sample; infinity where landmarks repel all points."""
    if rule.position < 0:
        return np.inf
    squares = np.empty(rule.sample.shape[0])
    for row in range(squares.shape[0]):
        squares[row] = squared_row_distance(values, place, rule.sample, row, np.inf)
    return np.partition(squares, rule.position)[rule.position]
