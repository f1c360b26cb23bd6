"""Classical scaling: coordinates whose distances are those that are given, as well as a few dimensions allow.

Source: Torgerson, Multidimensional scaling: I. Theory and method, 1952.
"""

import numpy as np
from scipy.linalg import eigh_tridiagonal, lapack
from scipy.spatial.distance import cdist

from scalemani.errors import RankError
from scalemani.kernels.spectral.eigenproblem import sign_rule
from scalemani.kernels.spectral.linear import Components

REFLECTORS_TOGETHER = 64  # applied in one product: what LAPACK takes at most
LEAST_SHARE = 1e-10  # of the largest eigenvalue: what is below is rounding, and no dimension


def classical_scaling(distances: np.ndarray, n_components: int) -> tuple[Components, float]:
    """Return leading eigenvalues of -J D^2 J / 2, J = I - 1 1^T / L, coordinates v sqrt(lambda), the least eigenvalue.

    Parameters
    ----------
    distances : (L, L) float64, symmetric bit for bit
    n_components : d, below L

    Returns
    -------
    components : eigenvalues (d,), descending, and coordinates (L, d), centred
    least : below zero where no points have these distances

    Raises
    ------
    RankError
        Where fewer eigenvalues are above zero.
    """
    products = -0.5 * distances**2
    means = products.mean(axis=1)
    products -= means
    products -= means[:, np.newaxis]
    products += means.mean()
    values, vectors, least = extreme_eigenpairs(products, n_components)
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = int(np.count_nonzero(values > LEAST_SHARE * max(values[0], 0.0)))
    if n_components > positive:
        raise RankError(
            f"{n_components} components were asked of distances that span {positive} dimensions: ask for fewer, or "
            "take more landmarks"
        )
    return Components(values, sign_rule(vectors * np.sqrt(values))), least


def extreme_eigenpairs(matrix: np.ndarray, n_largest: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the largest eigenvalues, ascending, with their vectors, and the least eigenvalue.

    A driver of LAPACK finds one range of eigenvalues. Nearly all it does is the reduction to tridiagonal form, which
    serves both ends here.

    Parameters
    ----------
    matrix : (L, L) float64, symmetric; its lower triangle is read
    n_largest : n, below L

    Returns
    -------
    values : (n,) float64
    vectors : (L, n) float64, orthonormal
    least : float
    """
    size = len(matrix)
    lwork = int(lapack.dsytrd_lwork(size, lower=1)[0])
    reflectors, diagonal, beside, scales, _ = lapack.dsytrd(matrix, lower=1, lwork=lwork)
    least = eigh_tridiagonal(diagonal, beside, eigvals_only=True, lapack_driver="sterf")[0]
    wanted = (size - n_largest, size - 1)
    # Bisection, the usual driver of a range, gives up on eigenvalues that coincide.
    values, vectors = eigh_tridiagonal(diagonal, beside, select="i", select_range=wanted, lapack_driver="stemr")
    # The reduction leaves the first axis as it is; its reflectors of the others lie as those of a QR factorisation do.
    turned = lapack.dormqr("L", "N", reflectors[1:, :-1], scales, vectors[1:], REFLECTORS_TOGETHER * n_largest)[0]
    return values, np.vstack([vectors[:1], turned]), float(least)


def residual_variance(distances: np.ndarray, coordinates: np.ndarray) -> float:
    """Return 1 - r^2 of given distances (L, L) and those of coordinates (L, d), r their correlation over all pairs.

    References
    ----------
    Tenenbaum, de Silva and Langford, A global geometric framework for nonlinear dimensionality reduction, 2000.
    """
    reached = cdist(coordinates, coordinates)
    one, other = distances - distances.mean(), reached - reached.mean()
    both = float(np.vdot(one, other))
    return 1.0 - both**2 / (float(np.vdot(one, one)) * float(np.vdot(other, other)))
