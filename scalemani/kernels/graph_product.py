"""The product of the normalised affinities S = D^-1/2 W D^-1/2 with a block of vectors, over CSR rows.

One pass reads each row of W once and gathers m contiguous columns per nonzero: the time is that of the gathers, and 64
columns cost some 6 times as much as one. Sums are float64: they cost as much as float32 here.
"""

import numpy as np

from scalemani.kernels.compile import compiled_sums


@compiled_sums
def _product(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    inverse_roots: np.ndarray,
    start: int,
    vectors: np.ndarray,
    out: np.ndarray,
) -> None:
    n_columns = vectors.shape[1]
    sums = np.empty(n_columns, np.float64)
    for row in range(out.shape[0]):
        for column in range(n_columns):
            sums[column] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            neighbor = indices[entry]
            weight = values[entry] * inverse_roots[neighbor]
            source = vectors[neighbor]
            for column in range(n_columns):
                sums[column] += weight * np.float64(source[column])
        target = out[row]
        scale = inverse_roots[start + row]
        for column in range(n_columns):
            target[column] = scale * sums[column]


def normalized_product(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    inverse_roots: np.ndarray,
    start: int,
    vectors: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write rows [start, start + n) of S X into `out` (n, m).

    Parameters: `rows`, (indptr, indices, values) of these rows of W in CSR form; `inverse_roots`
    (N,) float64, degrees to the power -1/2; `vectors` X (N, m), C order, float32 or float64, as `out`.
    """
    indptr, indices, values = rows
    # Unsigned indices spare the test for negative ones that Python's indexing rules ask for.
    _product(indptr, indices.view(f"u{indices.itemsize}"), values, inverse_roots, start, vectors, out)
