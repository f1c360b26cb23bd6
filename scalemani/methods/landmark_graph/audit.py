"""Eigenmaps of the landmarks' graph, the rows made of them, and their residual for the kernel between all points."""

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from scalemani.audit.findings import (
    STANDARD_ERRORS,
    Finding,
    at_most,
    equal,
    is_number,
    measured,
    none_wrong,
    unchecked,
    verdict_of,
)
from scalemani.audit.landmarks import (
    FAR,
    LANDMARKS,
    QUERIES_AT_ONCE,
    SPACINGS,
    WEIGHTS,
    least_squares,
    local_problems,
    ratios_around,
    squared_distances,
)
from scalemani.audit.neighbors import MOST_OF_ERROR
from scalemani.audit.rows import Audit, dense
from scalemani.audit.stored import StoredGroup

GRAPH, JOINED, NEAREST = "landmark_graph", 10, 5  # defaults of how many landmarks one is joined to, a point made of
SAME, NEAR_ZERO = 1e-6, 1e-13
EQUAL = 1e-11  # of the largest squared distance: rounding, by which distances differ that are equal
SAMPLED = 512  # rows, at most, whose kernel with all points gives the residual
LANDMARKS_A_SAMPLE, FEWEST_SAMPLED, MOST_SAMPLED = 16, 32, 128  # rows that a run measures its residual on


def check_landmark_graph(audit: Audit) -> Iterator[Finding]:
    """Check the eigenmaps of the landmarks, and the rows and the residual of what is made of them."""
    group, embedding = audit.run.groups[GRAPH], audit.run.groups["embedding"]
    landmarks = audit.run.groups[LANDMARKS].read("points").astype(np.float64)
    yield from check_eigenmaps(audit, group, landmarks)
    joined = int(audit.run.param(GRAPH, "n_neighbors", min(JOINED, len(landmarks) - 1)))
    made, reach, ratios = made_of_landmarks(audit, group, landmarks, joined)
    stored = audit.rows_of(embedding, "embedding", audit.order[audit.sample])
    off, solver = np.abs(made - stored) > 1e-4 * np.abs(stored).max(axis=0), audit.run.param("embedding", "solver")
    claim = f"{len(made)} rows, made anew of the landmarks"
    yield none_wrong("embedding", claim, int(off.any(axis=1).sum()), f"by {solver}")
    stored = audit.rows_of(embedding, "reach", audit.order[audit.sample])
    wrong = int((np.abs(stored - reach) > SAME * reach).sum())
    yield none_wrong("embedding", f"reach of {len(reach)} rows", wrong, f"how far the {joined + 1}th landmark is")
    far, error = audit.mean((ratios > FAR).astype(np.float64))
    n_points, claimed = audit.run.n_points, embedding.certificates.get("far_points")
    least = audit.sample_error / len(ratios)  # a share that none of the rows drawn has is no more than few of them
    if audit.run.groups[LANDMARKS].holds(SPACINGS):
        yield measured("embedding", "far_points", claimed, far * n_points, max(error, least) * n_points)
    else:
        yield unchecked("embedding", "far_points", "the spacings of the landmarks are not stored", claimed)
    yield judge_residual(audit, group.read("eigenvalues"), float(group.read("sigma")), len(landmarks))
    claimed = embedding.certificates.get("residual_error")
    yield unchecked("embedding", "residual_error", "the sample of the run is not stored", claimed)


def check_eigenmaps(audit: Audit, group: StoredGroup, landmarks: np.ndarray) -> Iterator[Finding]:
    """Check that eigenvalues are the smallest of the Laplacian of the graph of the landmarks, but for zero."""
    neighbors, values, sigma = group.read("neighbors"), group.read("eigenvalues"), float(group.read("sigma"))
    yield equal(GRAPH, "sigma", group.certificates.get("sigma"), sigma, 1e-12 * sigma)
    near_zero = group.certificates.get("near_zero_eigenvalues")
    yield equal(GRAPH, "near_zero_eigenvalues", near_zero, 1 + int((values < NEAR_ZERO).sum()))
    n_landmarks = len(landmarks)
    if 6 * 8 * n_landmarks**2 > audit.memory:
        yield unchecked(GRAPH, "eigenvalues", "matrices of the landmarks do not fit the memory")
        return
    rows, columns = np.repeat(np.arange(n_landmarks), neighbors.shape[1]), neighbors.ravel()
    squares = np.square(landmarks[rows] - landmarks[columns]).sum(axis=1)
    kernel = np.eye(n_landmarks)
    kernel[rows, columns] = kernel[columns, rows] = np.exp(-0.5 * squares / sigma**2)
    roots = np.sqrt(kernel.sum(axis=1))
    ends = [max(0, n_landmarks - 1 - len(values)), n_landmarks - 2]
    smallest = 1 - scipy.linalg.eigvalsh(kernel / np.outer(roots, roots), subset_by_index=ends)[::-1]
    off = float(np.abs(smallest - values[: len(smallest)]).max())
    yield at_most(GRAPH, "eigenvalues", 0.0, off, 1e-9, "off the smallest of the Laplacian, but for that of constants")


