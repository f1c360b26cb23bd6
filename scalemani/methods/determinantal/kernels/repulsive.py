"""Landmarks that repel each other: the efficient approximation of determinantal sampling, by rejection.

Algorithm 2 keeps a probability D_i for every point, which each landmark t multiplies by f(|x_i - x_t|) for the points
near it. D only ever falls. So no D has to be known before its point is proposed: points are proposed in proportion to
bounds of D, first all one, and the proposal i is taken with probability D_i / bound_i, which is a draw in proportion to
D whatever the bounds are. D_i is computed from the landmarks alone, and becomes the bound of i. Of N points only those
are read that are proposed.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.machine.compile import compiled, square_of
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.distances import squared_row_distance

PROPOSED = 1024  # rows that are proposed together, and read together
SUM_BLOCK = 1024  # points per partial sum of the bounds
READ_PER_LANDMARK = 64  # rows: where fewer than one in so many proposals is taken, the probabilities have died out
SAME_SHAPE = np.sqrt(2.0)  # tau / sigma at which sin^2(x / tau) and 1 - exp(-x^2 / 2 sigma^2) begin alike
NO_REPULSION = 75.0  # (x / sigma)^2 at which exp(-x^2 / 2 sigma^2) is below half of the last bit of one
UPDATES = ("gaussian", "sine")


class Repulsion(NamedTuple):
    """How landmarks repel points.

    Parameters
    ----------
    sigma : in the unit of the points
    update : "gaussian": f(x) = 1 - exp(-x^2 / (2 sigma^2)); "sine": f(x) = sin^2(x / tau) up to its first peak and one
        beyond, with tau = sqrt(2) sigma, at which the two begin alike
    neighborhood : m, the points nearest to a landmark, itself left out, that it repels; all as near as the m-th are
        repelled. None: all points
    sample_points : among which the distance to the m-th point is looked for, as that of the share m / N of them: it is
        exact where there are no more points than that, and a random estimate beyond
    """

    sigma: float
    update: str = "gaussian"
    neighborhood: int | None = None
    sample_points: int = 100_000


class RepulsiveDraw(NamedTuple):
    """Rows (l,) int64 in the order drawn, how many points were proposed in all, and whether any was repelled.

    Fewer rows than were asked for where the probabilities died out.
    """

    rows: np.ndarray
    n_proposed: int
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


def draw_repulsive(points: PointsByRow, n_landmarks: int, repulsion: Repulsion, seed: int) -> RepulsiveDraw:
    """Return rows drawn one after the other in proportion to D, which falls to zero at rows that were drawn.

    The distribution is that of algorithm 2 with the neighbourhood m as `Repulsion` has it. A landmark costs one look at
    the others for every point proposed; no distance between a landmark and all points is computed but those to the
    sample that settle its m-th neighbour.

    Parameters
    ----------
    points : N points, of which at most `PROPOSED` are read at a time, and the sample where m is given
    n_landmarks : L, at most the number of distinct points

    Returns
    -------
    RepulsiveDraw: no two rows have equal coordinates. Fewer than `n_landmarks` where every D is zero in double
    precision, or where more than `READ_PER_LANDMARK` points a landmark had to be read, and `sample_points`

    References
    ----------
    [DPP] 3.2, algorithm 2.
    """
    n_points, rule = len(points), _rule_of(points, repulsion, seed)
    taken = _Taken(
        np.empty((n_landmarks, rule.sample.shape[1]), dtype=rule.sample.dtype),
        np.empty(n_landmarks),
        np.empty(n_landmarks, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    bounds = np.ones(n_points)
    sums = np.add.reduceat(bounds, np.arange(0, n_points, SUM_BLOCK))
    most_read, n_read, batch, repelled = max(repulsion.sample_points, READ_PER_LANDMARK * n_landmarks), 0, 0, False
    while taken.count[0] < n_landmarks and sums.any() and n_read <= most_read:
        uniforms = generator(seed, "landmarks/dpp", batch).random((PROPOSED, 2))
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
    return RepulsiveDraw(taken.rows[:n_taken], n_proposed, repelled)


def _rule_of(points: PointsByRow, repulsion: Repulsion, seed: int) -> _Rule:
    """Return the rule with the sample in which the m-th neighbour of a landmark is looked for."""
    n_points, rows, position = len(points), np.zeros(0, dtype=np.int64), -1
    if repulsion.neighborhood is not None and repulsion.neighborhood < n_points - 1:
        rows = sample_rows(seed, "landmarks/sample", n_points, repulsion.sample_points)
        # Among all points a landmark finds itself first; in a sample it is hardly ever found.
        found = round(repulsion.neighborhood * len(rows) / n_points) - 1
        position = repulsion.neighborhood if len(rows) == n_points else max(found, 0)
    starts = range(0, max(len(rows), 1), TILE_ROWS)
    sample = np.concatenate([points[rows[start : start + TILE_ROWS]] for start in starts])
    if repulsion.update == "sine":
        scale = SAME_SHAPE * repulsion.sigma
        return _Rule(scale, True, (0.5 * np.pi * scale) ** 2, sample, position)
    return _Rule(repulsion.sigma, False, NO_REPULSION * repulsion.sigma**2, sample, position)


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
