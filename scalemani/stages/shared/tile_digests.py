"""Digests of tiles of rows: whether points are what the survey of a run saw."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from scalemani.errors import DataError
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.rows.compressed import Points
from scalemani.stages.arrays.points import stored_parts
from scalemani.store.objects import digest

UNREAD = ""  # the digest of a tile that was surveyed for an earlier run, whose store tells of any change


def tile_digests(rows: Points) -> list[str]:
    """Return the digest of every tile of rows, whatever the block they are read in."""
    if not sp.issparse(rows):
        rows = np.ascontiguousarray(rows)
        return [digest(rows[start : start + TILE_ROWS].data) for start in range(0, len(rows), TILE_ROWS)]
    tiles = (rows[start : start + TILE_ROWS] for start in range(0, rows.shape[0], TILE_ROWS))
    return [digest(b"".join(part.tobytes() for part in stored_parts(tile))) for tile in tiles]


def check_unchanged(rows: Points, start: int, digests: Sequence[str]) -> Points:
    """Return rows read a second time, if they are what the survey saw where it has read them."""
    tile = start // TILE_ROWS
    if digests[tile] == UNREAD:
        return rows
    found = tile_digests(rows)
    if found != list(digests[tile : tile + len(found)]):
        raise DataError(
            f"rows from {start} on changed while they were read: run again when nothing writes to the points"
        )
    return rows
