"""Landmarks anywhere in the space of the points, one after the other, by stochastic gradients.

The feature of a landmark t is phi(t)_i = exp(-|t - x_i|^2 / eta) over the points. A new landmark climbs towards the
largest |phi(t) - its projection on the features of the landmarks before|^2: close to many points, and not where others
are. Every batch of points keeps an orthonormal basis of these features, which grows by a column a landmark.

Source: [GP] 3 and 4, algorithm 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.gaussian.active import exhausted, total_variance
from scalemani.kernels.landmarks.gaussian.batches import Batches, check_in_set, projected
from scalemani.kernels.landmarks.gaussian.residuals import (
    EXHAUSTED,
    features_differ,
    grow,
    mean_objective,
    objective,
    write_feature,
)

STEP_OFFSET, STEP_POWER = 10.0, -0.51  # [GP] 5: rho_s = (10 + s)^-0.51
LEAST_OBJECTIVE = 1e-200  # of a batch that is too far away for a direction
LEAST_MET = 1.5  # sum of squares of the first landmark's feature: that of a single point is one


class Learned(NamedTuple):
    """Landmarks (L, D) float64 in the order found.

    `objectives` (L,) are those at the end, over all batches and a point; `starts` (L,) those of where a landmark
    started.
    """

    landmarks: np.ndarray
    objectives: np.ndarray
    starts: np.ndarray


class Process(NamedTuple):
    """How landmarks of a Gaussian process are found.

    Parameters
    ----------
    eta : bandwidth, in squared units of the points; None: the sum of the variances of their columns
    projection : "none", "orthant" or "sphere", the set S that landmarks stay in
    batch_points : B; None: 1,000, or twice the landmarks if more
    steps : of the ascent of each landmark
    """

    eta: float | None = None
    projection: str = "none"
    batch_points: int | None = None
    steps: int = 1000


def learned_landmarks(
    batches: Batches, n_landmarks: int, process: Process, seed: int, advance: Callable[[], None] | None = None
) -> Learned:
    """Return landmarks, each found by `process.steps` steps of size (10 + s)^-0.51 from a draw of N(mean, deviation^2).

    A step goes along the gradient of the objective's logarithm, in units of eta / 4: it moves the landmark by the share
    (10 + s)^-0.51 towards the mean of the points of the batch, weighed by r_i phi_i, where r is the feature less its
    projection. That of the paper goes along the gradient of the objective itself, so that its way depends on the unit
    of the points and on the size of a batch.

    Parameters
    ----------
    batches : the sample of the points, in batches
    n_landmarks : L, below the points of a batch
    process : bandwidth, set S and steps
    seed : of the starts
    advance : called after each landmark

    Raises
    ------
    DataError
        For points outside the set S; for an eta far too small or so large that the features of fewer landmarks span
        all; for fewer distinct points than landmarks.
    """
    n_batches, size, n_features = batches.points.shape
    check_in_set(batches, process.projection)
    sample = batches.points.reshape(-1, n_features)
    eta = total_variance(sample) if process.eta is None else process.eta
    bases = np.zeros((n_batches, n_landmarks, size))
    found = np.empty((n_landmarks, n_features))
    objectives, starts = np.empty(n_landmarks), np.empty(n_landmarks)
    for number in range(n_landmarks):
        draw = generator(seed, "landmarks/gp/start", number).standard_normal(n_features)
        start = projected(batches.mean + batches.deviation * draw, process.projection)
        landmark = climbed(batches.points, bases[:, :number], start, eta, process)
        starts[number], _ = mean_objective(batches.points, bases[:, :number], start, eta)
        objectives[number], share = mean_objective(batches.points, bases[:, :number], landmark, eta)
        if number == 0:
            check_met(sample, landmark, eta)
        if not share > EXHAUSTED:
            raise exhausted(sample, n_landmarks, number, eta, features_differ)
        for batch, basis in zip(batches.points, bases, strict=True):
            grow(basis, number, batch, landmark, eta)
        found[number] = landmark
        if advance is not None:
            advance()
    return Learned(found, objectives, starts)


def climbed(batches: np.ndarray, bases: np.ndarray, start: np.ndarray, eta: float, process: Process) -> np.ndarray:
    """Return where the steps lead from a start: (D,) float64.

    Parameters
    ----------
    batches : (b, B, D) real; step s takes batch s modulo b
    bases : (b, n, B) float64, as of `objective` for each batch
    start : (D,) float64, in the set S
    eta : bandwidth, in squared units of the points
    process : the set S, and the number of steps
    """
    landmark = start
    for step in range(process.steps):
        batch = step % len(batches)
        value, gradient = objective(batches[batch], bases[batch], landmark, eta)
        if value > LEAST_OBJECTIVE:
            rate = (STEP_OFFSET + step) ** STEP_POWER * eta / (4.0 * value)
            landmark = projected(landmark + rate * gradient, process.projection)
    return landmark


def check_met(sample: np.ndarray, landmark: np.ndarray, eta: float) -> None:
    """Refuse an eta so small that the first landmark meets a single point of the sample (S, D), or none."""
    phi = np.empty(len(sample))
    write_feature(sample, landmark, eta, phi)
    if phi @ phi < min(LEAST_MET, len(sample)):
        raise DataError(
            f"landmarks.eta={eta:.4g} is far too small for these points: the first landmark is near to no more than "
            f"one of {len(sample)}; the sum of the variances of the columns would do, {total_variance(sample):.4g}"
        )
