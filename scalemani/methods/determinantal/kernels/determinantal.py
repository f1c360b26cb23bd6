"""Exact draws from determinantal point processes: of any size, and of a fixed one (k-DPP).

A set J has probability det(K_J) / det(K + I), or proportional to det(K_J) among the sets of one size: rows whose kernel
vectors span a large volume. Everything is decided by the eigenvectors of K, (N, N): N^2 numbers and N^3 operations.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from scalemani.errors import ConfigError
from scalemani.kernels.landmarks.nearest import nearest_landmarks

MOST_POINTS = 5000  # of which the kernel and its eigenvectors take 400 MB, and minutes
GEODESIC_NEIGHBORS = 10  # of each point, along which shortest paths go


class Spectrum(NamedTuple):
    """Eigenvalues (r,) ascending, positive, and eigenvectors (N, r) of a kernel of numerical rank r, float64."""

    values: np.ndarray
    vectors: np.ndarray


def euclidean_kernel(points: np.ndarray, sigma: float) -> np.ndarray:
    """Return exp(-|x_i - x_j|^2 / (2 sigma^2)) of points (N, D): (N, N) float64."""
    table = np.asarray(points, dtype=np.float64) / sigma
    return np.exp(-0.5 * cdist(table, table, "sqeuclidean"))


def geodesic_kernel(points: np.ndarray, sigma: float) -> np.ndarray:
    """Return the Gaussian kernel of the lengths of shortest paths over the graph of nearest neighbours.

    Parameters
    ----------
    points : (N, D) real
    sigma : in the unit of the points

    Returns
    -------
    (N, N) float64, zero between points that no path joins. Unlike the kernel of Euclidean distances it can have
    negative eigenvalues: `kernel_spectrum` leaves them out

    References
    ----------
    [DPP] 3.1
    """
    table = np.asarray(points, dtype=np.float64) / sigma
    n_points = len(table)
    n_listed = min(GEODESIC_NEIGHBORS + 1, n_points)
    indices, squares = nearest_landmarks(table, table, n_listed)
    heads = np.repeat(np.arange(n_points), n_listed)
    # An explicit zero is an edge of length zero, and repeated points are neighbours of each other.
    edges = sp.csr_matrix((np.sqrt(squares.ravel()), (heads, indices.ravel())), shape=(n_points, n_points))
    lengths = shortest_path(edges, method="D", directed=False)
    return np.exp(-0.5 * np.minimum(lengths, lengths.T) ** 2)  # a path and its way back are summed in other orders


def kernel_spectrum(kernel: np.ndarray) -> Spectrum:
    """Return the spectrum of a symmetric kernel (N, N), without eigenvalues that rounding cannot tell from zero.

    Negative eigenvalues are left out: what remains is the nearest positive semidefinite kernel.

    Raises
    ------
    ConfigError
        For more than `MOST_POINTS` rows.
    """
    refuse_large(len(kernel))
    values, vectors = eigh(kernel)
    kept = values > len(kernel) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    return Spectrum(values[kept], vectors[:, kept])


def refuse_large(n_points: int) -> None:
    """Refuse more points than the kernel can be decomposed of."""
    if n_points > MOST_POINTS:
        raise ConfigError(
            f"exact determinantal sampling decomposes a kernel of N x N, for N up to {MOST_POINTS}, and these are "
            f"{n_points} points; take method 'dpp', which approximates it, or fewer points"
        )


def draw_dpp(spectrum: Spectrum, random: np.random.Generator) -> np.ndarray:
    """Return rows (m,) int64 in the order drawn, of a random number m, distributed as the DPP of the kernel.

    References
    ----------
    [DPP] 3.1, algorithm 1; Kulesza and Taskar, Structured determinantal point processes, 2010.
    """
    chosen = random.random(len(spectrum.values)) < spectrum.values / (1.0 + spectrum.values)
    return _draw_from_span(spectrum.vectors[:, chosen], random)


def draw_k_dpp(spectrum: Spectrum, n_drawn: int, random: np.random.Generator) -> np.ndarray:
    """Return rows (n_drawn,) int64 in the order drawn, with probability proportional to det(K_J) among sets of a size.

    Parameters
    ----------
    n_drawn : k, at most the rank of the kernel

    Raises
    ------
    ConfigError
        For a kernel of a rank below `n_drawn`: every set of that size has the determinant zero.

    References
    ----------
    Kulesza and Taskar, k-DPPs: fixed-size determinantal point processes, 2011, algorithms 1 and 2.
    """
    rank = len(spectrum.values)
    if n_drawn > rank:
        raise ConfigError(
            f"{n_drawn} landmarks were asked for, but their kernel has rank {rank} in double precision; ask for at "
            "most that, or give a smaller sigma"
        )
    logarithms = log_elementary_polynomials(spectrum.values, n_drawn)
    chosen, left = np.zeros(rank, dtype=bool), n_drawn
    uniforms: np.ndarray = random.random(rank)
    for number in range(rank, 0, -1):
        if left == 0:
            break
        # The share of the polynomial of the first `number` eigenvalues that holds the last of them.
        held = np.log(spectrum.values[number - 1]) + logarithms[left - 1, number - 1] - logarithms[left, number]
        if uniforms[number - 1] < np.exp(held):
            chosen[number - 1] = True
            left -= 1
    return _draw_from_span(spectrum.vectors[:, chosen], random)


def log_elementary_polynomials(values: np.ndarray, degree: int) -> np.ndarray:
    """Return the logarithms of the elementary symmetric polynomials of the first n values, for all n.

    In logarithms nothing overflows: a thousand eigenvalues of ten have polynomials of 1e1000 and more.

    Parameters
    ----------
    values : (r,) positive
    degree : the largest, at most r

    Returns
    -------
    (degree + 1, r + 1) float64; entry (l, n) is log e_l(values[:n]), minus infinity for l > n
    """
    logarithms = np.full((degree + 1, len(values) + 1), -np.inf)
    logarithms[0] = 0.0
    for number, logarithm in enumerate(np.log(values), start=1):
        logarithms[1:, number] = np.logaddexp(logarithms[1:, number - 1], logarithm + logarithms[:-1, number - 1])
    return logarithms


def _draw_from_span(vectors: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return as many rows as there are orthonormal columns (N, m), each drawn by its squared norm off those before.

    The rows B are projected off the one drawn, B_i: their squared norms fall by their squared products with the unit
    vector of what was left of B_i.
    """
    n_drawn = vectors.shape[1]
    squares = np.einsum("nm,nm->n", vectors, vectors)
    directions = np.zeros((n_drawn, n_drawn))
    rows = np.empty(n_drawn, dtype=np.int64)
    uniforms: np.ndarray = random.random(n_drawn)
    for step in range(n_drawn):
        sums = np.cumsum(squares)
        # Rounding of the product can reach the whole sum, which is first reached by the last row that has a norm.
        row = min(int(np.searchsorted(sums, uniforms[step] * sums[-1], side="right")), int(np.argmax(sums)))
        rows[step] = row
        rest = vectors[row] - directions[:step].T @ (directions[:step] @ vectors[row])
        rest -= directions[:step].T @ (directions[:step] @ rest)  # once more: rounding leaves a part of them
        directions[step] = rest / np.linalg.norm(rest)
        squares = np.maximum(squares - (vectors @ directions[step]) ** 2, 0.0)
        squares[rows[: step + 1]] = 0.0
    return rows
