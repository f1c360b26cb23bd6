"""A graph reduced to the strongest neighbours of each point, and made symmetric again."""

import numpy as np

from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled


@compiled
def _thresholds(indptr: np.ndarray, values: np.ndarray, kappa: int) -> np.ndarray:
    """Return the value of the kappa-th strongest edge of each row, zero where a row has no more than kappa."""
    thresholds = np.zeros(indptr.shape[0] - 1, values.dtype)
    for row in range(thresholds.shape[0]):
        start, stop = indptr[row], indptr[row + 1]
        if stop - start > kappa:
            thresholds[row] = np.partition(values[start:stop], stop - start - kappa)[stop - start - kappa]
    return thresholds


@compiled
def _filter_edges(
    rows: Rows,
    thresholds: np.ndarray,
    indptr: np.ndarray,
    out: tuple[np.ndarray, np.ndarray] | None,
) -> None:
    """Fill `indptr` of the edges that are strong enough, and `out` (indices, values) with these edges."""
    starts, indices, values = rows
    count = 0
    for row in range(thresholds.shape[0]):
        for entry in range(starts[row], starts[row + 1]):
            # Values are symmetric to the last bit, so both directions of an edge stay or both go.
            if values[entry] >= min(thresholds[row], thresholds[indices[entry]]):
                if out is not None:
                    out[0][count], out[1][count] = indices[entry], values[entry]
                count += 1
        indptr[row + 1] = count


def strongest_neighbors(rows: AffinityRows, kappa: int) -> AffinityRows:
    """Return the edges that are among the strongest of either of their points; symmetric if the rows are.

    Of each point `kappa` edges are sure to stay, and those as strong as the weakest of them stay too. Source: [PH] 3.3,
    where kappa sparsifies the attractive Hessian.
    """
    thresholds = _thresholds(rows.indptr, rows.values, kappa)
    indptr = np.zeros_like(rows.indptr)
    _filter_edges(tuple(rows), thresholds, indptr, None)
    edges = (np.empty(indptr[-1], rows.indices.dtype), np.empty(indptr[-1], rows.values.dtype))
    _filter_edges(tuple(rows), thresholds, indptr, edges)
    return AffinityRows(indptr, *edges)


def without_loops(rows: AffinityRows) -> AffinityRows:
    """Return the edges between different points, in the dtypes of `rows`."""
    sources = np.repeat(np.arange(rows.n_points, dtype=rows.indices.dtype), np.diff(rows.indptr))
    between = rows.indices != sources
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(between)])[rows.indptr]
    return AffinityRows(indptr, rows.indices[between], rows.values[between])
