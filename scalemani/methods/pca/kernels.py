"""Principal components X = Z V, V the leading vectors of G G^T v = lambda Z^T Z v with G = Z^T Y of centred points Y.

Source: [LLL] 4.6.2.
"""

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.spectral.eigenproblem import sign_rule
from scalemani.kernels.spectral.linear import Components, independent


def principal_components(gram: sp.csr_matrix, moments: np.ndarray, n_components: int) -> Components:
    """Return the leading eigenvalues of G G^T v = lambda Z^T Z v and the landmarks' scores v sqrt(lambda).

    Parameters
    ----------
    gram : (L, L) Z^T Z
    moments : (L, D) float64, G = Z^T Y of centred points
    n_components : d, at most the rank of Z

    Raises
    ------
    RankError
        Where fewer columns of Z are independent.
    """
    kept, factor = independent(gram)
    if n_components > len(kept):
        raise RankError(
            f"{n_components} components were asked of landmarks whose weights span {len(kept)} dimensions: take more "
            "landmarks or fewer components"
        )
    whitened = scipy.linalg.solve_triangular(factor, moments[kept], trans="T")
    left, singular, _ = scipy.linalg.svd(whitened, full_matrices=False)
    scores = np.zeros((moments.shape[0], n_components))
    scores[kept] = scipy.linalg.solve_triangular(factor, left[:, :n_components]) * singular[:n_components]
    return Components(singular[:n_components] ** 2, sign_rule(scores))
