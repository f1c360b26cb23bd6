"""Classical scaling: coordinates whose distances are those that are given, as well as a few dimensions allow.

Further points are triangulated by their distances to those that were scaled.

Sources: Torgerson, Multidimensional scaling: I. Theory and method, 1952; de Silva and Tenenbaum, Sparse
multidimensional scaling using landmark points, 2004.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal, lapack
from scipy.spatial.distance import cdist

from scalemani.errors import RankError
from scalemani.kernels.arrays.coordinates import at_unit_scale
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
    near_one, exponent = at_unit_scale(distances)
    products = -0.5 * near_one**2
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
    coordinates = np.ldexp(sign_rule(vectors * np.sqrt(values)), exponent)
    return Components(np.ldexp(values, 2 * exponent), coordinates), float(np.ldexp(least, 2 * exponent))


class Triangulation(NamedTuple):
    """Where a point lies by its distances to L landmarks that were scaled to d dimensions.

    A point at squared distances s_l, in units of 4^exponent, has coordinates sum_l (s_l - means_l) directions_l, in
    units of 2^exponent: `means` (L,), those of the landmarks, and `directions` (L, d), -v_l / (2 sqrt(lambda)).
    """

    means: np.ndarray
    directions: np.ndarray
    exponent: int

    def add(self, distances: Iterable[np.ndarray], first: int, out: np.ndarray) -> None:
        """Add what the landmarks from `first` on say of some points to `out` (n, d), in units of 2^exponent.

        Landmarks are added one by one, so that a point's bits do not depend on what else is placed.

        Parameters
        ----------
        distances : of all n points to one landmark after the other, (n,) real each
        out : (n, d) float64, written in place
        """
        for landmark, lengths in enumerate(distances, first):
            squares = np.ldexp(np.asarray(lengths, np.float64), -self.exponent) ** 2
            squares -= self.means[landmark]
            for column, direction in enumerate(self.directions[landmark]):
                out[:, column] += squares * direction


def triangulation(distances: np.ndarray, scaled: Components) -> Triangulation:
    """Return how points are placed among landmarks at distances (L, L), `scaled` by `classical_scaling`.

    A landmark is placed at its own coordinates, and points with the distances of a plane at theirs.
    """
    near_one, exponent = at_unit_scale(distances)
    values, vectors = np.ldexp(scaled.eigenvalues, -2 * exponent), np.ldexp(scaled.vectors, -exponent)
    return Triangulation((near_one**2).mean(axis=0), -0.5 * vectors / values, exponent)


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
    distances, coordinates = at_unit_scale(distances)[0], at_unit_scale(coordinates)[0]
    reached = cdist(coordinates, coordinates)
    one, other = distances - distances.mean(), reached - reached.mean()
    both = float(np.vdot(one, other))
    return 1.0 - both**2 / (float(np.vdot(one, one)) * float(np.vdot(other, other)))
