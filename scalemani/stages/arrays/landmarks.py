"""Landmarks, Z, the reduced problem over the landmarks, and its solution."""

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from scalemani.engine.reading import ArrayReader, MatrixDescription, Rows, StoredStage, Whole, landmark_matrix
from scalemani.kernels.landmarks.quality import landmark_spacings
from scalemani.kernels.spectral.reduced import whole_of_triangle
from scalemani.store.invariants.matrices import bounds, columns_ascend, row_shares
from scalemani.store.invariants.orders import POINTS_OF_ROWS
from scalemani.store.invariants.points import ERRORS_OF_WEIGHTS, NEAREST_ANCHORS, NEAREST_FIRST, NEAREST_LANDMARKS
from scalemani.store.invariants.spectral import ALL_DEGREES, REDUCED_SOLUTION, ZERO_ROWS
from scalemani.store.invariants.values import (
    ASCENDING,
    DISTINCT_IN_ROWS,
    FINITE,
    LANDMARKS,
    NOT_NEGATIVE,
    POINTS,
    POSITIVE,
    STRICTLY_ASCENDING,
    SUM_TO_ONE,
    between,
    in_count,
)
from scalemani.store.schema import AS_LANDMARKS


class StoredLandmarks(StoredStage, stage="landmarks"):
    """The landmarks: points of the data, or points off the data."""

    rows = Whole("landmark", "int64", "the row of each landmark, ascending; on the data", "input row").with_invariants(
        in_count(POINTS), STRICTLY_ASCENDING
    )
    points = Whole("landmark feature", AS_LANDMARKS, "the landmarks themselves", "as given").with_invariants(
        FINITE, POINTS_OF_ROWS
    )
    anchor_rows = Whole(
        "landmark anchor", "int64", "the points nearest to each landmark, ascending distance; off the data", "input row"
    ).with_invariants(in_count(POINTS), DISTINCT_IN_ROWS, NEAREST_ANCHORS)
    anchor_weights = Whole(
        "landmark anchor",
        "float64",
        "the weights of these points, whose combination each landmark nearly is; they sum to one; off the data",
    ).with_invariants(FINITE, SUM_TO_ONE)
    local_spacings = Whole(
        "landmark",
        "float64",
        "how far points around the landmark usually lie from landmarks: the distance of the fifth nearest other one "
        "times a number that all landmarks share, so that 98 % of a sample of the points have their fifth nearest "
        "landmark no farther than the median of their five",
        "as given",
    ).with_invariants(POSITIVE)
    ANCHORS_UNIT: ClassVar = "anchors"
    SPACINGS_UNIT: ClassVar = "local_spacings"

    @property
    def off_data(self) -> bool:
        """Whether the landmarks are no data points: they have anchors then, and no rows."""
        return self.group.committed(self.ANCHORS_UNIT)

    def read_spacings(self) -> np.ndarray:
        """Return the spacings (L,) of the landmarks; of runs that did not measure them, by the landmarks alone."""
        if not self.group.committed(self.SPACINGS_UNIT):
            landmarks = self.points.read()
            return landmark_spacings(landmarks, landmarks)
        return self.local_spacings.read()

    def coordinates_in(self, embedding: ArrayReader) -> np.ndarray:
        """Return the coordinates (L, d) of the landmarks in an embedding (N, d) of the points, in input order."""
        if not self.off_data:
            return embedding.gather(self.rows.read())
        rows, weights = self.anchor_rows.read(), self.anchor_weights.read()
        distinct, places = np.unique(rows, return_inverse=True)
        return np.einsum("la,lad->ld", weights, embedding.gather(distinct)[places.reshape(rows.shape)])


class StoredLandmarkWeights(StoredStage, stage="landmark_weights"):
    """Z in work order: every point as an affine combination of its nearest landmarks."""

    indices = Rows(
        "point nearest_landmark", "int32", "the nearest landmarks of each point, ascending distance", "landmark"
    ).with_invariants(in_count(LANDMARKS), DISTINCT_IN_ROWS, NEAREST_FIRST, NEAREST_LANDMARKS)
    values = Rows(
        "point nearest_landmark", "float64", "the weights of these landmarks; those of a point sum to one"
    ).with_invariants(FINITE, SUM_TO_ONE)
    errors = Rows(
        "point", "float32", "reconstruction error, relative to that of the nearest landmark alone"
    ).with_invariants(NOT_NEGATIVE, ERRORS_OF_WEIGHTS)

    def read_matrix(self, block: int, n_landmarks: int) -> sp.csr_matrix:
        """Return one block's rows of Z (n, L)."""
        return sparse_weights(self.indices.read_block(block), self.values.read_block(block), n_landmarks)


