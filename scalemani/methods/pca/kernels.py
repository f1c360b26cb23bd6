"""Principal components X = Z V, V the leading vectors of G G^T v = lambda Z^T Z v with G = Z^T Y of centred points Y.

Source: [LLL] 4.6.2.
"""

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.spectral.eigenproblem import sign_rule
from scalemani.kernels.spectral.linear import Components, RitzPairs, independent


def principal_components(
    gram: sp.csr_matrix, moments: np.ndarray, n_components: int, n_following: int = 0
) -> tuple[Components, RitzPairs]:
    """Return the leading eigenvalues of G G^T v = lambda Z^T Z v and the landmarks' scores v sqrt(lambda).

    Parameters
    ----------
    gram : (L, L) Z^T Z
    moments : (L, D) float64, G = Z^T Y of centred points
    n_components : d, at most the rank of Z
    n_following : how many pairs beyond these are returned with them as pairs of Y Y^T, fewer where there are fewer

    Raises
    ------
    RankError
        Where fewer columns of Z are independent.
    """
    spanning, factor = independent(gram)
    if n_components > len(spanning):
        raise RankError(
            f"{n_components} components were requested of landmarks whose weights span {len(spanning)} dimensions: "
            "take more landmarks or fewer components"
        )
    whitened = scipy.linalg.solve_triangular(factor, moments[spanning], trans="T")
    left, singular, _ = scipy.linalg.svd(whitened, full_matrices=False)
    count = min(n_components + n_following, len(singular))
    vectors = np.zeros((moments.shape[0], count))
    vectors[spanning] = scipy.linalg.solve_triangular(factor, left[:, :count])
    vectors, values = sign_rule(vectors), singular[:count] ** 2
    scores = vectors[:, :n_components] * singular[:n_components]
    return Components(values[:n_components], scores), RitzPairs(values, vectors)
