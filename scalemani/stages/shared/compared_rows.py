"""What a comparison of rows by products takes next to them."""

from scalemani.engine.needs import Terms, array
from scalemani.engine.sizes import Sizes
from scalemani.kernels.neighbors.exact import TERMS_AT_ONCE, tile_rows

COPIES_IN_BYTES = 2  # as they are rounded, and as they are multiplied


def compared(sizes: Sizes, n_rows: int) -> Terms:
    """Return what dense points take that are compared with so many rows."""
    features, rows = sizes.dimensions.n_features, tile_rows(sizes.dimensions.n_features)
    tile = array("float32", rows, 2 * features + min(features, TERMS_AT_ONCE)) + array("float64", rows, features)
    return {
        "coordinates of both sides of a tile, and their products": tile + 2 * array("float32", rows, rows),
        "rows that points are compared with, in bytes": COPIES_IN_BYTES * array("int8", n_rows, features),
    }
