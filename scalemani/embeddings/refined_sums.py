"""Refine sums of a kernel, or take another method, until the measured error is within the tolerance."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalemani.embeddings.force_errors import CERTIFIED_TARGETS, ROOM, ForceErrors, errors_of
from scalemani.embeddings.repulsion import make_repulsion
from scalemani.errors import ConfigError, NumericalError
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.repulsion.exact import ExactSums
from scalemani.kernels.repulsion.pair_sums import PairSums

MOST_TRIALS = 4  # of one method, each finer than the one before
LEAST_REFINEMENT = 0.03  # of the tolerance of the trial before: far larger errors do not tell what is needed


class MeasuredField(NamedTuple):
    """Sums, what they give at the points, and the errors that were measured of it."""

    sums: PairSums
    field: tuple[np.ndarray, np.ndarray]
    errors: ForceErrors


def field_within(
    methods: Sequence[str], kernel: str, tolerance: float, positions: np.ndarray, charges: np.ndarray | None = None
) -> MeasuredField:
    """Return the first of the methods whose errors are measured to be within a tolerance; else the best of all.

    The tolerance that a method is given is lowered until its measured errors are within `ROOM` of the requested one, or
    the method goes no finer. Where others follow, the first method is tried once.

    Parameters
    ----------
    methods : as of `make_repulsion`, in the order in which they are tried
    kernel : one of `KERNELS`
    tolerance : the largest relative error, as of `ForceErrors.least_tolerance`
    positions : (N, d) float64
    charges : (N,) float64, what each point weighs in the sums; None: one

    Raises
    ------
    ConfigError, NumericalError
        What the first method says where none of them serves.
    """
    rows = sample_rows(0, "repulsion", len(positions), CERTIFIED_TARGETS)
    _, exact = ExactSums(kernel).field(positions, positions[rows], charges)
    best, refusal = None, None
    for number, method in enumerate(methods):
        asked = tolerance
        for _ in range(1 if number == 0 and len(methods) > 1 else MOST_TRIALS):
            try:
                sums = make_repulsion(method, kernel, asked)
                field = sums.field(positions, charges=charges)
            except (ConfigError, NumericalError) as error:  # finer than the method goes, or than memory allows
                refusal = refusal or error
                break
            errors = errors_of(field[1][rows], exact)
            if best is None or errors.least_tolerance < best.errors.least_tolerance:
                best = MeasuredField(sums, field, errors)
            if sums.exact or errors.least_tolerance <= ROOM * tolerance:
                return best
            asked *= max(ROOM * tolerance / errors.least_tolerance, LEAST_REFINEMENT) * ROOM
    if best is None:
        assert refusal is not None  # of the first method
        raise refusal
    return best
