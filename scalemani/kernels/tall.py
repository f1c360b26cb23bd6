"""Algebra of tall blocks of vectors, (N, m) with few columns, over fixed panels of rows.

A panel is 65,536 rows, worked through in tiles of 4,096: sums are taken in float64 tile by tile and added in row
order, and BLAS always sees the same shapes, so results depend neither on the caller's blocks nor on its threads. Every
function takes `over`, with the signature of the builtin `map`, to run panels side by side: an executor's map will do.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.large_arrays import empty

PANEL = 65536
TILE = 4096  # a tile of 64 columns of float32 is 1 MB: it stays in the second-level cache
Mapper = Callable[[Callable[[slice], Any], list[slice]], Iterable[Any]]


def run(parts: Iterable[Any]) -> None:
    """Wait for what a map function started."""
    for _ in parts:
        pass


def slices(n_rows: int, size: int) -> list[slice]:
    """Return N rows cut into slices of `size`, the last one shorter."""
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def panels(n_rows: int) -> list[slice]:
    """Return the panels of N rows."""
    return slices(n_rows, PANEL)


def _tiles(panel: slice) -> Iterator[slice]:
    for first in range(panel.start, panel.stop, TILE):
        yield slice(first, min(first + TILE, panel.stop))


def _summed(parts: Iterable[np.ndarray]) -> np.ndarray:
    total: np.ndarray | float = 0.0
    for part in parts:
        total = total + part
    return np.asarray(total)


def gram(left: np.ndarray, right: np.ndarray, over: Mapper = map) -> np.ndarray:
    """Return left^T right, (m, p) float64, of (N, m) and (N, p)."""

    def part(panel: slice) -> np.ndarray:
        return _summed(left[t].T.astype(np.float64) @ right[t].astype(np.float64) for t in _tiles(panel))

    return _summed(over(part, panels(len(left))))


def joint_gram(
    bases: Sequence[np.ndarray], images: Sequence[np.ndarray], over: Mapper = map, dtype: DTypeLike = np.float64
) -> tuple[np.ndarray, np.ndarray]:
    """Return B^T B and B^T S B, float64, of the blocks B = [bases] side by side and their products S B = [images].

    `dtype`, in which sums are taken within a tile: float32 costs half, and rounds at 1e-7.
    """

    def part(panel: slice) -> np.ndarray:
        total: np.ndarray | float = 0.0
        for tile in _tiles(panel):
            left, right = (np.hstack([block[tile] for block in blocks], dtype=dtype) for blocks in (bases, images))
            total = total + np.stack([left.T @ left, left.T @ right]).astype(np.float64)
        return np.asarray(total)

    overlap, projected = _summed(over(part, panels(len(bases[0]))))
    return overlap, projected


def combine(blocks: Sequence[np.ndarray], coefficients: np.ndarray, out: np.ndarray, over: Mapper = map) -> None:
    """Write [blocks] @ coefficients into the first columns of `out`, which may be one of the blocks."""
    factors = coefficients.astype(out.dtype)

    def part(panel: slice) -> None:
        for tile in _tiles(panel):
            out[tile, : factors.shape[1]] = np.hstack([block[tile] for block in blocks]) @ factors

    run(over(part, panels(len(out))))


def subtract_projections(vectors: np.ndarray, directions: Sequence[np.ndarray], over: Mapper = map) -> None:
    """Take from vectors (N, m), in place, their projections on the orthonormal columns of `directions`."""
    shares = [gram(block, vectors, over).astype(vectors.dtype) for block in directions]

    def part(panel: slice) -> None:
        for tile in _tiles(panel):
            for block, share in zip(directions, shares, strict=True):
                vectors[tile] -= block[tile].astype(vectors.dtype) @ share

    run(over(part, panels(len(vectors))))


def without_direction(vectors: np.ndarray, direction: np.ndarray, over: Mapper = map) -> np.ndarray:
    """Return vectors (N, m) minus their projections on the unit vector `direction` (N,)."""
    shares = gram(direction[:, None], vectors, over).astype(vectors.dtype)
    out = empty(vectors.shape, vectors.dtype)

    def part(panel: slice) -> None:
        for tile in _tiles(panel):
            np.subtract(vectors[tile], direction[tile, None].astype(vectors.dtype) * shares, out=out[tile])

    run(over(part, panels(len(vectors))))
    return out


def residuals_into(
    out: np.ndarray | None,
    vectors: np.ndarray,
    images: np.ndarray,
    values: np.ndarray,
    over: Mapper = map,
    columns: np.ndarray | None = None,
) -> np.ndarray:
    """Return the lengths (m,) float64 of the columns of images - vectors diag(values), written to `out` where given.

    The m values belong to the first m columns of both blocks; `columns`, numbers of the only ones that are wanted.
    """
    columns = np.arange(len(values)) if columns is None else columns
    factors = values[columns].astype(vectors.dtype)

    def part(panel: slice) -> np.ndarray:
        total: np.ndarray | float = 0.0
        for tile in _tiles(panel):
            residuals = images[tile][:, columns] - vectors[tile][:, columns] * factors
            if out is not None:
                out[tile] = residuals
            total = total + np.einsum("ij,ij->j", residuals, residuals, dtype=np.float64)
        return np.asarray(total)

    return np.sqrt(_summed(over(part, panels(len(vectors)))))


def unit_roots(degrees: np.ndarray) -> np.ndarray:
    """Return the trivial vector: the square roots (N,) float64 of the degrees, as a unit vector."""
    roots = np.sqrt(np.asarray(degrees, np.float64))
    return roots / np.sqrt(gram(roots[:, None], roots[:, None])[0, 0])
