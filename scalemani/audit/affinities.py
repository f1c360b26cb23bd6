"""Affinities of edges, computed anew from stored distances: their entropies, bandwidths and values, row by row."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.special

from scalemani.audit.findings import Finding, at_most, equal, none_wrong, unchecked
from scalemani.audit.neighbors import lists_of, of_pixels
from scalemani.audit.rows import PRECOMPUTED, Audit

STAGE = "affinities"
FLOAT32 = float(np.finfo(np.float32).eps)
LEAST = float(np.finfo(np.float32).tiny)  # an affinity that an edge has at least, where it is no share
ROUNDING = 4 * FLOAT32  # of a stored affinity, relative
COPIES_OF_EDGES = 6


class Edges(NamedTuple):
    """The edges of some rows of the graph, as far as they have affinities.

    `counts` (n, k) are the weights of the neighbours, `row_counts` (n,) those of the rows; None: one. `copies` (n,) is
    the affinity of a copy of a row to each of its others.
    """

    indices: np.ndarray
    squares: np.ndarray
    values: np.ndarray
    counts: np.ndarray | None
    row_counts: np.ndarray | None
    copies: np.ndarray | None

    @property
    def masses(self) -> tuple[np.ndarray, np.ndarray]:
        """How many copies each neighbour (n, k) stands for, and how many others each row (n,) has."""
        if self.counts is None or self.row_counts is None:
            return np.ones(self.values.shape), np.zeros(len(self.values))
        return self.counts, self.row_counts - 1.0

    @property
    def of_copies(self) -> np.ndarray:
        """The affinity (n,) of a row's copies to each other; 0 where rows are single."""
        return np.zeros(len(self.values)) if self.copies is None else self.copies


def read_edges(audit: Audit, start: int, stop: int) -> Edges:
    """Return the edges of rows [start, stop) of one block, as many a row as have affinities."""
    group, graph = audit.run.groups[STAGE], audit.run.groups["neighbors"]
    values = group.read("values", start, stop)
    names, width = lists_of(graph), values.shape[1]
    indices, distances = (graph.read(name, start, stop)[:, :width] for name in names)
    squares = distances.astype(np.float64) ** 2
    if audit.weights is None:
        return Edges(indices, squares, values, None, None, None)
    safe = np.clip(indices, 0, audit.run.n_points - 1)
    copies = group.read("twins", start, stop) if group.holds("twins") else np.zeros(stop - start)
    return Edges(indices, squares, values, audit.weights[safe], audit.weights[start:stop], copies)


def check_affinities(audit: Audit) -> Iterator[Finding]:
    """Check the affinities of all rows: entropic ones, or kernels; none of pixels and precomputed matrices."""
    kind = audit.run.param(STAGE, "kind")
    if kind == PRECOMPUTED or of_pixels(audit):
        return
    if kind == "entropic":
        yield from check_entropic(audit)
    else:
        yield from check_kernel(audit, str(kind))


class OfEntropic(NamedTuple):
    """Of a panel of entropic affinities: largest residuals in nats, and counts of rows and steps."""

    entropy: float
    solver: float
    saturated: int
    duplicated: int
    iterations: int
    misplaced: int
    unflagged: int


def check_entropic(audit: Audit) -> Iterator[Finding]:
    """Check entropies, solver residuals, affinities by their bandwidths, and counts, of all rows."""
    group, n_points = audit.run.groups[STAGE], audit.run.n_points
    width = group.array("values").shape[1]
    parts = audit.over(lambda panel: entropic_panel(audit, *panel), 8 * COPIES_OF_EDGES * width)
    said = group.certificates
    columns = list(zip(*parts, strict=True))
    entropy, solver = (max(column) for column in columns[:2])
    saturated, duplicated, iterations, misplaced, unflagged = (sum(column) for column in columns[2:])
    note = "of all rows that are not saturated, in nat"
    slack = 1e-12 + 1e-6 * entropy
    yield at_most(STAGE, "largest_entropy_residual", said.get("largest_entropy_residual"), entropy, slack, note)
    yield at_most(STAGE, "largest_solver_residual", said.get("largest_solver_residual"), solver, 1e-15, note)
    yield none_wrong(STAGE, "affinities are those of bandwidths and distances", misplaced, "rows that are not")
    yield none_wrong(STAGE, "saturated rows have as many ties as the perplexity", unflagged, "rows that have not")
    yield equal(STAGE, "saturated_points", said.get("saturated_points"), saturated)
    yield equal(STAGE, "duplicated_points", said.get("duplicated_points"), duplicated)
    yield equal(STAGE, "mean_iterations", said.get("mean_iterations"), iterations / n_points, 1e-9)


