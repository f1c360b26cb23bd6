"""Eigenvectors of L v = lambda D v: residuals, orthogonality and eigenvalues by one pass of products with W."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.audit.findings import Finding, at_most, equal, none_wrong, unchecked, verdict_of
from scalemani.audit.graph import Pass, check_pass, final_graph, pass_over, read_block, read_degrees
from scalemani.audit.guards import by_landmarks, check_bounds, read_guards, ritz_vectors, rounding
from scalemani.audit.rows import Audit
from scalemani.audit.stored import processors

STAGE = "embedding"
NEAR_ZERO = 1e-13
# Steps of a search for an eigenvalue that is left out: for few points so many, for more as many as keep products of the
# vectors of all steps, a row of each a point, below a number.
MOST_STEPS, FEWEST_STEPS, MOST_PRODUCTS = 250, 20, 1e9


def read_vectors(audit: Audit) -> np.ndarray:
    """Return the embedding (N, d) in work order."""
    return audit.run.groups[STAGE].read("embedding").astype(np.float64)[audit.order]


def check_spectral(audit: Audit) -> tuple[list[Finding], np.ndarray]:
    """Check W and the eigenvectors by one pass; return the pieces (N,) of the W that the pass was over, too."""
    stage = final_graph(audit)
    vectors = guards = np.empty((audit.run.n_points, 0))
    if audit.run.has(STAGE):
        vectors = read_vectors(audit)
        guards = read_guards(audit, read_degrees(audit, stage))
    graph_pass = pass_over(audit, stage, np.column_stack([vectors, guards]))
    findings = list(check_pass(audit, stage, graph_pass))
    if audit.run.has(STAGE):
        check = check_pieces if audit.run.groups[STAGE].holds("pieces") else check_eigenvectors
        findings += check(audit, graph_pass, vectors, guards)
    return findings, graph_pass.labels


def check_eigenvectors(audit: Audit, graph_pass: Pass, vectors: np.ndarray, guards: np.ndarray) -> Iterator[Finding]:
    """Check residuals, orthogonality, eigenvalues and bounds of a connected graph."""
    group, eps = audit.run.groups[STAGE], rounding(audit)
    said, values = group.certificates, group.read("eigenvalues")
    masses = np.einsum("n,nd,nd->d", graph_pass.degrees, vectors, vectors)
    if not (masses > 0).all():
        yield none_wrong(STAGE, "eigenvectors are not zero", int((masses <= 0).sum()))
        return
    leading = ritz_vectors(
        graph_pass, vectors, graph_pass.products[:, : vectors.shape[1]], np.arange(audit.run.n_points)
    )
    unit, theta, residuals = leading.unit, leading.values, leading.residuals
    ritz = unit.T @ leading.images
    residual = float(residuals.max())
    slack = 0.01 * float(said.get("residual", 0.0)) + eps
    yield at_most(STAGE, "residual", said.get("residual"), residual, slack, "|S u - theta u| over all points")
    yield at_most(STAGE, "D-orthogonality", 0.0, off_diagonal(unit.T @ unit), eps, "v_i D v_j of unit vectors")
    trivial = np.sqrt(graph_pass.degrees / graph_pass.degrees.sum())
    constant = float(np.abs(unit.T @ trivial).max())
    yield at_most(STAGE, "the constant vector is left out", 0.0, constant, eps, "v_i D 1 of unit vectors")
    yield at_most(
        STAGE, "vectors are those of Rayleigh-Ritz", 0.0, off_diagonal(ritz), eps, "v_i W v_j of unit vectors"
    )
    off = float(np.abs(1.0 - theta - values).max())
    yield at_most(STAGE, "eigenvalues", 0.0, off, eps, "off the Rayleigh quotients of the vectors")
    yield none_wrong(STAGE, "eigenvalues ascend", int((np.diff(values) < 0).sum()))
    spread = np.ptp(masses) / masses.max()
    yield at_most(STAGE, "vectors have one length", 0.0, float(spread), eps, "v D v, relative to the largest")
    zero = 1 + int((values < NEAR_ZERO).sum())
    yield equal(STAGE, "near_zero_eigenvalues", said.get("near_zero_eigenvalues"), zero)
    yield from check_bounds(audit, graph_pass, leading, guards)
    if not by_landmarks(audit):  # else vectors are far from eigenvectors
        yield judge_gap(audit, said, graph_pass, unit, theta, residuals)


def off_diagonal(matrix: np.ndarray) -> float:
    """Return the largest magnitude off the diagonal of a square matrix; 0 where there is none."""
    return float(np.abs(matrix - np.diag(np.diag(matrix))).max(initial=0.0))


def judge_gap(
    audit: Audit, said: dict[str, Any], graph_pass: Pass, unit: np.ndarray, theta: np.ndarray, residuals: np.ndarray
) -> Finding:
    """Compare the eigengap with a search for eigenvalues beyond those of the run: it finds one that is left out.

    Of S on the complement of the run's vectors, the largest eigenvalue is at most the next one and |R|, by Weyl's
    theorem; what a search finds is none above it.
    """
    gap, bound = said.get("eigengap"), said.get("eigengap_error_bound")
    name = "eigengap, with none left out"
    if not isinstance(gap, float) or not isinstance(bound, float):
        return unchecked(STAGE, name, "the record does not say it")
    trivial = np.sqrt(graph_pass.degrees / graph_pass.degrees.sum())
    beyond = largest_beyond(audit, graph_pass, np.linalg.qr(np.column_stack([trivial, unit]))[0])
    if beyond is None:
        return unchecked(STAGE, name, "W does not fit the memory, and would be read for every step", gap)
    widest = float(theta.min()) - beyond
    error = bound + float(np.linalg.norm(residuals)) + rounding(audit)
    note = "at most, by Lanczos' method without the run's vectors"
    return Finding(STAGE, name, gap, widest, error, verdict_of(widest >= gap - error), note)


def largest_beyond(audit: Audit, graph_pass: Pass, known: np.ndarray) -> float | None:
    """Return a lower bound of the largest eigenvalue of S without orthonormal vectors (N, m); None if W is too large.

    S is D^-1/2 W D^-1/2. All vectors are made orthogonal to each other and to the known ones in each step.
    """
    n_points, n_known = known.shape
    affordable = int(np.clip(np.sqrt(MOST_PRODUCTS / n_points), FEWEST_STEPS, MOST_STEPS))
    steps = min(affordable, n_points - n_known, audit.memory // (32 * n_points))
    if 12 * graph_pass.nonzeros > audit.memory // 2 or steps < 1:
        return None
    roots, stage = np.sqrt(graph_pass.degrees), final_graph(audit)
    blocks = [read_block(audit, stage, block) for block in range(len(audit.run.blocks))]
    basis, projected = np.zeros((n_points, steps)), np.zeros((steps, steps))
    vector = np.asarray(audit.generator.standard_normal(n_points))
    with ThreadPoolExecutor(processors()) as pool:  # threads of all steps: to start them takes longer than a product
        for step in range(steps):
            before = float(np.linalg.norm(vector))
            for _ in range(2):  # rounding of the first time is larger than what is left where little is
                vector -= known @ (known.T @ vector)
                vector -= basis[:, :step] @ (basis[:, :step].T @ vector)
            length = np.linalg.norm(vector)
            if length < 1e-10 * max(before, 1e-10):  # there is nothing beyond
                projected = projected[:step, :step]
                break
            basis[:, step] = vector / length
            vector = product(pool, blocks, basis[:, step] / roots) / roots
            projected[: step + 1, step] = projected[step, : step + 1] = basis[:, : step + 1].T @ vector
    return float(scipy.linalg.eigvalsh(projected)[-1])


def product(pool: ThreadPoolExecutor, blocks: list[sp.csr_matrix], vector: np.ndarray) -> np.ndarray:
    """Return a matrix by blocks of rows times a vector."""
    return np.concatenate(list(pool.map(lambda rows: np.asarray(rows @ vector), blocks)))


def check_pieces(audit: Audit, graph_pass: Pass, vectors: np.ndarray, guards: np.ndarray) -> Iterator[Finding]:
    """Check a graph in pieces: that no edge joins them, residuals, no constant vectors, bounds of the largest."""
    group, eps = audit.run.groups[STAGE], rounding(audit)
    said, values = group.certificates, group.read("piece_eigenvalues")
    pieces = group.read("pieces")[audit.order]
    joined = len(np.unique(graph_pass.labels.astype(np.int64) * len(values) + pieces))
    yield none_wrong(
        STAGE, "no edge leads out of a piece", joined - (int(graph_pass.labels.max()) + 1), "pieces joined"
    )
    n_pieces = int(pieces.max()) + 1
    masses = sums_by(pieces, graph_pass.degrees[:, np.newaxis] * vectors**2, n_pieces)
    products = graph_pass.products[:, : vectors.shape[1]]
    left = products - graph_pass.degrees[:, np.newaxis] * vectors * (1.0 - values[pieces])
    squares = sums_by(pieces, left**2 / graph_pass.degrees[:, np.newaxis], n_pieces)
    residuals = np.sqrt(np.divide(squares, masses, out=np.zeros_like(squares), where=masses > 0))
    residual = float(residuals.max())
    slack = 0.01 * float(said.get("residual", 0.0)) + eps
    yield at_most(STAGE, "residual", said.get("residual"), residual, slack, "of the worst piece")
    empty = (masses == 0) & (values != 1)
    yield none_wrong(STAGE, "pieces have eigenvectors where they have eigenvalues", int(empty.sum()))
    means = sums_by(pieces, graph_pass.degrees[:, np.newaxis] * vectors, n_pieces)
    weights = np.bincount(pieces, graph_pass.degrees, minlength=n_pieces)[:, np.newaxis]
    constant = np.abs(means) / np.sqrt(weights * np.where(masses > 0, masses, 1.0))
    yield at_most(STAGE, "constant vectors are left out", 0.0, float(constant.max()), eps, "of every piece")
    yield equal(STAGE, "pieces", said.get("pieces"), n_pieces)
    largest = np.flatnonzero(pieces == 0)
    count = min(vectors.shape[1], len(largest) - 1)
    leading = ritz_vectors(graph_pass, vectors[:, :count], products[:, :count], largest)
    yield from check_bounds(audit, graph_pass, leading, guards)


def sums_by(pieces: np.ndarray, values: np.ndarray, n_pieces: int) -> np.ndarray:
    """Return the sums (P, d) of values (N, d) over the points of each piece."""
    return np.column_stack([np.bincount(pieces, column, minlength=n_pieces) for column in values.T])


def check_diffusion(audit: Audit) -> Iterator[Finding]:
    """Check that diffusion coordinates are eigenvectors times powers of their eigenvalues."""
    stage = "diffusion_coordinates"
    before, after = (audit.run.groups[one].read("embedding") for one in (STAGE, stage))
    values = audit.run.groups[STAGE].read("eigenvalues")
    scales = np.abs(1.0 - values) ** float(audit.run.param(stage, "time", 1.0))
    if audit.run.groups[STAGE].holds("pieces"):
        piece_values = audit.run.groups[STAGE].read("piece_eigenvalues")
        scales = np.abs(1.0 - piece_values[audit.run.groups[STAGE].read("pieces")]) ** float(
            audit.run.param(stage, "time", 1.0)
        )
    off = np.abs(after - before * scales) > 1e-9 * np.abs(before)
    yield none_wrong(stage, "coordinates", int(off.any(axis=1).sum()), "rows other than v |1 - lambda|^time")
