"""What a comparison of rows by products takes next to them."""

from scalemani.engine.memory_model import Terms, array
from scalemani.engine.sizes import Sizes
from scalemani.kernels.neighbors.exact import MULTIPLIED_ROWS
from scalemani.kernels.neighbors.tiles import tile_rows
from scalemani.kernels.rows.byte_products import whole_terms

COPIES_IN_BYTES = 2  # as one side of products, and as the other
BYTES_OF_BOUND = 24  # of a row: what bounds its distances, and what its list takes


def coded(n_rows: int, features: int) -> int:
    """Return the bytes of rows as products of bytes take them."""
    return n_rows * (COPIES_IN_BYTES * whole_terms(features) + BYTES_OF_BOUND)


def compared(sizes: Sizes, n_rows: int) -> Terms:
    """Return what dense points take that are compared with so many rows."""
    features, rows = sizes.dimensions.n_features, tile_rows(max(n_rows, sizes.dimensions.block_rows))
    return {
        "coordinates of both sides of a tile": 2 * array("float32", rows, features),
        "products of parts of tiles": array("int32", MULTIPLIED_ROWS, max(rows // 4, 2 * MULTIPLIED_ROWS)),
        "rows that points are compared with, in bytes": coded(n_rows, features) + 2 * coded(rows, features),
    }
