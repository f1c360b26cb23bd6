"""Draws of a determinantal point process of a kernel matrix: of any size, of one size, and annealed."""

from typing import Any, NamedTuple

import numpy as np

from scalemani.config.choices import Seed
from scalemani.config.validation import check_count, check_seed
from scalemani.engine.workers.blas import BLAS
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.functions.validation import SYMMETRY_TOLERANCE
from scalemani.kernels.arrays.draws import generator
from scalemani.methods.determinantal.kernels import (
    draw_annealed,
    draw_dpp,
    draw_k_dpp,
    expected_error,
    kernel_spectrum,
    nystrom_error,
    refuse_large,
)

SWAPS_PER_ROW = 50  # of an annealed draw of a size; the first come from the k-DPP


class DeterminantalDraw(NamedTuple):
    """Rows of a kernel, and what Nystrom's formula leaves of its trace with these.

    Attributes
    ----------
    rows : (k,) int64, in the order drawn
    error : tr(K) - tr(K_XJ K_JJ^+ K_JX), (1) of the paper
    expected : the mean of it over draws of so many rows, (k + 1) e_{k+1} / e_k of the eigenvalues,
        e their elementary symmetric polynomials
    bound : (k + 1) times `best`, which `expected` is at most: (3) of the paper, in the trace norm
    best : what the k leading eigenvectors leave, below which no rows are
    """

    rows: np.ndarray
    error: float
    expected: float
    bound: float
    best: float


def determinantal_draw(
    kernel: Any, n_drawn: int | None = None, *, exponent: float = 1.0, random_state: Seed = 0
) -> DeterminantalDraw:
    """Return rows J of a kernel K drawn with a probability in proportion to det(K_JJ), or to a power of it.

    Parameters
    ----------
    kernel : (N, N) array-like, symmetric positive semidefinite, of up to 5,000 rows
    n_drawn : k, at most the rank; None: of any size, by algorithm 1, where J has probability det(K_JJ) / det(K + I)
    exponent : s of det(K_JJ)^s, not below 0, with `n_drawn`. 0: uniform; another than 1: by swaps of a row of J and
        one outside, a Markov chain of 50 a row from a draw with s = 1, so nearly so distributed
    random_state : seed; None draws one

    Returns
    -------
    DeterminantalDraw

    Raises
    ------
    ConfigError
        For a number or an exponent out of range, an exponent without a number, and too many rows.
    DataError
        For a kernel that is not square, finite and symmetric.

    Notes
    -----
    The paper states (3) with the squared Frobenius norm of K - K_k, which another unit of K contradicts; the proof that
    it refers to is of the factor Y, K = Y^T Y, so of the trace.

    References
    ----------
    Wachinger and Golland, arXiv:1503.03506, sections 2.2 and 3.1.
    Belabbas and Wolfe, Spectral methods in machine learning and new strategies for very large datasets, 2009.
    Deshpande, Rademacher, Vempala and Wang, Matrix approximation and projective clustering via volume sampling, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.arange(6.0)
    >>> draw = determinantal_draw(np.exp(-0.5 * (points[:, None] - points) ** 2), 3)
    >>> draw.rows.shape, draw.best <= draw.expected <= draw.bound
    ((3,), True)
    """
    matrix = np.asarray(kernel, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise DataError(f"kernel must be a square matrix of finite numbers, got {matrix.shape}: give (N, N)")
    refuse_large(len(matrix))
    if np.abs(matrix - matrix.T).max(initial=0.0) > SYMMETRY_TOLERANCE * np.abs(matrix).max(initial=0.0):
        raise DataError("kernel must be symmetric: pass (K + K.T) / 2 if it is up to rounding")
    if not 0 <= exponent < np.inf or (n_drawn is None and exponent != 1):
        raise ConfigError(
            f"exponent must be 1, or with n_drawn any finite number not below 0, got {exponent} with n_drawn={n_drawn}"
        )
    random = generator(check_seed(random_state), "determinantal draw")
    with BLAS.hold_at_one():  # the last bits of eigenvectors decide which rows are drawn
        spectrum = kernel_spectrum(matrix)
        if n_drawn is None:
            rows = draw_dpp(spectrum, random)
        else:
            rows = draw_k_dpp(spectrum, check_count(n_drawn, "n_drawn", 1, len(matrix), "the rows"), random)
            if exponent != 1:
                rows = draw_annealed(matrix, rows, exponent, SWAPS_PER_ROW * len(rows), random)
        best = float(spectrum.values[: max(0, len(spectrum.values) - len(rows))].sum())
        error, expected = nystrom_error(matrix, rows), expected_error(spectrum, len(rows))
    return DeterminantalDraw(rows, error, expected, (len(rows) + 1) * best, best)
