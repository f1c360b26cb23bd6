"""Kernel components and discriminants of points that are combinations of landmarks, for a sparse kernel K = I + W.

Rows of Z sum to one, so Z^T W 1 = Z^T D Z 1: all that centring K takes follows from the reduced matrices of the
Laplacian and Z^T Z. Source: [LLL] 4.6.4.
"""

import numpy as np
import scipy.sparse as sp

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
