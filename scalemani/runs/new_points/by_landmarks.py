"""New points in a finished spectral embedding: their weights over the landmarks, times the landmarks' coordinates."""

from typing import NamedTuple

import numpy as np

from scalemani.config.methods import beside
from scalemani.kernels.landmarks.combining import Combining, combined
from scalemani.kernels.landmarks.nearest import PreparedLandmarks, prepare_landmarks
from scalemani.kernels.landmarks.weights import reconstruction_errors
from scalemani.kernels.rows.compressed import Points, dense_rows
from scalemani.runs.new_points.account import Placed
from scalemani.runs.new_points.reach import Reach, reach_of
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredDiffusionCoordinates, StoredLandmarkScores
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding, StoredLandmarks
from scalemani.stages.diffusion_coordinates import diffusion_scales
from scalemani.store.objects import damaged_object
from scalemani.store.run_store import PLAN

ROWS_AT_ONCE = 4096


class LandmarkPlacement(NamedTuple):
    """All that placing a point takes: landmarks (L, D), their `coordinates` (L, d), how points are combined of them."""

    prepared: PreparedLandmarks
    coordinates: np.ndarray
    combining: Combining
    reach: Reach
    metric: str
    spacing: float
    sparse: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The columns D that points must have, and the dimensions d of the embedding."""
        return self.prepared.landmarks.shape[1], self.coordinates.shape[1]

    def place(self, points: Points) -> Placed:
        """Return points (n, D) placed: each row depends on its own point only."""
        landmarks, n_points = self.prepared.landmarks, points.shape[0]
        placed = np.empty((n_points, self.coordinates.shape[1]))
        nearest, errors = np.empty(n_points), np.empty(n_points)
        for start in range(0, n_points, ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            rows = dense_rows(points[part])
            found = combined(rows, self.prepared, self.combining)
            placed[part] = found.of(self.coordinates)
            nearest[part] = np.sqrt(found.squares[:, 0])
            errors[part] = reconstruction_errors(rows, landmarks, found.indices, found.weights)
        # Far out, where squares overflow, distances are beyond all numbers.
        return Placed(placed, np.nan_to_num(nearest, nan=np.inf), np.nan_to_num(errors, nan=1.0, posinf=1.0))


def coordinates_of(run: Run, landmarks: StoredLandmarks) -> np.ndarray:
    """Return the coordinates (L, d) of the landmarks in the embedding of a run.

    Where the embedding is Z times their own coordinates, landmarks off the data have these; those that no point uses
    have none, and stand among their anchors as after a refinement.
    """
    scores = run.reduction
    if scores is not None and issubclass(scores, StoredLandmarkScores):
        return scores(run.group(scores.STAGE)).vectors.read()
    among_points = landmarks.coordinates_in(run.stored_embedding)
    if not landmarks.off_data or run.params.embedding.solver != "lll":
        return among_points
    own = StoredLandmarkEmbedding(run.group("landmark_embedding")).vectors.read()
    if StoredDiffusionCoordinates.STAGE in run.keys:
        own *= diffusion_scales(run.eigenvalues, run.params.diffusion_coordinates.time)
    return np.where(own.any(axis=1, keepdims=True), own, among_points)


def read_landmark_placement(run: Run) -> LandmarkPlacement:
    """Return the landmarks of a finished run with their coordinates in its embedding."""
    landmarks = StoredLandmarks(run.group("landmarks"))
    map_of_solver = beside("SOLVERS", run.params.embedding.solver, "landmark_map")
    if map_of_solver and "landmark_graph" in run.keys:
        prepared, coordinates, combining = map_of_solver(landmarks, run.group("landmark_graph"), run.params)
    else:
        prepared, coordinates = prepare_landmarks(landmarks.points.read()), coordinates_of(run, landmarks)
        combining = Combining(run.params.landmark_neighbors, run.params.landmark_weights.regularization)
    if combining.n_neighbors > len(prepared.landmarks):
        found = f"{combining.n_neighbors} landmarks a point, of {len(prepared.landmarks)}"
        raise damaged_object(f"{run.store.root}/{PLAN}", found)
    return LandmarkPlacement(
        prepared,
        coordinates,
        combining,
        reach_of(run),
        run.metric,
        landmarks.read_coverage().spacing,
        run.dimensions.sparse,
    )