def entropic_panel(audit: Audit, start: int, stop: int) -> OfEntropic:
    """Compute the affinities of rows [start, stop) anew by their bandwidths, and the entropy of stored ones."""
    group, edges = audit.run.groups[STAGE], read_edges(audit, start, stop)
    target = math.log(float(audit.run.param(STAGE, "perplexity")))
    saturated = group.read("saturated", start, stop) != 0
    beta, residuals = group.read("beta", start, stop), group.read("residuals", start, stop)
    missed = np.abs(entropies(edges) - target)[~saturated]
    expected, copies = entropic(edges, beta)
    off = np.abs(edges.values - expected) > ROUNDING * expected + 1e-7
    off_copies = np.abs(edges.of_copies - copies) > 1e-6 * copies + 1e-9 if edges.copies is not None else False
    return OfEntropic(
        float(missed.max(initial=0.0)),
        float(np.abs(residuals)[~saturated].max(initial=0.0)),
        int(saturated.sum()),
        int((edges.squares[:, 0] == 0).sum()),
        int(group.read("iterations", start, stop).sum(dtype=np.int64)),
        int((off.any(axis=1) | off_copies).sum()),
        int((saturated & ~has_ties(edges, math.exp(target))).sum()),
    )


def entropies(edges: Edges) -> np.ndarray:
    """Return the entropy (n,) of the affinities of each row, in nat, over all copies."""
    counts, others = edges.masses
    values, copies = edges.values.astype(np.float64), edges.of_copies
    total = (counts * values).sum(axis=1) + others * copies
    total = np.where(total > 0, total, 1.0)
    of_edges = (counts * scipy.special.entr(values / total[:, np.newaxis])).sum(axis=1)
    return of_edges + others * scipy.special.entr(copies / total)


def entropic(edges: Edges, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the affinities (n, k) of each row by its bandwidth, and (n,) those between its copies."""
    counts, others = edges.masses
    copied = others > 0
    nearest = np.where(copied, 0.0, edges.squares[:, 0])
    with np.errstate(over="ignore", invalid="ignore"):
        exponents = beta[:, np.newaxis] * (edges.squares - nearest[:, np.newaxis])
    values = np.exp(-np.nan_to_num(exponents, nan=0.0))
    total = (counts * values).sum(axis=1) + others
    return values / total[:, np.newaxis], np.where(copied, 1.0, 0.0) / total


def has_ties(edges: Edges, perplexity: float) -> np.ndarray:
    """Return which rows (n,) have as many points at the smallest distance as the perplexity."""
    counts, others = edges.masses
    nearest = np.where(others > 0, 0.0, edges.squares[:, 0])
    tied = edges.squares - nearest[:, np.newaxis] <= 1e-12 * edges.squares[:, -1:] + 1e-300
    return (counts * tied).sum(axis=1) + others >= perplexity * (1 - 1e-9)


def check_kernel(audit: Audit, kind: str) -> Iterator[Finding]:
    """Check Gaussian, self-tuning and uniform affinities of all rows against their distances."""
    group = audit.run.groups[STAGE]
    width = group.array("values").shape[1]
    sigma = group.number("sigma") or audit.run.param(STAGE, "sigma")
    nth = int(audit.run.param(STAGE, "bandwidth_neighbor", 7))
    if kind not in ("gaussian", "self-tuning", "uniform") or (kind == "gaussian" and sigma is None):
        yield unchecked(STAGE, f"{kind} affinities", "of a kind that this audit does not know")
        return

    def panel(rows: tuple[int, int]) -> tuple[int, int, float]:
        edges = read_edges(audit, *rows)
        expected = np.ones(edges.squares.shape)
        if kind != "uniform":
            width_of_kernel = np.full(len(expected), sigma) if kind == "gaussian" else self_tuning(edges.squares, nth)
            x = 0.5 * (edges.squares / width_of_kernel[:, np.newaxis]) / width_of_kernel[:, np.newaxis]
            expected = np.maximum(np.exp(-x), LEAST)
        wrong = (np.abs(edges.values - expected) > 1e-5 * expected + 2 * LEAST).any(axis=1)
        at_floor = int((edges.values <= np.float32(LEAST)).sum())
        return int(wrong.sum()), at_floor, float(np.exp(entropies(edges._replace(counts=None, row_counts=None))).sum())

    parts = audit.over(panel, 8 * COPIES_OF_EDGES * width)
    wrong, at_floor, effective = (sum(column) for column in zip(*parts, strict=True))
    said, n_points = group.certificates, audit.run.n_points
    yield none_wrong(STAGE, f"{kind} affinities are those of distances", wrong, "rows that are not")
    yield equal(STAGE, "floor_share", said.get("floor_share"), at_floor / (n_points * width), 1e-9)
    mean = effective / n_points
    yield equal(STAGE, "effective_neighbors", said.get("effective_neighbors"), mean, 1e-6 * mean)


def self_tuning(squares: np.ndarray, nth: int) -> np.ndarray:
    """Return the distance (n,) to the nth neighbour, or to the first beyond it that is not at the point itself."""
    beyond = squares[:, nth - 1 :]
    first = np.argmax(beyond > 0, axis=1)
    distances = np.sqrt(beyond[np.arange(len(beyond)), first])
    return np.where(distances > 0, distances, 1.0)
