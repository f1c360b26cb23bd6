"""Exact Laplacian eigenmaps.

Eigenpairs of L v = lambda D v with the trivial one left out: eigenvalues in [0, 2], ascending; embedding rows are v,
not D^1/2 v, with V^T D V = I as scikit-learn's SpectralEmbedding scales them. Source: [LLL] 4.8.1.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from scalemani.errors import ConvergenceError, DisconnectedGraphError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.graph.symmetric import row_sums
from scalemani.kernels.spectral.eigenproblem import DENSE_LANDMARKS, sign_rule, solve_reduced, within_range

# Of ARPACK, each of ten products and more: 264 products did for two eigenvectors of a million digits, some 26 restarts.
MOST_RESTARTS = 1000


class Eigenmaps(NamedTuple):
    """`eigenvalues` (d,) float64, ascending, the trivial zero left out; `embedding` (N, d) float64."""

    eigenvalues: np.ndarray
    embedding: np.ndarray


def graph_degrees(affinities: sp.csr_matrix) -> np.ndarray:
    """Return the row sums (N,) float64 of W; raise DisconnectedGraphError when a row has none."""
    degrees = row_sums(affinities.data, affinities.indptr)
    isolated = np.flatnonzero(~(degrees > 0))
    if len(isolated):
        raise DisconnectedGraphError(
            f"{len(isolated)} points have no affinity to any other, the first is row {isolated[0]}: "
            "use more neighbours, or leave these points out"
        )
    return degrees


def exact_eigenmaps(
    affinities: sp.csr_matrix,
    n_components: int,
    most_restarts: int = MOST_RESTARTS,
    dense_up_to: int = DENSE_LANDMARKS,
) -> Eigenmaps:
    """Return the exact Laplacian eigenmaps of W (N, N), symmetric CSR.

    Up to `dense_up_to` points by a dense solve; above, the largest eigenvalues of D^-1/2 W D^-1/2 by implicitly
    restarted Lanczos (ARPACK), to machine precision. It gives up with a ConvergenceError after `most_restarts`: graphs
    that nearly fall into pieces have eigenvalues so close to each other that it would never end. A point without an
    affinity is a DisconnectedGraphError.
    """
    degrees = graph_degrees(affinities)
    weights = sp.csr_matrix(affinities, dtype=np.float64)
    if len(degrees) <= dense_up_to:
        mass = sp.diags_array(degrees, format="csr")
        solution = solve_reduced(sp.csr_matrix(mass - weights), sp.csr_matrix(mass), n_components)
        return Eigenmaps(within_range(solution.eigenvalues), solution.vectors)
    roots = np.sqrt(degrees)
    scale = sp.diags_array(1 / roots)
    start = generator(0, "exact eigenmaps").standard_normal(len(degrees))
    try:
        values, vectors = scipy.sparse.linalg.eigsh(
            sp.csr_matrix(scale @ weights @ scale),
            n_components + 1,
            which="LA",
            v0=start,
            maxiter=most_restarts,
        )
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        raise ConvergenceError(
            f"ARPACK computed {len(error.eigenvalues)} of {n_components + 1} eigenvectors in {most_restarts} restarts, "
            "the constant one among them: the graph nearly falls into pieces, whose eigenvalues are too close to each "
            "other; take embedding.solver=refine, or raise neighbors.n_neighbors or the bandwidth of affinities"
        ) from error
    order = np.argsort(-values)
    trivial = roots / np.linalg.norm(roots)
    rest = vectors[:, order][:, 1:]
    rest = rest - np.outer(trivial, trivial @ rest)  # components would mix the trivial vector with the others
    rest /= np.linalg.norm(rest, axis=0)
    return Eigenmaps(within_range(1 - values[order[1:]]), sign_rule(rest / roots[:, None]))
