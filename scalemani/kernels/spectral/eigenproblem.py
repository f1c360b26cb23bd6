"""The generalised symmetric eigenproblem A v = lambda B v of the landmarks: smallest eigenvalues, certified.

Small problems are solved densely. Large ones by a block Krylov space of (A + shift B)^-1 B, from lower triangles
alone, with one Cholesky factor within the envelope of A + shift B. Where the reduced matrices are sparse (data of few
dimensions) its rows are ordered so that the envelope is narrow. Where they are not, it is the lower triangle:
neighbourhoods of images overlap so much that the factor of a matrix with a tenth of nonzeros is full. Source: [LLL]
4.3; George and Liu, Computer Solution of Large Sparse Positive Definite Systems, 1981, chapter 4.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.linalg
import scipy.linalg.blas
import scipy.sparse as sp
import scipy.sparse.csgraph

from scalemani.errors import ConvergenceError, DisconnectedGraphError, NumericalError, RankError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.spectral.reduced import lower_triangle, whole_of_triangle

DENSE_LANDMARKS = 2500  # up to here LAPACK takes a second or two and is exact to rounding
SPARSE_DENSITY = 0.02  # above it the factor fills in, however rows are ordered
PANEL_COLUMNS, SLAB_ROWS = 256, 1024  # of the factor: what is multiplied at once, by one task
SHIFT = 1e-3  # of the mean eigenvalue: far above rounding, far below the gaps that decide the speed
TOLERANCE = 1e-9  # largest residual relative to |A| + lambda |B|
SETTLED = 1e-12  # residual below which further blocks would not move vectors by what dense solvers agree to
LARGEST_EIGENVALUE = 2.0  # of L v = lambda D v
ZERO_TOLERANCE = 1e-10  # an eigenvalue below this share of |A| / |B| counts as zero
CONSTANT_TOLERANCE = 1e-8  # largest |A 1| relative to |A| |1| for a problem that claims the constant vector
RANK_ITERATIONS = 4
RANK_TOLERANCE = 1e-12  # least reciprocal condition of B~ once its diagonal is scaled to one
LEAST_DECREASE = 0.5  # of the residual by one block; where it is more, rounding is all that is left
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
    over: Mapper = map,
    dense_up_to: int | None = None,
) -> ReducedSolution:
    """Return the smallest eigenpairs of A v = lambda B v; the same input gives the same bits.

    Landmarks with a zero row in B are dropped. The largest absolute entry of each vector is positive, the first of
    equals. LAPACK solves small problems; large ones a block Krylov method on (A + shift B)^-1 B. Source of the shift:
    Ericsson and Ruhe, The spectral transformation Lanczos method, 1980.

    Parameters
    ----------
    a, b : (L, L) sparse, symmetric, B positive semidefinite, float64. Of large problems the lower triangles are read
        alone; a matrix that is nothing else stands for the symmetric one that it is the triangle of.
    constant : whether rows of A sum to zero; then the constant vector, the trivial solution, is left out.
    following : whether the next eigenvalue is requested too; it changes no bit of the others.
    over : runs slabs of the factor, as the builtin `map` does; changes no bit.
    dense_up_to : so many landmarks LAPACK solves at once, up to `DENSE_LANDMARKS` where the other method gives up; by
        default up to these in any case.

    Raises
    ------
    RankError
        Where B is singular beyond the dropped landmarks, or more components are requested than there are.
    ConvergenceError
        Where residuals stay above `TOLERANCE`, relative to |A| + lambda |B|.
    NumericalError
        Where `constant` is claimed and A 1 is not zero.
    """
    a, b = sp.csr_matrix(a, dtype=np.float64), sp.csr_matrix(b, dtype=np.float64)
    used = np.flatnonzero(b.diagonal() > 0)
    dropped = np.setdiff1d(np.arange(a.shape[0]), used)
    n_wanted = n_components + constant
    if n_wanted > len(used):
        raise RankError(
            f"{n_components} components were requested of {len(used)} landmarks in use; "
            f"at most {len(used) - constant} are possible: take more landmarks or fewer components"
        )
    dense = is_dense(len(used), n_components, constant, dense_up_to)
    if dense:
        a, b = (_of_used(matrix, used) for matrix in (a, b))
    else:
        a, b = (Triangle(lower_triangle(matrix)) for matrix in (a, b))
    if constant:
        _check_constant(a)
    if dense:
        values, vectors = _by_lapack(a, b, n_wanted)
    else:
        start = generator(0, "eigenvectors").standard_normal((a.shape[0], n_wanted + GUARD_VECTORS))
        if constant:
            start[:, 0] = 1.0
        start[dropped] = 0.0
        try:
            values, vectors = _block_krylov(a, b, start, n_wanted, over)
        except ConvergenceError:
            if len(used) > DENSE_LANDMARKS:
                raise
            return solve_reduced(a.lower, b.lower, n_components, constant, following)
    n_zero = int(np.count_nonzero(values[:n_wanted] < ZERO_TOLERANCE * _norm(a) / _norm(b)))
    further = _following(a, b, values, n_wanted) if following else np.nan
    if constant:
        values, vectors = _without_constant(values, vectors, b, max(n_zero, 1))
    vectors, values = sign_rule(vectors), values[:n_components]
    residuals = _residuals(a, b, values, vectors)
    if dense and len(dropped):
        full = np.zeros((len(used) + len(dropped), vectors.shape[1]))
        full[used] = vectors
        vectors = full
    return ReducedSolution(values, vectors, residuals, n_zero, dropped, further)


def is_dense(n_landmarks: int, n_components: int, constant: bool = True, dense_up_to: int | None = None) -> bool:
    """Return whether LAPACK solves the problem of so many landmarks at once."""
    return n_landmarks <= (dense_up_to or DENSE_LANDMARKS) or 3 * (n_components + constant) > n_landmarks


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


class Triangle:
    """A symmetric matrix (L, L), of which the lower triangle is held with sorted columns."""

    def __init__(self, lower: sp.csr_matrix) -> None:
        self.lower, self._diagonal = lower, lower.diagonal()
        self.shape = lower.shape

    def __matmul__(self, right: np.ndarray) -> np.ndarray:
        """Return the product with a vector (L,) or vectors (L, m)."""
        on_diagonal = self._diagonal * right if right.ndim == 1 else self._diagonal[:, np.newaxis] * right
        return self.lower @ right + self.lower.T @ right - on_diagonal

    def diagonal(self) -> np.ndarray:
        """Return the diagonal (L,)."""
        return self._diagonal

    def toarray(self) -> np.ndarray:
        """Return a dense matrix (L, L) with the lower triangle, which is what LAPACK reads, and zeros above."""
        return self.lower.toarray()


Matrix: TypeAlias = "sp.csr_matrix | Triangle"


def _of_used(matrix: sp.csr_matrix, used: np.ndarray) -> Matrix:
    """Return the rows and columns that are used of a symmetric matrix, passed whole or as its lower triangle."""
    lower = lower_triangle(matrix)
    some = lower if lower.nnz == matrix.nnz else matrix
    if len(used) < matrix.shape[0]:
        some = some[used][:, used]
    return Triangle(some) if lower.nnz == matrix.nnz else some


def _norm(matrix: Matrix) -> float:
    """Return the Frobenius norm."""
    if isinstance(matrix, Triangle):
        twice, once = np.linalg.norm(matrix.lower.data), np.linalg.norm(matrix.diagonal())
        return float(np.sqrt(max(2 * np.square(twice) - np.square(once), 0.0)))
    return float(np.linalg.norm(matrix.data))


def _check_constant(a: Matrix) -> None:
    excess = np.linalg.norm(a @ np.ones(a.shape[0])) / max(_norm(a) * np.sqrt(a.shape[0]), np.finfo(float).tiny)
    if excess > CONSTANT_TOLERANCE:
        raise NumericalError(
            f"rows of A should sum to zero and do so only to {excess:.1e} of its norm: "
            "rows of Z must sum to one, and the degrees be the row sums of W"
        )


def _residuals(a: Matrix, b: Matrix, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=0) * max(_norm(a), np.finfo(float).tiny)
    return np.linalg.norm(a @ vectors - (b @ vectors) * values, axis=0) / lengths


def _without_constant(values: np.ndarray, vectors: np.ndarray, b: Matrix, n_zero: int) -> tuple[np.ndarray, np.ndarray]:
    """Rotate the vectors of eigenvalue zero so that the first is the constant one, and leave it out."""
    shares = vectors[:, :n_zero].T @ (b @ np.ones(b.shape[0]))
    rotation = np.linalg.qr(np.column_stack([shares, np.eye(n_zero)[:, : n_zero - 1]]))[0]
    null_space = vectors[:, :n_zero] @ rotation
    return values[1:], np.column_stack([null_space[:, 1:], vectors[:, n_zero:]])


def _by_lapack(a: Matrix, b: Matrix, n_wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest eigenvalues and their vectors."""
    scale = 1 / np.sqrt(b.diagonal())
    if scipy.linalg.eigvalsh(b.toarray() * scale[:, None] * scale, subset_by_index=[0, 0])[0] < RANK_TOLERANCE:
        raise _singular()
    return scipy.linalg.eigh(a.toarray(), b.toarray(), subset_by_index=[0, n_wanted - 1])


