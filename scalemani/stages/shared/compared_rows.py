"""What a comparison of rows by products takes beside them."""

from scalemani.engine.needs import EACH_TASK, Held
from scalemani.engine.sizes import Sizes
from scalemani.kernels.neighbors.exact import TERMS_AT_ONCE, tile_rows

COPIES_IN_BYTES = 2  # as they are rounded, and as they are multiplied
COPIES_OF_PRODUCTS = 2  # of all terms, and of some; or in integers


def products_held(sizes: Sizes, n_rows: int, step: str = "") -> list[Held]:
    """List what dense points take that are compared with so many rows."""
    features = sizes.dimensions.n_features
    rows, terms = tile_rows(features), min(features, TERMS_AT_ONCE)
    return [
        Held("coordinates of both sides of a tile", EACH_TASK, rows, 2 * features + terms, "float32", step=step),
        Held("some of them in float64", EACH_TASK, rows, features, step=step),
        Held(
            "rows that points are compared with, in bytes", EACH_TASK, n_rows, features, "int8", COPIES_IN_BYTES, step
        ),
        Held("products of both sides of a tile", EACH_TASK, rows, rows, "float32", COPIES_OF_PRODUCTS, step),
    ]
