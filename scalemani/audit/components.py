"""Components of points that are combinations of landmarks: the landmarks' problem anew, and what certifies them.

Scores are Z v of solutions of A v = lambda B v with B = Z^T Z. A is Z^T Y Y^T Z of centred points Y, Z^T J K J Z of a
kernel K = I + W, or Z^T M Z with M = (I - R)^T (I - R) for what points take of their neighbours, R.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from scalemani.audit.bounds import Pairs, judge_pairs
from scalemani.audit.findings import Finding, at_most, equal, none_wrong, unchecked
from scalemani.audit.graph import final_graph, read_block
from scalemani.audit.landmarks import REDUCED, WEIGHTS, over_landmarks, read_triangle, times_weights, weights_matrix
from scalemani.audit.pencils import COPIES_OF_PROBLEM, SAME, Pencil, check_leading, check_solution
from scalemani.audit.rows import FEWEST_PANEL_ROWS, Audit, by_block, dense
from scalemani.audit.stored import StoredGroup, block_folder

PRINCIPAL, OF_KERNEL, LOCAL = "principal_components", "kernel_components", "local_reconstruction"
RECONSTRUCTION = "reconstruction_weights"
FOLLOWING = 4  # pairs beyond those of the result that certify these
NEAR_ZERO = 1e-14  # of the largest eigenvalue
COPIES_OF_WEIGHTS, COPIES_OF_PRODUCT, BYTES_OF_ENTRY = 3, 12, 12  # of Z, of rows times Z, and of a sparse matrix
ROWS_OF_R = 100  # that are solved for anew: the neighbours of each are read
REG, TAKEN = 1e-3, 1e-5  # by default; by which rows of R may differ, of the largest entry


def check_components(audit: Audit) -> Iterator[Finding]:
    """Check PCA, kernel PCA and LLE of a run: Z times vectors, order, the landmarks' problem, certificates."""
    for stage, check in ((PRINCIPAL, check_principal), (OF_KERNEL, check_of_kernel), (LOCAL, check_local)):
        if not audit.run.has(stage):
            continue
        group = audit.run.groups[stage]
        vectors = group.read("vectors")
        yield over_landmarks(audit, stage, vectors)
        values = group.read("eigenvalues")
        wrong = np.diff(values) < 0 if stage == LOCAL else np.diff(values) > 0
        yield none_wrong(stage, "eigenvalues are in order", int(wrong.sum()))
        if not fits(audit, len(vectors)):
            yield unchecked(stage, "the landmarks' problem", "its matrices and Z do not fit the memory")
        else:
            yield from check(audit, group)


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


# Principal components


