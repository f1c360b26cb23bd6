"""Linear discriminants: the problem of the landmarks' span anew, and what certifies its directions.

They are S_b w = lambda S_t w of the points' scatter between classes and in all, in the span of the rows of Z^T Y.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.audit.bounds import ROUNDING
from scalemani.audit.combinations import (
    check_fitting,
    check_mean,
    off_by,
    read_weights,
)
from scalemani.audit.findings import Finding, at_most, equal, none_wrong
from scalemani.audit.landmarks import LANDMARKS
from scalemani.audit.pencils import SAME, Pencil, check_leading, solution_missed
from scalemani.audit.rows import Audit, Points, dense
from scalemani.audit.stored import StoredGroup

STAGE, CLASSES = "discriminants", "classes"
RANK = (1e-9, 1e-11)  # of the largest singular value of the moments: directions of more span, of less none is looked at
NO_SCATTER = 1e-13  # of all: less off the span is rounding


def check_discriminants(audit: Audit) -> Iterator[Finding]:
    """Check the projection, shares, the landmarks' problem and certificates."""
    yield check_projection(audit)
    yield check_shares(audit, STAGE)
    yield from check_fitting(audit, STAGE, audit.run.groups[LANDMARKS].array("points").shape[0], check_problem)


def check_shares(audit: Audit, stage: str) -> Finding:
    """Compare certified shares of discriminants with the eigenvalues."""
    group = audit.run.groups[stage]
    values, said = group.read("eigenvalues"), group.certificates.get("between_shares")
    same = isinstance(said, list) and len(said) == len(values) and np.allclose(said, values, 0, 1e-12)
    return none_wrong(stage, "between_shares", int(not same), "those of the eigenvalues")


def class_members(codes: np.ndarray, n_classes: int) -> sp.csr_matrix:
    """Return ones (C, n), sparse, where a point is of a class, by the class `codes` (n,) of points."""
    return sp.csr_matrix((np.ones(len(codes)), (codes, np.arange(len(codes)))), (n_classes, len(codes)))


def check_projection(audit: Audit) -> Finding:
    """Compare discriminants of the rows drawn with (points - mean) @ axes."""
    group = audit.run.groups[STAGE]
    points = Points(audit.run, audit.run.groups["points"], "").gather(audit.sample)
    axes = group.read("axes")
    projected, stored = (points - group.read("mean")) @ axes, audit.rows_of(group, "embedding", audit.sample)
    off = np.abs(projected - stored) > 1e-6 * np.abs(projected).max(axis=0)
    return none_wrong(STAGE, "embedding is (points - mean) @ axes", int(off.any(axis=1).sum()), "rows drawn")


class Scatter(NamedTuple):
    """Sums over points less a mean, Y, with directions w and an orthonormal span.

    `moments` (L, D) Z^T Y; `sums` (C, D) of classes; `total` their squares; `within_span` (r, r), S_t in the span;
    `images` (D, d) S_t w.
    """

    moments: np.ndarray
    sums: np.ndarray
    total: np.ndarray
    within_span: np.ndarray
    images: np.ndarray


def scatter_of(audit: Audit, mean: np.ndarray, span: np.ndarray, axes: np.ndarray, n_classes: int) -> Scatter:
    """Return the sums over all points: one pass over them."""
    n_landmarks, points = audit.run.groups[LANDMARKS].array("points").shape[0], audit.points
    assert points is not None

    def panel(rows: tuple[int, int]) -> Scatter:
        centred, z = dense(points.rows(*rows)) - mean, read_weights(audit, *rows, n_landmarks)
        members = class_members(audit.run.groups[CLASSES].read("codes", *rows), n_classes)
        along, total = centred @ span, np.array(np.einsum("ij,ij->", centred, centred))
        return Scatter(z.T @ centred, members @ centred, total, along.T @ along, centred.T @ (centred @ axes))

    return Scatter(*audit.summed(panel, 8 * (audit.run.n_features + span.shape[1])))


