"""Isomap: shortest paths from some landmarks and sampled points anew, and what stored paths say of the embedding."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from scalemani.audit.combinations import check_scores
from scalemani.audit.findings import Finding, at_most, equal, none_wrong, unchecked
from scalemani.audit.landmarks import LANDMARKS, squared_distances
from scalemani.audit.neighbors import lists_of
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredGroup, block_folder

GEODESICS, ISOMAP, COMBINED = "geodesics", "isomap", "combined_isomap"
NO_LENGTH, N_COPIES = 1e-12, 1000  # of the longest edge: how long one of no length is; on a path, at most
PATHS = 8  # landmarks, or sampled points, of a part
SAME = 1e-6  # by which a certificate that is computed twice may differ, as a share


def check_paths(audit: Audit) -> Iterator[Finding]:
    """Check paths and the embedding made of them, where a run has them."""
    if audit.run.has(GEODESICS):
        group, n_landmarks = audit.run.groups[GEODESICS], audit.run.groups[LANDMARKS].array("rows").shape[0]
        drawn = np.concatenate([part[:, audit.sample] for part in read_parts(group, "to_points", n_landmarks)])
        yield from check_geodesics(audit, drawn)
        if audit.run.has(ISOMAP):
            yield from check_isomap(audit, drawn)
        if audit.run.has(COMBINED):
            yield from check_scores(audit, COMBINED, check_combined)


def read_parts(group: StoredGroup, name: str, count: int, step: str = "") -> Iterator[np.ndarray]:
    """Yield parts of paths (8, N) or fewer rows, from `count` landmarks or sampled points, in their order."""
    for part in range(-(-count // PATHS)):
        yield group.read(f"{block_folder(part, step)}/{name}")


def check_geodesics(audit: Audit, drawn: np.ndarray) -> Iterator[Finding]:
    """Compute the shortest paths from some landmarks and points anew and compare their lengths.

    `drawn` (L, m) are the lengths that are stored of paths from all landmarks to the rows drawn.
    """
    group, rows = audit.run.groups[GEODESICS], audit.run.groups[LANDMARKS].read("rows")
    longest = max(float(part.max()) for part in read_parts(group, "distances", len(rows)))
    yield equal(GEODESICS, "longest_path", group.certificates.get("longest_path"), longest, SAME * longest)
    sources, sampled = np.argsort(audit.order, kind="stable")[rows], group.read("sampled_rows")
    neighbors = audit.run.groups["neighbors"]
    if 32 * audit.run.n_points * neighbors.array(lists_of(neighbors)[0]).shape[1] > audit.memory:
        yield unchecked(GEODESICS, "shortest paths", "the edges of the graph do not fit the memory")
        return
    graph = edges_with_bridges(audit)
    part = int(audit.generator.integers(-(-len(sources) // PATHS)))
    starts = sources[part * PATHS : (part + 1) * PATHS]
    lengths = dijkstra(graph, directed=False, indices=starts)
    for name, expected in (("distances", lengths[:, sources]), ("to_points", lengths)):
        stored = group.read(f"{block_folder(part)}/{name}")
        yield compared(f"shortest paths from {len(starts)} landmarks: {name}", stored, expected)
    some = slice(None, None, -(-len(audit.sample) // (2 * PATHS)))
    ends, stored = audit.sample[some], drawn[:, some]
    lengths = dijkstra(graph, directed=False, indices=ends)[:, sources].T
    yield compared(f"shortest paths from all landmarks to {len(ends)} points", stored, lengths)
    part = int(audit.generator.integers(-(-len(sampled) // PATHS)))
    starts = sampled[part * PATHS : (part + 1) * PATHS]
    stored = group.read(f"{block_folder(part, 'sample')}/from_sample")
    yield compared(
        f"shortest paths from {len(starts)} sampled points", stored, dijkstra(graph, directed=False, indices=starts)
    )


def compared(claim: str, stored: np.ndarray, expected: np.ndarray) -> Finding:
    """Compare the lengths of paths with those computed anew; edges between copies are not quite of no length."""
    allowed = 1e-5 * expected + NO_LENGTH * N_COPIES * expected.max(initial=0.0)
    return none_wrong(GEODESICS, claim, int((np.abs(stored - expected) > allowed).sum()), "made anew")


def edges_with_bridges(audit: Audit) -> sp.csr_matrix:
    """Return the lengths (N, N) of the edges of the graph, both ways, and of bridges between components."""
    names, graph = lists_of(audit.run.groups["neighbors"]), audit.run.groups["neighbors"]
    indices, lengths = (graph.read(name) for name in names)
    rows = np.repeat(np.arange(len(indices)), indices.shape[1])
    columns, values = indices.ravel().astype(np.int64), lengths.ravel().astype(np.float64)
    ends = audit.run.groups["components"].read("bridge_rows")
    if len(ends) and audit.points is not None:
        one, other = (audit.points.gather(side) for side in ends.T)
        rows, columns = np.append(rows, ends[:, 0]), np.append(columns, ends[:, 1])
        values = np.append(values, np.linalg.norm(one - other, axis=1))
    # Edges of no length join all the same: SciPy takes zeros for none.
    values = np.maximum(values, NO_LENGTH * values.max())
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.lexsort((values, high, low))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)
    shortest = order[first]
    return sp.csr_matrix((values[shortest], (low[shortest], high[shortest])), shape=(len(indices),) * 2)


def check_isomap(audit: Audit, drawn: np.ndarray) -> Iterator[Finding]:
    """Scale the landmarks anew, and triangulate the rows drawn by their stored distances (L, m)."""
    group, paths = audit.run.groups[ISOMAP], audit.run.groups[GEODESICS]
    n_landmarks = len(audit.run.groups[LANDMARKS].read("points"))
    ways = np.concatenate(list(read_parts(paths, "distances", n_landmarks)))
    distances = np.minimum(ways, ways.T)
    squares = distances**2
    centred = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis] + squares.mean())
    values, vectors = group.read("eigenvalues"), group.read("vectors")
    spectrum = np.linalg.eigvalsh(centred)
    largest = spectrum[::-1][: len(values)]
    off = float(np.abs(values - largest).max() / largest[0])
    yield at_most(ISOMAP, "eigenvalues", 0.0, off, 1e-8, "off those of the centred squares of distances, relative")
    residual = float(np.abs(centred @ vectors - vectors * values).max() / (largest[0] * np.abs(vectors).max()))
    yield at_most(ISOMAP, "coordinates of landmarks", 0.0, residual, 1e-7, "B v = lambda v, relative")
    said, name = group.certificates, "least_eigenvalue"
    yield equal(ISOMAP, name, said.get(name), float(spectrum[0]), SAME * float(largest[0]))
    reached = np.sqrt(squared_distances(vectors, vectors))
    variance = 1 - float(np.corrcoef(distances.ravel(), reached.ravel())[0, 1]) ** 2
    yield equal(ISOMAP, "residual_variance", said.get("residual_variance"), variance, SAME * variance + 1e-9)
    placed = -0.5 * (drawn.astype(np.float64) ** 2 - squares.mean(axis=1)[:, np.newaxis]).T @ (vectors / values)
    embedding = group.read("embedding")[audit.order]
    stored = embedding[audit.sample]
    wrong = (np.abs(placed - stored) > 1e-4 * np.abs(stored).max()).any(axis=1)
    yield none_wrong(ISOMAP, f"triangulation of {len(stored)} rows", int(wrong.sum()), "by distances to landmarks")
    yield from judge_by_sample(ISOMAP, paths, embedding, said)


def check_combined(audit: Audit, group: StoredGroup) -> Iterator[Finding]:
    """Check that squares of coordinates are eigenvalues, and what paths from sampled points say of them."""
    embedding, values = group.read("embedding")[audit.order], group.read("eigenvalues")
    products = embedding.T @ embedding
    off = float(np.abs(products - np.diag(values)).max() / values[0])
    yield at_most(COMBINED, "eigenvalues", 0.0, off, 1e-6, "squares and products of coordinates, relative")
    yield from judge_by_sample(COMBINED, audit.run.groups[GEODESICS], embedding, group.certificates)


def judge_by_sample(stage: str, paths: StoredGroup, embedding: np.ndarray, said: dict[str, Any]) -> Iterator[Finding]:
    """Compare what is certified by paths from sampled points with what these say: positions (N, d) in work order.

    Rows of B U - U diag(|x|^2), B = -J D^2 J / 2 and U the columns x of the embedding at unit length, centred, have a
    mean of zero over all points, and a variance by which the residuals follow.
    """
    rows, n_points = paths.read("sampled_rows"), len(embedding)
    centred = embedding - embedding.mean(axis=0)
    squares = np.square(centred).sum(axis=0)
    unit, missed, sums = centred / np.sqrt(squares), [], []
    for first, part in enumerate(read_parts(paths, "from_sample", len(rows), "sample")):
        lengths, starts = part.astype(np.float64), rows[first * PATHS : (first + 1) * PATHS]
        missed.append(-0.5 * lengths**2 @ unit - unit[starts] * squares)
        for row, one in zip(starts, lengths, strict=True):
            other = np.linalg.norm(embedding - embedding[row], axis=1)
            sums.append([one.sum(), other.sum(), one @ one, other @ other, one @ other])
    residuals = np.concatenate(missed)
    away = np.square(residuals - residuals.mean(axis=0)) * (len(rows) / max(1, len(rows) - 1))
    worst = int(np.argmax(away.mean(axis=0)))
    residual = float(np.sqrt(n_points * away[:, worst].mean()))
    error = np.sqrt((1 - len(rows) / n_points) * away[:, worst].var() / max(1, len(rows) - 1))
    error *= 0.5 * n_points / residual if residual > 0 else 0.0
    variance, of_variance = jackknifed(np.array(sums), n_points - 1)
    for name, value in (
        ("residual", residual / squares.max()),
        ("residual_error", error / squares.max()),
        ("points_residual_variance", variance),
        ("points_residual_variance_error", of_variance),
    ):
        slack = 1e-5 * abs(value) + 1e-9  # positions are stored in another unit
        yield equal(stage, name, said.get(name), float(value), slack, f"by {len(rows)} sampled points")


def jackknifed(sums: np.ndarray, per_row: int) -> tuple[float, float]:
    """Return 1 - r^2 of two variables by sums (s, 5) of values, squares and products of rows, and its error."""

    def unexplained(total: np.ndarray, count: int) -> float:
        one, other, one_squares, other_squares, products = total / count
        return float(1 - (products - one * other) ** 2 / ((one_squares - one**2) * (other_squares - other**2)))

    whole, total = unexplained(sums.sum(axis=0), len(sums) * per_row), sums.sum(axis=0)
    if len(sums) < 2:
        return whole, 0.0
    without = np.array([unexplained(total - one, (len(sums) - 1) * per_row) for one in sums])
    return whole, float(np.sqrt((len(sums) - 1) * without.var()))
