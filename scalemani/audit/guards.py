"""What follows the eigenvectors of a run, and the bounds of angles and eigenvalues that follow from it.

A run stores residuals of its vectors, and Ritz values with residuals of those beyond: its guards. These have to be
true, which their vectors show by the one pass over W, or for few points a dense solve; then bounds are arithmetic.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.audit.bounds import Pairs, between, bounds_of
from scalemani.audit.findings import Finding, at_most, equal, is_number, none_wrong, unchecked, verdict_of
from scalemani.audit.graph import Pass, final_graph, read_block
from scalemani.audit.rows import Audit

STAGE, OF_LANDMARKS = "embedding", "landmark_embedding"
BOUNDS = (
    *("eigengap", "eigengap_error_bound", "angle_bound", "eigenvalue_error_bound"),
    *("resolved_components", "resolved_angle_bound"),
)
BY_PASSES = ("refine", "lll+refine")
FLOAT32_REACHES = 4e-6  # residuals below are those of vectors in float64
# Of inner products of unit vectors, as they come out of runs of many points: a hundred times the least, and more where
# eigenvectors are those of a solver that stops.
FLOAT32_ROUNDING, FLOAT64_ROUNDING = 1e-5, 1e-9
OF_STORED = 2e-7  # of a residual, by the rounding of a unit vector that is stored in float32
SHARE = 0.01  # by which residuals are off that a run computes in float32
PRODUCTS_ROUNDED = 4  # roundings of a product, that a run allows for in inner products of its vectors
DENSE_POINTS = 2500  # up to which a run knows what follows by a dense solve, and so does the audit
BEYOND = 3.0  # by which eigenvalues of known vectors are moved below all others
EXACT = 1e-12


class RitzVectors(NamedTuple):
    """Unit vectors u = D^1/2 v (n, d) of the points of the largest piece, and their products with D^-1/2 W D^-1/2."""

    rows: np.ndarray
    unit: np.ndarray
    images: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """Their Rayleigh quotients (d,)."""
        return np.asarray(np.einsum("nd,nd->d", self.unit, self.images))

    @property
    def residuals(self) -> np.ndarray:
        """|S u - theta u| (d,)."""
        return np.asarray(np.linalg.norm(self.images - self.unit * self.values, axis=0))


def float32_vectors(audit: Audit) -> bool:
    """Return whether the vectors of a run were float32 while they were computed."""
    by_passes = audit.run.param(STAGE, "solver", "refine") in (*BY_PASSES, "auto")
    return by_passes and float(audit.run.param(STAGE, "residual", 1e-4)) >= FLOAT32_REACHES


def rounding(audit: Audit) -> float:
    """Return the rounding of inner products of the vectors of a run, as they were computed."""
    return FLOAT32_ROUNDING if float32_vectors(audit) else FLOAT64_ROUNDING


def by_landmarks(audit: Audit) -> bool:
    """Return whether the vectors are those of a problem of the landmarks."""
    return audit.run.param(STAGE, "solver") not in (*BY_PASSES, "auto", "exact")


def read_guards(audit: Audit, degrees: np.ndarray) -> np.ndarray:
    """Return the vectors v (N, g) of the guards in work order, whose u = D^1/2 v are stored; (N, 0) without any."""
    group = audit.run.groups[STAGE]
    if not group.holds("guards"):
        return np.empty((audit.run.n_points, 0))
    return np.asarray(group.read("guards").astype(np.float64) / np.sqrt(degrees)[:, np.newaxis])


def ritz_vectors(graph_pass: Pass, vectors: np.ndarray, products: np.ndarray, rows: np.ndarray) -> RitzVectors:
    """Return vectors v (N, m) with W v at unit length, of the points of some rows (n,)."""
    roots = np.sqrt(graph_pass.degrees[rows])[:, np.newaxis]
    unit = vectors[rows] * roots
    lengths = np.linalg.norm(unit, axis=0)
    return RitzVectors(rows, unit / lengths, products[rows] / roots / lengths)


def check_bounds(audit: Audit, graph_pass: Pass, leading: RitzVectors, guards: np.ndarray) -> Iterator[Finding]:
    """Check residuals and guards, and the bounds that follow; `guards` (N, g) were the last columns of the pass."""
    group = audit.run.groups[STAGE]
    said, n_leading = group.certificates, leading.unit.shape[1]
    if not group.holds("residuals"):
        why = "the run does not hold what follows its vectors: it was made by an older version"
        for name in BOUNDS:
            yield unchecked(STAGE, name, why, said.get(name))
        return
    residuals, values = (group.read(name)[:n_leading] for name in ("residuals", "eigenvalues"))
    following = np.stack([group.read(name) for name in ("guard_values", "guard_residuals")])
    eps = rounding(audit)
    off = float((leading.residuals - (1 + SHARE) * residuals).max())
    yield at_most(STAGE, "residuals of all vectors", 0.0, off, eps, "|S u - theta u| less those stored")
    if guards.shape[1]:
        beyond = ritz_vectors(graph_pass, guards, graph_pass.products[:, -guards.shape[1] :], leading.rows)
        yield from check_guards(leading, beyond, following, eps)
    else:
        yield check_following(audit, graph_pass, leading, residuals, following)
    yield from judge_bounds(audit, said, 1.0 - values, residuals, following)


def check_guards(leading: RitzVectors, beyond: RitzVectors, following: np.ndarray, eps: float) -> Iterator[Finding]:
    """Check values and residuals (2, g) of guards by their vectors, that come of one Rayleigh-Ritz step."""
    wide = max(eps, FLOAT32_ROUNDING)
    if following.shape[1] != beyond.unit.shape[1]:
        yield none_wrong(STAGE, "guards have a value each", abs(following.shape[1] - beyond.unit.shape[1]))
        return
    gram = beyond.unit.T @ beyond.unit
    apart = max(np.abs(beyond.unit.T @ leading.unit).max(), np.abs(gram - np.diag(np.diag(gram))).max())
    yield at_most(STAGE, "guards are orthogonal", 0.0, float(apart), wide, "to each other and to the run's vectors")
    ritz = beyond.unit.T @ beyond.images
    joined = max(np.abs(beyond.unit.T @ leading.images).max(), np.abs(ritz - np.diag(np.diag(ritz))).max())
    yield at_most(STAGE, "guards are those of Rayleigh-Ritz", 0.0, float(joined), wide, "y W u of unit vectors")
    off = float((np.abs(beyond.values - following[0]) - OF_STORED * following[1]).max())
    yield at_most(STAGE, "values of guards", 0.0, off, eps, "off the Rayleigh quotients of their vectors")
    off = float((beyond.residuals - (1 + SHARE) * following[1]).max())
    yield at_most(STAGE, "residuals of guards", 0.0, off, eps + OF_STORED, "|S y - theta y| less those stored")


def check_following(
    audit: Audit, graph_pass: Pass, leading: RitzVectors, residuals: np.ndarray, following: np.ndarray
) -> Finding:
    """Check the one value that follows, with its residual (2, 1), of a run without its vector."""
    name, value, residual = "the value that follows", float(following[0, 0]), float(following[1, 0])
    solved = audit.run.groups.get(OF_LANDMARKS)
    if by_landmarks(audit) and solved is not None and len(leading.rows) == audit.run.n_points:
        eigenvalue = solved.certificates.get("following_eigenvalue", 0.0)
        expected = 1.0 - eigenvalue if is_number(eigenvalue) else 1.0
        right = abs(expected - value) <= EXACT and residual >= float(residuals.max())
        return Finding(STAGE, name, value, expected, None, verdict_of(right), "1 less that of the landmarks' problem")
    if value >= 1.0:
        return Finding(STAGE, name, value, 1.0, None, "holds", "none is known: it is taken to be as large as can be")
    if len(leading.rows) > DENSE_POINTS:
        return none_wrong(STAGE, "vectors that follow are stored", 1, "nothing shows the value that is claimed")
    largest, error = dense_following(audit, graph_pass, leading), residual + rounding(audit)
    holds = abs(largest - value) <= error
    return Finding(STAGE, name, value, largest, error, verdict_of(holds), "by a dense solve without the run's vectors")


def dense_following(audit: Audit, graph_pass: Pass, leading: RitzVectors) -> float:
    """Return the largest eigenvalue of D^-1/2 W D^-1/2 of few points beyond those of the run's vectors."""
    n_points = len(leading.rows)
    if n_points <= leading.unit.shape[1] + 1:
        return -1.0
    blocks = [read_block(audit, final_graph(audit), block) for block in range(len(audit.run.blocks))]
    roots = np.sqrt(graph_pass.degrees[leading.rows])
    matrix = sp.vstack(blocks, format="csr")[leading.rows][:, leading.rows].toarray() / np.outer(roots, roots)
    known = np.column_stack([roots / np.linalg.norm(roots), leading.unit])
    matrix -= (known * np.append(BEYOND, BEYOND + leading.values - 1.0)) @ known.T
    return float(scipy.linalg.eigvalsh(matrix, subset_by_index=[n_points - 1, n_points - 1])[0])


