"""Embeddings of points that are combinations of landmarks: rows of Z, their products, and what all are checked for."""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from scalemani.audit.findings import Finding, at_most, none_wrong, unchecked
from scalemani.audit.graph import final_graph, read_block
from scalemani.audit.landmarks import WEIGHTS, over_landmarks, weights_matrix
from scalemani.audit.pencils import COPIES_OF_PROBLEM, SAME
from scalemani.audit.rows import FEWEST_PANEL_ROWS, Audit
from scalemani.audit.stored import StoredGroup

COPIES_OF_WEIGHTS, COPIES_OF_PRODUCT, BYTES_OF_ENTRY = 3, 12, 12  # of Z, of rows times Z, and of a sparse matrix


CheckProblem = Callable[[Audit, StoredGroup], Iterator[Finding]]


def check_scores(audit: Audit, stage: str, check: CheckProblem, ascending: bool = False) -> Iterator[Finding]:
    """Check that scores are Z times vectors, the order of eigenvalues, and by `check` the landmarks' problem."""
    group = audit.run.groups[stage]
    vectors = group.read("vectors")
    yield over_landmarks(audit, stage, vectors)
    differences = np.diff(group.read("eigenvalues"))
    wrong = differences < 0 if ascending else differences > 0
    yield none_wrong(stage, "eigenvalues are in order", int(wrong.sum()))
    yield from check_fitting(audit, stage, len(vectors), check)


def check_fitting(audit: Audit, stage: str, n_landmarks: int, check: CheckProblem) -> Iterator[Finding]:
    """Check a problem of so many landmarks where it fits the memory."""
    if fits(audit, n_landmarks):
        yield from check(audit, audit.run.groups[stage])
    else:
        yield unchecked(stage, "the landmarks' problem", "its matrices and Z do not fit the memory")


def fits(audit: Audit, n_landmarks: int) -> bool:
    """Return whether a problem of so many landmarks and all rows of Z fit the memory."""
    width = audit.run.groups[WEIGHTS].array("indices").shape[1]
    problem, rows = COPIES_OF_PROBLEM * 8 * n_landmarks**2, COPIES_OF_WEIGHTS * audit.run.n_points * width
    return problem + BYTES_OF_ENTRY * rows <= audit.memory


def parts_of(audit: Audit, rows: sp.csr_matrix, width: int) -> Iterator[slice]:
    """Yield parts of some rows whose products with Z, of `width` entries for each of theirs, are few at a time."""
    entries = max(1, rows.nnz // max(1, rows.shape[0])) * width
    together = max(FEWEST_PANEL_ROWS, audit.memory // (COPIES_OF_PRODUCT * BYTES_OF_ENTRY * entries))
    for first in range(0, rows.shape[0], together):
        yield slice(first, min(first + together, rows.shape[0]))


def off_by(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of two arrays over the largest entry of the second."""
    return float(np.abs(one - other).max(initial=0.0) / max(np.abs(other).max(initial=0.0), 1e-300))


def read_weights(audit: Audit, start: int, stop: int, n_landmarks: int) -> sp.csr_matrix:
    """Return rows of Z (n, L) of one block."""
    indices, values = (audit.run.groups[WEIGHTS].read(name, start, stop) for name in ("indices", "values"))
    return weights_matrix(indices, values, n_landmarks)


def all_weights(audit: Audit, n_landmarks: int) -> sp.csr_matrix:
    """Return Z (N, L) whole, rows in work order."""
    return sp.vstack([read_weights(audit, *rows, n_landmarks) for rows in audit.run.blocks], format="csr")


def gram_of(audit: Audit, n_landmarks: int) -> np.ndarray:
    """Return Z^T Z (L, L)."""

    def panel(rows: tuple[int, int]) -> tuple[np.ndarray]:
        z = read_weights(audit, *rows, n_landmarks)
        return ((z.T @ z).toarray(),)

    return np.asarray(audit.summed(panel, 16 * audit.run.groups[WEIGHTS].array("indices").shape[1])[0])


def check_mean(stage: str, sums: np.ndarray, total: float, mean: np.ndarray, n_points: int) -> Finding:
    """Compare a mean (D,) with sums (D,) of points less it; `total` is the sum of the squares of these."""
    scale = np.sqrt(total / n_points) + np.abs(mean).max(initial=0.0) * 1e-6
    off = float(np.abs(sums / n_points).max() / max(scale, 1e-300))
    return at_most(stage, "mean", 0.0, off, SAME, "off that of the points, over their standard deviation")


def times_kernel(audit: Audit, vectors: np.ndarray) -> np.ndarray:
    """Return (I + W) times vectors (N, m): one pass over W."""
    product, stage = vectors.copy(), final_graph(audit)
    for block, (start, stop) in enumerate(audit.run.blocks):
        product[start:stop] += read_block(audit, stage, block) @ vectors
    return product
