"""Principal components of points that are combinations of landmarks: Z^T Y Y^T Z v = lambda Z^T Z v anew."""

from collections.abc import Iterator

import numpy as np

from scalemani.audit.bounds import Pairs, judge_pairs
from scalemani.audit.combinations import (
    check_mean,
    check_scores,
    off_by,
    read_weights,
)
from scalemani.audit.findings import Finding, at_most, equal
from scalemani.audit.pencils import SAME, Pencil, check_leading, check_solution
from scalemani.audit.rows import Audit, dense
from scalemani.audit.stored import StoredGroup

STAGE = "principal_components"


def check_principal(audit: Audit) -> Iterator[Finding]:
    """Check Z times vectors, their order, the landmarks' problem and certificates."""
    yield from check_scores(audit, STAGE, check_problem)


def check_problem(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check variances, scores and their certificates by one pass over the points."""
    said, free = group.certificates, audit.run.n_points - 1
    values, vectors, mean, ritz, axes = (
        group.read(name) for name in ("eigenvalues", "vectors", "mean", "ritz_vectors", "axes")
    )
    embedding = group.read("embedding")
    off = off_by(embedding.var(axis=0, ddof=1), values)
    yield at_most(STAGE, "eigenvalues", 0.0, off, SAME, "off the variances of the columns, relative")
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
    yield check_mean(STAGE, sums, float(total), mean, audit.run.n_points)
    yield at_most(STAGE, "axes", 0.0, off_by(moments.T @ ritz, axes), SAME, "Y^T Z v of the points, relative")
    pencil = Pencil(moments @ moments.T, gram)
    scores = ritz[:, : len(values)] * np.sqrt(values * free)
    yield at_most(STAGE, "scores of landmarks", 0.0, off_by(scores, vectors), SAME, "unit scores at their lengths")
    yield from check_solution(STAGE, pencil, squares, ritz)
    yield check_leading(STAGE, pencil, squares[: len(values)])
    share = float(values.sum() * free / total) if total > 0 else 1.0
    yield equal(STAGE, "explained_share", said.get("explained_share"), share, SAME)
    yield from judge_pairs(STAGE, said, pairs_of_points(audit, squares, np.sqrt(missed) * unit, len(values), total))


def pairs_of_points(audit: Audit, values: np.ndarray, residuals: np.ndarray, n_components: int, total: float) -> Pairs:
    """Return pairs of Y Y^T in units of variance; zero follows where there are no more features."""
    free = audit.run.n_points - 1
    largest = values[n_components - 1] + max(0.0, float(total) - float(values.sum()))
    if len(values) == audit.run.n_features == n_components:
        values, residuals = np.append(values, 0.0), np.append(residuals, 0.0)
    scale = float(values[0] / free) or 1.0
    return Pairs(values / free, residuals / free, n_components, scale, float(largest) / free)
