"""Squared distances of many short float32 rows by products, looked at before they leave the first-level cache.

A panel holds 128 rows in eight strips, each with the first dimension of its 16 rows, then the second, and so on. Twelve
queries are multiplied with a panel at a time, so that a strip is read once for all of them. This needs no (n, m) matrix
of results, and a product depends on its two rows alone, never on the shape of the call. Indices in the inner loops are
unsigned and no slices are taken there: wrap-around checks keep loops from becoming vector code, and each slice counts
references.
"""

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.lane_instructions import ITEM_BYTES, LANES_AT_ONCE
from scalemani.kernels.machine.lane_products import PANEL_ROWS, ROWS_AT_ONCE, multiply_strip

QUERY_GROUP = 12  # a multiple of ROWS_AT_ONCE
CENTER_MEANS = 5  # the middle one of five has no far row where two rows are far
MOST_MEAN_ROWS = 13  # 65 rows tell a centre within a fraction of what they spread, which costs products no digit
_PANEL, _STRIP = np.uint64(PANEL_ROWS), np.uint64(LANES_AT_ONCE)


@compiled
def whole_groups(n_queries: int) -> int:
    """Return the least multiple of QUERY_GROUP that is at least `n_queries`."""
    return (n_queries + QUERY_GROUP - 1) // QUERY_GROUP * QUERY_GROUP


@compiled
def middle_row(rows: np.ndarray) -> np.ndarray:
    """Return the median (s,) float32, in each coordinate, of five means (float64) of up to 13 of `rows` (u, s) float32.

    It is near the mean, but no one or two far rows draw it away from all others, whose distances by float32 products
    would lose their digits then. The rows are evenly spread and go to the means in turn. Of less than five rows it is
    their mean, of none zero.
    """
    n_rows, n_dims = rows.shape
    each = min(n_rows // CENTER_MEANS, MOST_MEAN_ROWS)
    means = np.zeros((CENTER_MEANS, n_dims))
    if each == 0:
        for row in range(np.uint64(n_rows)):
            for d in range(np.uint64(n_dims)):
                means[0, d] += rows[row, d] / n_rows
        return means[0].astype(np.float32)
    step = n_rows // (CENTER_MEANS * each)
    for number in range(each * CENTER_MEANS):
        row, mean = np.uint64(number * step), np.uint64(number % CENTER_MEANS)
        for d in range(np.uint64(n_dims)):
            means[mean, d] += rows[row, d] / each
    center = np.empty(n_dims, dtype=np.float32)
    for d in range(np.uint64(n_dims)):
        center[d] = _median_of_five(means[0, d], means[1, d], means[2, d], means[3, d], means[4, d])
    return center


@compiled
def _median_of_five(a: float, b: float, c: float, d: float, e: float) -> float:
    low, high = max(min(a, b), min(c, d)), min(max(a, b), max(c, d))  # neither the least nor the greatest of four
    return max(min(low, high), min(e, max(low, high)))


@compiled
def build_panels(rows: np.ndarray, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre rows and lay them out in panels.

    Parameters
    ----------
    rows : (u, s) float32
    center : (s,) float32, subtracted from each row

    Returns
    -------
    panels : (p, s * 128) float32, p = ceil(u / 128)
    norms : (p, 128) float32, squared lengths of the centred rows; infinite for a missing row, which is never near
    """
    n_panels = (rows.shape[0] + PANEL_ROWS - 1) // PANEL_ROWS
    n_dims = np.uint64(rows.shape[1])
    panels = np.zeros((n_panels, rows.shape[1] * PANEL_ROWS), dtype=np.float32)
    norms = np.full((n_panels, PANEL_ROWS), np.inf, dtype=np.float32)
    for i in range(np.uint64(rows.shape[0])):
        p, lane = i // _PANEL, i % _PANEL
        first = lane // _STRIP * _STRIP * n_dims + lane % _STRIP
        norm = np.float32(0.0)
        for d in range(n_dims):
            value = rows[i, d] - center[d]
            panels[p, first + d * _STRIP] = value
            norm += value * value
        norms[p, lane] = norm
    return panels, norms


@compiled
def center_queries(
    rows: np.ndarray, members: np.ndarray, center: np.ndarray, queries: np.ndarray, bases: np.ndarray
) -> None:
    """Centre some rows as queries of `multiply_panel`.

    Parameters
    ----------
    rows : (n, s) float32
    members : (m,) int, the rows that are queries
    center : (s,) float32, that of the panels
    queries : (>= whole_groups(m), s) float32; -2 (row - center) is written, and zeros in the rest of the last group
    bases : (>= m,) float32; |row - center|^2 is written
    """
    n_dims = np.uint64(rows.shape[1])
    for i in range(np.uint64(members.size)):
        row = np.uint64(members[i])
        norm = np.float32(0.0)
        for d in range(n_dims):
            value = rows[row, d] - center[d]
            queries[i, d] = np.float32(-2.0) * value
            norm += value * value
        bases[i] = norm
    for i in range(members.size, whole_groups(members.size)):
        queries[i] = np.float32(0.0)


@compiled
def multiply_panel(
    queries: np.ndarray,
    bases: np.ndarray,
    first: int,
    panels: np.ndarray,
    norms: np.ndarray,
    panel: int,
    products: np.ndarray,
) -> None:
    """Write the squared distances of a group of queries to the rows of a panel.

    Parameters
    ----------
    queries : (m, s) float32, C-contiguous, from `center_queries`
    bases : (m,) float32, from `center_queries`
    first : of the QUERY_GROUP queries
    panels, norms : from `build_panels`
    panel : number of the panel
    products : (QUERY_GROUP, 128) float32, C-contiguous; norms + bases + queries . panel is written, which rounding can
        take below zero
    """
    n_dims = queries.shape[1]
    strips_at = panels.ctypes.data + panel * panels.strides[0]
    norms_at = norms.ctypes.data + panel * norms.strides[0]
    for lane in range(0, PANEL_ROWS, LANES_AT_ONCE):
        for query in range(first, first + QUERY_GROUP, ROWS_AT_ONCE):
            multiply_strip(
                queries.ctypes.data + ITEM_BYTES * query * n_dims,
                bases.ctypes.data + ITEM_BYTES * query,
                n_dims,
                strips_at + ITEM_BYTES * lane * n_dims,
                norms_at + ITEM_BYTES * lane,
                products.ctypes.data + ITEM_BYTES * ((query - first) * PANEL_ROWS + lane),
            )


@compiled
def number_lanes(numbers: np.ndarray, first: int) -> None:
    """Write the 128 numbers from `first` on into `numbers` (128,) int32."""
    for lane in range(_PANEL):
        numbers[lane] = first + np.int64(lane)