class StoredAffinityWeights(StoredStage, stage="affinity_weights"):
    """Z in work order, by affinities: one sparse matrix in CSR form."""

    indptr = Whole("point_bound", "int64", "where each row of Z begins and ends", "nonzero").with_invariants(
        bounds("indices", "values"), row_shares("indptr", "values")
    )
    indices = Whole("nonzero", "int32", "the landmarks of each point, ascending", "landmark").with_invariants(
        in_count(LANDMARKS), columns_ascend("indptr")
    )
    values = Whole(
        "nonzero", "float64", "affinities to these landmarks over their sum; those of a landmark are its own"
    ).with_invariants(between(0, 1, above=True))

    def shared_matrix(self, n_landmarks: int) -> sp.csr_matrix:
        """Return Z (N, L), on arrays that the tasks of a process share."""
        indptr, indices, values = (one.read_once() for one in (self.indptr, self.indices, self.values))
        return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_landmarks), copy=False)

    def read_matrix(self, block: int, n_landmarks: int) -> sp.csr_matrix:
        """Return one block's rows of Z (n, L)."""
        start = block * self.group.block_rows
        return self.shared_matrix(n_landmarks)[start : start + self.group.block_rows]


def sparse_weights(indices: np.ndarray, values: np.ndarray, n_landmarks: int) -> sp.csr_matrix:
    """Return rows of Z in CSR form on the arrays themselves: (n, L) from (n, K_Z) each."""
    indptr = np.arange(0, indices.size + 1, indices.shape[1], dtype=np.int32)
    return sp.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(len(indices), n_landmarks), copy=False)


PART_FOLDERS = ("block-N", "sum_N-block-N")


class StoredReduced(StoredStage, stage="reduced"):
    """The reduced problem: parts of the sums over blocks, sums of parts, and the two matrices that they come to."""

    AFFINITY_PART: ClassVar = landmark_matrix(
        "reduced", "affinity", "part", PART_FOLDERS, "the lower triangle of a part of Z^T W Z", ALL_DEGREES
    )
    MASS_PART: ClassVar = landmark_matrix(
        "reduced", "mass", "part", PART_FOLDERS, "the lower triangle of a part of Z^T D Z", ALL_DEGREES
    )
    LAPLACIAN: ClassVar = landmark_matrix(
        "reduced", "laplacian_triangle", "whole", ("",), "the lower triangle of Z^T (D - W) Z, symmetric", ZERO_ROWS
    )
    MASS: ClassVar = landmark_matrix(
        "reduced", "mass_triangle", "whole", ("",), "the lower triangle of Z^T D Z, symmetric", ALL_DEGREES
    )

    def read_part_of(self, described: MatrixDescription, part: int, step: str) -> sp.csr_matrix:
        """Return a part (L, L) of the sum that gives a matrix; `step` is the round of summing."""
        return described.matrix(lambda array: self.group.read_part(array.name, part, step))

    def read_triangle(self, described: MatrixDescription) -> sp.csr_matrix:
        """Return the lower triangle of `LAPLACIAN` or `MASS`: (L, L)."""
        return described.matrix(lambda array: self.reader(array).read())

    def read_matrix(self, described: MatrixDescription) -> sp.csr_matrix:
        """Return `LAPLACIAN` or `MASS`: (L, L)."""
        return whole_of_triangle(self.read_triangle(described))


class StoredLandmarkEmbedding(StoredStage, stage="landmark_embedding"):
    """The solution of the reduced problem."""

    eigenvalues = Whole(
        "component", "float64", "the smallest eigenvalues of the reduced problem, ascending, the trivial one left out"
    ).with_invariants(between(0, 2), ASCENDING)
    vectors = Whole(
        "landmark component", "float64", "their eigenvectors: the coordinates of the landmarks"
    ).with_invariants(FINITE, REDUCED_SOLUTION)