def check_principal(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check variances, scores and their certificates by one pass over the points."""
    said, free = group.certificates, audit.run.n_points - 1
    values, vectors, mean, ritz, axes = (
        group.read(name) for name in ("eigenvalues", "vectors", "mean", "ritz_vectors", "axes")
    )
    embedding = group.read("embedding")
    off = off_by(embedding.var(axis=0, ddof=1), values)
    yield at_most(PRINCIPAL, "eigenvalues", 0.0, off, SAME, "off the variances of the columns, relative")
    squares = np.einsum("ij,ij->j", axes, axes)
    unit = float(squares.max(initial=0.0)) or 1.0
    assert audit.points is not None
    points = audit.points

    def panel(rows: tuple[int, int]) -> tuple[np.ndarray, ...]:
        centred, z = dense(points.rows(*rows)) - mean, read_weights(audit, *rows, len(vectors))
        missed = np.square((centred @ axes - (z @ ritz) * squares) / unit).sum(axis=0)
        total = np.array(np.einsum("ij,ij->", centred, centred))
        return z.T @ centred, (z.T @ z).toarray(), centred.sum(axis=0), total, missed

    moments, gram, sums, total, missed = audit.summed(panel, 8 * audit.run.n_features)
    yield check_mean(PRINCIPAL, sums, float(total), mean, audit.run.n_points)
    yield at_most(PRINCIPAL, "axes", 0.0, off_by(moments.T @ ritz, axes), SAME, "Y^T Z v of the points, relative")
    pencil = Pencil(moments @ moments.T, gram)
    scores = ritz[:, : len(values)] * np.sqrt(values * free)
    yield at_most(PRINCIPAL, "scores of landmarks", 0.0, off_by(scores, vectors), SAME, "unit scores at their lengths")
    yield from check_solution(PRINCIPAL, pencil, squares, ritz)
    yield check_leading(PRINCIPAL, pencil, squares[: len(values)])
    share = float(values.sum() * free / total) if total > 0 else 1.0
    yield equal(PRINCIPAL, "explained_share", said.get("explained_share"), share, SAME)
    yield from judge_pairs(PRINCIPAL, said, pairs_of_points(audit, squares, np.sqrt(missed) * unit, len(values), total))


def check_mean(stage: str, sums: np.ndarray, total: float, mean: np.ndarray, n_points: int) -> Finding:
    """Compare a mean (D,) with sums (D,) of points less it; `total` is the sum of the squares of these."""
    scale = np.sqrt(total / n_points) + np.abs(mean).max(initial=0.0) * 1e-6
    off = float(np.abs(sums / n_points).max() / max(scale, 1e-300))
    return at_most(stage, "mean", 0.0, off, SAME, "off that of the points, over their standard deviation")


def pairs_of_points(audit: Audit, values: np.ndarray, residuals: np.ndarray, n_components: int, total: float) -> Pairs:
    """Return pairs of Y Y^T in units of variance; zero follows where there are no more features."""
    free = audit.run.n_points - 1
    largest = values[n_components - 1] + max(0.0, float(total) - float(values.sum()))
    if len(values) == audit.run.n_features == n_components:
        values, residuals = np.append(values, 0.0), np.append(residuals, 0.0)
    scale = float(values[0] / free) or 1.0
    return Pairs(values / free, residuals / free, n_components, scale, float(largest) / free)


# Components of a kernel


def check_of_kernel(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check eigenvalues, scores and their certificates by one pass over W."""
    values, vectors, ritz_values, ritz, means = (
        group.read(name) for name in ("eigenvalues", "vectors", "ritz_values", "ritz_vectors", "ritz_means")
    )
    gram, count = gram_of(audit, len(vectors)), len(values)
    pencil = Pencil(centred_kernel(audit, gram), gram)
    yield at_most(OF_KERNEL, "eigenvalues", 0.0, off_by(ritz_values[:count], values), SAME, "those of unit scores")
    scores = ritz[:, :count] * np.sqrt(values)
    yield at_most(OF_KERNEL, "scores of landmarks", 0.0, off_by(scores, vectors), SAME, "unit scores at their lengths")
    significant = ritz_values > NEAR_ZERO**0.5 * ritz_values[0]  # the others are no longer of unit length, centred
    yield from check_solution(OF_KERNEL, pencil, ritz_values[significant], ritz[:, significant])
    yield check_leading(OF_KERNEL, pencil, ritz_values[:count])
    said, name, slack = group.certificates, "least_eigenvalue", SAME * float(ritz_values[0])
    yield equal(OF_KERNEL, name, said.get(name), pencil.least, slack, "of the landmarks' problem")
    unit = times_weights(audit, ritz)
    images = times_kernel(audit, unit)
    mean = images.mean(axis=0)
    scale = max(float(np.abs(ritz_values).max()) / np.sqrt(len(images)), 1e-300)
    off = float(np.abs(mean - means).max() / scale)
    yield at_most(OF_KERNEL, "means of the kernel", 0.0, off, SAME, "of K Z v over all points, relative")
    residuals = np.linalg.norm(images - mean - unit * ritz_values, axis=0)
    yield from judge_pairs(OF_KERNEL, said, Pairs(ritz_values, residuals, count, float(ritz_values[0])))


def centred_kernel(audit: Audit, gram: np.ndarray) -> np.ndarray:
    """Return Z^T J K J Z (L, L) by the reduced matrices and Z^T Z: rows of Z sum to one."""
    laplacian, mass = (read_triangle(audit.run.groups[REDUCED], name).toarray() for name in ("laplacian", "mass"))
    kernel, weights = mass - laplacian + gram, gram.sum(axis=1)
    centring = np.eye(len(gram)) - np.outer(weights, np.ones(len(gram))) / weights.sum()
    return np.asarray(centring @ kernel @ centring.T)


def times_kernel(audit: Audit, vectors: np.ndarray) -> np.ndarray:
    """Return (I + W) times vectors (N, m): one pass over W."""
    product, stage = vectors.copy(), final_graph(audit)
    for block, (start, stop) in enumerate(audit.run.blocks):
        product[start:stop] += read_block(audit, stage, block) @ vectors
    return product


# Locally linear embedding


def check_local(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check eigenvalues, coordinates and their certificates by two passes over what points take of neighbours."""
    values, vectors, embedding = (group.read(name) for name in ("eigenvalues", "vectors", "embedding"))
    off = float(np.abs(embedding.T @ embedding - np.eye(len(values))).max())
    yield at_most(LOCAL, "columns are orthonormal", 0.0, off, 1e-5)
    yield check_taken(audit)
    gram = gram_of(audit, len(vectors))
    pencil = Pencil(reconstruction_errors(audit, len(vectors)), gram, np.ones(len(vectors)))
    yield from check_solution(LOCAL, pencil, values, vectors)
    yield check_leading(LOCAL, pencil, values)
    eigenvalues, following = pencil.leading(len(values) + FOLLOWING)
    pairs = np.column_stack([vectors, following[:, len(values) :]])
    thetas = np.maximum(np.append(values, eigenvalues[len(values) :]), 0.0)
    unit = times_weights(audit, pairs)
    residuals = np.linalg.norm(times_errors(audit, unit) - unit * thetas, axis=0)
    said, zero = group.certificates, int((values <= NEAR_ZERO * pencil.norm).sum())
    yield equal(LOCAL, "zero_eigenvalues", said.get("zero_eigenvalues"), zero)
    yield from judge_pairs(LOCAL, said, Pairs(-thetas, residuals, len(values), 1.0, 0.0))


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
        gram += float(audit.run.param(LOCAL, "reg", REG)) * np.trace(gram) * np.eye(len(gram))
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
