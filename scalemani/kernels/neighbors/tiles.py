"""How rows are cut into tiles for exact search, and which tiles meet at the same time."""

LEAST_ROWS, MOST_ROWS, TILES = 256, 4096, 16  # of a tile, and as many tiles as there are where these allow it


def pair_rounds(n_tiles: int) -> list[list[tuple[int, int]]]:
    """Return rounds of pairs of so many tiles: each with itself, then as in a tournament."""
    rounds, ring = [[(number, number) for number in range(n_tiles)]], list(range(n_tiles + n_tiles % 2))
    for _ in range(len(ring) - 1):
        opposite = zip(ring[: len(ring) // 2], reversed(ring), strict=False)
        rounds.append([pair for pair in opposite if max(pair) < n_tiles])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rounds


def tile_rows(n_rows: int) -> int:
    """Return how many of so many rows a tile has."""
    return min(max(-(-n_rows // TILES // LEAST_ROWS) * LEAST_ROWS, LEAST_ROWS), MOST_ROWS)
