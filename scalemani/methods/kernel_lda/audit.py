"""Discriminants of a kernel K = I + W: the problem of the landmarks' span anew, and what certifies its directions.

They are S_b a = lambda S_t a with S_b = J K J P J K J, S_t = (J K J)^2 + rho I and P the projection on classes, for
a = Z p.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.audit.combinations import (
    all_weights,
    check_fitting,
    gram_of,
    off_by,
    parts_of,
    times_kernel,
)
from scalemani.audit.findings import Finding, at_most, equal, none_wrong
from scalemani.audit.graph import final_graph, read_block
from scalemani.audit.landmarks import LANDMARKS, times_weights
from scalemani.audit.pencils import SAME, Pencil, check_leading, solution_missed
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredGroup
from scalemani.methods.lda.audit import CLASSES, check_shares, class_members

STAGE = "kernel_discriminants"
RIDGE = 1e-3  # by default


def check_discriminants(audit: Audit) -> Iterator[Finding]:
    """Check the projection, shares, the landmarks' problem and certificates."""
    yield check_projection(audit)
    yield check_shares(audit, STAGE)
    yield from check_fitting(audit, STAGE, audit.run.groups[LANDMARKS].array("points").shape[0], check_problem)


def check_projection(audit: Audit) -> Finding:
    """Compare kernel discriminants with [K Z, K 1] times directions less their mean."""
    group = audit.run.groups[STAGE]
    directions = group.read("directions")
    along, constant = times_weights(audit, directions[:-1]), np.ones((audit.run.n_points, 1))
    images = times_kernel(audit, np.hstack([along, constant]))
    projected = images[:, :-1] + images[:, -1:] * directions[-1] - group.read("mean")
    off = np.abs(projected - group.read("embedding")[audit.order]) > 1e-6 * np.abs(projected).max(axis=0)
    return none_wrong(STAGE, "embedding is [K Z, K 1] @ directions - mean", int(off.any(axis=1).sum()), "rows")


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


def check_problem(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
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
    expected = float(audit.run.param(STAGE, "ridge", RIDGE)) * np.trace(products) / np.trace(gram)
    yield equal(STAGE, "ridge", ridge, float(expected), SAME * expected)
    off = off_by(sums / n_points @ directions, group.read("mean"))
    yield at_most(STAGE, "mean", 0.0, off, SAME, "of [K Z, K 1] @ directions, relative")
    off = float(np.abs(weights @ directions[:-1] / n_points + directions[-1]).max() / np.abs(directions).max())
    yield at_most(STAGE, "directions are centred", 0.0, off, SAME, "what K 1 takes, relative to what K Z takes")
    means = (kernel.sums / counts[:, np.newaxis] - sums / n_points) @ centring
    pencil = Pencil(means.T @ (counts[:, np.newaxis] * means), products + ridge * gram)
    over_z = directions[:-1]
    lengths = np.sqrt(np.einsum("ij,ij->j", over_z, pencil.masses @ over_z))
    missed = solution_missed(pencil, shares, over_z / lengths)
    yield at_most(STAGE, "directions solve their problem", 0.0, missed, SAME, "|S_b p - lambda S_t p| by S_t^-1")
    yield check_leading(STAGE, pencil, shares)
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
        yield equal(STAGE, name, said.get(name), float(values.max()), slack, "over all points")
