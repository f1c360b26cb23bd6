"""The objective of an embedding whose repulsion has weights of pairs, on matrices in memory: `objective_of_pairs`."""

from typing import Any

import numpy as np

from scalemani.config.choices import ObjectiveName
from scalemani.config.objectives import objective_of
from scalemani.config.validation import check_points
from scalemani.descents.problem import Problem
from scalemani.errors import ConfigError
from scalemani.interfaces.functions.validation import checked_affinities, checked_values, rows_of_affinities
from scalemani.methods.pair_weights.kernels import WeightedPairs
from scalemani.methods.pair_weights.parameters import SUMMED
from scalemani.methods.pair_weights.rules import checked_pairs


def objective_of_pairs(
    embedding: Any,
    W: Any,
    pair_weights: Any,
    method: ObjectiveName = "elastic-embedding",
    strength: float | None = None,
) -> tuple[float, np.ndarray]:
    """Return E = sum w a(d^2) + strength sum w^- K(d^2) and its gradient: an objective with weights of repelling pairs.

    A descent takes such weights as a file, by the setting "layout.pair_weights".

    Parameters
    ----------
    embedding : (N, d) array-like of finite numbers
    W : (N, N) sparse, symmetric affinities w, as in `objective`
    pair_weights : (N, N) sparse or dense, symmetric weights w^- that are not negative; the diagonal is left out. Ones
        for all pairs give `objective`
    method : "elastic-embedding", "t-ee" or "epanechnikov-ee", with a and K of the table of `objective`
    strength : weight of E-, above zero; None: 1e-4

    Returns
    -------
    value : float
    gradient : (N, d) float64

    Raises
    ------
    ConfigError
        For a method whose E- is no plain sum over pairs, and a strength that is not above zero.
    DataError
        For an embedding, affinities or weights that do not fit each other, are not finite, negative or asymmetric.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 3.2 and equation (3.5).

    Examples
    --------
    >>> pairs = [[0.0, 2.0], [2.0, 0.0]]
    >>> value, gradient = objective_of_pairs([[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]], pairs, "t-ee", strength=1.0)
    >>> round(value, 6), gradient.ravel()
    (3.386294, array([0., 0.]))
    """
    positions = np.ascontiguousarray(check_points(embedding, "embedding"), np.float64)
    if method not in SUMMED:
        raise ConfigError(f"pair_weights are of {', '.join(SUMMED)}, got method {method!r}: its E- is no plain sum")
    rows = rows_of_affinities(checked_affinities(W, len(positions), "rows of the embedding"))
    row = objective_of(method)
    strength = row.strength if strength is None else strength
    checked_values(layout__strength=strength)
    pairs = WeightedPairs(row.kernel, checked_pairs(pair_weights, len(positions)))
    value, gradient = Problem(rows, row, 1.0, float(strength), pairs=pairs).evaluate(positions, pairs)
    return value, gradient
