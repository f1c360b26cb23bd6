"""Sums of a kernel over the pairs of a sparse matrix, each by its weight."""

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from scalemani.errors import ConfigError
from scalemani.kernels.arrays.tiles import Mapper, light_panels, run
from scalemani.kernels.machine.compile import compiled_sums, square_of
from scalemani.kernels.repulsion.pair_sums import PairSums, kernel_number, respond


@compiled_sums
def _sum_pairs(
    kind: float,
    positions: np.ndarray,
    matrix: tuple[np.ndarray, np.ndarray, np.ndarray],
    first: int,
    sums: np.ndarray,
    gradients: np.ndarray,
) -> None:
    """Fill the sums (m,) and gradients (m, d) of rows from `first` on."""
    (indptr, indices, weights), n_dims = matrix, positions.shape[1]
    for row in range(len(sums)):
        n = first + row
        sums[row] = 0.0
        for d in range(n_dims):
            gradients[row, d] = 0.0
        for entry in range(indptr[n], indptr[n + 1]):
            m, square = indices[entry], 0.0
            for d in range(n_dims):
                square += square_of(positions[n, d] - positions[m, d])
            value, slope = respond(kind, square)
            sums[row] += weights[entry] * value
            for d in range(n_dims):
                gradients[row, d] += 2.0 * weights[entry] * slope * (positions[n, d] - positions[m, d])


class WeightedPairs(PairSums):
    """Sums S_n = sum_m w_nm K(|x_n - x_m|^2) over the entries of a symmetric matrix W (N, N), exact to rounding.

    The diagonal of W is zero.
    """

    exact: ClassVar[bool] = True

    def __init__(self, kernel: str | float, weights: sp.csr_matrix, over: Mapper = map) -> None:
        self.kernel, self.over = kernel, over
        self._kind = kernel_number(kernel, of_any_dof=True)
        self._indptr, self._indices = weights.indptr.astype(np.int64), weights.indices.astype(np.int64)
        self._weights = weights.data.astype(np.float64)

    @property
    def n_pairs(self) -> int:
        """How many pairs have a weight."""
        return len(self._weights) // 2

    def field(
        self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums (N,) and their gradients (N, d) at the sources; other targets have no weights."""
        if targets is not None or charges is not None:
            raise ConfigError("weights of pairs are of the points of the map: there are none of other points or masses")
        positions = np.ascontiguousarray(sources, np.float64)
        sums, gradients = np.empty(len(positions)), np.empty(positions.shape)

        def panel(part: slice) -> None:
            matrix = self._indptr, self._indices, self._weights
            _sum_pairs(self._kind, positions, matrix, part.start, sums[part], gradients[part])

        run(self.over(panel, light_panels(len(positions))))
        return sums, gradients
