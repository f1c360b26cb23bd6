"""Clusters, graphs that are results, and what points are sorted by."""

from collections.abc import Iterator

import numpy as np

from scalemani.audit.findings import Finding, at_most, equal, none_wrong, unchecked
from scalemani.audit.landmarks import squared_distances
from scalemani.audit.neighbors import lists_of
from scalemani.audit.rows import Audit, Points
from scalemani.audit.stored import StoredGroup
from scalemani.store.invariants.models import IN_SIGHT, SKETCHED

CLUSTERING = "clustering"


def check_clustering(audit: Audit) -> Iterator[Finding]:
    """Check labels, sizes of clusters and, of rows drawn, that no other centre is nearer."""
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
    yield from check_last_pass(audit, group, embedding)
    rows, centers = audit.rows_of(embedding, "embedding", audit.sample), group.read("centers")
    values, requested = embedding.read("eigenvalues"), audit.run.param(CLUSTERING, "n_columns")
    beyond = len(values) == n_clusters > 2 and values[-1] / 1.5 >= max(values[-2], 0)
    columns = requested or (n_clusters - 1 if beyond else len(values))
    yield equal(CLUSTERING, "columns", said.get("columns"), columns, note="those before a gap of the eigenvalues")
    squares = squared_distances(unit_rows(rows[:, : centers.shape[1]]), centers)
    away = np.take_along_axis(squares, audit.rows_of(group, "labels", audit.sample)[:, np.newaxis].astype(np.int64), 1)
    wrong = away[:, 0] > squares.min(axis=1) + 1e-9
    yield none_wrong(CLUSTERING, f"nearest centres of {len(rows)} rows", int(wrong.sum()))


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, d) float64 over their lengths; zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), np.float64)


def check_last_pass(audit: Audit, group: StoredGroup, embedding: StoredGroup) -> Iterator[Finding]:
    """Check that centres are the means of the points that were nearest to those before: a pass of Lloyd's method."""
    passes, centers = int(group.read("passes")), group.read("centers")
    if not passes:
        return
    before = group.read(f"pass_{passes - 1:03d}")
    sums, counts = np.zeros(centers.shape), np.zeros(len(centers))
    for start, stop in audit.run.blocks:
        rows = unit_rows(embedding.read("embedding", start, stop)[:, : centers.shape[1]])
        nearest = squared_distances(rows, before).argmin(axis=1)
        counts += np.bincount(nearest, minlength=len(centers))
        sums += np.column_stack([np.bincount(nearest, column, minlength=len(centers)) for column in rows.T])
    means = np.where(counts[:, np.newaxis] > 0, sums / np.maximum(counts, 1.0)[:, np.newaxis], before)
    off = float(np.abs(means - centers).max())
    yield at_most(CLUSTERING, "centres are the means of their points", 0.0, off, 1e-6, "of the pass before the last")


# What points are sorted by


def check_order(audit: Audit) -> Iterator[Finding]:
    """Check that work rows are the points in another order, with their sketches, sorted by cells."""
    stage = "work_points"
    yield none_wrong(stage, "every input row is one work row", int(not audit.order_is_whole))
    if not audit.order_is_whole or audit.points is None:
        return
    inputs = Points(audit.run, audit.run.groups["points"], "")
    different = (inputs.gather(audit.order[audit.sample]) != audit.sampled_points).any(axis=1)
    yield none_wrong(stage, f"{len(different)} rows are the points at their input rows", int(different.sum()))
    if audit.run.has("partition"):
        yield from check_partition(audit)


def check_partition(audit: Audit) -> Iterator[Finding]:
    """Check, of rows drawn, sketches by mean and axes, and that no other cell is nearer to a sketch."""
    group, work = audit.run.groups["partition"], audit.run.groups["work_points"]
    mean, axes, scale, centroids = (group.read(name) for name in ("mean", "axes", "scale", "centroids"))
    centred = np.clip((audit.sampled_points - mean) / float(scale), -IN_SIGHT, IN_SIGHT)
    made = np.clip(centred @ axes.astype(np.float64), -IN_SIGHT, IN_SIGHT)
    size = np.linalg.norm(centred, axis=1) + np.linalg.norm(mean) / float(scale) + 1e-300
    if work.holds("sketch"):
        stored = audit.rows_of(work, "sketch", audit.sample).astype(np.float64)
        off = (np.abs(made - stored) > SKETCHED * size[:, np.newaxis]).any(axis=1)
        formula = "(point - mean) @ axes / scale"
        yield none_wrong("work_points", f"sketches of {len(made)} rows", int(off.sum()), formula)
    cells = audit.rows_of(group, "cells", audit.order[audit.sample])
    inside = (cells >= 0) & (cells < len(centroids))
    squares = squared_distances(made, centroids.astype(np.float64))
    to_cell = np.take_along_axis(squares, np.where(inside, cells, 0)[:, np.newaxis].astype(np.int64), 1)[:, 0]
    wrong = ~inside | (to_cell > squares.min(axis=1) * (1 + 1e-3) + 1e-6 * size**2)
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
    """Check that each point is of some input rows, and that weights count these where the input has none."""
    points = audit.run.groups["duplicates"].read("points")
    of_rows = points[points >= 0]
    inside = bool((points >= -1).all() and (points < audit.run.n_points).all())
    counts = np.bincount(of_rows, minlength=audit.run.n_points) if inside else np.zeros(1)
    yield none_wrong("duplicates", "every point is of an input row", int(not inside) + int((counts == 0).sum()))
    said = audit.run.groups["duplicates"].certificates
    yield equal("duplicates", "rows", said.get("rows"), len(of_rows))
    if audit.weights is not None:
        total = audit.run.groups["weights"].certificates.get("total_weight")
        yield equal("weights", "total_weight", total, float(audit.weights.sum()), 1e-9 * float(audit.weights.sum()))
        if inside and total == len(of_rows):
            wrong = int((counts[audit.order] != audit.weights).sum())
            yield none_wrong("weights", "weights count equal rows", wrong)