def _following(a: Matrix, b: Matrix, values: np.ndarray, n_wanted: int) -> float:
    """Return the eigenvalue after the first `wanted`: among `values` already where these come of a Krylov space.

    A separate dense solve leaves the last bits of the others as they are.
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


class EnvelopeFactor:
    """The Cholesky factor of A + shift B, symmetric positive definite, within its envelope.

    A panel holds some columns of the factor from the diagonal down to the last row that has a nonzero in them or
    before; `_panels` has them with their columns. Panels are filled, and then overwritten by the factor one after the
    other. Rows without nonzeros are those of the unit matrix.

    Parameters
    ----------
    a, b : the matrices.
    shift : how much of B is added.
    over : runs slabs of a panel side by side; their shapes, and so the bits, depend on the envelope alone.
    """

    def __init__(self, a: Triangle, b: Triangle, shift: float, over: Mapper = map) -> None:
        self._order, terms = None, [a.lower, b.lower]
        n_rows = a.shape[0]
        if a.lower.nnz <= SPARSE_DENSITY / 2 * n_rows**2:
            whole = [whole_of_triangle(term) for term in terms]
            pattern = sp.csr_matrix(abs(whole[0]) + abs(whole[1]))
            self._order = scipy.sparse.csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True)
            terms = [lower_triangle(sp.csr_matrix(term[self._order][:, self._order])) for term in whole]
        firsts = np.minimum(*map(_first_columns, terms))
        all_columns = slices(n_rows, PANEL_COLUMNS)
        stops = np.array([columns.stop for columns in all_columns])
        np.maximum.at(stops, firsts // PANEL_COLUMNS, np.arange(1, n_rows + 1))
        self._panels = [
            (columns, np.zeros((stop - columns.start, columns.stop - columns.start)))
            for columns, stop in zip(all_columns, np.maximum.accumulate(stops), strict=True)
        ]
        for rows in all_columns:
            first = firsts[rows].min() // PANEL_COLUMNS
            near = slice(first * PANEL_COLUMNS, rows.stop)  # there are no nonzeros outside
            values = terms[0][rows, near].toarray() + shift * terms[1][rows, near].toarray()
            diagonal = np.einsum("ii->i", values[:, rows.start - near.start :])
            diagonal[diagonal == 0] = 1.0
            for columns, panel in self._panels[first : rows.start // PANEL_COLUMNS + 1]:
                block = panel[rows.start - columns.start : rows.stop - columns.start]
                block[:] = values[: len(block), columns.start - near.start : columns.stop - near.start]
        for number in range(len(self._panels)):
            self._factor(number, over)

    def _factor(self, number: int, over: Mapper) -> None:
        """Overwrite a panel by its columns of the factor, those before it being done."""
        _, panel = self._panels[number]
        width = panel.shape[1]
        run(over(functools.partial(self._subtract, number), slices(len(panel), SLAB_ROWS)))
        panel[:width] = scipy.linalg.cholesky(panel[:width], lower=True, check_finite=False)
        for rows in slices(len(panel) - width, SLAB_ROWS):
            below = panel[width:][rows]
            below[:] = scipy.linalg.blas.dtrsm(1.0, panel[:width], below.T, lower=1).T

    def _subtract(self, number: int, rows: slice) -> None:
        """Subtract from rows of a panel the products of the columns before it."""
        columns, panel = self._panels[number]
        for earlier, before in self._panels[:number]:
            start = columns.start - earlier.start
            left, right = before[start + rows.start : start + rows.stop], before[start : start + panel.shape[1]]
            if len(left):
                panel[rows][: len(left), : len(right)] -= left @ right.T

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Return x of (A + shift B) x = right, (L,) or (L, m)."""
        solution = np.array(right if self._order is None else right[self._order])
        for columns, panel in self._panels:
            width = panel.shape[1]
            part = scipy.linalg.solve_triangular(panel[:width], solution[columns], lower=True, check_finite=False)
            solution[columns] = part
            solution[columns.stop : columns.start + len(panel)] -= panel[width:] @ part
        for columns, panel in reversed(self._panels):
            width = panel.shape[1]
            part = solution[columns] - panel[width:].T @ solution[columns.stop : columns.start + len(panel)]
            solution[columns] = scipy.linalg.solve_triangular(
                panel[:width], part, lower=True, trans="T", check_finite=False
            )
        if self._order is None:
            return solution
        unordered = np.empty_like(solution)
        unordered[self._order] = solution
        return unordered


