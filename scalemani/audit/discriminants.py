"""Discriminants of classes: the problem of the landmarks' span anew, and what certifies its directions.

Linear ones are S_b w = lambda S_t w of the points' scatter between classes and in all, in the span of the rows of
Z^T Y. Those of a kernel K = I + W are S_b a = lambda S_t a with S_b = J K J P J K J, S_t = (J K J)^2 + rho I and P the
projection on classes, for a = Z p.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.audit.bounds import ROUNDING
from scalemani.audit.components import (
    all_weights,
    check_mean,
    fits,
    gram_of,
    off_by,
    parts_of,
    read_weights,
    times_kernel,
)
from scalemani.audit.findings import Finding, at_most, equal, none_wrong, unchecked
from scalemani.audit.graph import final_graph, read_block
from scalemani.audit.landmarks import LANDMARKS, times_weights
from scalemani.audit.pencils import SAME, Pencil, check_leading, solution_missed
from scalemani.audit.rows import Audit, Points, dense
from scalemani.audit.stored import StoredGroup

LINEAR, OF_KERNEL = "discriminants", "kernel_discriminants"
CLASSES = "classes"
RANK = (1e-9, 1e-11)  # of the largest singular value of the moments: directions of more span, of less none is looked at
NO_SCATTER = 1e-13  # of all: less off the span is rounding
RIDGE = 1e-3  # by default


def check_discriminants(audit: Audit) -> Iterator[Finding]:
    """Check LDA and kernel LDA of a run: projections, shares, the landmarks' problem, certificates."""
    for stage, projection, check in (
        (LINEAR, check_projection, check_linear),
        (OF_KERNEL, check_kernel_projection, check_of_kernel),
    ):
        if not audit.run.has(stage):
            continue
        group = audit.run.groups[stage]
        yield projection(audit)
        values, said = group.read("eigenvalues"), group.certificates.get("between_shares")
        same = isinstance(said, list) and len(said) == len(values) and np.allclose(said, values, 0, 1e-12)
        yield none_wrong(stage, "between_shares", int(not same), "those of the eigenvalues")
        if not fits(audit, audit.run.groups[LANDMARKS].array("points").shape[0]):
            yield unchecked(stage, "the landmarks' problem", "its matrices and Z do not fit the memory")
        else:
            yield from check(audit, group)


def class_members(codes: np.ndarray, n_classes: int) -> sp.csr_matrix:
    """Return ones (C, n), sparse, where a point is of a class, by the class `codes` (n,) of points."""
    return sp.csr_matrix((np.ones(len(codes)), (codes, np.arange(len(codes)))), (n_classes, len(codes)))


# Linear discriminants


def check_projection(audit: Audit) -> Finding:
    """Compare discriminants of the rows drawn with (points - mean) @ axes."""
    group = audit.run.groups[LINEAR]
    points = Points(audit.run, audit.run.groups["points"], "").gather(audit.sample)
    axes = group.read("axes")
    projected, stored = (points - group.read("mean")) @ axes, audit.rows_of(group, "embedding", audit.sample)
    off = np.abs(projected - stored) > 1e-6 * np.abs(projected).max(axis=0)
    return none_wrong(LINEAR, "embedding is (points - mean) @ axes", int(off.any(axis=1).sum()), "rows drawn")


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


