"""Which of the points that look through a cell are near its rows: for rows that look for no cells themselves."""

import numpy as np

from scalemani.kernels.machine.compile import compiled_sums

# Of squared distances: what they round to in float32 leaves out no visitor that is as near by its coordinates.
MARGIN = np.float32(1.0 + 1e-5)


@compiled_sums
def nearest_visitors(
    visitors: np.ndarray,
    offsets: np.ndarray,
    cells: np.ndarray,
    queries: np.ndarray,
    limits: np.ndarray,
    n_candidates: int,
) -> np.ndarray:
    """Return the visitors of the cell of each query that are nearest by sketch, and within its limit.

    Parameters
    ----------
    visitors : (v, s) float32, their sketches, cell after cell
    offsets : (C + 1,) int64, where the visitors of each cell begin
    cells : (n,) int, the cell of each query
    queries : (n, s) float32
    limits : (n,) float32, squared sketch distances beyond which no visitor is wanted

    Returns
    -------
    (n, n_candidates) int32, places among the visitors in no particular order, -1 for none
    """
    nearest = np.full((queries.shape[0], n_candidates), -1, np.int32)
    squares = np.empty(n_candidates, np.float32)
    for i in range(queries.shape[0]):
        count, limit = 0, limits[i] * MARGIN
        for place in range(offsets[cells[i]], offsets[cells[i] + 1]):
            square = np.float32(0)
            for axis in range(queries.shape[1]):
                difference = queries[i, axis] - visitors[place, axis]
                square += difference * difference
            if square > limit:
                continue
            if count < n_candidates:
                nearest[i, count], squares[count] = place, square
                count += 1
            else:
                farthest = np.argmax(squares)
                if square < squares[farthest]:
                    nearest[i, farthest], squares[farthest] = place, square
    return nearest
