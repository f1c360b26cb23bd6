"""What the fast Gauss transform can err by, known before anything is summed: `repulsion_bound`."""

from typing import Any, NamedTuple

import numpy as np

from scalemani.config.validation import check_points, check_tolerance
from scalemani.methods.fast_gauss.kernels.expansions import hermite_bound, taylor_bound, translated_bound
from scalemani.methods.fast_gauss.kernels.fast_gauss import BOX_RATIO, FastGauss


class RepulsionBound(NamedTuple):
    """Bounds on the error of Gaussian sums at every point.

    Attributes
    ----------
    sums : no |S_n - S_n exact| exceeds it; for this embedding, with what is cut off beyond the reach and float64 rounds
    gradient : no |grad S_n - grad S_n exact| exceeds it; for this embedding too
    hermite : equation (5.5) of the thesis for N charges of one: the truncation of Hermite expansions alone
    taylor : equation (5.6): that of Taylor expansions alone
    translated : equation (5.7) as printed: that of Hermite expansions made into Taylor ones
    order : terms of the series along each axis
    reach : how many boxes away sources count
    """

    sums: float
    gradient: float
    hermite: float
    taylor: float
    translated: float
    order: int
    reach: int


def repulsion_bound(embedding: Any, order: int | None = None, *, tolerance: float = 1e-3) -> RepulsionBound:
    """Return what `repulsion(embedding, "gaussian", "fgt")` can err by at any point.

    `sums` and `gradient` hold for every embedding; equations (5.5) to (5.7) know only the number of points, and (5.7)
    lacks a term of first order that its slack hides where boxes are small.

    Parameters
    ----------
    embedding : (N, d) array-like of finite numbers, d up to 3
    order : terms along each axis, 1 to 30; None: those that the tolerance takes
    tolerance : relative error of the gradients, over all points, by which order and reach are chosen

    Returns
    -------
    RepulsionBound

    Raises
    ------
    ConfigError
        For an order, tolerance or dimension that the transform does not serve.
    DataError
        For an embedding that is not a table of finite numbers.

    References
    ----------
    Baxter and Roussos, A new error estimate of the fast Gauss transform, SIAM J. Sci. Comput. 24 (2002), 257.
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis, 2014, section 5.2.2.

    Examples
    --------
    >>> bound = repulsion_bound([[0.0, 0.0], [1.0, 0.0]], order=8)
    >>> bound.order, bound.hermite < 1e-3, bound.hermite == bound.taylor <= bound.translated
    (8, True, True)
    """
    positions = np.ascontiguousarray(check_points(embedding, "embedding"), np.float64)
    transform = FastGauss.by_number("gaussian", order, check_tolerance(tolerance))
    sums, gradient = transform.bounds(positions)
    about = (len(positions), transform.order, positions.shape[1], BOX_RATIO)
    hermite, taylor, translated = hermite_bound(*about), taylor_bound(*about), translated_bound(*about)
    return RepulsionBound(sums, gradient, hermite, taylor, translated, transform.order, transform.reach)