def check_linear(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check shares, directions and their certificates by one pass over the points."""
    shares, mean, axes, span = (group.read(name) for name in ("eigenvalues", "mean", "axes", "span"))
    counts = audit.run.groups[CLASSES].read("counts").astype(np.float64)
    scatter = scatter_of(audit, mean, span, axes, len(counts))
    yield check_mean(LINEAR, scatter.sums.sum(axis=0), float(scatter.total), mean, audit.run.n_points)
    yield from check_span(scatter.moments, span)
    means = scatter.sums / counts[:, np.newaxis]
    inside = means @ span
    pencil = Pencil(inside.T @ (counts[:, np.newaxis] * inside), scatter.within_span)
    directions = span.T @ axes
    yield at_most(LINEAR, "directions lie in the span", 0.0, off_by(span @ directions, axes), SAME, "off it, relative")
    lengths = np.sqrt(np.einsum("ij,ij->j", directions, scatter.within_span @ directions))
    missed = solution_missed(pencil, shares, directions / lengths)
    yield at_most(LINEAR, "directions solve their problem", 0.0, missed, SAME, "|S_b w - lambda S_t w| by S_t^-1")
    yield check_leading(LINEAR, pencil, shares)
    within = lengths**2 * np.maximum(1 - shares, 1e-10) / (counts.sum() - len(counts))
    off = float(np.abs(within - 1).max())
    yield at_most(
        LINEAR, "variances within classes are one", 0.0, off, SAME + 1e-12 / (1e-10 + 1 - float(shares.max()))
    )
    yield from judge_linear(group, scatter, means, counts, pencil)


def check_span(moments: np.ndarray, span: np.ndarray) -> Iterator[Finding]:
    """Check that axes span the rows of the moments, and nothing else."""
    left = moments - (moments @ span) @ span.T
    off = float(np.linalg.norm(left)) / max(float(np.linalg.norm(moments)), 1e-300)
    yield at_most(LINEAR, "the span holds the landmarks' moments", 0.0, off, SAME, "Z^T Y off it, relative")
    singular = scipy.linalg.svdvals(moments)
    least, most = (int((singular > share * singular[0]).sum()) for share in RANK)
    wrong = max(0, span.shape[1] - most, least - span.shape[1])
    yield none_wrong(LINEAR, "the span has the dimensions of the moments", wrong, "too many, or too few")


def judge_linear(
    group: StoredGroup, scatter: Scatter, means: np.ndarray, counts: np.ndarray, pencil: Pencil
) -> Iterator[Finding]:
    """Compare the certificates with what the scatter of all features says."""
    shares, axes, span = (group.read(name) for name in ("eigenvalues", "axes", "span"))
    said, total = group.certificates, float(scatter.total)
    outside = max(0.0, 1.0 - float(np.trace(scatter.within_span)) / total) if total > 0 else 0.0
    yield equal(LINEAR, "outside_share", said.get("outside_share"), outside, SAME * outside + ROUNDING)
    missed = means.T @ (counts[:, np.newaxis] * (means @ axes)) - scatter.images * shares
    lengths = np.linalg.norm(axes, axis=0)
    between_norm = float(np.linalg.norm(np.sqrt(counts)[:, np.newaxis] * means, 2)) ** 2
    total_norm = max(between_norm, float((np.linalg.norm(scatter.images, axis=0) / lengths).max()))
    residual = float((np.linalg.norm(missed, axis=0) / (between_norm + shares * total_norm) / lengths).max())
    yield equal(LINEAR, "residual", said.get("residual"), residual, SAME * residual + ROUNDING, "over all points")
    bound = np.minimum(1.0 - shares, np.sqrt(shares * (1.0 - shares)))
    if span.shape[0] == span.shape[1] or outside <= NO_SCATTER:
        total_lengths = np.sqrt(np.einsum("ij,ij->j", axes, scatter.images))
        bound = np.linalg.norm(pencil.span.T @ (span.T @ missed), axis=0) / total_lengths
    claimed, slack = said.get("share_error_bound"), SAME * bound.max() + 1e-9
    yield equal(LINEAR, "share_error_bound", claimed, float(bound.max()), slack, "by residuals over all points")
    yield at_most(LINEAR, "errors", 0.0, errors_off(group), 0.0, "off the certificates")


def errors_off(group: StoredGroup) -> float:
    """Return the largest difference of the stored `errors` from the certificates; infinite where one is missing."""
    names = ("residual", "share_error_bound", "outside_share")
    said = np.array([float(group.certificates.get(name, np.nan)) for name in names])
    return float(np.nan_to_num(np.abs(group.read("errors") - said), nan=np.inf).max())


# Discriminants of a kernel


def check_kernel_projection(audit: Audit) -> Finding:
    """Compare kernel discriminants with [K Z, K 1] times directions less their mean."""
    group = audit.run.groups[OF_KERNEL]
    directions = group.read("directions")
    along, constant = times_weights(audit, directions[:-1]), np.ones((audit.run.n_points, 1))
    images = times_kernel(audit, np.hstack([along, constant]))
    projected = images[:, :-1] + images[:, -1:] * directions[-1] - group.read("mean")
    off = np.abs(projected - group.read("embedding")[audit.order]) > 1e-6 * np.abs(projected).max(axis=0)
    return none_wrong(OF_KERNEL, "embedding is [K Z, K 1] @ directions - mean", int(off.any(axis=1).sum()), "rows")


class KernelSums(NamedTuple):
    """Sums over rows R = [K Z, K 1] (N, L + 1): R^T R, and those of each class (C, L + 1).

    `images` (N, d) are W times the vectors passed.
    """

    products: np.ndarray
    sums: np.ndarray
    images: np.ndarray


def kernel_sums(audit: Audit, codes: np.ndarray, n_classes: int, vectors: np.ndarray, n_landmarks: int) -> KernelSums:
    """Return the sums over rows of [K Z, K 1], and W times vectors (N, d): one pass over W."""
    z = all_weights(audit, n_landmarks)
    products, sums = np.zeros((n_landmarks + 1,) * 2), np.zeros((n_classes, n_landmarks + 1))
    images, stage = np.empty_like(vectors), final_graph(audit)
    for block, (start, stop) in enumerate(audit.run.blocks):
        affinities = read_block(audit, stage, block)
        images[start:stop] = affinities @ vectors
        for part in parts_of(audit, affinities, z.nnz // z.shape[0]):
            part_rows, place = affinities[part], slice(start + part.start, start + part.stop)
            degrees = sp.csr_matrix(1 + part_rows.sum(axis=1).reshape(-1, 1))
            rows = sp.hstack([part_rows @ z + z[place], degrees], format="csr")
            products += (rows.T @ rows).toarray()
            sums += (class_members(codes[place], n_classes) @ rows).toarray()
    return KernelSums(products, sums, images)


def check_of_kernel(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check shares, directions and their certificates by one pass over W."""
    shares, directions, ridge = group.read("eigenvalues"), group.read("directions"), float(group.read("ridge"))
    codes, counts = (audit.run.groups[CLASSES].read(name) for name in ("codes", "counts"))
    n_points, gram = audit.run.n_points, gram_of(audit, len(directions) - 1)
    positions = group.read("embedding")[audit.order]
    left = class_members(codes, len(counts)).T @ (class_members(codes, len(counts)) @ positions / counts[:, None])
    left -= positions * shares
    kernel = kernel_sums(audit, codes, len(counts), left, len(gram))
    weights, sums = gram.sum(axis=1), kernel.sums.sum(axis=0)
    centring = np.vstack([np.eye(len(gram)), -weights / n_points])
    products = centring.T @ (kernel.products - np.outer(sums, sums) / n_points) @ centring
    expected = float(audit.run.param(OF_KERNEL, "ridge", RIDGE)) * np.trace(products) / np.trace(gram)
    yield equal(OF_KERNEL, "ridge", ridge, float(expected), SAME * expected)
    off = off_by(sums / n_points @ directions, group.read("mean"))
    yield at_most(OF_KERNEL, "mean", 0.0, off, SAME, "of [K Z, K 1] @ directions, relative")
    off = float(np.abs(weights @ directions[:-1] / n_points + directions[-1]).max() / np.abs(directions).max())
    yield at_most(OF_KERNEL, "directions are centred", 0.0, off, SAME, "what K 1 takes, relative to what K Z takes")
    means = (kernel.sums / counts[:, np.newaxis] - sums / n_points) @ centring
    pencil = Pencil(means.T @ (counts[:, np.newaxis] * means), products + ridge * gram)
    over_z = directions[:-1]
    lengths = np.sqrt(np.einsum("ij,ij->j", over_z, pencil.masses @ over_z))
    missed = solution_missed(pencil, shares, over_z / lengths)
    yield at_most(OF_KERNEL, "directions solve their problem", 0.0, missed, SAME, "|S_b p - lambda S_t p| by S_t^-1")
    yield check_leading(OF_KERNEL, pencil, shares)
    images = left + kernel.images
    images -= images.mean(axis=0)
    yield from judge_of_kernel(group, images, times_weights(audit, over_z), positions)


def judge_of_kernel(
    group: StoredGroup, images: np.ndarray, points: np.ndarray, positions: np.ndarray
) -> Iterator[Finding]:
    """Compare the certificates with residuals of the problem of all points.

    `images` (N, d) are J K J (P x - lambda x) of positions x (N, d) = J K J a, `points` (N, d) are a.
    """
    said, shares, ridge = group.certificates, group.read("eigenvalues"), float(group.read("ridge"))
    missed = np.square(images - points * (ridge * shares)).sum(axis=0)
    lengths = np.square(positions).sum(axis=0) + ridge * np.square(points).sum(axis=0)
    residuals = np.minimum(np.sqrt(missed / (ridge * lengths)), np.sqrt(shares * (1.0 - shares)))
    for name, values in (("residual", residuals), ("share_error_bound", np.minimum(residuals, 1.0 - shares))):
        slack = SAME * float(values.max()) + 1e-9
        yield equal(OF_KERNEL, name, said.get(name), float(values.max()), slack, "over all points")
