"""Components of a kernel K = I + W, of points that are combinations of landmarks: their problem anew."""

from collections.abc import Iterator

import numpy as np

from scalemani.audit.bounds import Pairs, judge_pairs
from scalemani.audit.combinations import (
    check_scores,
    gram_of,
    off_by,
    times_kernel,
)
from scalemani.audit.findings import Finding, at_most, equal
from scalemani.audit.landmarks import REDUCED, read_triangle, times_weights
from scalemani.audit.pencils import SAME, Pencil, check_leading, check_solution
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredGroup

STAGE = "kernel_components"
NEAR_ZERO = 1e-14  # of the largest eigenvalue


def check_of_kernel(audit: Audit) -> Iterator[Finding]:
    """Check Z times vectors, their order, the landmarks' problem and certificates."""
    yield from check_scores(audit, STAGE, check_problem)


def check_problem(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check eigenvalues, scores and their certificates by one pass over W."""
    values, vectors, ritz_values, ritz, means = (
        group.read(name) for name in ("eigenvalues", "vectors", "ritz_values", "ritz_vectors", "ritz_means")
    )
    gram, count = gram_of(audit, len(vectors)), len(values)
    pencil = Pencil(centred_kernel(audit, gram), gram)
    yield at_most(STAGE, "eigenvalues", 0.0, off_by(ritz_values[:count], values), SAME, "those of unit scores")
    scores = ritz[:, :count] * np.sqrt(values)
    yield at_most(STAGE, "scores of landmarks", 0.0, off_by(scores, vectors), SAME, "unit scores at their lengths")
    significant = ritz_values > NEAR_ZERO**0.5 * ritz_values[0]  # the others are no longer of unit length, centred
    yield from check_solution(STAGE, pencil, ritz_values[significant], ritz[:, significant])
    yield check_leading(STAGE, pencil, ritz_values[:count])
    said, name, slack = group.certificates, "least_eigenvalue", SAME * float(ritz_values[0])
    yield equal(STAGE, name, said.get(name), pencil.least, slack, "of the landmarks' problem")
    unit = times_weights(audit, ritz)
    images = times_kernel(audit, unit)
    mean = images.mean(axis=0)
    scale = max(float(np.abs(ritz_values).max()) / np.sqrt(len(images)), 1e-300)
    off = float(np.abs(mean - means).max() / scale)
    yield at_most(STAGE, "means of the kernel", 0.0, off, SAME, "of K Z v over all points, relative")
    residuals = np.linalg.norm(images - mean - unit * ritz_values, axis=0)
    yield from judge_pairs(STAGE, said, Pairs(ritz_values, residuals, count, float(ritz_values[0])))


def centred_kernel(audit: Audit, gram: np.ndarray) -> np.ndarray:
    """Return Z^T J K J Z (L, L) by the reduced matrices and Z^T Z: rows of Z sum to one."""
    laplacian, mass = (read_triangle(audit.run.groups[REDUCED], name).toarray() for name in ("laplacian", "mass"))
    kernel, weights = mass - laplacian + gram, gram.sum(axis=1)
    centring = np.eye(len(gram)) - np.outer(weights, np.ones(len(gram))) / weights.sum()
    return np.asarray(centring @ kernel @ centring.T)
