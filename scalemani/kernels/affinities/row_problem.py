"""One row's problem H(beta) = log K and its solution, and the value of F = H - log K."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.affinities.entropy import entropy_and_derivatives
from scalemani.kernels.machine.compile import compiled

MAX_STEPS = 2200  # halvings of a bracket as wide as float64 itself; the collapse of the bracket stops sooner


class Row(NamedTuple):
    """One row's problem: the shifted squared distances, scratch for their exponentials, log K, tolerance on |F|.

    `masses` say how many neighbours each stands for; None: one.
    """

    differences: np.ndarray
    exponentials: np.ndarray
    log_perplexity: float
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
    return total, entropy - row.log_perplexity
