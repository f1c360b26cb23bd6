"""How rows are cut: tiles, so that results do not depend on blocks, and panels, which are worked on side by side.

Tiles of exact search are larger, and meet in rounds.
"""

from collections.abc import Callable, Iterable
from typing import Any

TILE_ROWS = 1024  # BLAS results change with the matrix shape: products are cut at multiples of this, and blocks too
LEAST_PANEL, MOST_PANEL, PANELS = 256, 65536, 32
LEAST_LIGHT_PANEL = 8192  # rows: to move two coordinates in so many takes as long as a thread takes to begin
LEAST_ROWS, MOST_ROWS, TILES = 256, 4096, 16  # of a tile of exact search, and as many tiles as these allow
Mapper = Callable[[Callable[[slice], Any], list[slice]], Iterable[Any]]


def run(parts: Iterable[Any]) -> None:
    """Wait for what a map function started."""
    for _ in parts:
        pass


def slices(n_rows: int, size: int) -> list[slice]:
    """Return N rows cut into slices of `size`, the last one shorter."""
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def row_panels(n_rows: int, least: int = LEAST_PANEL) -> list[slice]:
    """Return the panels of rows that are worked on side by side: a function of their number, and of the `least`."""
    return slices(n_rows, min(max(-(-n_rows // PANELS), least), MOST_PANEL))


def light_panels(n_rows: int) -> list[slice]:
    """Return the panels of rows on each of which little is done, such as a step of its coordinates."""
    return row_panels(n_rows, LEAST_LIGHT_PANEL)


def pair_rounds(n_tiles: int) -> list[list[tuple[int, int]]]:
    """Return rounds of pairs of so many tiles: each with itself, then as in a tournament."""
    rounds, ring = [[(number, number) for number in range(n_tiles)]], list(range(n_tiles + n_tiles % 2))
    for _ in range(len(ring) - 1):
        opposite = zip(ring[: len(ring) // 2], reversed(ring), strict=False)
        rounds.append([pair for pair in opposite if max(pair) < n_tiles])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rounds


def tile_rows(n_rows: int) -> int:
    """Return how many of so many rows a tile of exact search has."""
    return min(max(-(-n_rows // TILES // LEAST_ROWS) * LEAST_ROWS, LEAST_ROWS), MOST_ROWS)
