"""The clusters of new points: of the centres that spectral clustering has found, the one whose direction is nearest."""

import numpy as np

from scalemani.kernels.landmarks.kmeans import assign
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredClustering
from scalemani.stages.clustering import unit_rows


def centers_of(run: Run) -> np.ndarray:
    """Return the centres (K, d) of the clusters of a finished run."""
    return StoredClustering(run.group(StoredClustering.STAGE)).centers.read()


def nearest_clusters(coordinates: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the cluster (n,) int32 of each of the coordinates (n, d), taken at unit length as k-means did."""
    return assign(unit_rows(coordinates), centers)[0]
