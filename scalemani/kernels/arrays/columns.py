"""Products, sums, combinations and moments of the columns of blocks (N, m), m small, over fixed panels of rows.

A panel is 65,536 rows, worked through in tiles of 4,096: sums are taken in float64 tile by tile and added in row
order, and BLAS always sees the same shapes, so results depend neither on the caller's blocks nor on its threads.
Functions of blocks take `over`, with the signature of the builtin `map`, to run panels side by side: an executor's map
will do.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.arrays.tiles import TILE_ROWS, Mapper, run, slices
from scalemani.kernels.machine.compile import compiled_sums

PANEL = 65536
TILE = 4096  # a tile of 64 columns of float32 is 1 MB: it stays in the second-level cache
SUMMED_ROWS = 1024  # at once in float32, then in float64


def panels(n_rows: int) -> list[slice]:
    """Return the panels of `n_rows` rows: slices of 65,536 rows, the last one shorter."""
    return slices(n_rows, PANEL)


def _sum_over_panels(part: Callable[[slice], np.ndarray], n_rows: int, over: Mapper) -> np.ndarray:
    """Return the sum of part(panel) over all panels, added in row order."""
    total: np.ndarray | float = 0.0
    for summand in over(part, panels(n_rows)):
        total = total + summand
    return np.asarray(total)


def column_squares(vectors: np.ndarray, over: Mapper = map) -> np.ndarray:
    """Return the squared length (m,) float64 of each column of vectors (N, m), summed in float64."""

    def squares(panel: slice) -> np.ndarray:
        rows = vectors[panel]
        return np.asarray(np.einsum("ij,ij->j", rows, rows, dtype=np.float64))

    return _sum_over_panels(squares, len(vectors), over)


def inner_products(
    lefts: Sequence[np.ndarray],
    rights: Sequence[np.ndarray],
    over: Mapper = map,
    dtype: DTypeLike | None = None,
) -> np.ndarray:
    """Return [lefts]^T [rights], (p, q) float64, of blocks (N, .) float32 or float64 with p and q columns in all.

    Sums over 1,024 rows are taken in `dtype`, that of the blocks if None, and added in float64. float32 costs half of
    float64, and errs by some 1e-7 of the lengths.
    """

    def products(panel: slice) -> np.ndarray:
        # A block on both sides is read once: of one array with itself, numpy computes half.
        rows = {id(block): block[panel] for block in (*lefts, *rights)}
        total: np.ndarray | float = 0.0
        for tile in slices(panel.stop - panel.start, SUMMED_ROWS):
            left, right = ([np.asarray(rows[id(block)][tile], dtype) for block in blocks] for blocks in (lefts, rights))
            total = total + np.block([[one.T @ other for other in right] for one in left]).astype(np.float64)
        return np.asarray(total)

    return _sum_over_panels(products, len(lefts[0]), over)


def combine_columns(
    blocks: Sequence[np.ndarray], coefficients: np.ndarray, out: np.ndarray, over: Mapper = map
) -> None:
    """Write [blocks] @ coefficients into the first columns of `out`.

    The blocks (N, .) have p columns in all; `coefficients` (p, q) are rounded to the dtype of `out` (N, >= q), float32
    or float64, which may be one of the blocks.
    """
    factors = coefficients.astype(out.dtype)

    def combine(panel: slice) -> None:
        rows = [block[panel] for block in blocks]
        for tile in slices(panel.stop - panel.start, TILE):
            out[panel][tile, : factors.shape[1]] = np.hstack([block[tile] for block in rows]) @ factors

    run(over(combine, panels(len(out))))


@compiled_sums
def _residuals(
    vectors: np.ndarray, images: np.ndarray, factors: np.ndarray, columns: np.ndarray, out: np.ndarray, written: bool
) -> np.ndarray:
    n_columns, squares = np.uint64(columns.shape[0]), np.zeros(columns.shape[0])
    for row in range(vectors.shape[0]):
        vector, image = vectors[row], images[row]
        for i in range(n_columns):
            column = columns[i]
            residual = image[column] - vector[column] * factors[i]
            squares[i] += np.float64(residual) * np.float64(residual)
            if written:
                out[row, i] = residual
    return squares


def residuals_into(
    out: np.ndarray | None,
    vectors: np.ndarray,
    images: np.ndarray,
    values: np.ndarray,
    over: Mapper = map,
    columns: np.ndarray | None = None,
) -> np.ndarray:
    """Return the lengths of the residuals A v - theta v of approximate eigenpairs, and write the residuals.

    Parameters
    ----------
    out : (N, >= m) in which residuals are written, in the dtype of the vectors; None: they are not wanted
    vectors, images : (N, >= m) float32 or float64, v in the first m columns, and A v
    values : (m,) theta
    columns : (c,) int, the only columns that are wanted; they go to the first c columns of `out`. Default all m

    Returns
    -------
    (m,) or (c,) float64, summed in float64
    """
    chosen = np.arange(len(values), dtype=np.uint64) if columns is None else columns.astype(np.uint64)
    factors, written = values[chosen].astype(vectors.dtype), out is not None
    target = np.empty((0, 0), vectors.dtype) if out is None else out

    def squares(panel: slice) -> np.ndarray:
        return np.asarray(_residuals(vectors[panel], images[panel], factors, chosen, target[panel], written))

    return np.sqrt(_sum_over_panels(squares, len(vectors), over))


def unit_roots(degrees: np.ndarray) -> np.ndarray:
    """Return the unit eigenvector (N,) float64 of D^-1/2 W D^-1/2 with eigenvalue 1: the roots of degrees (N,)."""
    roots = np.sqrt(np.asarray(degrees, np.float64))
    return roots / np.sqrt(column_squares(roots[:, None])[0])


def total_variance(points: np.ndarray) -> float:
    """Return the sum of the variances of the columns of points (S, D)."""
    return float(moments(points)[1].sum())


def moments(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means (D,) and variances (D,) float64 of the columns of points (S, D), of which few are converted."""
    tiles = slices(len(points), TILE_ROWS)
    mean = sum(points[tile].sum(axis=0, dtype=np.float64) for tile in tiles) / len(points)
    return mean, sum(np.square(points[tile] - mean).sum(axis=0) for tile in tiles) / len(points)
