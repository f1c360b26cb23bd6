"""The generalised symmetric eigenproblem A v = lambda B v of the landmarks: smallest eigenvalues, certified.

Small problems are solved densely. Large ones by a block Krylov space of (A + shift B)^-1 B, factored once: sparse LU
where the reduced matrices are sparse (data of few dimensions), dense Cholesky where they are not (neighbourhoods of
images overlap so much that the factor of a matrix with a tenth of nonzeros is full). Source: [LLL] 4.3.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from scalemani.errors import ConvergenceError, DisconnectedGraphError, NumericalError, RankError
from scalemani.kernels.arrays.draws import generator

DENSE_LANDMARKS = 2500  # up to here LAPACK takes a second or two and is exact to rounding
SPARSE_DENSITY = 0.02  # above it SuperLU fills in and takes longer than the dense Cholesky
SHIFT = 1e-3  # of the mean eigenvalue: far above rounding, far below the gaps that decide the speed
TOLERANCE = 1e-9
LARGEST_EIGENVALUE = 2.0  # of L v = lambda D v
ZERO_TOLERANCE = 1e-10  # an eigenvalue below this share of |A| / |B| counts as zero
CONSTANT_TOLERANCE = 1e-8  # largest |A 1| relative to |A| |1| for a problem that claims the constant vector
RANK_ITERATIONS = 4
RANK_TOLERANCE = 1e-12  # least reciprocal condition of B~ once its diagonal is scaled to one
MAX_BLOCKS = 30  # blocks of the Krylov space before the solver gives up
GUARD_VECTORS = 8


@dataclass(frozen=True)
class ReducedSolution:
    """Eigenpairs of the reduced problem.

    `eigenvalues` (d,) ascending; `vectors` (L, d), B-orthonormal, zero at dropped landmarks; `residuals` (d,),
    |A v - lambda B v| / |A| with the Frobenius norm of A and v of unit length; `n_zero`, how many of the eigenvalues
    computed are zero up to rounding, the constant vector's included (more than one: the graph falls into components,
    and the vectors of eigenvalue zero are one basis of many); `dropped` (n,), landmarks that no point uses;
    `following`, the next eigenvalue or an approximation of it from above: infinite where there is none, NaN where it
    was not requested.
    """

    eigenvalues: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    n_zero: int
    dropped: np.ndarray
    following: float


def solve_reduced(
    a: sp.csr_matrix,
    b: sp.csr_matrix,
    n_components: int,
    constant: bool = True,
    following: bool = False,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> ReducedSolution:
    """Return the smallest eigenpairs of A v = lambda B v; the same input and seed give the same bits.

    Landmarks with a zero row in B are dropped. The largest absolute entry of each vector is positive, the first of
    equals. Up to `DENSE_LANDMARKS` landmarks LAPACK solves; beyond, a block Krylov method on (A + shift B)^-1 B. Source
    of the shift: Ericsson and Ruhe, The spectral transformation Lanczos method, 1980.

    Parameters
    ----------
    a, b : (L, L) sparse or dense, symmetric, B positive semidefinite, float64.
    constant : whether rows of A sum to zero; then the constant vector, the trivial solution, is left out.
    following : whether the next eigenvalue is requested too; it changes no bit of the others.
    tolerance : largest residual relative to |A| + lambda |B|.

    Raises
    ------
    RankError
        Where B is singular beyond the dropped landmarks, or more components are requested than there are.
    ConvergenceError
        Where residuals stay above the tolerance.
    NumericalError
        Where `constant` is claimed and A 1 is not zero.
    """
    a, b = sp.csr_matrix(a, dtype=np.float64), sp.csr_matrix(b, dtype=np.float64)
    used = np.flatnonzero(b.diagonal() > 0)
    dropped = np.setdiff1d(np.arange(a.shape[0]), used)
    if len(dropped):
        a, b = a[used][:, used], b[used][:, used]
    n_wanted = n_components + constant
    if n_wanted > len(used):
        raise RankError(
            f"{n_components} components were asked of {len(used)} landmarks in use; "
            f"at most {len(used) - constant} are possible: take more landmarks or fewer components"
        )
    if constant:
        _check_constant(a)
    values, vectors = _smallest(a, b, n_wanted, constant, tolerance, seed)
    n_zero = int(np.count_nonzero(values[:n_wanted] < ZERO_TOLERANCE * _norm(a) / _norm(b)))
    further = _following(a, b, values, n_wanted) if following else np.nan
    if constant:
        values, vectors = _without_constant(values, vectors, b, max(n_zero, 1))
    full = np.zeros((len(used) + len(dropped), vectors.shape[1]))
    full[used] = sign_rule(vectors)
    values = values[:n_components]
    return ReducedSolution(values, full, _residuals(a, b, values, full[used]), n_zero, dropped, further)


def refuse_null_space(n_zero: int) -> None:
    """Raise DisconnectedGraphError where more eigenvalues are zero than that of the constant vector."""
    if n_zero > 1:
        raise DisconnectedGraphError(
            f"{n_zero} eigenvalues are zero where one was expected: the affinities fall into components, or landmarks "
            "see only some of them; join the components or embed them one by one"
        )


def sign_rule(vectors: np.ndarray) -> np.ndarray:
    """Return the columns with signs such that the entry of largest absolute value, the first of equals, is positive."""
    rows = np.argmax(np.abs(vectors), axis=0)
    signs = np.where(vectors[rows, np.arange(vectors.shape[1])] < 0, -1, 1).astype(vectors.dtype)
    return vectors * signs


def within_range(eigenvalues: np.ndarray, rounding: float = ZERO_TOLERANCE) -> np.ndarray:
    """Return eigenvalues (d,) of L v = lambda D v in [0, 2], where they leave it by rounding at most."""
    inside = np.clip(eigenvalues, 0.0, LARGEST_EIGENVALUE)
    return np.where(np.abs(eigenvalues - inside) <= rounding, inside, eigenvalues)


def _check_constant(a: sp.csr_matrix) -> None:
    excess = np.linalg.norm(a @ np.ones(a.shape[0])) / max(_norm(a) * np.sqrt(a.shape[0]), np.finfo(float).tiny)
    if excess > CONSTANT_TOLERANCE:
        raise NumericalError(
            f"rows of A should sum to zero and do so only to {excess:.1e} of its norm: "
            "rows of Z must sum to one, and the degrees be the row sums of W"
        )


def _norm(matrix: sp.csr_matrix) -> float:
    return float(np.linalg.norm(matrix.data))


def _residuals(a: sp.csr_matrix, b: sp.csr_matrix, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=0) * max(_norm(a), np.finfo(float).tiny)
    return np.linalg.norm(a @ vectors - (b @ vectors) * values, axis=0) / lengths


def _without_constant(
    values: np.ndarray, vectors: np.ndarray, b: sp.csr_matrix, n_zero: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rotate the vectors of eigenvalue zero so that the first is the constant one, and leave it out."""
    shares = vectors[:, :n_zero].T @ (b @ np.ones(b.shape[0]))
    rotation = np.linalg.qr(np.column_stack([shares, np.eye(n_zero)[:, : n_zero - 1]]))[0]
    null_space = vectors[:, :n_zero] @ rotation
    return values[1:], np.column_stack([null_space[:, 1:], vectors[:, n_zero:]])


