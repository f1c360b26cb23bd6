"""Landmarks, Z of the rows drawn, the reduced problem by random vectors, and its solution."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.audit.findings import (
    Finding,
    at_most,
    equal,
    is_number,
    none_wrong,
    unchecked,
    verdict_of,
)
from scalemani.audit.graph import final_graph, read_block, sampled_rows
from scalemani.audit.pencils import COPIES_OF_PROBLEM, EPS, ROUNDINGS, SAME, Pencil, check_leading
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredGroup

LANDMARKS, WEIGHTS, BY_AFFINITIES = "landmarks", "landmark_weights", "affinity_weights"
REDUCED, SOLVED = "reduced", "landmark_embedding"
SINGULAR, REGULARIZATION = 1e-3, 1e-10  # where landmarks are more than columns, and else, unless it is a parameter
SHARE = 0.98  # of the points that lie within the spacings of their nearest landmarks, those beyond `FAR` of it apart
FAR, CORE = 2.0, 0.75
GAP = 5  # the other landmark whose distance is the gap of one, and the landmarks that a point is compared with
NEAR = 10  # times the distance of the nearest landmark, beyond which others do not count
TIED = 32  # of the nearest landmarks, among which ties are looked for
SPACINGS = "local_spacings"
SPACING_ROWS, SPACING_SAMPLE = 4096, 2048  # rows that spacings are compared with, and were made by
RESAMPLES = 1000  # of these rows, by which another sample is judged: 2 in 1,001 lie beyond all of them
OPTIMUM = 1e-4  # by which a regularised error may exceed the least one, relative
TIE = 1e-6
QUERIES_AT_ONCE = 256
PROBES = 2
DENSE, ROUGH = 1000, 0.05  # landmarks that LAPACK solves for; of more, how far off the next eigenvalue may be
LARGEST = 2.0  # eigenvalue that there can be


def check_landmarks(audit: Audit) -> Iterator[Finding]:
    """Check that landmarks are the points that they are said to be, and how they cover the points."""
    group = audit.run.groups[LANDMARKS]
    landmarks = group.read("points")
    yield equal(LANDMARKS, "landmarks", group.certificates.get("landmarks"), len(landmarks))
    if group.holds("rows"):
        yield from check_rows_of_landmarks(audit, group.read("rows"), landmarks)
    if group.holds(SPACINGS) and audit.points is not None and len(landmarks) > 1:
        yield from check_spacings(audit, group, landmarks.astype(np.float64))


def check_rows_of_landmarks(audit: Audit, rows: np.ndarray, landmarks: np.ndarray) -> Iterator[Finding]:
    """Check that `rows` (L,) ascend and that landmarks (L, D) equal the points there, to the bit."""
    inside = len(rows) == len(landmarks) and (rows >= 0).all() and (rows < audit.run.n_points).all()
    yield none_wrong(LANDMARKS, "landmarks are rows, ascending", int(not inside or (np.diff(rows) <= 0).any()))
    if inside and audit.points is not None:
        places = np.argsort(audit.order, kind="stable")[rows]
        different = (audit.points.gather(places) != landmarks).any(axis=1)
        yield none_wrong(LANDMARKS, "landmarks are the points at their rows", int(different.sum()))


def check_spacings(audit: Audit, group: StoredGroup, landmarks: np.ndarray) -> Iterator[Finding]:
    """Check that spacings are gaps of landmarks times one number, and that it is the one that points have."""
    spacings, (gaps, lacking) = group.read(SPACINGS), landmark_gaps(landmarks)
    known = np.isfinite(gaps)
    scales = np.where(known, gaps, np.median(gaps[known]) if known.any() else 0.0)
    factor = float(np.median(spacings[scales > 0] / scales[scales > 0])) if (scales > 0).any() else 1.0
    wrong = int((np.abs(spacings - factor * scales) > TIE * spacings).sum())
    yield none_wrong(LANDMARKS, "spacings are the gaps of landmarks times one number", wrong, "fifth nearest others")
    n_drawn, n_points = min(SPACING_ROWS, audit.run.n_points), audit.run.n_points
    rows = np.sort(audit.generator.choice(n_points, n_drawn, replace=False))
    (low, high), of_run = ratios_to_gaps(audit, rows, landmarks, gaps, lacking), n_points
    if n_points > SPACING_SAMPLE:  # drawn with replacement
        of_run = int(n_points * -np.expm1(-SPACING_SAMPLE / n_points))
    differing = sum(1 / drawn - 1 / n_points for drawn in (n_drawn, of_run))
    least, most = range_of_usual(low, high, differing, audit.generator)
    holds = least * (1 - TIE) <= factor <= most * (1 + TIE)
    note = f"within [{least:.4g}, {most:.4g}], by {n_drawn} rows"
    yield Finding(LANDMARKS, "spacings over gaps", factor, usual_ratio(low), None, verdict_of(holds), note)


def range_of_usual(
    low: np.ndarray, high: np.ndarray, differing: float, generator: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return between which numbers the usual ratio of another sample lies, but for 2 in `resamples` + 1 samples.

    They are the least and the largest of ratios (m,) that are drawn again, with replacement, so few that their
    frequencies vary as much as those of the two samples differ: what leaves outliers out varies with them.

    Parameters
    ----------
    low, high : (m,) float64, the ratios of a sample, the least and the most of each
    differing : the variance of the difference of two shares p, of either sample, over p (1 - p)
    """
    if differing == 0:  # both have all points
        return usual_ratio(low), usual_ratio(high)
    rows = generator.integers(0, len(low), (resamples, max(1, round(1 / differing))))
    return float(usual_ratios(low[rows]).min()), float(usual_ratios(high[rows]).max())


