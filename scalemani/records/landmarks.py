"""Landmarks, Z, the reduced problem over the landmarks, and its solution."""

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.landmarks.quality import Coverage, coverage
from scalemani.records.reading import ArrayReader, MatrixDescription, StoredStage, landmark_matrix
from scalemani.store.schema import AS_DISTANCES, AS_LANDMARKS, ArrayDescription


class StoredLandmarks(StoredStage):
    """The landmarks: points among the points, or, off the data, points beside them."""

    STAGE: ClassVar = "landmarks"
    ROWS: ClassVar = ArrayDescription(
        STAGE, "rows", "whole", ("landmark",), "int64", "input row", "the row of each landmark, ascending; on the data"
    )
    POINTS: ClassVar = ArrayDescription(
        STAGE, "points", "whole", ("landmark", "feature"), AS_LANDMARKS, "as given", "the landmarks themselves"
    )
    ANCHOR_ROWS: ClassVar = ArrayDescription(
        STAGE,
        "anchor_rows",
        "whole",
        ("landmark", "anchor"),
        "int64",
        "input row",
        "the points nearest to each landmark, ascending distance; off the data",
    )
    ANCHOR_WEIGHTS: ClassVar = ArrayDescription(
        STAGE,
        "anchor_weights",
        "whole",
        ("landmark", "anchor"),
        "float64",
        "1",
        "the weights of these points, whose combination each landmark nearly is; they sum to one; off the data",
    )
    SPACING: ClassVar = ArrayDescription(
        STAGE,
        "spacing",
        "whole",
        (),
        "float64",
        "as given",
        "how far 98 % of a sample of the points lie, at most, from the nearest landmark that they are not themselves",
    )
    CENTER: ClassVar = ArrayDescription(
        STAGE, "center", "whole", ("feature",), "float64", "as given", "the median of each column of the sample"
    )
    RADIUS: ClassVar = ArrayDescription(
        STAGE, "radius", "whole", (), "float64", "as given", "how far 98 % of the sample lie, at most, from the center"
    )
    ARRAYS: ClassVar = (ROWS, POINTS, ANCHOR_ROWS, ANCHOR_WEIGHTS, SPACING, CENTER, RADIUS)
    ANCHORS_UNIT: ClassVar = "anchors"
    COVERAGE_UNIT: ClassVar = "coverage"

    @property
    def off_data(self) -> bool:
        """Whether the landmarks are no data points: they have anchors then, and no rows."""
        return self.group.committed(self.ANCHORS_UNIT)

    @property
    def rows(self) -> ArrayReader:
        """The input row (L,) int64 of each landmark, ascending, where they are data points."""
        return self.reader(self.ROWS)

    @property
    def anchor_rows(self) -> ArrayReader:
        """The input rows (L, a) int64 of the points nearest to each landmark, the nearest first, off the data."""
        return self.reader(self.ANCHOR_ROWS)

    @property
    def points(self) -> ArrayReader:
        """The landmarks (L, D)."""
        return self.reader(self.POINTS)

    def read_coverage(self) -> Coverage:
        """Return how the landmarks cover the points; of runs that did not measure it, how they cover each other."""
        if not self.group.committed(self.COVERAGE_UNIT):
            landmarks = self.points.read()
            return coverage(landmarks, landmarks)
        spacing, center, radius = (self.reader(one).read() for one in (self.SPACING, self.CENTER, self.RADIUS))
        return Coverage(float(spacing), center, float(radius))

    def coordinates_in(self, embedding: ArrayReader) -> np.ndarray:
        """Return the coordinates (L, d) of the landmarks in an embedding (N, d) of the points, in input order."""
        if not self.off_data:
            return embedding.gather(self.rows.read())
        rows, weights = self.anchor_rows.read(), self.reader(self.ANCHOR_WEIGHTS).read()
        distinct, places = np.unique(rows, return_inverse=True)
        return np.einsum("la,lad->ld", weights, embedding.gather(distinct)[places.reshape(rows.shape)])


class StoredLandmarkWeights(StoredStage):
    """Z in work order: every point as an affine combination of its nearest landmarks."""

    STAGE: ClassVar = "landmark_weights"
    INDICES: ClassVar = ArrayDescription(
        STAGE,
        "indices",
        "rows",
        ("point", "nearest_landmark"),
        "int32",
        "landmark",
        "the nearest landmarks of each point, ascending distance",
    )
    VALUES: ClassVar = ArrayDescription(
        STAGE,
        "values",
        "rows",
        ("point", "nearest_landmark"),
        "float64",
        "1",
        "the weights of these landmarks; those of a point sum to one",
    )
    ERRORS: ClassVar = ArrayDescription(
        STAGE,
        "errors",
        "rows",
        ("point",),
        "float32",
        "1",
        "reconstruction error, relative to that of the nearest landmark alone",
    )
    ARRAYS: ClassVar = (INDICES, VALUES, ERRORS)

    @property
    def indices(self) -> ArrayReader:
        """The nearest landmarks (N, K_Z) int32 of each point."""
        return self.reader(self.INDICES)

    @property
    def values(self) -> ArrayReader:
        """Their weights (N, K_Z) float64."""
        return self.reader(self.VALUES)

    @property
    def errors(self) -> ArrayReader:
        """Relative reconstruction errors (N,) float32."""
        return self.reader(self.ERRORS)

    def read_matrix(self, block: int, n_landmarks: int) -> sp.csr_matrix:
        """Return one block's rows of Z (n, L)."""
        return sparse_weights(self.indices.read_block(block), self.values.read_block(block), n_landmarks)