def _first_columns(lower: sp.csr_matrix) -> np.ndarray:
    """Return the first column of each row of a lower triangle with sorted columns; the diagonal's of an empty one."""
    firsts, filled = np.arange(lower.shape[0]), np.flatnonzero(np.diff(lower.indptr))
    firsts[filled] = lower.indices[lower.indptr[filled]]
    return firsts


def _check_rank(solve: Callable[[np.ndarray], np.ndarray], b: Triangle) -> None:
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


def _orthonormal(block: np.ndarray, space: np.ndarray, b: Triangle) -> np.ndarray:
    """Return the block made B-orthonormal, to itself and to the space, by two rounds of block Gram-Schmidt."""
    for _ in range(2):
        if space.shape[1]:
            block = block - space @ (space.T @ (b @ block))
        lengths, rotation = np.linalg.eigh(block.T @ (b @ block))
        independent = lengths > lengths[-1] * 8 * np.finfo(float).eps
        block = block @ (rotation[:, independent] / np.sqrt(lengths[independent]))
    return block


def _block_krylov(
    a: Triangle, b: Triangle, block: np.ndarray, n_wanted: int, over: Mapper
) -> tuple[np.ndarray, np.ndarray]:
    """Grow the Krylov space of (A + shift B)^-1 B from `block` until the Rayleigh-Ritz residuals are small.

    The start has random columns: the constant vector alone is blind to everything else on a regular graph.
    """
    try:
        solve = EnvelopeFactor(a, b, SHIFT * a.diagonal().sum() / b.diagonal().sum(), over).solve
    except np.linalg.LinAlgError as error:
        raise _singular() from error
    _check_rank(solve, b)
    norms, n_columns, worst = (_norm(a), _norm(b)), 0, np.inf
    spaces, images = (np.empty((len(block), MAX_BLOCKS * block.shape[1]), order="F") for _ in range(2))
    for _ in range(MAX_BLOCKS):
        block = _orthonormal(block, spaces[:, :n_columns], b)
        if block.shape[1] == 0:
            break
        added = slice(n_columns, n_columns + block.shape[1])
        n_columns = added.stop
        spaces[:, added], images[:, added] = block, a @ block
        space, image = spaces[:, :n_columns], images[:, :n_columns]
        values, rotation = np.linalg.eigh(space.T @ image)
        values, vectors = values[: n_wanted + 1], space @ rotation[:, :n_wanted]
        errors = image @ rotation[:, :n_wanted] - (b @ vectors) * values[:n_wanted]
        scales = np.linalg.norm(vectors, axis=0) * (norms[0] + np.abs(values[:n_wanted]) * norms[1])
        before, worst = worst, float(np.max(np.linalg.norm(errors, axis=0) / scales))
        if worst <= SETTLED or (worst <= TOLERANCE and worst > LEAST_DECREASE * before):
            return values, vectors
        block = solve(b @ block)
    if worst <= TOLERANCE:
        return values, vectors
    raise ConvergenceError(
        f"the reduced eigenproblem stopped at residual {worst:.1e} after {n_columns} vectors, where "
        f"{TOLERANCE:.0e} is needed: ask for fewer components or more landmarks"
    )