def landmark_gaps(landmarks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how far the fifth nearest other of each landmark (L,) is, and the sixth; copies do not count.

    Infinite where there are more copies than that.
    """
    last = min(GAP + 1, len(landmarks) - 1) - 1  # of the others that are looked at
    column, gaps = max(0, min(GAP, last) - 1), np.empty((2, len(landmarks)))
    for first in range(0, len(landmarks), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        squares = np.sort(squared_distances(landmarks[some], landmarks), axis=1)[:, 1 : last + 2]
        apart = np.where(squares > 0, np.sqrt(squares), np.inf)
        gaps[:, some] = [apart[:, one:].min(axis=1) for one in (column, min(column + 1, last))]
    return gaps[0], gaps[1]


def ratios_to_gaps(
    audit: Audit, rows: np.ndarray, landmarks: np.ndarray, gaps: np.ndarray, lacking: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distance of points (m,) to the landmarks near them over the gaps of these, the least and the most.

    These differ where landmarks are equally near. Those near a landmark are others, whose gaps are what they would be
    without it.
    """
    assert audit.points is not None
    points, ratios = audit.points.gather(rows), np.empty((2, len(rows)))
    for first in range(0, len(rows), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        squares = squared_distances(points[some], landmarks)
        itself = squares.min(axis=1) == 0
        squares[itself, squares[itself].argmin(axis=1)] = np.inf
        point_gaps = np.where(itself[:, np.newaxis] & (np.sqrt(squares) <= gaps * (1 + TIE)), lacking, gaps)
        for row, sign in enumerate((-1, 1)):  # of those equally near, wide gaps first or last
            ratios[row, some] = ratios_around(squares, point_gaps, sign)
    return ratios[0], ratios[1]


def ratios_around(squares: np.ndarray, gaps: np.ndarray, sign: int = 1) -> np.ndarray:
    """Return how far points (m,) are from the landmarks near them, by gaps or spacings (m, L) of these.

    Of landmarks at equal squared distances (m, L), those come first that have the least `sign` times their gap.
    """
    n_near = max(1, min(GAP, squares.shape[1] - 1))
    near = np.argpartition(squares, min(TIED, squares.shape[1]) - 1, axis=1)[:, :TIED]
    squares, gaps = (np.take_along_axis(one, near, axis=1) for one in (squares, gaps))
    rounded = np.round(np.log(np.maximum(squares, 1e-300)) / TIE)
    order = np.lexsort((sign * gaps, rounded), axis=1)[:, :n_near]
    near, gaps = (np.take_along_axis(one, order, axis=1) for one in (squares, gaps))
    scales = np.median(gaps, axis=1)
    away = np.minimum(np.sqrt(near[:, -1]), NEAR * np.sqrt(near[:, 0]))
    return np.where(away > 0, away / np.where(scales > 0, scales, 1e-300), 0.0)


def usual_ratio(ratios: np.ndarray) -> float:
    """Return what `SHARE` of ratios do not exceed, those beyond `FAR` times it left out, up to a quarter of all."""
    return float(usual_ratios(ratios[np.newaxis])[0])


def usual_ratios(samples: np.ndarray) -> np.ndarray:
    """Return the usual ratio (m,) of each row of samples (m, n); 1 where none is above zero."""
    above = samples > 0
    ascending, n_above = np.sort(np.where(above, samples, np.inf), axis=1), above.sum(axis=1)
    counted = np.ceil(CORE * n_above).astype(np.int64)
    while True:
        places = np.maximum(SHARE * (counted - 1), 0).astype(np.int64)
        usual = np.take_along_axis(ascending, places[:, np.newaxis], axis=1)
        within = np.minimum((ascending <= FAR * usual).sum(axis=1), n_above)
        if (within <= counted).all():
            return np.where(n_above > 0, usual[:, 0], 1.0)
        counted = np.maximum(counted, within)


def squared_distances(points: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    """Return squared distances (m, L) float64 by products, exact where they are small against the lengths."""
    center = np.median(landmarks, axis=0)  # which a few that lie far off leave where the others are
    rows, columns = points - center, landmarks - center
    squares = -2.0 * rows @ columns.T
    lengths = (rows**2).sum(axis=1)[:, np.newaxis], (columns**2).sum(axis=1)
    squares += lengths[0]
    squares += lengths[1]
    unsure = np.nonzero(squares < 1e-6 * (lengths[0] + lengths[1]))
    squares[unsure] = np.square(rows[unsure[0]] - columns[unsure[1]]).sum(axis=1)
    return np.maximum(squares, 0.0)


# Z by nearest landmarks


def check_weights(audit: Audit) -> Iterator[Finding]:
    """Check the rows of Z that were drawn, and what the record says of all."""
    group = audit.run.groups[WEIGHTS]
    landmarks = audit.run.groups[LANDMARKS].read("points").astype(np.float64)
    if audit.points is None:
        yield unchecked(WEIGHTS, "weights", "there are no points")
        return
    points = audit.sampled_points
    indices, values, errors = (audit.rows_of(group, name, audit.sample) for name in ("indices", "values", "errors"))
    inside = bool((indices >= 0).all() and (indices < len(landmarks)).all())
    yield none_wrong(WEIGHTS, "landmarks of Z are landmarks", int(not inside))
    if inside:
        far = not_nearest(points, landmarks, indices)
        yield none_wrong(WEIGHTS, f"nearest landmarks of {len(points)} rows", int(far.sum()), "by exact distances")
        counts = np.full(len(points), indices.shape[1])
        if audit.run.param(WEIGHTS, "tolerance") or audit.run.param(WEIGHTS, "radius"):
            counts -= (values[:, ::-1] != 0).argmax(axis=1)  # zeros at the end: a point has fewer
        stored, best, relative = np.empty((3, len(points)))
        for count in np.unique(counts):
            same = counts == count
            some = points[same], landmarks, indices[same, :count], values[same, :count]
            stored[same], best[same], relative[same] = regularised_errors(audit, *some)
        scale = np.square(points - landmarks[indices[:, 0]]).sum(axis=1)
        worse = stored > best * (1 + OPTIMUM) + 1e-9 * scale
        yield none_wrong(WEIGHTS, "weights reconstruct the points best", int(worse.sum()), "least regularised squares")
        off = np.abs(relative - errors) > 1e-4 * np.maximum(relative, 1e-2)
        yield none_wrong(WEIGHTS, "reconstruction errors", int(off.sum()), "relative to the nearest landmark")
    yield from check_all_weights(audit, group, len(landmarks))


def not_nearest(points: np.ndarray, landmarks: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return which points (m,) list a landmark that is none of their nearest, or one twice."""
    width, wrong = indices.shape[1], np.empty(len(points), bool)
    for first in range(0, len(points), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        squares = squared_distances(points[some], landmarks)
        reach = np.partition(squares, width - 1, axis=1)[:, width - 1]
        listed = np.take_along_axis(squares, indices[some].astype(np.int64), 1)
        repeated = (np.diff(np.sort(indices[some], axis=1), axis=1) == 0).any(axis=1)
        slack = 1e-12 * squares.max(axis=1)
        wrong[some] = repeated | (listed.max(axis=1) > reach * (1 + TIE) + slack)
    return wrong


def regularised_errors(
    audit: Audit, points: np.ndarray, landmarks: np.ndarray, indices: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the regularised squares (m,) that stored weights leave, the least that any leave, and relative errors.

    Weights that do not sum to one leave infinite squares.
    """
    stored, best, relative = np.empty(len(points)), np.empty(len(points)), np.empty(len(points))
    for first in range(0, len(points), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        gram, eps, exact = local_problems(audit, points[some], landmarks[indices[some]])
        z = values[some]
        left = np.einsum("mi,mij,mj->m", z, gram, z)
        stored[some] = left + eps[:, 0] * (z**2).sum(axis=1)
        stored[some][np.abs(z.sum(axis=1) - 1) > 1e-6] = np.inf
        nearest = np.diagonal(gram, axis1=1, axis2=2).min(axis=1)
        safe = np.where(nearest > 0, nearest, 1.0)
        relative[some] = np.where(nearest > 0, np.sqrt(np.maximum(left, 0.0) / safe), 0.0)
        floor = 1e-14 * np.trace(gram, axis1=1, axis2=2)[:, np.newaxis]
        best[some] = least_squares(gram, np.maximum(eps, floor), exact)[1]
    return stored, best, relative


def local_problems(audit: Audit, points: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what `least_squares` solves for the weights of landmarks (m, K, D) that reconstruct points (m, D) best.

    Inner products (m, K, K) of the differences, their regularisation (m, 1), and 0 where a landmark is the point (m,).
    """
    width = near.shape[1]
    share = audit.run.param(WEIGHTS, "regularization") or (SINGULAR if width > points.shape[1] else REGULARIZATION)
    differences = near - points[:, np.newaxis]
    gram = differences @ differences.transpose(0, 2, 1)
    exact = np.where((np.diagonal(gram, axis1=1, axis2=2) == 0).any(axis=1), 0.0, 1.0)
    return gram, (share * exact * np.trace(gram, axis1=1, axis2=2) / width)[:, np.newaxis], exact


def least_squares(gram: np.ndarray, eps: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights z (m, K) that sum to one with the least z G z + eps z z, and that (m,).

    Where a landmark is the point itself (`exact` 0) it has all the weight, and nothing is left.
    """
    width = gram.shape[1]
    matrices = gram + eps[:, :, np.newaxis] * np.eye(width)
    matrices[(exact == 0) | (eps[:, 0] == 0)] = np.eye(width)
    solved = np.linalg.solve(matrices, np.ones((len(gram), width, 1)))[:, :, 0]
    z = solved / solved.sum(axis=1, keepdims=True)
    itself = np.eye(width)[np.argmin(np.diagonal(gram, axis1=1, axis2=2), axis=1)]
    z = np.where((exact == 0)[:, np.newaxis], itself, z)
    return z, np.where(exact == 0, 0.0, np.einsum("mi,mij,mj->m", z, matrices, z))


def check_all_weights(audit: Audit, group: StoredGroup, n_landmarks: int) -> Iterator[Finding]:
    """Check sums of all rows of Z, and what the record says of them."""
    said, used = group.certificates, np.zeros(n_landmarks, bool)
    off, total, made, largest = 0, 0.0, 0, 0.0
    for start, stop in audit.run.blocks:
        indices, values, errors = (group.read(name, start, stop) for name in ("indices", "values", "errors"))
        off += int((np.abs(values.sum(axis=1) - 1) > 1e-9 * np.abs(values).sum(axis=1)).sum())
        used[indices[(indices >= 0) & (indices < n_landmarks)]] = True
        total, largest = total + float(errors.sum(dtype=np.float64)), max(largest, float(errors.max()))
        made += int(((errors > 0) | ((values != 0).sum(axis=1) > 1)).sum())
    yield none_wrong(WEIGHTS, "weights sum to one", off, "rows of Z that do not")
    if made and "mean_reconstruction_error" in said:
        mean = total / made
        yield equal(WEIGHTS, "mean_reconstruction_error", said["mean_reconstruction_error"], mean, 1e-6 * mean)
    name = "largest_reconstruction_error"
    yield equal(WEIGHTS, name, said.get(name), largest, 1e-6 * largest)
    yield equal(WEIGHTS, "unused_landmarks", said.get("unused_landmarks"), int((~used).sum()))


# Z by affinities


def check_affinity_weights(audit: Audit) -> Iterator[Finding]:
    """Check the rows of Z that were drawn: affinities to landmarks over their sums, and landmarks themselves."""
    group, n_points = audit.run.groups[BY_AFFINITIES], audit.run.n_points
    z, numbers = read_affinity_weights(audit), np.full(n_points, -1, np.int64)
    rows = audit.run.groups[LANDMARKS].read("rows")
    numbers[np.argsort(audit.order, kind="stable")[rows]] = np.arange(len(rows))
    sums = np.asarray(z.sum(axis=1)).ravel()
    yield none_wrong(BY_AFFINITIES, "weights sum to one", int((np.abs(sums - 1) > 1e-9).sum()), "rows of Z")
    affinities = sp.vstack([part for _, part in sampled_rows(audit, final_graph(audit))], format="csr")
    selection = numbers[affinities.indices] >= 0
    of_row = np.repeat(np.arange(affinities.shape[0]), np.diff(affinities.indptr))[selection]
    direct = sp.csr_matrix(
        (affinities.data[selection], (of_row, numbers[affinities.indices[selection]])),
        shape=(len(audit.sample), len(rows)),
    )
    row_numbers, totals = numbers[audit.sample], np.asarray(direct.sum(axis=1)).ravel()
    scale = np.where(totals > 0, totals, 1.0)
    expected = (sp.diags_array((row_numbers < 0) / scale) @ direct).tolil()
    landmarks = np.flatnonzero(row_numbers >= 0)
    expected[landmarks, row_numbers[landmarks]] = 1.0
    known = np.flatnonzero((totals > 0) | (row_numbers >= 0))
    off = abs(z[audit.sample[known]] - expected.tocsr()[known]).max(axis=1).toarray().ravel()
    wrong = int((off > 1e-9).sum())
    yield none_wrong(BY_AFFINITIES, f"weights of {len(known)} rows", wrong, "affinities to landmarks over their sum")
    said, mean = group.certificates, z.nnz / n_points
    yield equal(BY_AFFINITIES, "landmarks_a_point", said.get("landmarks_a_point"), mean, 1e-9 * mean)


def read_affinity_weights(audit: Audit) -> sp.csr_matrix:
    """Return Z (N, L) of variational Nystrom, rows in work order."""
    group = audit.run.groups[BY_AFFINITIES]
    values, indices, indptr = (group.read(name) for name in ("values", "indices", "indptr"))
    shape = (audit.run.n_points, len(audit.run.groups[LANDMARKS].read("points")))
    return sp.csr_matrix((values, indices, indptr), shape=shape)


# The reduced problem


def times_weights(audit: Audit, vectors: np.ndarray) -> np.ndarray:
    """Return Z (N, L) times vectors (L, m), in work order."""
    if audit.run.has(BY_AFFINITIES):
        return np.asarray(read_affinity_weights(audit) @ vectors)
    group, product = audit.run.groups[WEIGHTS], np.empty((audit.run.n_points, vectors.shape[1]))
    for start, stop in audit.run.blocks:
        indices, values = (group.read(name, start, stop) for name in ("indices", "values"))
        product[start:stop] = weights_matrix(indices, values, len(vectors)) @ vectors
    return product


def weights_matrix(indices: np.ndarray, values: np.ndarray, n_landmarks: int) -> sp.csr_matrix:
    """Return rows of Z (n, L) as a sparse matrix."""
    indptr = np.arange(0, indices.size + 1, indices.shape[1])
    return sp.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(len(indices), n_landmarks))


def read_triangle(group: StoredGroup, name: str) -> sp.csr_matrix:
    """Return a symmetric matrix (L, L) of which the lower triangle is stored."""
    values, indices, indptr = (group.read(f"{name}_triangle_{part}") for part in ("values", "indices", "indptr"))
    lower = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1,) * 2)
    return sp.csr_matrix(lower + lower.T - sp.diags_array(lower.diagonal()))


def check_reduced(audit: Audit) -> Iterator[Finding]:
    """Compare the reduced matrices with Z^T L Z and Z^T D Z, both times random vectors: one pass over W."""
    group = audit.run.groups[REDUCED]
    laplacian, mass = (read_triangle(group, name) for name in ("laplacian", "mass"))
    probes = audit.generator.standard_normal((laplacian.shape[0], PROBES))
    vectors = times_weights(audit, probes)
    spread, weighed = np.empty_like(vectors), np.empty_like(vectors)
    stage = final_graph(audit)
    for block, (start, stop) in enumerate(audit.run.blocks):
        rows = read_block(audit, stage, block)
        degrees = np.asarray(rows.sum(axis=1)).ravel()[:, np.newaxis]
        weighed[start:stop] = degrees * vectors[start:stop]
        spread[start:stop] = rows @ vectors
    expected = [transposed_times(audit, values, probes.shape) for values in (weighed - spread, weighed)]
    for name, matrix, product in (("Z^T L Z", laplacian, expected[0]), ("Z^T D Z", mass, expected[1])):
        off = float(np.abs(matrix @ probes - product).max() / max(np.abs(product).max(), 1e-300))
        yield at_most(REDUCED, name, 0.0, off, 1e-8, "times random vectors, relative")
    nonzeros = 2 * laplacian_nonzeros(group) - int(np.count_nonzero(laplacian.diagonal()))
    yield equal(REDUCED, "nonzeros", group.certificates.get("nonzeros"), nonzeros)


def laplacian_nonzeros(group: StoredGroup) -> int:
    """Return how many entries the stored triangle of Z^T L Z has."""
    return int(group.array("laplacian_triangle_values").shape[0])


def transposed_times(audit: Audit, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return Z^T times values (N, m): (L, m)."""
    if audit.run.has(BY_AFFINITIES):
        return np.asarray(read_affinity_weights(audit).T @ values)
    group, product = audit.run.groups[WEIGHTS], np.zeros(shape)
    for start, stop in audit.run.blocks:
        indices, weights = (group.read(name, start, stop) for name in ("indices", "values"))
        product += weights_matrix(indices, weights, shape[0]).T @ values[start:stop]
    return product


def check_solution(audit: Audit) -> Iterator[Finding]:
    """Check residuals and orthogonality of the eigenvectors of the reduced problem."""
    group, reduced = audit.run.groups[SOLVED], audit.run.groups[REDUCED]
    laplacian, mass = (read_triangle(reduced, name) for name in ("laplacian", "mass"))
    values, vectors = group.read("eigenvalues"), group.read("vectors")
    images, weighed = laplacian @ vectors, mass @ vectors
    lengths = np.sqrt(np.einsum("ld,ld->d", vectors, weighed))
    residual = np.linalg.norm((images - weighed * values) / lengths, axis=0).max()
    scale = abs(laplacian).sum(axis=1).max()
    yield at_most(SOLVED, "A v = lambda B v", 0.0, float(residual / scale), 1e-7, "|A v - lambda B v| / |A|")
    products = vectors.T @ weighed / np.outer(lengths, lengths)
    off = float(np.abs(products - np.eye(len(values))).max())
    yield at_most(SOLVED, "vectors are B-orthogonal", 0.0, off, 1e-6)
    yield none_wrong(SOLVED, "eigenvalues ascend", int((np.diff(values) < 0).sum()))
    if COPIES_OF_PROBLEM * 8 * len(vectors) ** 2 > audit.memory:
        yield unchecked(SOLVED, "eigenvalues are the smallest", "dense matrices of the landmarks do not fit the memory")
    else:
        pencil = Pencil(laplacian.toarray(), mass.toarray(), np.ones(len(vectors)))
        yield check_leading(SOLVED, pencil, values)
        yield check_following(pencil, len(values), group.certificates.get("following_eigenvalue"))
    said = group.certificates
    unused = int((np.asarray(abs(mass).sum(axis=1)).ravel() == 0).sum())
    yield equal(SOLVED, "unused_landmarks", said.get("unused_landmarks"), unused)


def check_following(pencil: Pencil, n_leading: int, claimed: Any) -> Finding:
    """Compare the eigenvalue behind the leading ones with that of the problem, solved anew.

    Of a large problem a run takes it from a subspace: it is no less then, and rough.
    """
    name, values = "following_eigenvalue", pencil.leading(n_leading + 1)[0]
    if not is_number(claimed):
        return unchecked(SOLVED, name, "the record does not say it", claimed)
    value = float(min(values[n_leading], LARGEST)) if len(values) > n_leading else LARGEST
    slack = SAME * value + ROUNDINGS * EPS * pencil.norm
    rough = ROUGH if len(pencil.matrix) > DENSE else 0.0
    holds = value - slack <= claimed <= (1 + rough) * value + slack
    return Finding(SOLVED, name, claimed, value, None, verdict_of(holds), "of the landmarks' problem, solved anew")


def check_by_landmarks(audit: Audit) -> Iterator[Finding]:
    """Check all rows of the embedding against Z times the vectors of the landmarks' problem."""
    vectors = audit.run.groups[SOLVED].read("vectors")
    yield over_landmarks(audit, "embedding", vectors)


def over_landmarks(audit: Audit, stage: str, vectors: np.ndarray) -> Finding:
    """Compare the embedding of a stage with Z times coordinates (L, d) of the landmarks, all rows."""
    product = times_weights(audit, vectors)
    stored = audit.run.groups[stage].read("embedding")[audit.order]
    off = np.abs(stored - product) > 1e-9 * np.abs(vectors).max(axis=0, initial=1e-300)
    return none_wrong(stage, "embedding is Z times the landmarks'", int(off.any(axis=1).sum()), "rows that are not")
