"""How far approximate eigenvectors are from the exact ones: bounds from residuals and the gap to further eigenvalues.

X1 (N, d) are unit Ritz vectors of a symmetric matrix S for its leading eigenvalues: of D^-1/2 W D^-1/2, the trivial one
left out, of a matrix of scalar products, or of one whose smallest eigenvalues are wanted, times -1; X2 are some that
follow; X3 is an orthonormal basis of what else there is. In the basis [X1, X2, X3], S is

    [[Theta1, 0, E1^T], [0, Theta2, E2^T], [E1, E2, M]]

with Ritz values on the diagonals and residuals R1 = X3 E1, R2 = X3 E2, of columns r_k. An exact eigenvector (a, b, c)
of a leading eigenvalue lambda has b = (lambda - Theta2)^-1 E2^T c and
(lambda - M - E2 (lambda - Theta2)^-1 E2^T) c = E1 a. With t the largest eigenvalue of M and theta_d <= lambda the last
Ritz value of X1, hence

    |c| <= |R1| / G |a|,   G = theta_d - t - sum_k r_k^2 / (theta_d - theta_k),
    |b| <= |c| sqrt(sum_k r_k^2 / (theta_d - theta_k)^2),   k over X2,

which is the sine theorem of Davis and Kahan where X2 is empty. Where the last leading eigenvalue has a near neighbour,
X2 spans the gap: residuals do not lead from X1 to X2. t is not known: it is taken to be at most the Ritz value that
follows those of X2 and its residual together. That holds as long as no eigenvalue is missing among the Ritz values,
which residuals cannot show. Without that, as many exact eigenvalues as there are columns in X1 lie within |R1| of
theirs. Where |R1| > G nothing follows for the angle of X1, and it may still for that of its first columns alone.

Sources: Davis and Kahan 1970, The rotation of eigenvectors by a perturbation III; Nakatsukasa 2020, Sharp error bounds
for Ritz vectors and approximate singular vectors.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from scalemani.kernels.arrays.columns import unit_roots
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.graph.symmetric import row_sums
from scalemani.kernels.spectral.eigenproblem import DENSE_LANDMARKS

NEAR_ZERO = 1e-13  # an eigenvalue of L v = lambda D v, in [0, 2], that rounding does not separate from zero
LEAST_VALUE = -1.0  # of S, whose eigenvalues lie in [-1, 1]
BELOW_ALL = -2.0  # where eigenvalues of known vectors are moved to
TOLERANCES = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)  # of the search for the next eigenvalue, until the gap is resolved
RESOLVED = 0.1  # share of the gap that the next eigenvalue may be off by
MOST_RESTARTS = 300  # of Lanczos for one tolerance: tight clusters take hundreds, and the gap may be zero


ROUNDINGS = 4  # of a product, in inner products of unit vectors


class Following(NamedTuple):
    """Ritz values (g,) of S beyond the leading ones, descending, and residuals |S y - theta y| of unit vectors y.

    One at least; further ones are of vectors that come of one Rayleigh-Ritz step with the leading ones. `vectors`
    (N, g) are these y; None where they were not computed, as of a dense solve for eigenvalues alone.
    """

    values: np.ndarray
    residuals: np.ndarray
    vectors: np.ndarray | None = None

    @classmethod
    def one(cls, value: float, residual: float) -> "Following":
        """Return what follows where only the next value is known."""
        return cls(np.array([value]), np.array([residual]))


UNKNOWN = Following.one(1.0, 1.0)  # the gap is not known


class SubspaceAccuracy(NamedTuple):
    """How far an embedding can be from the exact one.

    Attributes
    ----------
    eigengap : the last leading Ritz value less the following one, of S, which is lambda_(d+1) - lambda_d of
        L v = lambda D v. Negative where an eigenvalue is missing among them, zero where none is known to follow
    eigengap_error_bound : the gap of the exact eigenvalues differs from `eigengap` by at most this, as long as none is
        missing among them
    angle_bound : radians below pi/2. The largest principal angle between the span of D^1/2 V, of the embedding V, and
        that of the exact eigenvectors is at most this; None where residuals do not bound it
    eigenvalue_error_bound : no leading eigenvalue is farther from the exact one
    resolved_components : how many of the first columns, at most, span what the residuals bound the angle of
    resolved_angle_bound : that bound, in radians; None where these are none
    """

    eigengap: float
    eigengap_error_bound: float
    angle_bound: float | None
    eigenvalue_error_bound: float
    resolved_components: int
    resolved_angle_bound: float | None


def subspace_accuracy(
    values: np.ndarray,
    residuals: np.ndarray,
    following: Following,
    rounding: float = 0.0,
    largest: float = np.inf,
) -> SubspaceAccuracy:
    """Return bounds on the error of approximate leading eigenvectors of S, the trivial one left out.

    Parameters
    ----------
    values : (d,) Ritz values theta of S, descending
    residuals : (d,) lengths |S x - theta x| for the unit Ritz vectors x
    rounding : what x^T S y of two different Ritz vectors may be for rounding
    largest : no eigenvalue of S exceeds it: none is farther above its Ritz value, which is below it

    Notes
    -----
    The bounds of the module, with the Frobenius norm of R1, for every number of vectors in X2; the best is returned.
    The sine of the largest principal angle is at most the Frobenius norm of all sines, which is what is bounded.
    Eigenvalues err by at most |R1|^2 / G, and by |R1| where no G is positive.
    """
    sine, error = sine_and_error(values, residuals, following, rounding)
    error = min(error, max(0.0, largest - float(values[-1]))) + rounding
    # An exact eigenvalue lies within its residual of each Ritz value.
    gap_error = error + float(following.residuals[0]) + rounding
    angle, count = angle_of(sine), len(values)
    resolved = angle
    while resolved is None and count > 1:
        count -= 1
        rest = Following(
            *map(np.concatenate, ((values[count:], following.values), (residuals[count:], following.residuals)))
        )
        resolved = angle_of(sine_and_error(values[:count], residuals[:count], rest, rounding)[0])
    eigengap = float(values[-1] - following.values[0])
    return SubspaceAccuracy(eigengap, gap_error, angle, error, 0 if resolved is None else count, resolved)


def angle_of(sine: float) -> float | None:
    """Return the angle of a bound of its sine; None where that bounds nothing."""
    return float(np.arcsin(sine)) if sine < 1 else None


def sine_and_error(
    values: np.ndarray, residuals: np.ndarray, following: Following, rounding: float
) -> tuple[float, float]:
    """Return bounds on the sine of the angle and on the error of eigenvalues, of all leading Ritz vectors."""
    last, length = float(values[-1]), float(np.sqrt((residuals**2).sum()))
    eigengap = last - float(following.values[0])
    sine, error, lost, turned, coupled = np.inf, length, 0.0, 1.0, 0.0
    for value, residual in zip(following.values, following.residuals, strict=True):
        gap = last - value - residual - lost
        if gap > 0:
            sine = min(sine, length / gap * np.sqrt(turned) + coupled)
            error = min(error, length**2 / gap)
        if value >= last:
            break
        lost += residual**2 / (last - value)
        turned += (residual / (last - value)) ** 2
        coupled = rounding / eigengap
    return float(sine), float(error)


def certified_pairs(
    values: np.ndarray, residuals: np.ndarray, n_leading: int, scale: float = 1.0, largest: float = np.inf
) -> dict[str, Any]:
    """Return the certificates of the first `n_leading` Ritz pairs of one Rayleigh-Ritz step.

    Parameters
    ----------
    values, residuals : (m,) Ritz values, descending, and |S x - theta x| of unit Ritz vectors; those beyond `n_leading`
        bound the gap, which is not known without any
    scale : what the residual is stated relative to, above zero
    largest : as of `subspace_accuracy`
    """
    values, residuals = values / scale, residuals / scale  # squares of eigenvalues may leave float64
    leading = values[:n_leading]
    following = Following(values[n_leading:], residuals[n_leading:])
    if n_leading == len(values):
        following = Following.one(float(leading[-1]), float(residuals.max()))
    rounding = ROUNDINGS * float(np.finfo(np.float64).eps)
    accuracy = subspace_accuracy(leading, residuals[:n_leading], following, rounding, largest / scale)._asdict()
    del accuracy["eigengap_error_bound"]
    lengths = {name: accuracy[name] * scale for name in ("eigengap", "eigenvalue_error_bound")}
    return {"residual": float(residuals[:n_leading].max()), **accuracy, **lengths}


def count_near_zero(eigenvalues: np.ndarray) -> int:
    """Return how many eigenvalues are zero to rounding: the trivial one, and those of (d,) that are."""
    return 1 + int(np.count_nonzero(eigenvalues < NEAR_ZERO))


def following_value(
    affinities: sp.csr_matrix, values: np.ndarray, vectors: np.ndarray, dense_up_to: int = DENSE_LANDMARKS
) -> Following:
    """Return the largest eigenvalue of S = D^-1/2 W D^-1/2 beyond the trivial one and those of unit vectors (N, d).

    Up to `dense_up_to` points by a dense solve; above by Lanczos, until it is off by a tenth of the gap at most. The
    search starts anew, so that it also finds what is missing among those known: the second of two equal eigenvalues,
    say. W is (N, N) symmetric, `values` (d,) are the Ritz values of the vectors, descending.
    """
    n_points = affinities.shape[0]
    if len(values) + 1 >= n_points:
        return Following.one(LEAST_VALUE, 0.0)
    degrees = row_sums(affinities.data, affinities.indptr)
    scale = sp.diags_array(1 / np.sqrt(degrees))
    normalized = sp.csr_matrix(scale @ sp.csr_matrix(affinities, dtype=np.float64) @ scale)
    known = np.column_stack([unit_roots(degrees), vectors]).astype(np.float64)
    shifted = known * (np.append(1.0, values) - BELOW_ALL)
    if n_points > dense_up_to:
        return _by_lanczos(normalized, known, shifted, float(values[-1]))
    matrix = normalized.toarray()
    matrix -= shifted @ known.T
    largest = n_points - 1
    (value,) = scipy.linalg.eigvalsh(matrix, subset_by_index=[largest, largest], overwrite_a=True)
    return Following.one(float(value), n_points * float(np.finfo(np.float64).eps))


def _by_lanczos(normalized: sp.csr_matrix, known: np.ndarray, shifted: np.ndarray, last: float) -> Following:
    """Return the largest eigenvalue of S - moved known^T, resolved to a share of its distance to `last`."""
    operator = scipy.sparse.linalg.LinearOperator(
        normalized.shape, matvec=lambda vector: normalized @ vector - shifted @ (known.T @ vector), dtype=np.float64
    )
    vector, following = generator(0, "following eigenvalue").standard_normal(len(known)), UNKNOWN
    for tolerance in TOLERANCES:
        try:
            largest, vectors = scipy.sparse.linalg.eigsh(
                operator, 1, which="LA", tol=tolerance, v0=vector, maxiter=MOST_RESTARTS
            )
        except scipy.sparse.linalg.ArpackNoConvergence:
            break
        vector, value = vectors[:, 0], float(largest[0])
        residual = float(np.linalg.norm(operator @ vector - value * vector))
        following = Following(np.array([value]), np.array([residual]), vectors)
        if following.residuals[0] <= RESOLVED * abs(last - value):
            break
    return following
