"""Locally linear embedding: what points take of their neighbours, R, and the landmarks' problem anew.

Its matrix is Z^T M Z with M = (I - R)^T (I - R).
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from scalemani.audit.bounds import Pairs, judge_pairs
from scalemani.audit.combinations import (
    all_weights,
    check_scores,
    gram_of,
    parts_of,
)
from scalemani.audit.findings import Finding, at_most, equal, none_wrong
from scalemani.audit.landmarks import times_weights
from scalemani.audit.pencils import Pencil, check_leading, check_solution
from scalemani.audit.rows import Audit, by_block
from scalemani.audit.stored import StoredGroup, block_folder

STAGE, RECONSTRUCTION = "local_reconstruction", "reconstruction_weights"
FOLLOWING = 4  # pairs beyond those of the result that certify these
NEAR_ZERO = 1e-14  # of the largest eigenvalue
ROWS_OF_R = 100  # that are solved for anew: the neighbours of each are read
REG, TAKEN = 1e-3, 1e-5  # by default; by which rows of R may differ, of the largest entry


def check_local(audit: Audit) -> Iterator[Finding]:
    """Check Z times vectors, their order, the landmarks' problem and certificates."""
    yield from check_scores(audit, STAGE, check_problem, ascending=True)


def check_problem(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check eigenvalues, coordinates and their certificates by two passes over what points take of neighbours."""
    values, vectors, embedding = (group.read(name) for name in ("eigenvalues", "vectors", "embedding"))
    off = float(np.abs(embedding.T @ embedding - np.eye(len(values))).max())
    yield at_most(STAGE, "columns are orthonormal", 0.0, off, 1e-5)
    yield check_taken(audit)
    gram = gram_of(audit, len(vectors))
    pencil = Pencil(reconstruction_errors(audit, len(vectors)), gram, np.ones(len(vectors)))
    yield from check_solution(STAGE, pencil, values, vectors)
    yield check_leading(STAGE, pencil, values)
    eigenvalues, following = pencil.leading(len(values) + FOLLOWING)
    pairs = np.column_stack([vectors, following[:, len(values) :]])
    thetas = np.maximum(np.append(values, eigenvalues[len(values) :]), 0.0)
    unit = times_weights(audit, pairs)
    residuals = np.linalg.norm(times_errors(audit, unit) - unit * thetas, axis=0)
    said, zero = group.certificates, int((values <= NEAR_ZERO * pencil.norm).sum())
    yield equal(STAGE, "zero_eigenvalues", said.get("zero_eigenvalues"), zero)
    yield from judge_pairs(STAGE, said, Pairs(-thetas, residuals, len(values), 1.0, 0.0))


def read_taken(audit: Audit, block: int) -> sp.csr_matrix:
    """Return the rows of R (n, N) of one block."""
    group, folder = audit.run.groups[RECONSTRUCTION], block_folder(block)
    indptr, indices, values = (group.read(f"{folder}/{name}") for name in ("indptr", "indices", "values"))
    return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, audit.run.n_points))


def check_taken(audit: Audit) -> Finding:
    """Solve for some rows of R anew: what a point takes of its stored neighbours."""
    assert audit.points is not None
    rows = audit.sample[:: -(-len(audit.sample) // ROWS_OF_R)]
    parts = [
        read_taken(audit, block)[rows[places] - audit.run.blocks[block][0]]
        for block, places in by_block(rows, audit.run.block_rows)
    ]
    taken, wrong = sp.vstack(parts, format="csr"), 0
    near, places = np.unique(taken.indices, return_inverse=True)
    others, points = audit.points.gather(near), audit.points.gather(rows)
    for number, point in enumerate(points):
        entries = slice(*taken.indptr[number : number + 2])
        differences = others[places[entries]] - point
        gram = differences @ differences.T
        gram += float(audit.run.param(STAGE, "reg", REG)) * np.trace(gram) * np.eye(len(gram))
        if np.trace(gram) > 0:
            expected = np.linalg.solve(gram, np.ones(len(gram)))
            expected /= expected.sum()
            wrong += int((np.abs(expected - taken.data[entries]) > TAKEN * np.abs(expected).max()).any())
    return none_wrong(RECONSTRUCTION, f"{len(rows)} rows of R, made anew", wrong, "by neighbours that are stored")


def reconstruction_errors(audit: Audit, n_landmarks: int) -> np.ndarray:
    """Return Z^T M Z (L, L)."""
    whole, total = all_weights(audit, n_landmarks), np.zeros((n_landmarks, n_landmarks))
    for block, (start, _) in enumerate(audit.run.blocks):
        taken = read_taken(audit, block)
        for part in parts_of(audit, taken, whole.nnz // whole.shape[0]):
            left = whole[start + part.start : start + part.stop] - taken[part] @ whole
            total += (left.T @ left).toarray()
    return total


def times_errors(audit: Audit, vectors: np.ndarray) -> np.ndarray:
    """Return M V (N, m) for V `vectors` (N, m), M = (I - R)^T (I - R), R the weights of neighbours."""
    product = np.zeros_like(vectors)
    for block, (start, stop) in enumerate(audit.run.blocks):
        taken = read_taken(audit, block)
        left = vectors[start:stop] - taken @ vectors
        product[start:stop] += left
        product -= taken.T @ left
    return product