def made_of_landmarks(
    audit: Audit, group: StoredGroup, landmarks: np.ndarray, joined: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows drawn (m, d), their reach (m,), and how far they lie from landmarks, by spacings (m,)."""
    values, vectors, sigma = group.read("eigenvalues"), group.read("vectors"), float(group.read("sigma"))
    stored, by_kernel = audit.run.groups[LANDMARKS], audit.run.param("embedding", "solver") == "nystrom"
    spacings = stored.read(SPACINGS) if stored.holds(SPACINGS) else np.full(len(landmarks), np.inf)
    width = joined + 1 if by_kernel else int(audit.run.param(WEIGHTS, "n_neighbors", NEAREST))
    gains = np.where(values < 1 - 1e-15, 1 / np.maximum(1 - values, 1e-15), 0.0) if by_kernel else np.ones(len(values))
    made, reach, ratios = np.empty((len(audit.sample), len(values))), *np.empty((2, len(audit.sample)))
    for first in range(0, len(made), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        points = audit.sampled_points[some]
        squares = squared_distances(points, landmarks)
        # Landmarks that are equally near come by their numbers.
        rounded = np.round(squares / (EQUAL * max(float(squares.max()), 1e-300)))
        order = np.argsort(rounded, axis=1, kind="stable")[:, : joined + 1]
        nearest = order[:, : min(width, len(landmarks))]
        near = np.take_along_axis(squares, nearest, 1)
        weights = np.exp(-0.5 * (near - near[:, :1]) / sigma**2)
        if not by_kernel:
            weights = least_squares(*local_problems(audit, points, landmarks[nearest]))[0]
        weights /= weights.sum(axis=1, keepdims=True)
        made[some] = np.einsum("mk,mkd->md", weights, vectors[nearest]) * gains
        reach[some] = np.sqrt(np.take_along_axis(squares, order[:, joined : joined + 1], 1)[:, 0])
        ratios[some] = ratios_around(squares, np.broadcast_to(spacings, squares.shape))
    return made, reach, ratios


def judge_residual(audit: Audit, values: np.ndarray, sigma: float, n_landmarks: int) -> Finding:
    """Compare the residual with that of other sampled points: one pass over all.

    A point is joined to all that either one reaches, with exp(-d^2 / (2 sigma^2)).
    """
    name, group, n_points = "residual", audit.run.groups["embedding"], audit.run.n_points
    said, rows = group.certificates, audit.sample[:: -(-len(audit.sample) // SAMPLED)]
    vectors, reach = group.read("embedding")[audit.order], group.read("reach")[audit.order]
    queries, points = audit.sampled_points[:: -(-len(audit.sample) // SAMPLED)], audit.points
    assert points is not None

    def panel(some: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        squares = squared_distances(queries, dense(points.rows(*some)))
        near = squares <= np.maximum(reach[rows, np.newaxis], reach[slice(*some)]) ** 2 * (1 + 1e-9)
        kernel = np.where(near, np.exp(-0.5 * squares / sigma**2), 0.0)
        return kernel @ vectors[slice(*some)], kernel.sum(axis=1)

    images, degrees = audit.summed(panel, 8 * (2 * audit.run.n_features + 4 * len(rows)))
    missed = degrees[:, np.newaxis] * np.square(images / degrees[:, np.newaxis] - (1 - values) * vectors[rows])
    lengths = degrees[:, np.newaxis] * np.square(vectors[rows])
    extended = lengths.any(axis=0)
    if not extended.any():
        return unchecked("embedding", name, "no column is extended to points", said.get(name))
    shares = missed[:, extended].sum(axis=0) / lengths[:, extended].sum(axis=0)
    worst = int(np.argmax(shares))
    away = missed[:, extended][:, worst] - shares[worst] * lengths[:, extended][:, worst]
    per_row = float(away.std() / lengths[:, extended][:, worst].mean() * 0.5 / np.sqrt(max(shares[worst], 1e-300)))
    of_run = min(max(n_landmarks // LANDMARKS_A_SAMPLE, FEWEST_SAMPLED), MOST_SAMPLED, n_points)
    audit_error, run_error = (per_row * np.sqrt(max(0.0, 1 / count - 1 / n_points)) for count in (len(rows), of_run))
    claimed = said.get("residual_error")
    believed = float(np.clip(claimed, run_error, MOST_OF_ERROR * run_error)) if is_number(claimed) else run_error
    residual, error, value = float(np.sqrt(shares[worst])), float(np.hypot(audit_error, believed)), said.get(name)
    if not is_number(value):
        return unchecked("embedding", name, "the record does not say it", value)
    # By ratios: residuals of small samples err in proportion to themselves, and more often far up than down.
    least, most = (
        max(residual, 1e-12) * np.exp(sign * STANDARD_ERRORS * error / max(residual, 1e-12)) for sign in (-1, 1)
    )
    holds = value <= max(1e-12, most) and (value >= least or residual <= 1e-12)
    return Finding("embedding", name, value, residual, error, verdict_of(bool(holds)), f"by {len(rows)} rows")