class StoredAffinityWeights(StoredStage):
    """Z in work order, by affinities: one sparse matrix in CSR form."""

    STAGE: ClassVar = "affinity_weights"
    INDPTR: ClassVar = ArrayDescription(
        STAGE, "indptr", "whole", ("point_bound",), "int64", "nonzero", "where each row of Z begins and ends"
    )
    INDICES: ClassVar = ArrayDescription(
        STAGE, "indices", "whole", ("nonzero",), "int32", "landmark", "the landmarks of each point, ascending"
    )
    VALUES: ClassVar = ArrayDescription(
        STAGE,
        "values",
        "whole",
        ("nonzero",),
        "float64",
        "1",
        "affinities to these landmarks over their sum; those of a landmark are its own",
    )
    ARRAYS: ClassVar = (INDPTR, INDICES, VALUES)

    def shared_matrix(self, n_landmarks: int) -> sp.csr_matrix:
        """Return Z (N, L), on arrays that the tasks of a process share."""
        indptr, indices, values = (self.reader(array).read_once() for array in self.ARRAYS)
        return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_landmarks), copy=False)

    def read_matrix(self, block: int, n_landmarks: int) -> sp.csr_matrix:
        """Return one block's rows of Z (n, L)."""
        start = block * self.group.block_rows
        return self.shared_matrix(n_landmarks)[start : start + self.group.block_rows]


def sparse_weights(indices: np.ndarray, values: np.ndarray, n_landmarks: int) -> sp.csr_matrix:
    """Return rows of Z in CSR form on the arrays given: (n, L) from (n, K_Z) each."""
    indptr = np.arange(0, indices.size + 1, indices.shape[1], dtype=np.int32)
    return sp.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(len(indices), n_landmarks), copy=False)


PART_FOLDERS = ("block-N", "sum_N-block-N")


class StoredReduced(StoredStage):
    """The reduced problem: parts of the sums over blocks, sums of parts, and the two matrices that they come to."""

    STAGE: ClassVar = "reduced"
    AFFINITY_PART: ClassVar = landmark_matrix(STAGE, "affinity", "part", PART_FOLDERS, "a part of Z^T W Z")
    MASS_PART: ClassVar = landmark_matrix(STAGE, "mass", "part", PART_FOLDERS, "a part of Z^T D Z")
    LAPLACIAN: ClassVar = landmark_matrix(STAGE, "laplacian", "whole", ("",), "Z^T (D - W) Z, symmetric")
    MASS: ClassVar = landmark_matrix(STAGE, "mass", "whole", ("",), "Z^T D Z, symmetric")
    ARRAYS: ClassVar = (*AFFINITY_PART.all, *MASS_PART.all, *LAPLACIAN.all, *MASS.all)

    def read_part_of(self, described: MatrixDescription, part: int, step: str) -> sp.csr_matrix:
        """Return a part (L, L) of the sum that gives a matrix; `step` is the round of summing."""
        return described.matrix(lambda array: self.read_part(array, part, step))

    def read_matrix(self, described: MatrixDescription) -> sp.csr_matrix:
        """Return `LAPLACIAN` or `MASS`: (L, L)."""
        return described.matrix(lambda array: self.reader(array).read())


class StoredLandmarkEmbedding(StoredStage):
    """The solution of the reduced problem."""

    STAGE: ClassVar = "landmark_embedding"
    EIGENVALUES: ClassVar = ArrayDescription(
        STAGE,
        "eigenvalues",
        "whole",
        ("component",),
        "float64",
        "1",
        "the smallest eigenvalues of the reduced problem, ascending, the trivial one left out",
    )
    VECTORS: ClassVar = ArrayDescription(
        STAGE,
        "vectors",
        "whole",
        ("landmark", "component"),
        "float64",
        "1",
        "their eigenvectors: the coordinates of the landmarks",
    )
    ARRAYS: ClassVar = (EIGENVALUES, VECTORS)

    @property
    def eigenvalues(self) -> ArrayReader:
        """The eigenvalues (d,) float64, ascending."""
        return self.reader(self.EIGENVALUES)

    @property
    def vectors(self) -> ArrayReader:
        """The coordinates (L, d) float64 of the landmarks."""
        return self.reader(self.VECTORS)


