"""Components of kernels, of points that are combinations of landmarks: their problem anew.

A kernel is K = I + W, or one between all points, a Gaussian or a function of the user's.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.spatial.distance import cdist

from scalemani.audit.bounds import Pairs, judge_pairs
from scalemani.audit.combinations import (
    all_weights,
    check_scores,
    gram_of,
    off_by,
    times_kernel,
)
from scalemani.audit.findings import Finding, at_most, equal, unchecked
from scalemani.audit.landmarks import LANDMARKS, REDUCED, read_triangle, times_weights
from scalemani.audit.pencils import SAME, Pencil, check_leading, check_solution
from scalemani.audit.rows import Audit, dense
from scalemani.audit.stored import StoredGroup
from scalemani.config.functions import load_function

STAGE, FUNCTION = "kernel_components", "function_components"
GAUSSIAN = "gaussian"
NEAR_ZERO = 1e-14  # of the largest eigenvalue
PANEL = 128  # rows of a kernel between all points
# Pairs of points of which a kernel is computed anew; a function is called for each of them.
MOST_PAIRS, MOST_CALLS = 4e8, 1e6


def check_of_kernel(audit: Audit) -> Iterator[Finding]:
    """Check Z times vectors, their order, the landmarks' problem and certificates."""
    yield from check_scores(audit, STAGE, check_problem)


def check_of_function(audit: Audit) -> Iterator[Finding]:
    """Check Z times vectors, their order, the landmarks' problem and certificates, of a kernel between all points."""
    yield from check_scores(audit, FUNCTION, check_function)


def check_problem(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check eigenvalues, scores and their certificates by one pass over W."""
    gram = gram_of(audit, len(group.read("vectors")))
    laplacian, mass = (read_triangle(audit.run.groups[REDUCED], name).toarray() for name in ("laplacian", "mass"))
    pencil = Pencil(centred(mass - laplacian + gram, gram), gram)
    unit = times_weights(audit, group.read("ritz_vectors"))
    yield from check_pairs(STAGE, group, pencil, unit, times_kernel(audit, unit))
    said, name = group.certificates, "least_eigenvalue"
    slack = SAME * float(group.read("ritz_values")[0])
    yield equal(STAGE, name, said.get(name), pencil.least, slack, "of the landmarks' problem")


def check_function(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check the kernel on the landmarks, and eigenvalues, scores and their certificates by the kernel of all pairs."""
    landmarks = np.asarray(audit.run.groups[LANDMARKS].read("points"), np.float64)
    name, said = str(audit.run.param(FUNCTION, "kernel", GAUSSIAN)), group.certificates
    sigma = audit.run.param(FUNCTION, "sigma")
    if name == GAUSSIAN and sigma is None:
        apart = cdist(landmarks, landmarks)[np.triu_indices(len(landmarks), 1)]
        sigma = float(np.median(apart[apart > 0]))
    if name == GAUSSIAN:
        yield equal(FUNCTION, "sigma", said.get("sigma"), sigma, SAME * sigma)
    kernel = kernel_between(name, sigma)
    spectrum = np.linalg.eigvalsh(kernel(landmarks, landmarks))
    share = float(spectrum[0] / spectrum[-1])
    yield equal(FUNCTION, "least_share", said.get("least_share"), share, SAME * abs(share) + 1e-12, "on the landmarks")
    n_points = audit.run.n_points
    if n_points**2 > (MOST_PAIRS if name == GAUSSIAN else MOST_CALLS) or audit.points is None:
        yield unchecked(FUNCTION, "the kernel between all points", f"it has {n_points} rows")
        return
    points = np.concatenate([dense(audit.points.rows(*rows)) for rows in audit.run.blocks]).astype(np.float64)
    gram, weights = gram_of(audit, len(landmarks)), all_weights(audit, len(landmarks))
    unit = weights @ group.read("ritz_vectors")
    images, products = np.empty_like(unit), np.zeros_like(gram)
    for first in range(0, n_points, PANEL):
        rows = slice(first, first + PANEL)
        values = kernel(points[rows], points)
        images[rows] = values @ unit
        products += weights[rows].T @ (values @ weights)
    yield from check_pairs(FUNCTION, group, Pencil(centred(products, gram), gram), unit, images)


def kernel_between(name: str, sigma: float | None) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the kernel (m, n) of rows (m, D) and rows (n, D), by SciPy."""
    if name != GAUSSIAN:
        function = load_function(name)
        return lambda some, others: cdist(some, others, function)
    assert sigma is not None
    return lambda some, others: np.exp(-cdist(some, others, "sqeuclidean") / (2 * sigma**2))


def check_pairs(
    stage: str, group: StoredGroup, pencil: Pencil, unit: np.ndarray, images: np.ndarray
) -> Iterator[Finding]:
    """Check eigenvalues and scores by the landmarks' problem, certificates by K u (N, m) of vectors u (N, m)."""
    values, vectors, ritz_values, ritz, means = (
        group.read(name) for name in ("eigenvalues", "vectors", "ritz_values", "ritz_vectors", "ritz_means")
    )
    count = len(values)
    yield at_most(stage, "eigenvalues", 0.0, off_by(ritz_values[:count], values), SAME, "those of unit scores")
    scores = ritz[:, :count] * np.sqrt(values)
    yield at_most(stage, "scores of landmarks", 0.0, off_by(scores, vectors), SAME, "unit scores at their lengths")
    significant = ritz_values > NEAR_ZERO**0.5 * ritz_values[0]  # the others are no longer of unit length, centred
    yield from check_solution(stage, pencil, ritz_values[significant], ritz[:, significant])
    yield check_leading(stage, pencil, ritz_values[:count])
    mean = images.mean(axis=0)
    scale = max(float(np.abs(ritz_values).max()) / np.sqrt(len(images)), 1e-300)
    off = float(np.abs(mean - means).max() / scale)
    yield at_most(stage, "means of the kernel", 0.0, off, SAME, "of K Z v over all points, relative")
    residuals = np.linalg.norm(images - mean - unit * ritz_values, axis=0)
    yield from judge_pairs(stage, group.certificates, Pairs(ritz_values, residuals, count, float(ritz_values[0])))


def centred(kernel: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return Z^T J K J Z (L, L) of Z^T K Z and Z^T Z: rows of Z sum to one."""
    weights = gram.sum(axis=1)
    centring = np.eye(len(gram)) - np.outer(weights, np.ones(len(gram))) / weights.sum()
    return np.asarray(centring @ kernel @ centring.T)
