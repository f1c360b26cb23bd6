"""What Isomap stores."""

from typing import ClassVar

import numpy as np

from scalemani.engine.reading import Parts, StoredStage, Whole
from scalemani.stages.arrays.embeddings import StoredReduction, component_values, embedding_rows
from scalemani.store.schema import AS_DISTANCES

DIMENSIONS = {"source_landmark": "the landmarks of a part, from which paths start: 8, at most L"}


class StoredGeodesics(StoredStage, stage="geodesics"):
    """How far landmarks are from each other and from all points along the graph, bridges where it falls apart."""

    TOGETHER: ClassVar = 8  # landmarks of a part
    distances = Parts(
        "source_landmark landmark",
        "float64",
        "the lengths of the shortest paths from eight consecutive landmarks, fewer in the last part, to all landmarks",
        "as given",
    )
    to_points = Parts(
        "source_landmark point",
        AS_DISTANCES,
        "the lengths of the shortest paths from the same landmarks to all points in work order",
        "as given",
    )

    def n_parts(self, n_landmarks: int) -> int:
        """Return the number of parts for so many landmarks."""
        return -(-n_landmarks // self.TOGETHER)

    def read_matrix(self, n_landmarks: int) -> np.ndarray:
        """Return the distances (L, L) float64; there and back they may differ in the last bit."""
        return np.concatenate([self.distances(part) for part in range(self.n_parts(n_landmarks))])

    def read_symmetric(self, n_landmarks: int) -> np.ndarray:
        """Return the distances (L, L) float64, the shorter of a path and its way back, which are summed otherwise."""
        ways = self.read_matrix(n_landmarks)
        return np.minimum(ways, ways.T)


class StoredIsomap(StoredReduction, stage="isomap"):
    """Landmark Isomap: coordinates of landmarks by their distances along the graph, and of points by the landmarks."""

    embedding = embedding_rows(
        "points triangulated by their distances to the landmarks along the graph, rows in input order"
    )
    eigenvalues = component_values(
        "the leading eigenvalues of the centred squares of the landmarks' distances, halved, descending"
    )
    vectors = Whole("landmark component", "float64", "the coordinates of the landmarks", "as given")
