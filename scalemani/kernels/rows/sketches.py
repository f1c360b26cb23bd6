"""Sketches: points in few orthonormal directions, in float32.

The projection is orthogonal, so the distance of two sketches never exceeds that of the points, up to rounding.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.compressed import Points, projected_rows

MOST_SAMPLE_ROWS = 2048  # the leading directions of a sample this size lose nothing that matters for pruning
DIRECT_DIMS = 64  # up to here the coordinates themselves prune as well as any directions, without a product
MOST_STEPS = 127  # of int8
CLIPPED_SHARE = 1e-4  # of the coordinates: a few far ones must not make the steps of all others long
FAR = (
    1e6  # times the usual distance: from there on, a row would draw the mean so far away that float32 loses the others
)
MIDDLE_ROWS = 255  # whose median shows where most rows are
IN_SIGHT = 1e16  # times the spread of the points: from farther off, all of them are at the same distance in float64
EXACT_IN_FLOAT32 = (np.dtype(np.uint8), np.dtype(np.int8), np.dtype(np.uint16), np.dtype(np.int16))


class SketchBasis(NamedTuple):
    """An origin, s orthonormal directions, and a unit of length that keeps float32 far from over- and underflow."""

    mean: np.ndarray  # (D,) float64
    axes: np.ndarray  # (D, s) float32, orthonormal columns to 2**-21
    scale: float  # sketch distance times scale <= distance of the points
    direct: bool = False  # the axes are those of the coordinates, and no product is taken


def fit_sketch(sample: Points, n_dims: int = 64) -> SketchBasis:
    """Return the basis of the leading principal directions of a sample.

    Signs are fixed: the entry of largest magnitude of each direction is positive. With more than 2,048 dimensions,
    evenly spread rows of the sample, 2,048 at most, are used through their Gram matrix; sparse rows then stay sparse.
    Rows a million times farther off than is usual count for nothing: one of them would decide all.

    Parameters
    ----------
    sample : (n, D) real, finite, dense or sparse
    n_dims : s, at most D; default 64

    Returns
    -------
    SketchBasis with axes in descending variance and a power of two for its scale
    """
    n_features = sample.shape[1]
    if sp.issparse(sample):
        if n_features > MOST_SAMPLE_ROWS:
            return _fit_sparse(sample, min(n_dims, n_features))
        sample = sample.toarray()
    chosen = gram_rows(*sample.shape)
    points = (sample if len(chosen) == len(sample) else sample[chosen]).astype(np.float64)
    _bring_near(points)
    mean = points.mean(axis=0)
    points -= mean
    scale = _power_of_two(max(float(points.max()), -float(points.min())))
    points /= scale
    n_dims = min(n_dims, n_features)
    if n_features <= points.shape[0]:
        axes = np.linalg.eigh(points.T @ points)[1][:, ::-1][:, :n_dims]
    else:
        vectors = np.linalg.eigh(points @ points.T)[1][:, ::-1]
        axes = _orthonormal(points.T @ vectors[:, :n_dims], n_dims)
    return SketchBasis(mean, _with_signs(axes), scale)


def _fit_sparse(sample: sp.csr_matrix, n_dims: int) -> SketchBasis:
    """Return what `fit_sketch` does, of sparse rows (n, D) and n_dims <= D, by products of these as they are."""
    chosen = sample[gram_rows(*sample.shape)]
    lengths = abs(chosen).max(axis=1).toarray().ravel().astype(np.float64)
    chosen = chosen[~_far(lengths)]
    scale = _power_of_two(float(abs(chosen).max()))
    points = chosen.astype(np.float64) / scale
    mean = np.asarray(points.mean(axis=0)).ravel()
    gram = (points @ points.T).toarray()
    of_rows = gram.mean(axis=1)
    gram += of_rows.mean() - of_rows[:, np.newaxis] - of_rows
    vectors = np.linalg.eigh(gram)[1][:, ::-1][:, :n_dims]
    spanned = points.T @ vectors - np.outer(mean, vectors.sum(axis=0))
    return SketchBasis(mean * scale, _with_signs(_orthonormal(spanned, n_dims)), scale)


def _bring_near(points: np.ndarray) -> None:
    """Put the few rows of `points` (n, D) float64 that are far from all others at the median of some rows."""
    middle = np.median(points[:: -(-len(points) // MIDDLE_ROWS)], axis=0)
    tiles = slices(len(points), TILE_ROWS)
    points[_far(np.concatenate([np.abs(points[tile] - middle).max(axis=1) for tile in tiles]))] = middle


def _far(distances: np.ndarray) -> np.ndarray:
    """Return which of the distances (n,) are a million times what is usual: (n,) bool, none where all are zero."""
    some = distances[distances > 0]
    return distances > (FAR * np.median(some) if some.size else 0.0)


def _orthonormal(spanned: np.ndarray, n_dims: int) -> np.ndarray:
    """Return orthonormal columns (D, n_dims) whose first ones span the columns of `spanned` (D, m), m <= n_dims."""
    missing = np.eye(len(spanned), max(n_dims - spanned.shape[1], 0))
    return np.linalg.qr(np.hstack([spanned, missing]))[0]


def _with_signs(axes: np.ndarray) -> np.ndarray:
    """Return directions (D, s) float32, of each the entry of largest magnitude positive."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
    return np.ascontiguousarray(np.where(largest < 0, -axes, axes), dtype=np.float32)


