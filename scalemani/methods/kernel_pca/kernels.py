"""Kernel components and discriminants of points that are combinations of landmarks, and kernels between all points.

Of a sparse kernel K = I + W all that centring takes follows from the reduced matrices of the Laplacian and Z^T Z: rows
of Z sum to one, so Z^T W 1 = Z^T D Z 1. Source: [LLL] 4.6.4.
"""

import functools
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.config.functions import load_function, with_digest
from scalemani.errors import DataError
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.forks import new_lock
from scalemani.kernels.rows.comparisons import compiled_function
from scalemani.kernels.rows.reduced import COORDINATES, Distance, distance_by, reduced_distance
from scalemani.kernels.spectral.linear import centered_products


def centered_kernel(laplacian: sp.csr_matrix, mass: sp.csr_matrix, gram: sp.csr_matrix) -> np.ndarray:
    """Return Z^T J K J Z (L, L) of K = I + W, J = I - 1 1^T / N, without a matrix of N rows.

    Parameters
    ----------
    laplacian, mass : (L, L), Z^T (D - W) Z and Z^T D Z
    gram : (L, L), Z^T Z
    """
    return centered_products((mass - laplacian + gram).toarray(), gram)


def centered_vectors(vectors: np.ndarray, gram: sp.csr_matrix) -> np.ndarray:
    """Return vectors (L, m) less what makes the mean of their combinations Z v zero, whose rows of Z sum to one."""
    weights = np.asarray(gram.sum(axis=1)).ravel()  # Z^T 1
    return vectors - weights @ vectors / weights.sum()


def kernel_means(mass: sp.csr_matrix, gram: sp.csr_matrix, vectors: np.ndarray) -> np.ndarray:
    """Return the means (m,) over all points of K Z v of vectors (L, m): 1^T K Z = 1^T (I + D) Z."""
    sums = np.asarray((mass + gram).sum(axis=1)).ravel()
    return sums @ vectors / gram.sum()


def centered_sums(products: sp.csr_matrix, sums: np.ndarray, gram: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return Z^T (J K J)^2 Z (L, L) and the matrix C (L + 1, L) for which J K J Z = J [K Z, K 1] C.

    Parameters
    ----------
    products : (L + 1, L + 1), R^T R of the rows R = [K Z, K 1]
    sums : (L + 1,), R^T 1
    gram : (L, L), Z^T Z
    """
    weights = np.asarray(gram.sum(axis=1)).ravel()  # Z^T 1
    n_points = weights.sum()
    centring = np.vstack([np.eye(len(weights)), -weights / n_points])
    centered = centring.T @ (products.toarray() - np.outer(sums, sums) / n_points) @ centring
    return (centered + centered.T) / 2, centring


class PairKernel(NamedTuple):
    """A kernel k(x, y) of two rows: a function of them, or exp(-d^2 / (2 sigma^2)) of their Euclidean distance d."""

    name: str
    function: Distance
    sigma: float | None = None


_lock = new_lock()


def kernel_by_function(name: str) -> PairKernel:
    """Return the kernel that a user's function is, by its name with a digest.

    Raises ConfigError where the function cannot be loaded or compiled, or is another one than the name says.
    """
    load_function(name)  # not within the lock: a file that is loaded may compare rows itself
    with _lock:
        return _kernel_by_function(name)


@functools.cache
def _kernel_by_function(name: str) -> PairKernel:
    return PairKernel(name, distance_by(compiled_function(with_digest(name)), name))


def gaussian_kernel(sigma: float | None, landmarks: np.ndarray) -> PairKernel:
    """Return the Gaussian kernel; its `sigma` None is the median distance between landmarks (L, D) float64."""
    squares = PairKernel("gaussian", COORDINATES)
    if sigma is None:
        distances = np.sqrt(kernel_values(squares, landmarks, landmarks)[np.triu_indices(len(landmarks), 1)])
        apart = distances[distances > 0]
        if len(apart) == 0:
            raise DataError("all landmarks are equal: there is no distance between them that sigma could be")
        sigma = float(np.median(apart))
    return squares._replace(sigma=sigma)


def kernel_values(kernel: PairKernel, some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the kernel (m, n) float64 between rows (m, D) and rows (n, D) float64; their squares without sigma."""
    values = np.empty((len(some), len(others)))
    fill_values(kernel.function, some, others, values)
    if kernel.sigma is not None:
        values *= -0.5 / kernel.sigma**2
        np.exp(values, out=values)
    return values


@compiled
def fill_values(function: Distance, some: np.ndarray, others: np.ndarray, values: np.ndarray) -> None:
    """Write what a function returns of rows (m, D) and rows (n, D) float64 to values (m, n) float64."""
    for i in range(some.shape[0]):
        for j in range(others.shape[0]):
            values[i, j] = reduced_distance(function, some, i, others, j, np.inf)
