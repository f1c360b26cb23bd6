"""Locally linear embedding of points that are combinations of landmarks.

R (N, N) holds what each point takes of its neighbours, M = (I - R)^T (I - R), and X = Z V with V^T Z^T Z V = I keeps
what neighbours leave of every coordinate, |X - R X|^2, small: Z^T M Z v = lambda Z^T Z v. Source: Roweis and Saul,
Nonlinear dimensionality reduction by locally linear embedding, 2000, in the reduced form of [LLL] 4.3.
"""

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.landmarks.weights import local_weights
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.spectral.eigenproblem import sign_rule
from scalemani.kernels.spectral.linear import Components, RitzPairs, independent, whitened

CLOSE_TO_ZERO = 1e-14  # of a bound of the largest eigenvalue: what is below is rounding


def neighbor_weights(points: np.ndarray, others: np.ndarray, indices: np.ndarray, reg: float) -> np.ndarray:
    """Return the rows of R: what each point takes of its neighbours, as scikit-learn's barycenter weights.

    A neighbour in the same place is one like any other. Two copies that made up each other alone would hang together
    with no other point.

    Parameters
    ----------
    points : (n, D) real
    others : (m, D) real, what neighbours are among
    indices : (n, k) int, rows of `others`
    reg : share of the trace of a point's Gram matrix that is added to each entry of its diagonal

    Returns
    -------
    (n, k) float64, rows sum to one
    """
    return local_weights(points, others, indices, reg * indices.shape[1], unit_rows=False)


def locally_linear_components(
    errors: sp.csr_matrix, gram: sp.csr_matrix, n_components: int, n_following: int = 0
) -> tuple[Components, RitzPairs, int]:
    """Return the smallest eigenpairs, that of the constant vector left out, and how many are zero to rounding.

    Eigenvalues of interest are a millionth of the largest or less, so that the problem is solved dense, and the
    constant vector is taken out by a reflection before.

    Parameters
    ----------
    errors : (L, L) Z^T M Z
    gram : (L, L) Z^T Z
    n_following : how many pairs beyond these are returned with them, fewer where there are fewer

    Returns
    -------
    components : eigenvalues (d,) ascending, coordinates (L, d) of the landmarks: columns of Z V have unit length
    pairs : the same as Ritz pairs of M, and those that follow
    n_zero : int

    Raises
    ------
    RankError
        Where fewer columns of Z are independent.
    """
    spanning, factor = independent(gram)
    if n_components >= len(spanning):
        raise RankError(
            f"{n_components} components were requested of landmarks whose weights span {len(spanning)} dimensions, "
            "the constant one among them: take more landmarks or fewer components"
        )
    matrix = whitened(errors.toarray()[np.ix_(spanning, spanning)], factor)
    sums = np.asarray(gram.sum(axis=1)).ravel()[spanning]  # Z^T 1, of rows that sum to one
    mirror = reflection(scipy.linalg.solve_triangular(factor, sums, trans="T"))
    reflected = matrix - np.outer(mirror, 2 * (mirror @ matrix))
    reflected -= np.outer(reflected @ mirror, 2 * mirror)
    rest = reflected[1:, 1:]
    count = min(n_components + n_following, len(rest))
    values, vectors = scipy.linalg.eigh((rest + rest.T) / 2, subset_by_index=[0, count - 1])
    turned = np.vstack([np.zeros(count), vectors])
    turned -= np.outer(mirror, 2 * (mirror @ turned))
    coordinates = np.zeros((errors.shape[0], count))
    coordinates[spanning] = scipy.linalg.solve_triangular(factor, turned)
    n_zero = int(np.count_nonzero(values[:n_components] <= CLOSE_TO_ZERO * np.linalg.norm(matrix, np.inf)))
    pairs = RitzPairs(np.maximum(values, 0.0), sign_rule(coordinates))
    return Components(pairs.values[:n_components], pairs.vectors[:, :n_components]), pairs, n_zero


@compiled
def subtract_transposed(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, rows: np.ndarray, out: np.ndarray
) -> None:
    """Subtract R^T E from `out` (N, m), in place, row by row: bits do not depend on how many are passed at once.

    Parameters
    ----------
    indptr, indices, values : rows of R (n, N) in CSR form
    rows : (n, m) float64, those of E
    """
    for i in range(rows.shape[0]):
        for entry in range(indptr[i], indptr[i + 1]):
            neighbor, value = indices[entry], values[entry]
            for column in range(rows.shape[1]):
                out[neighbor, column] -= value * rows[i, column]


def reflection(vector: np.ndarray) -> np.ndarray:
    """Return the unit vector h (n,) for which I - 2 h h^T turns a vector (n,) onto the first axis."""
    mirror = vector / np.linalg.norm(vector)
    mirror[0] += np.copysign(1.0, mirror[0])
    return mirror / np.linalg.norm(mirror)