class StoredLandmarkCovariances(StoredStage):
    """Covariances of the points around each landmark, by which landmarks are joined."""

    STAGE: ClassVar = "landmark_covariances"
    COVARIANCES: ClassVar = ArrayDescription(
        STAGE,
        "covariances",
        "whole",
        ("landmark", "feature", "other_feature"),
        "float64",
        "squared, as given",
        "of each landmark, positive definite; stored where landmark_graph.covariances is full",
    )
    VARIANCES: ClassVar = ArrayDescription(
        STAGE,
        "variances",
        "whole",
        ("landmark", "feature"),
        "float64",
        "squared, as given",
        "their diagonals alone, positive; stored where landmark_graph.covariances is diagonal",
    )
    COUNTS: ClassVar = ArrayDescription(
        STAGE, "counts", "whole", ("landmark",), "int64", "1", "how many points each covariance is of"
    )
    ARRAYS: ClassVar = (COVARIANCES, VARIANCES, COUNTS)

    def read_covariances(self, diagonal: bool) -> np.ndarray:
        """Return the covariances (L, D, D) float64, or their diagonals (L, D)."""
        return self.reader(self.VARIANCES if diagonal else self.COVARIANCES).read()


class StoredLandmarkGraph(StoredStage):
    """The landmarks' own neighbour graph, and its Laplacian eigenmaps."""

    STAGE: ClassVar = "landmark_graph"
    NEIGHBORS: ClassVar = ArrayDescription(
        STAGE,
        "neighbors",
        "whole",
        ("landmark", "joined_landmark"),
        "int64",
        "landmark",
        "the landmarks that each is joined to, nearest first",
    )
    EIGENVALUES: ClassVar = ArrayDescription(
        STAGE,
        "eigenvalues",
        "whole",
        ("component",),
        "float64",
        "1",
        "the smallest eigenvalues of the Laplacian of the graph, ascending, the trivial one left out",
    )
    VECTORS: ClassVar = ArrayDescription(
        STAGE,
        "vectors",
        "whole",
        ("landmark", "component"),
        "float64",
        "1",
        "eigenvectors of L v = lambda D v: the coordinates of the landmarks",
    )
    SIGMA: ClassVar = ArrayDescription(
        STAGE, "sigma", "whole", (), "float64", "as given", "the bandwidth of the kernel that weighs edges"
    )
    ARRAYS: ClassVar = (NEIGHBORS, EIGENVALUES, VECTORS, SIGMA)

    @property
    def neighbors(self) -> ArrayReader:
        """The landmarks (L, k) int64 that each is joined to."""
        return self.reader(self.NEIGHBORS)

    @property
    def eigenvalues(self) -> ArrayReader:
        """The eigenvalues (d,) float64, ascending."""
        return self.reader(self.EIGENVALUES)

    @property
    def vectors(self) -> ArrayReader:
        """The coordinates (L, d) float64 of the landmarks."""
        return self.reader(self.VECTORS)

    def read_sigma(self) -> float:
        """Return the bandwidth of the kernel."""
        return float(self.reader(self.SIGMA).read())


class StoredGeodesics(StoredStage):
    """How far landmarks are from each other and from all points along the graph, bridges where it falls apart."""

    STAGE: ClassVar = "geodesics"
    TOGETHER: ClassVar = 8  # landmarks of a part
    DISTANCES: ClassVar = ArrayDescription(
        STAGE,
        "distances",
        "part",
        ("source_landmark", "landmark"),
        "float64",
        "as given",
        "the lengths of the shortest paths from eight consecutive landmarks, fewer in the last part, to all landmarks",
        ("block-N",),
    )
    TO_POINTS: ClassVar = ArrayDescription(
        STAGE,
        "to_points",
        "part",
        ("source_landmark", "point"),
        AS_DISTANCES,
        "as given",
        "the lengths of the shortest paths from the same landmarks to all points in work order",
        ("block-N",),
    )
    ARRAYS: ClassVar = (DISTANCES, TO_POINTS)

    def n_parts(self, n_landmarks: int) -> int:
        """Return the number of parts for so many landmarks."""
        return -(-n_landmarks // self.TOGETHER)

    def read_matrix(self, n_landmarks: int) -> np.ndarray:
        """Return the distances (L, L) float64; there and back they may differ in the last bit."""
        return np.concatenate([self.read_part(self.DISTANCES, part) for part in range(self.n_parts(n_landmarks))])

    def read_to_points(self, part: int) -> np.ndarray:
        """Return the distances (l, N) of all points in work order to the landmarks of a part, float32 or float64."""
        return self.read_part(self.TO_POINTS, part)

    def read_symmetric(self, n_landmarks: int) -> np.ndarray:
        """Return the distances (L, L) float64, the shorter of a path and its way back, which are summed otherwise."""
        ways = self.read_matrix(n_landmarks)
        return np.minimum(ways, ways.T)