def _smallest(
    a: sp.csr_matrix, b: sp.csr_matrix, n_wanted: int, constant: bool, tolerance: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest eigenvalues, the first `wanted` of them converged, and the vectors of these."""
    if a.shape[0] > DENSE_LANDMARKS and 3 * n_wanted <= a.shape[0]:
        start = generator(seed, "eigenvectors").standard_normal((a.shape[0], n_wanted + GUARD_VECTORS))
        if constant:
            start[:, 0] = 1.0
        return _block_krylov(a, b, start, n_wanted, tolerance)
    scale = 1 / np.sqrt(b.diagonal())
    if scipy.linalg.eigvalsh(b.toarray() * scale[:, None] * scale, subset_by_index=[0, 0])[0] < RANK_TOLERANCE:
        raise _singular()
    return scipy.linalg.eigh(a.toarray(), b.toarray(), subset_by_index=[0, n_wanted - 1])


def _following(a: sp.csr_matrix, b: sp.csr_matrix, values: np.ndarray, n_wanted: int) -> float:
    """Return the eigenvalue after the first `wanted`: among `values` already where these come of a Krylov space.

    A dense solve of its own leaves the last bits of the others as they are.
    """
    if len(values) > n_wanted:
        return float(values[n_wanted])
    if n_wanted == a.shape[0]:
        return np.inf
    return float(scipy.linalg.eigvalsh(a.toarray(), b.toarray(), subset_by_index=[n_wanted, n_wanted])[0])


def _singular() -> RankError:
    return RankError(
        "the matrix B of the reduced problem is singular: some landmarks are repeated, or only ever used in the same "
        "proportion; remove repeated landmarks or choose fewer"
    )


def _factored(matrix: sp.csr_matrix) -> Callable[[np.ndarray], np.ndarray]:
    """Return the solver of a symmetric positive definite matrix, dense or sparse by its fill."""
    try:
        if matrix.nnz > SPARSE_DENSITY * matrix.shape[0] ** 2:
            factor = scipy.linalg.cho_factor(matrix.toarray(order="F"), True, True, check_finite=False)
            return lambda right: scipy.linalg.cho_solve(factor, right, check_finite=False)
        return scipy.sparse.linalg.splu(
            sp.csc_matrix(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        ).solve
    except (np.linalg.LinAlgError, RuntimeError) as error:
        raise _singular() from error


def _check_rank(solve: Callable[[np.ndarray], np.ndarray], b: sp.csr_matrix) -> None:
    """Raise RankError when B, its diagonal scaled to one, is singular to working precision.

    `solve` is that of A + shift B. A and B are Z^T ( . ) Z of the same Z, so a null vector of B is one of A + shift B,
    and inverse iteration with it runs into such a vector if there is one: B itself need not be factored.
    """
    diagonal = b.diagonal()
    vector = generator(0, "condition").standard_normal(b.shape[0])
    for _ in range(RANK_ITERATIONS):
        vector = solve(diagonal * vector)
        vector /= np.linalg.norm(vector)
        if not vector @ (b @ vector) > RANK_TOLERANCE * (vector @ (diagonal * vector)):
            raise _singular()


def _orthonormal(block: np.ndarray, basis: list[np.ndarray], b: sp.csr_matrix) -> np.ndarray:
    """Return the block made B-orthonormal, to itself and to the basis, by two rounds of block Gram-Schmidt."""
    for _ in range(2):
        for other in basis:
            block = block - other @ (other.T @ (b @ block))
        lengths, rotation = np.linalg.eigh(block.T @ (b @ block))
        independent = lengths > lengths[-1] * 8 * np.finfo(float).eps
        block = block @ (rotation[:, independent] / np.sqrt(lengths[independent]))
    return block


def _block_krylov(
    a: sp.csr_matrix, b: sp.csr_matrix, block: np.ndarray, n_wanted: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Grow the Krylov space of (A + shift B)^-1 B from `block` until the Rayleigh-Ritz residuals are small.

    The start has random columns: the constant vector alone is blind to everything else on a regular graph.
    """
    solve = _factored(sp.csr_matrix(a + SHIFT * a.diagonal().sum() / b.diagonal().sum() * b))
    _check_rank(solve, b)
    norms = (_norm(a), _norm(b))
    basis: list[np.ndarray] = []
    images: list[np.ndarray] = []
    worst = np.inf
    while len(basis) < MAX_BLOCKS:
        block = _orthonormal(block, basis, b)
        if block.shape[1] == 0:
            break
        basis.append(block)
        images.append(a @ block)
        space, image = np.hstack(basis), np.hstack(images)
        values, rotation = np.linalg.eigh(space.T @ image)
        values, vectors = values[: n_wanted + 1], space @ rotation[:, :n_wanted]
        errors = image @ rotation[:, :n_wanted] - (b @ vectors) * values[:n_wanted]
        scales = np.linalg.norm(vectors, axis=0) * (norms[0] + np.abs(values[:n_wanted]) * norms[1])
        worst = float(np.max(np.linalg.norm(errors, axis=0) / scales))
        if worst <= tolerance:
            return values, vectors
        block = solve(b @ block)
    raise ConvergenceError(
        f"the reduced eigenproblem stopped at residual {worst:.1e} after {len(basis)} blocks of vectors, where "
        f"{tolerance:.0e} is needed: ask for fewer components or more landmarks"
    )
