"""Embeddings of methods with a small eigenproblem of their own, clusters, and what points are sorted by."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from scalemani.audit.findings import Finding, at_most, equal, none_wrong, unchecked
from scalemani.audit.graph import final_graph, read_block
from scalemani.audit.landmarks import LANDMARKS, over_landmarks, squared_distances, times_weights
from scalemani.audit.neighbors import lists_of
from scalemani.audit.rows import Audit, Points
from scalemani.audit.stored import block_folder

OVER_LANDMARKS = ("principal_components", "kernel_components", "local_reconstruction")
DISCRIMINANTS, OF_KERNEL = "discriminants", "kernel_discriminants"
GEODESICS, ISOMAP = "geodesics", "isomap"
CLUSTERING = "clustering"
PATHS = 8  # landmarks whose shortest paths are found anew


def check_reductions(audit: Audit) -> Iterator[Finding]:
    """Check the embeddings of methods that have a stage of their own for it."""
    for stage in OVER_LANDMARKS:
        if audit.run.has(stage):
            yield over_landmarks(audit, stage, audit.run.groups[stage].read("vectors"))
            yield from check_eigenvalues(audit, stage)
    if audit.run.has(DISCRIMINANTS):
        yield check_projection(audit)
    if audit.run.has(OF_KERNEL):
        yield check_kernel_projection(audit)
    if audit.run.has(GEODESICS):
        yield from check_geodesics(audit)
    if audit.run.has(ISOMAP):
        yield from check_isomap(audit)


def check_eigenvalues(audit: Audit, stage: str) -> Iterator[Finding]:
    """Check the eigenvalues of an embedding by its columns, where these say them."""
    group = audit.run.groups[stage]
    values, embedding = group.read("eigenvalues"), group.read("embedding")
    if stage == "principal_components":
        found = embedding.var(axis=0, ddof=1)
        off = float(np.abs(found - values).max() / max(np.abs(values).max(), 1e-300))
        yield at_most(stage, "eigenvalues", 0.0, off, 1e-6, "off the variances of the columns, relative")
        descending = np.diff(values) > 0
    elif stage == "local_reconstruction":
        products = embedding.T @ embedding
        off = float(np.abs(products - np.eye(len(values))).max())
        yield at_most(stage, "columns are orthonormal", 0.0, off, 1e-5)
        descending = np.diff(values) < 0
    else:
        descending = np.diff(values) > 0
    yield none_wrong(stage, "eigenvalues are in order", int(descending.sum()))


def check_projection(audit: Audit) -> Finding:
    """Compare discriminants of the rows drawn with (points - mean) @ axes."""
    group = audit.run.groups[DISCRIMINANTS]
    points = Points(audit.run, audit.run.groups["points"], "").gather(audit.sample)
    axes = group.read("axes")
    projected, stored = (points - group.read("mean")) @ axes, audit.rows_of(group, "embedding", audit.sample)
    off = np.abs(projected - stored) > 1e-6 * np.abs(projected).max(axis=0)
    return none_wrong(DISCRIMINANTS, "embedding is (points - mean) @ axes", int(off.any(axis=1).sum()), "rows drawn")


def check_kernel_projection(audit: Audit) -> Finding:
    """Compare kernel discriminants with [K Z, K 1] times directions less their mean."""
    group, stage = audit.run.groups[OF_KERNEL], final_graph(audit)
    directions = group.read("directions")
    vectors = times_weights(audit, directions[:-1])
    projected = np.empty_like(vectors)
    for block, (start, stop) in enumerate(audit.run.blocks):
        rows = read_block(audit, stage, block)
        sums = 1 + np.asarray(rows.sum(axis=1)).ravel()
        projected[start:stop] = rows @ vectors + vectors[start:stop] + sums[:, np.newaxis] * directions[-1]
    projected -= group.read("mean")
    off = np.abs(projected - group.read("embedding")[audit.order]) > 1e-6 * np.abs(projected).max(axis=0)
    return none_wrong(OF_KERNEL, "embedding is [K Z, K 1] @ directions - mean", int(off.any(axis=1).sum()), "rows")


def check_geodesics(audit: Audit) -> Iterator[Finding]:
    """Find the shortest paths from some landmarks anew and compare their lengths."""
    group, rows = audit.run.groups[GEODESICS], audit.run.groups[LANDMARKS].read("rows")
    sources = np.argsort(audit.order, kind="stable")[rows]
    graph, bytes_needed = (
        None,
        32
        * audit.run.n_points
        * audit.run.groups["neighbors"].array(lists_of(audit.run.groups["neighbors"])[0]).shape[1],
    )
    part = int(audit.generator.integers(-(-len(rows) // PATHS)))
    if bytes_needed > audit.memory:
        yield unchecked(GEODESICS, "shortest paths", "the edges of the graph do not fit the memory")
        return
    graph = edges_with_bridges(audit)
    own = sources[part * PATHS : (part + 1) * PATHS]
    found = dijkstra(graph, directed=False, indices=own)
    for name, expected in (("distances", found[:, sources]), ("to_points", found)):
        stored = group.read(f"{block_folder(part)}/{name}")
        off = np.abs(stored - expected) > 1e-5 * expected
        yield none_wrong(GEODESICS, f"shortest paths from {len(own)} landmarks: {name}", int(off.sum()), "made anew")


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
    values = np.maximum(values, 1e-12 * values.max())
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.lexsort((values, high, low))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)
    kept = order[first]
    return sp.csr_matrix((values[kept], (low[kept], high[kept])), shape=(len(indices),) * 2)


def check_isomap(audit: Audit) -> Iterator[Finding]:
    """Scale the landmarks anew, and triangulate the rows drawn by their stored distances."""
    group, paths = audit.run.groups[ISOMAP], audit.run.groups[GEODESICS]
    n_landmarks = len(audit.run.groups[LANDMARKS].read("points"))
    parts = range(-(-n_landmarks // PATHS))
    ways = np.concatenate([paths.read(f"{block_folder(part)}/distances") for part in parts])
    squares = np.minimum(ways, ways.T) ** 2
    centred = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis] + squares.mean())
    values, vectors = group.read("eigenvalues"), group.read("vectors")
    largest = np.linalg.eigvalsh(centred)[::-1][: len(values)]
    off = float(np.abs(values - largest).max() / largest[0])
    yield at_most(ISOMAP, "eigenvalues", 0.0, off, 1e-8, "off those of the centred squares of distances, relative")
    residual = float(np.abs(centred @ vectors - vectors * values).max() / (largest[0] * np.abs(vectors).max()))
    yield at_most(ISOMAP, "coordinates of landmarks", 0.0, residual, 1e-7, "B v = lambda v, relative")
    to_points = np.concatenate([paths.read(f"{block_folder(part)}/to_points") for part in parts])[:, audit.sample]
    placed = -0.5 * (to_points.astype(np.float64) ** 2 - squares.mean(axis=1)[:, np.newaxis]).T @ (vectors / values)
    stored = audit.run.groups[ISOMAP].read("embedding")[audit.order[audit.sample]]
    wrong = (np.abs(placed - stored) > 1e-4 * np.abs(stored).max()).any(axis=1)
    yield none_wrong(ISOMAP, f"triangulation of {len(stored)} rows", int(wrong.sum()), "by distances to landmarks")


def check_clustering(audit: Audit) -> Iterator[Finding]:
    """Check that rows are in the cluster of the nearest centre, and sizes of clusters."""
    group, embedding = audit.run.groups[CLUSTERING], audit.run.groups["embedding"]
    labels, said = group.read("labels"), group.certificates
    n_clusters = int(audit.run.param(CLUSTERING, "n_clusters"))
    inside = bool((labels >= 0).all() and (labels < n_clusters).all())
    yield none_wrong(CLUSTERING, "labels are clusters", int(not inside))
    if inside:
        sizes = np.bincount(labels, minlength=n_clusters).tolist()
        yield equal(CLUSTERING, "sizes", str(said.get("sizes")), str(sizes))
    if embedding.holds("pieces"):
        yield unchecked(CLUSTERING, "nearest centres", "of a graph in pieces, clusters follow the pieces")
        return
    rows = audit.rows_of(embedding, "embedding", audit.sample)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    squares = squared_distances(rows / np.where(lengths > 0, lengths, 1.0), group.read("centers"))
    own = np.take_along_axis(squares, audit.rows_of(group, "labels", audit.sample)[:, np.newaxis].astype(np.int64), 1)
    wrong = own[:, 0] > squares.min(axis=1) + 1e-9
    yield none_wrong(CLUSTERING, f"nearest centres of {len(rows)} rows", int(wrong.sum()))


# What points are sorted by


def check_order(audit: Audit) -> Iterator[Finding]:
    """Check that work rows are the points in another order, with their sketches, sorted by cells."""
    stage, group = "work_points", audit.run.groups["work_points"]
    yield none_wrong(stage, "every input row is one work row", int(not audit.order_is_whole))
    if not audit.order_is_whole or audit.points is None:
        return
    given = Points(audit.run, audit.run.groups["points"], "")
    different = (given.gather(audit.order[audit.sample]) != audit.sampled_points).any(axis=1)
    yield none_wrong(stage, f"{len(different)} rows are the points at their input rows", int(different.sum()))
    if audit.run.has("partition") and group.holds("sketch"):
        yield from check_partition(audit)


def check_partition(audit: Audit) -> Iterator[Finding]:
    """Check sketches and cells of the rows drawn."""
    group, work = audit.run.groups["partition"], audit.run.groups["work_points"]
    mean, axes, scale, centroids = (group.read(name) for name in ("mean", "axes", "scale", "centroids"))
    made = (audit.sampled_points - mean) @ axes.astype(np.float64) / float(scale)
    stored = audit.rows_of(work, "sketch", audit.sample).astype(np.float64)
    size = np.abs(made).max(initial=1e-300)
    off = (np.abs(made - stored) > 1e-4 * size).any(axis=1)
    yield none_wrong("work_points", f"sketches of {len(made)} rows", int(off.sum()), "(point - mean) @ axes / scale")
    cells = audit.rows_of(group, "cells", audit.order[audit.sample])
    inside = (cells >= 0) & (cells < len(centroids))
    squares = squared_distances(stored, centroids.astype(np.float64))
    own = np.take_along_axis(squares, np.where(inside, cells, 0)[:, np.newaxis].astype(np.int64), 1)[:, 0]
    wrong = ~inside | (own > squares.min(axis=1) * (1 + 1e-3) + 1e-6 * size**2)
    yield none_wrong("partition", f"nearest cells of {len(cells)} rows", int(wrong.sum()), "by their sketches")
    if work.holds("cell_offsets"):
        offsets = work.read("cell_offsets")
        place = np.searchsorted(offsets, audit.sample, side="right") - 1
        yield none_wrong("work_points", "rows are sorted by cell", int((place != cells).sum()), "rows drawn")


def check_result_graph(audit: Audit) -> Iterator[Finding]:
    """Compare the graph in input order with that of the search, at the rows drawn."""
    stage = "graph"
    group, graph = audit.run.groups[stage], audit.run.groups["neighbors"]
    inputs = audit.order[audit.sample]
    for name, path in zip(("indices", "distances"), lists_of(graph), strict=True):
        stored, searched = audit.rows_of(group, name, inputs), audit.rows_of(graph, path, audit.sample)
        expected = audit.order[np.clip(searched, 0, audit.run.n_points - 1)] if name == "indices" else searched
        wrong = int((stored != expected).any(axis=1).sum())
        yield none_wrong(stage, f"{name} of {len(stored)} rows", wrong, "those of the search, in input order")
    claimed = group.certificates.get("recall")
    yield equal(stage, "recall", claimed, graph.certificates.get("recall"), 1e-12, "that of the search")


def check_copies(audit: Audit) -> Iterator[Finding]:
    """Check that each point is of some given rows, and that weights count these where no others were given."""
    points = audit.run.groups["duplicates"].read("points")
    kept = points[points >= 0]
    inside = bool((points >= -1).all() and (points < audit.run.n_points).all())
    counts = np.bincount(kept, minlength=audit.run.n_points) if inside else np.zeros(1)
    yield none_wrong("duplicates", "every point is of a given row", int(not inside) + int((counts == 0).sum()))
    said = audit.run.groups["duplicates"].certificates
    yield equal("duplicates", "rows", said.get("rows"), len(kept))
    if audit.weights is not None:
        total = audit.run.groups["weights"].certificates.get("total_weight")
        yield equal("weights", "total_weight", total, float(audit.weights.sum()), 1e-9 * float(audit.weights.sum()))
        if inside and total == len(kept):
            wrong = int((counts[audit.order] != audit.weights).sum())
            yield none_wrong("weights", "weights count equal rows", wrong)
