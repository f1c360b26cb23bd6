"""Coarse graphs: a start for refinement that knows tight small clusters, which landmarks smooth away.

Points are joined with their strongest neighbour into small aggregates, in one pass; the graph between aggregates is
W_c = Q^T W Q with the 0/1 membership matrix Q, in a second one; degrees stay row sums, so W_c is an affinity graph
(with weight inside aggregates on its diagonal) and coarsens further. Eigenvectors of the coarsest graph are carried up
level by level, each time followed by a few filtered passes. Source: multilevel eigensolvers for graphs [Barnard and
Simon 1994]; strength of connection as in aggregation multigrid [Vanek, Mandel and Brezina 1996].
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.compile import compiled
from scalemani.kernels.graph_product import normalized_product
from scalemani.kernels.reduced import TreeSum, symmetric_part
from scalemani.kernels.refinement import initial_state, random_columns, refined, unit_roots
from scalemani.kernels.symmetrize import row_sums
from scalemani.kernels.tall import Mapper, panels

MOST_MEMBERS = 8
DENSE_NODES = 2000  # solved densely: about half a second
LEAST_SHRINKAGE = 0.9  # a level that keeps more of its nodes than this ends the coarsening
PASSES_PER_LEVEL = 45  # on a level of PASSES_NODES; smaller levels are cheap and take more, by the root of their size
PASSES_NODES = 2**19
MOST_PASSES = 200
PASSES_FROM_RANDOM = 400  # where coarsening ended early there is no start
ROUGHNESS = 0.3  # a level is left when its residuals are this share of what is asked: prolongation adds more


class AggregateState(NamedTuple):
    """`labels` (N,) int32, -1 where a row has no aggregate yet; `sizes` (N,) int32; `count`, aggregates so far."""

    labels: np.ndarray
    sizes: np.ndarray
    count: int


def no_aggregates(n_points: int) -> AggregateState:
    """Return the state before any row."""
    return AggregateState(np.full(n_points, -1, np.int32), np.zeros(n_points, np.int32), 0)


@compiled
def _aggregate(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    inverse_roots: np.ndarray,
    start: int,
    labels: np.ndarray,
    sizes: np.ndarray,
    count: int,
) -> int:
    indptr, indices, values = rows
    for row in range(indptr.shape[0] - 1):
        node = start + row
        if labels[node] >= 0:
            continue
        strongest, partner = 0.0, -1
        for entry in range(indptr[row], indptr[row + 1]):
            other = indices[entry]
            strength = values[entry] * inverse_roots[other]
            if other != node and strength > strongest and (labels[other] < 0 or sizes[labels[other]] < MOST_MEMBERS):
                strongest, partner = strength, other
        if partner >= 0 and labels[partner] >= 0:
            labels[node] = labels[partner]
        else:
            labels[node] = count
            count += 1
            if partner >= 0:
                labels[partner] = labels[node]
                sizes[labels[node]] += 1
        sizes[labels[node]] += 1
    return count


def aggregated(
    state: AggregateState, rows: tuple[np.ndarray, np.ndarray, np.ndarray], inverse_roots: np.ndarray, start: int
) -> AggregateState:
    """Return the state after rows [start, start + n): each joins its strongest neighbour whose aggregate has room.

    Parameters: `rows`, (indptr, indices, values) of these rows of W; `inverse_roots` (N,), degrees to the power -1/2.
    Blocks must come in row order; their size leaves no trace.
    """
    labels, sizes = state.labels.copy(), state.sizes.copy()
    return AggregateState(labels, sizes, _aggregate(rows, inverse_roots, start, labels, sizes, state.count))


def membership(labels: np.ndarray, n_aggregates: int) -> sp.csr_matrix:
    """Return Q (n, n_aggregates) with a one in each row: parts of Q^T W Q are `weighted_product` of its rows."""
    n_rows = len(labels)
    return sp.csr_matrix((np.ones(n_rows), labels, np.arange(n_rows + 1)), shape=(n_rows, n_aggregates))


def coarse_part(rows: tuple[np.ndarray, np.ndarray, np.ndarray], labels: np.ndarray, start: int) -> sp.csr_matrix:
    """Return one block's part of Q^T W Q, (C, C) float64: `labels` (N,) of all points, `rows` of W from `start` on."""
    indptr, indices, values = rows
    count = int(labels.max()) + 1
    spread = sp.csr_matrix((values.astype(np.float64), labels[indices], indptr), shape=(len(indptr) - 1, count))
    return sp.csr_matrix(membership(labels[start : start + len(indptr) - 1], count).T.tocsr() @ spread)


def coarse_eigenvectors(
    affinities: sp.csr_matrix, n_vectors: int, n_wanted: int, target: float, seed: int = 0, over: Mapper = map
) -> np.ndarray:
    """Return approximate leading eigenvectors v of a graph in memory, the trivial one left out: (C, n_vectors) float32.

    Parameters: `affinities` (C, C) symmetric CSR, positive degrees; `n_wanted` leading vectors are brought to residuals
    near `target`, within a fixed number of passes on each level; `over` runs panels of rows side by side.
    """
    n_nodes = affinities.shape[0]
    degrees = row_sums(affinities.data, affinities.indptr)
    if n_nodes <= max(DENSE_NODES, 3 * n_vectors):
        return _dense_eigenvectors(affinities, degrees, n_vectors)
    rows = (affinities.indptr, affinities.indices, affinities.data)
    state = aggregated(no_aggregates(n_nodes), rows, 1 / np.sqrt(degrees), 0)
    if state.count > LEAST_SHRINKAGE * n_nodes:
        vectors, passes = random_columns(n_nodes, n_vectors, seed), PASSES_FROM_RANDOM
    else:
        total = TreeSum()
        for panel in panels(n_nodes):
            total.add(coarse_part(_rows(affinities, panel), state.labels, panel.start))
        coarse = coarse_eigenvectors(symmetric_part(total.total()), n_vectors, n_wanted, target, seed, over)
        vectors, passes = coarse[state.labels], _passes(n_nodes)
    trivial = unit_roots(degrees)

    def apply(block: np.ndarray) -> np.ndarray:
        out = np.empty_like(block)
        inverse_roots = 1 / np.sqrt(degrees)

        def part(panel: slice) -> None:
            normalized_product(_rows(affinities, panel), inverse_roots, panel.start, block, out[panel])

        for _ in over(part, panels(n_nodes)):
            pass
        return out

    start = initial_state(vectors, trivial, apply, over)
    final = refined(start, apply, trivial, n_wanted, ROUGHNESS * target, passes, over)
    return final.previous / np.sqrt(degrees)[:, None].astype(np.float32)


def _passes(n_nodes: int) -> int:
    return int(np.clip(PASSES_PER_LEVEL * np.sqrt(PASSES_NODES / n_nodes), PASSES_PER_LEVEL, MOST_PASSES))


def _rows(matrix: sp.csr_matrix, panel: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    indptr = matrix.indptr[panel.start : panel.stop + 1]
    entries = slice(indptr[0], indptr[-1])
    return indptr - indptr[0], matrix.indices[entries], matrix.data[entries]


def _dense_eigenvectors(affinities: sp.csr_matrix, degrees: np.ndarray, n_vectors: int) -> np.ndarray:
    inverse_roots = 1 / np.sqrt(degrees)
    matrix = affinities.toarray().astype(np.float64) * inverse_roots[:, None] * inverse_roots
    _, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors[:, ::-1][:, 1 : n_vectors + 1] * inverse_roots[:, None]).astype(np.float32)