def gram_rows(n_rows: int, n_features: int) -> np.ndarray:
    """Return the rows of a sample that `fit_sketch` looks at.

    Parameters
    ----------
    n_rows, n_features : n and D of the sample

    Returns
    -------
    (m,) int64 row numbers, ascending: all, or 2,048 evenly spread ones of more than 2,048 features
    """
    return np.arange(n_rows) if n_features <= MOST_SAMPLE_ROWS else _spread_rows(n_rows)


def pruning_basis(points: np.ndarray, n_dims: int) -> SketchBasis:
    """Return a basis for sketches whose distances only skip pairs: results do not depend on it, the time does.

    Parameters
    ----------
    points : (n, D) real, finite; at most 2,048 evenly spread rows are used
    n_dims : s where D > 64; with fewer dimensions the sketches are the coordinates

    Returns
    -------
    SketchBasis, its mean that of the rows used
    """
    sample = points[_spread_rows(len(points))]
    if sample.shape[1] > DIRECT_DIMS:
        return fit_sketch(sample, n_dims)
    return SketchBasis(sample.astype(np.float64).mean(axis=0), np.eye(sample.shape[1], dtype=np.float32), 1.0, True)


def _spread_rows(n_rows: int) -> np.ndarray:
    """Return at most MOST_SAMPLE_ROWS row numbers, evenly spread from the first row to the last."""
    return np.linspace(0, n_rows - 1, min(n_rows, MOST_SAMPLE_ROWS)).astype(np.int64)


def _power_of_two(size: float) -> float:
    """Return a power of two near `size`, 1 for nothing."""
    return float(np.ldexp(1.0, int(np.frexp(size)[1]))) if size > 0 else 1.0


def sketch_points(points: Points, basis: SketchBasis) -> np.ndarray:
    """Return the sketches of points by float32 products: quick, for distances that only rank points.

    Coordinates beyond 1e16 times the scale count as that, so that squares of sketches are finite. Those of sparse
    points are summed in float64: what the mean takes away again may be many times a sketch.

    Parameters
    ----------
    points : (n, D) real, dense or sparse
    basis : from `fit_sketch`

    Returns
    -------
    (n, s) float32, in units of `basis.scale`; the same bits for any cut of the points at multiples of 1,024 rows
    """
    if sp.issparse(points):
        origin = basis.mean @ basis.axes
        projected = projected_rows(points.indptr, points.indices, points.data, basis.axes, origin, 1.0 / basis.scale)
        return np.clip(projected, -IN_SIGHT, IN_SIGHT, out=projected)
    # centred before anything is rounded to float32: an offset of 1e8 would leave nothing of the differences
    wide = np.float32 if points.dtype in EXACT_IN_FLOAT32 else np.float64
    mean, unit = basis.mean.astype(wide), wide(1.0 / basis.scale)
    sketches = np.empty((points.shape[0], basis.axes.shape[1]), dtype=np.float32)
    tile = np.empty((min(TILE_ROWS, points.shape[0]), points.shape[1]), dtype=wide)
    for rows in slices(points.shape[0], TILE_ROWS):
        sketched = sketches[rows]
        centered = tile[: len(sketched)]
        np.subtract(points[rows], mean, out=centered)
        centered *= unit
        with np.errstate(over="ignore", invalid="ignore"):
            np.dot(centered.astype(np.float32, copy=False), basis.axes, out=sketched)
        if not np.abs(sketched).max() <= IN_SIGHT:  # also where infinite coordinates have made it NaN
            np.clip(centered, -IN_SIGHT, IN_SIGHT, out=centered)
            np.dot(centered.astype(np.float32, copy=False), basis.axes, out=sketched)
            np.clip(sketched, -IN_SIGHT, IN_SIGHT, out=sketched)
    return sketches


def project(points: np.ndarray, basis: SketchBasis) -> np.ndarray:
    """Return the coordinates of `points` (n, D) along the axes of a basis, in their unit: (n, s) float64."""
    centered = points - basis.mean
    return centered if basis.direct else centered @ basis.axes


def sketch_precisely(points: np.ndarray, basis: SketchBasis) -> np.ndarray:
    """Return the sketches of points by float64 products, accurate to 2**-18 of a point's distance to the mean.

    Parameters
    ----------
    points : (n, D) real
    basis : from `pruning_basis` or `fit_sketch`

    Returns
    -------
    (n, s) float32, in units of `basis.scale`; infinite beyond the range of float32: callers treat such rows apart
    """
    with np.errstate(over="ignore"):
        return (project(points, basis) / basis.scale).astype(np.float32)


def rounding_step(sketches: np.ndarray) -> float:
    """Return the step that takes nearly all coordinates of `sketches` (n, s) to at most 127 steps."""
    return float(np.quantile(np.abs(sketches), 1.0 - CLIPPED_SHARE)) / MOST_STEPS


def rounding_error(step: float, n_dims: int) -> float:
    """Return the root mean square error of the distance of two sketches whose `n_dims` coordinates are rounded."""
    return step * float(np.sqrt(n_dims / 6))  # each of two coordinates adds step^2 / 12


@compiled
def rounded_sketches(sketches: np.ndarray, step: float) -> np.ndarray:
    """Return `sketches` (n, s) float32 in whole steps, clipped to [-127, 127]: (n, s) int8."""
    rounded, per_step = np.empty(sketches.shape, dtype=np.int8), np.float32(1.0 / step)
    for i in range(np.uint64(sketches.shape[0])):
        for d in range(np.uint64(sketches.shape[1])):
            steps = np.rint(sketches[i, d] * per_step)
            rounded[i, d] = np.int8(min(max(steps, np.float32(-MOST_STEPS)), np.float32(MOST_STEPS)))
    return rounded