def check_problem(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check shares, directions and their certificates by one pass over the points."""
    shares, mean, axes, span = (group.read(name) for name in ("eigenvalues", "mean", "axes", "span"))
    counts = audit.run.groups[CLASSES].read("counts").astype(np.float64)
    scatter = scatter_of(audit, mean, span, axes, len(counts))
    yield check_mean(STAGE, scatter.sums.sum(axis=0), float(scatter.total), mean, audit.run.n_points)
    yield from check_span(scatter.moments, span)
    means = scatter.sums / counts[:, np.newaxis]
    inside = means @ span
    pencil = Pencil(inside.T @ (counts[:, np.newaxis] * inside), scatter.within_span)
    directions = span.T @ axes
    yield at_most(STAGE, "directions lie in the span", 0.0, off_by(span @ directions, axes), SAME, "off it, relative")
    lengths = np.sqrt(np.einsum("ij,ij->j", directions, scatter.within_span @ directions))
    missed = solution_missed(pencil, shares, directions / lengths)
    yield at_most(STAGE, "directions solve their problem", 0.0, missed, SAME, "|S_b w - lambda S_t w| by S_t^-1")
    yield check_leading(STAGE, pencil, shares)
    within = lengths**2 * np.maximum(1 - shares, 1e-10) / (counts.sum() - len(counts))
    off = float(np.abs(within - 1).max())
    yield at_most(STAGE, "variances within classes are one", 0.0, off, SAME + 1e-12 / (1e-10 + 1 - float(shares.max())))
    yield from judge_linear(group, scatter, means, counts, pencil)


def check_span(moments: np.ndarray, span: np.ndarray) -> Iterator[Finding]:
    """Check that axes span the rows of the moments, and nothing else."""
    left = moments - (moments @ span) @ span.T
    off = float(np.linalg.norm(left)) / max(float(np.linalg.norm(moments)), 1e-300)
    yield at_most(STAGE, "the span holds the landmarks' moments", 0.0, off, SAME, "Z^T Y off it, relative")
    singular = scipy.linalg.svdvals(moments)
    least, most = (int((singular > share * singular[0]).sum()) for share in RANK)
    wrong = max(0, span.shape[1] - most, least - span.shape[1])
    yield none_wrong(STAGE, "the span has the dimensions of the moments", wrong, "too many, or too few")


def judge_linear(
    group: StoredGroup, scatter: Scatter, means: np.ndarray, counts: np.ndarray, pencil: Pencil
) -> Iterator[Finding]:
    """Compare the certificates with what the scatter of all features says."""
    shares, axes, span = (group.read(name) for name in ("eigenvalues", "axes", "span"))
    said, total = group.certificates, float(scatter.total)
    outside = max(0.0, 1.0 - float(np.trace(scatter.within_span)) / total) if total > 0 else 0.0
    yield equal(STAGE, "outside_share", said.get("outside_share"), outside, SAME * outside + ROUNDING)
    missed = means.T @ (counts[:, np.newaxis] * (means @ axes)) - scatter.images * shares
    lengths = np.linalg.norm(axes, axis=0)
    between_norm = float(np.linalg.norm(np.sqrt(counts)[:, np.newaxis] * means, 2)) ** 2
    total_norm = max(between_norm, float((np.linalg.norm(scatter.images, axis=0) / lengths).max()))
    residual = float((np.linalg.norm(missed, axis=0) / (between_norm + shares * total_norm) / lengths).max())
    yield equal(STAGE, "residual", said.get("residual"), residual, SAME * residual + ROUNDING, "over all points")
    bound = np.minimum(1.0 - shares, np.sqrt(shares * (1.0 - shares)))
    if span.shape[0] == span.shape[1] or outside <= NO_SCATTER:
        total_lengths = np.sqrt(np.einsum("ij,ij->j", axes, scatter.images))
        bound = np.linalg.norm(pencil.span.T @ (span.T @ missed), axis=0) / total_lengths
    claimed, slack = said.get("share_error_bound"), SAME * bound.max() + 1e-9
    yield equal(STAGE, "share_error_bound", claimed, float(bound.max()), slack, "by residuals over all points")
    yield at_most(STAGE, "errors", 0.0, errors_off(group), 0.0, "off the certificates")


def errors_off(group: StoredGroup) -> float:
    """Return the largest difference of the stored `errors` from the certificates; infinite where one is missing."""
    names = ("residual", "share_error_bound", "outside_share")
    said = np.array([float(group.certificates.get(name, np.nan)) for name in names])
    return float(np.nan_to_num(np.abs(group.read("errors") - said), nan=np.inf).max())
