"""Algebra of tall blocks of vectors, (N, m) with few columns, over fixed panels of rows.

A panel is 65,536 rows, worked through in tiles of 4,096: sums are taken in float64 tile by tile and added in row
order, and BLAS always sees the same shapes, so results depend neither on the caller's blocks nor on its threads. Every
function takes `over`, with the signature of the builtin `map`, to run panels side by side: an executor's map will do.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

PANEL = 65536
TILE = 4096  # a tile of 64 columns of float32 is 1 MB: it stays in the second-level cache
Mapper = Callable[[Callable[[slice], Any], list[slice]], Iterable[Any]]


def panels(n_rows: int) -> list[slice]:
    """Return the panels of N rows."""
    return [slice(first, min(first + PANEL, n_rows)) for first in range(0, n_rows, PANEL)]


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


def combined(vectors: np.ndarray, coefficients: np.ndarray, over: Mapper = map) -> np.ndarray:
    """Return vectors @ coefficients, (N, p), in the dtype of the vectors (N, m)."""
    out = np.empty((len(vectors), coefficients.shape[1]), vectors.dtype)
    factors = coefficients.astype(vectors.dtype)

    def part(panel: slice) -> None:
        for tile in _tiles(panel):
            np.matmul(vectors[tile], factors, out=out[tile])

    _run(over(part, panels(len(vectors))))
    return out


def without_direction(vectors: np.ndarray, direction: np.ndarray, over: Mapper = map) -> np.ndarray:
    """Return vectors (N, m) minus their projections on the unit vector `direction` (N,)."""
    shares = gram(direction[:, None], vectors, over).astype(vectors.dtype)
    out = np.empty_like(vectors)

    def part(panel: slice) -> None:
        for tile in _tiles(panel):
            np.subtract(vectors[tile], direction[tile, None].astype(vectors.dtype) * shares, out=out[tile])

    _run(over(part, panels(len(vectors))))
    return out


def recurrence(
    product: np.ndarray,
    current: np.ndarray,
    previous: np.ndarray | None,
    centre: float,
    factor: float,
    over: Mapper = map,
) -> np.ndarray:
    """Return factor (product - centre current) - previous, written over `product`, which the caller gives away."""

    def part(panel: slice) -> None:
        for tile in _tiles(panel):
            product[tile] -= product.dtype.type(centre) * current[tile]
            product[tile] *= product.dtype.type(factor)
            if previous is not None:
                product[tile] -= previous[tile]

    _run(over(part, panels(len(product))))
    return product


def residual_norms(images: np.ndarray, vectors: np.ndarray, values: np.ndarray, over: Mapper = map) -> np.ndarray:
    """Return the length of each column of images - vectors diag(values), (m,) float64."""
    factors = values.astype(vectors.dtype)

    def part(panel: slice) -> np.ndarray:
        return _summed(_squares(images[t] - vectors[t] * factors) for t in _tiles(panel))

    return np.sqrt(_summed(over(part, panels(len(vectors)))))


def _squares(block: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", block, block, dtype=np.float64)


def _run(parts: Iterable[Any]) -> None:
    for _ in parts:
        pass
