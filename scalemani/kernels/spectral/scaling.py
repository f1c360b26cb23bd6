"""Classical scaling: coordinates whose distances are those that are given, as well as a few dimensions allow.

Source: Torgerson, Multidimensional scaling: I. Theory and method, 1952.
"""

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from scalemani.errors import RankError
from scalemani.kernels.spectral.eigenproblem import sign_rule
from scalemani.kernels.spectral.linear import Components

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
    size = len(products)
    values, vectors = scipy.linalg.eigh(products, subset_by_index=[size - n_components, size - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = int(np.count_nonzero(values > LEAST_SHARE * max(values[0], 0.0)))
    if n_components > positive:
        raise RankError(
            f"{n_components} components were asked of distances that span {positive} dimensions: ask for fewer, or "
            "take more landmarks"
        )
    least = float(scipy.linalg.eigvalsh(products, subset_by_index=[0, 0])[0])
    return Components(values, sign_rule(vectors * np.sqrt(values))), least


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
