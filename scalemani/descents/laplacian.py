"""B = 4 L+ + mu I, the Hessian of the attraction, and the solution of B p = g: the spectral direction.

L+ is the Laplacian of the affinities, sparsified to the `kappa` strongest neighbours of each point; for Student's
attraction it is taken at X = 0, where log(1 + d^2) = d^2. Source: [PH] 3.3 of the thesis.

Up to `FACTORED_UP_TO` points B is factored once (sparse LU of a symmetric matrix). The time of that grows as N^2.8 on
graphs of high-dimensional data; beyond, conjugate gradients solve to a tenth, which is enough: they start from zero and
B is positive definite, so that what they return descends wherever they are stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from scalemani.kernels.arrays.coordinates import add_multiple, dot
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.graph.attraction import AffinityRows, attraction_gradient
from scalemani.kernels.graph.strongest import strongest_neighbors
from scalemani.kernels.graph.symmetric import row_sums

FACTORED_UP_TO = 5000
EXACT_SHIFT = 1e-10  # of the least degree, [PH] 3.3: keeps a factored B from being singular
ITERATIVE_SHIFT = 1e-3  # of the mean degree: what conjugate gradients can resolve in a dozen steps
SOLVED_TO, MOST_STEPS = 0.1, 12
Operator = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ShiftedLaplacian:
    """B = 4 factor L + mu I of affinities in CSR form."""

    rows: AffinityRows
    degrees: np.ndarray = field(repr=False)
    factor: float
    shift: float
    over: Mapper = map

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal of B (N,)."""
        return 4 * self.factor * self.degrees + self.shift

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Return B V of vectors (N, d) float64."""
        out = attraction_gradient(self.rows, vectors, "quadratic", np.empty_like(vectors), self.over)
        out *= self.factor
        add_multiple(out, self.shift, vectors)
        return out

    def solve(self, vectors: np.ndarray) -> np.ndarray:
        """Return B^-1 V to a tenth."""
        return conjugate_gradients(self.product, vectors, self.diagonal[:, np.newaxis], SOLVED_TO, MOST_STEPS)

    def factored(self) -> Operator:
        """Return B^-1 as an operator, by one sparse factorisation."""
        matrix = sp.csr_matrix((self.rows.values.astype(np.float64), self.rows.indices, self.rows.indptr))
        matrix = sp.diags_array(self.diagonal) - 4 * self.factor * matrix
        return scipy.sparse.linalg.splu(
            sp.csc_matrix(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        ).solve


def spectral_operator(rows: AffinityRows, kappa: int, factor: float, over: Mapper = map) -> Operator:
    """Return g -> (4 factor L+ + mu I)^-1 g of the B of `shifted_laplacian`."""
    laplacian = shifted_laplacian(rows, kappa, factor, over)
    return laplacian.factored() if rows.n_points <= FACTORED_UP_TO else laplacian.solve


def shifted_laplacian(rows: AffinityRows, kappa: int, factor: float, over: Mapper = map) -> ShiftedLaplacian:
    """Return B = 4 factor L+ + mu I of symmetric affinities, sparsified; mu is as small as its solution allows."""
    strongest = strongest_neighbors(rows, kappa)
    degrees = row_sums(strongest.values, strongest.indptr)
    if rows.n_points <= FACTORED_UP_TO:
        shift = EXACT_SHIFT * float(degrees[degrees > 0].min())
    else:
        shift = ITERATIVE_SHIFT * float(degrees.mean())
    return ShiftedLaplacian(strongest, degrees, factor, 4 * factor * shift, over)


def conjugate_gradients(
    product: Operator,
    right: np.ndarray,
    diagonal: np.ndarray,
    tolerance: float,
    most_steps: int,
    guess: np.ndarray | None = None,
) -> np.ndarray:
    """Return V (N, d) float64 with product(V) = right, by conjugate gradients from a guess, else from zero.

    The columns share one recurrence, as one vector of N d numbers. `product` is symmetric and positive definite,
    `diagonal` (N, 1) or (N, d), positive, the preconditioner; `tolerance` bounds the norm of the residual relative to
    that of the right side.
    """
    solution = np.zeros_like(right) if guess is None else guess.copy()
    residual = right.copy() if guess is None else right - product(guess)
    target = tolerance**2 * dot(right, right)
    scaled = residual / diagonal
    along, slope = scaled, dot(residual, scaled)
    for _ in range(most_steps):
        if dot(residual, residual) <= target:
            break
        image = product(along)
        length = slope / dot(along, image)
        add_multiple(solution, length, along)
        add_multiple(residual, -length, image)
        scaled = residual / diagonal
        earlier, slope = slope, dot(residual, scaled)
        add_multiple(scaled, slope / earlier, along)
        along = scaled
    return solution