def judge_bounds(
    audit: Audit, said: dict[str, Any], values: np.ndarray, residuals: np.ndarray, following: np.ndarray
) -> Iterator[Finding]:
    """Compare bounds with those by the Ritz values (d,) and residuals of the run and those that follow, (2, g)."""
    rounded = PRODUCTS_ROUNDED * float(np.finfo(np.float32 if float32_vectors(audit) else np.float64).eps)
    pairs = Pairs(np.append(values, following[0]), np.append(residuals, following[1]), len(values), 1.0, 1.0, rounded)
    allowed, gap = bounds_of(pairs), float(values[-1] - following[0, 0])
    yield equal(STAGE, "eigengap", said.get("eigengap"), gap, EXACT, "to the value that follows")
    error = allowed.error + float(following[1, 0]) + rounded
    error = max(abs(gap), error) if by_landmarks(audit) else error
    name = "eigengap_error_bound"
    yield equal(STAGE, name, said.get(name), error, EXACT + 1e-9 * error, "by residuals")
    yield between(STAGE, "angle_bound", said, allowed.angle, allowed.angle)
    yield between(STAGE, "eigenvalue_error_bound", said, allowed.error, allowed.error)
    yield between(STAGE, "resolved_components", said, allowed.resolved, allowed.resolved)
    yield between(STAGE, "resolved_angle_bound", said, allowed.resolved_angle, allowed.resolved_angle)
