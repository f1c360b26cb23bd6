"""How a map stretches at a point: the linear map that takes its neighbours in the data to those in the map.

With J (d, m) the derivative of the map along m tangent directions of the data, H = J J^T (d, d) is the dual pushforward
metric of Perrault-Joncas and Meila: the map takes a unit circle of the tangent space to the ellipse of axes sqrt(H).
They estimate H by a graph Laplacian. Its sum over neighbours has the sampling error of these, a tenth and more at
perplexity 30, which also stands in the covariance of the neighbours in the data and cancels where J is fitted.

Sources: Perrault-Joncas and Meila, Metric learning and manifolds: preserving the intrinsic geometry, arXiv 1305.7255;
Zhang and Zha, Principal manifolds and nonlinear dimensionality reduction via tangent space alignment, 2004 (tangents).
"""

from typing import NamedTuple

import numpy as np

from scalemani.errors import DataError

# Of the largest: spreads below are rounding, since squares of differences lose half of the digits.
LEAST_SPREAD = 1e-7
BY_POINT = ("area", "anisotropy", "explained")  # of a stretch, what is one number at each point


class Stretch(NamedTuple):
    """How a map stretches at each of N points, all float64.

    Attributes
    ----------
    metric : (N, d, d), the dual pushforward metric H, squares of distances in the map by those in the data
    area : (N,), by how much the map enlarges what has the m tangent directions: lengths for m = 1, areas for 2, volumes
        for 3, in general the m-volume, the product of the singular values of J
    anisotropy : (N,), the longest axis of the ellipse by the shortest, at least 1
    explained : (N,), the share of the neighbours' variance in the map that the linear map explains, in [0, 1]
    """

    metric: np.ndarray
    area: np.ndarray
    anisotropy: np.ndarray
    explained: np.ndarray

    def lengths(self, positions: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Return how far pairs of near points are in the data, by what lies between them on the map: (P,) float64.

        Parameters
        ----------
        positions : (N, d), the map
        pairs : (P, 2) int, two rows each. The length is that of the straight line between them under the mean of the
            inverse metrics at both ends; of far points it says nothing: add up a path of near ones
        """
        ends, n_points = np.asarray(pairs), len(self.metric)
        if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
            raise DataError(f"pairs must be whole numbers (P, 2), rows of the points, got {ends.dtype} {ends.shape}")
        if ends.size and not 0 <= ends.min() <= ends.max() < n_points:
            raise DataError(f"pairs must name rows from 0 to {n_points - 1}, got {ends.min()} to {ends.max()}")
        apart = np.subtract(*(np.asarray(positions, np.float64)[ends[:, side]] for side in (0, 1)))
        inverses = [np.linalg.pinv(self.metric[ends[:, side]], hermitian=True) for side in (0, 1)]
        return np.sqrt(np.maximum(0.5 * np.einsum("pa,pab,pb->p", apart, sum(inverses), apart), 0.0))


def local_stretch(points: np.ndarray, positions: np.ndarray, n_dimensions: int) -> Stretch:
    """Return the stretch at n points from neighbourhoods: points (n, k, D) and positions (n, k, d), float64.

    The m = `n_dimensions` leading principal directions of a neighbourhood are its tangent space, and J the least
    squares fit of positions to the points' coordinates there, both about their means. NaN where the neighbours span
    fewer directions.
    """
    points = points - points.mean(axis=1, keepdims=True)
    positions = positions - positions.mean(axis=1, keepdims=True)
    # By the products of k neighbours: columns are many, and a fit needs the left singular vectors alone.
    squares, vectors = np.linalg.eigh(points @ points.transpose(0, 2, 1))
    squares, vectors = squares[:, -n_dimensions:], vectors[:, :, -n_dimensions:]
    images = positions.transpose(0, 2, 1) @ vectors
    with np.errstate(divide="ignore", invalid="ignore"):
        spans = squares[:, 0] > LEAST_SPREAD**2 * squares[:, -1]
        slopes = images / np.sqrt(np.where(spans[:, np.newaxis], squares, np.nan))[:, np.newaxis]
        metric = slopes @ slopes.transpose(0, 2, 1)
        axes = np.sqrt(np.linalg.eigvalsh(slopes.transpose(0, 2, 1) @ slopes).clip(0.0))
        explained = (images**2).sum(axis=(1, 2)) / (positions**2).sum(axis=(1, 2))
        return Stretch(metric, axes.prod(axis=1), axes[:, -1] / axes[:, 0], np.where(spans, explained, np.nan))
