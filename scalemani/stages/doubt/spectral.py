"""The doubt of spectral maps: where the equation of the eigenvectors puts a point, and puts it without a neighbour.

With all others fixed, v = P v / (1 - lambda) puts a point at the mean of its neighbours' places by the shares that a
random walk over the graph takes, each column divided by 1 - lambda. Without one neighbour the shares of the others
grow. The farthest of these places from where the point lies is its other place. A large residual of an approximate
solver shows in it, and a point that one neighbour holds where it is.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from scalemani.engine.context import Arrays, StageTask
from scalemani.kernels.graph.product import Rows
from scalemani.stages.arrays.embeddings import StoredDoubt, StoredEmbedding
from scalemani.stages.arrays.points import StoredWorkPoints

LEAST_UNIT = 1e-3  # of the root mean square coordinate: less is no pixel of a picture


class SpectralMap(NamedTuple):
    """A spectral map in work order.

    It has `positions` (N, d), a tree of them, and 1 - lambda of each column there (N, d); nearer than the `least_unit`
    no two places are told apart.
    """

    positions: np.ndarray
    tree: cKDTree
    walked: np.ndarray
    least_unit: float

    def placed(self, rows: Rows, first: int) -> Arrays:
        """Return the farthest places of points from a `first` work row on, by their rows of W, and their singularity.

        The Hessian of sum_ij w_ij |v_i - v_j|^2 - 2 sum_k lambda_k v_k' D v_k in a point alone has 1 - lambda times the
        point's degree on its diagonal, and nothing beside.
        """
        own = np.arange(first, first + len(rows[0]) - 1)
        at, walked = self.positions[own], self.walked[own]
        return {
            StoredDoubt.places: farthest_places(self.positions, rows, at, walked),
            StoredDoubt.singularity: least_by_largest(walked),
        }


def read_spectral_map(task: StageTask) -> SpectralMap:
    """Return the map of a run by eigenvectors; those of a graph in pieces have other eigenvalues in each."""
    stored, order = task.stored(StoredEmbedding), task.stored(StoredWorkPoints).input_rows.read()
    positions = np.ascontiguousarray(stored.embedding.read()[order])
    if stored.in_pieces:
        eigenvalues = stored.piece_eigenvalues.read()[stored.pieces.read()[order]]
    else:
        eigenvalues = np.broadcast_to(stored.eigenvalues.read(), positions.shape)
    least = LEAST_UNIT * float(np.sqrt(np.mean(positions**2)))
    return SpectralMap(positions, cKDTree(positions), 1.0 - eigenvalues, least)


def farthest_places(positions: np.ndarray, rows: Rows, at: np.ndarray, walked: np.ndarray) -> np.ndarray:
    """Return the farthest places (n, d) of points that lie `at` (n, d), with all neighbours or without one of them.

    Their rows of W in CSR form name neighbours in a map (N, d); columns have 1 - lambda (n, d), and where that is zero,
    or a point has no neighbour, a coordinate stays.
    """
    indptr, indices, affinities = rows
    counts = np.diff(indptr)
    of_entry = np.repeat(np.arange(len(at)), counts)
    weights = affinities.astype(np.float64)
    degrees = np.bincount(of_entry, weights, len(at))
    shares = weights / np.where(degrees > 0, degrees, 1.0)[of_entry]
    inverse = np.divide(1.0, walked, out=np.zeros_like(walked), where=walked != 0)
    pulls = shares[:, np.newaxis] * positions[indices] * inverse[of_entry]
    means = np.stack([np.bincount(of_entry, column, len(at)) for column in pulls.T], axis=1)
    fixed = (inverse == 0) | (degrees == 0)[:, np.newaxis]
    places = np.where(fixed, at, means)
    left = 1.0 - shares
    alone = left <= np.finfo(np.float32).eps  # without its one neighbour a point has no place
    without = (means[of_entry] - pulls) / np.where(alone, 1.0, left)[:, np.newaxis]
    without = np.where(fixed[of_entry] | alone[:, np.newaxis], at[of_entry], without)
    farthest, squares = places.copy(), ((places - at) ** 2).sum(axis=1)
    of_entries = ((without - at[of_entry]) ** 2).sum(axis=1)
    order = np.lexsort((of_entries, of_entry))  # the farthest of each point is last
    last = order[np.cumsum(counts)[counts > 0] - 1]
    point = np.flatnonzero(counts > 0)
    farther = of_entries[last] > squares[point]
    farthest[point[farther]] = without[last[farther]]
    return farthest


def least_by_largest(walked: np.ndarray) -> np.ndarray:
    """Return the least of each row (n, d) over its largest magnitude; 0 where all are 0."""
    largest = np.abs(walked).max(axis=1)
    return np.asarray(walked.min(axis=1) / np.where(largest > 0, largest, 1.0))
