"""What placing new points takes of memory: what every process holds, and what a block of them takes."""

from scalemani.chunked.needs import CACHE, EACH_PROCESS, EACH_TASK, Held
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.task import Dimensions
from scalemani.embeddings.growth import mesh_values
from scalemani.new_points.by_landmarks import ROWS_AT_ONCE
from scalemani.new_points.by_paths import placed_by_paths
from scalemani.new_points.neighbors import CACHE_BYTES, CANDIDATES_PER_NEIGHBOR
from scalemani.records.embeddings import StoredLayout
from scalemani.records.landmarks import StoredAffinityWeights, StoredGeodesics
from scalemani.runs.opened import Run

COPIES_OF_LANDMARKS = 3  # as read, in float64 for their reach, and in float64 as they are sketched
COPIES_OF_POINTS = 2  # as read, and as compared
COPIES_OF_POSITIONS = 6  # of a descent: positions, gradients, trial positions and what they are made of


def needs_of(run: Run, points: Dimensions, rows: int) -> list[Held]:
    """List what placing blocks of so many new points holds."""
    width, features = run.params.n_components, points.n_features
    held = [
        Held("landmarks", EACH_PROCESS, run.params.n_landmarks, features, "float64", COPIES_OF_LANDMARKS),
        Held("new points of a block", EACH_TASK, rows, *points.kept_row, COPIES_OF_POINTS),
        Held("coordinates of a block and what is known of them", EACH_TASK, rows, width + 5),
    ]
    if StoredAffinityWeights.STAGE in run.keys:
        return held + neighbors_held(run, points, rows)
    if placed_by_paths(run):
        trained, lengths, together = run.dimensions.n_points, run.dimensions.distance_dtype, StoredGeodesics.TOGETHER
        return [
            *held,
            *neighbors_held(run, points, rows),
            Held("distances of training points to some landmarks", EACH_TASK, trained, together, lengths, 2),
            Held("lengths of paths over neighbours", EACH_TASK, rows, 3 * run.params.n_neighbors),
        ]
    if StoredLayout.STAGE not in run.keys:
        n_neighbors = run.params.landmark_neighbors
        return [
            *held,
            Held("coordinates of the landmarks", EACH_PROCESS, run.params.n_landmarks, width),
            Held("nearest landmarks and weights of some rows", EACH_TASK, ROWS_AT_ONCE, n_neighbors, "float64", 3),
            Held("differences of some rows", EACH_TASK, ROWS_AT_ONCE, features),
        ]
    return [
        *held,
        *neighbors_held(run, points, rows),
        Held("mesh", EACH_PROCESS, mesh_values(run.dimensions.n_points)),
        Held("positions of a block", EACH_TASK, rows, width, "float64", COPIES_OF_POSITIONS),
    ]


def neighbors_held(run: Run, points: Dimensions, rows: int) -> list[Held]:
    """List what the search for the neighbours of a block takes, and what is known of these."""
    trained, k, width = run.dimensions, run.params.affinity_neighbors, run.params.n_components
    sketch = Sizes(run.dimensions, run.params).sketch_width
    looked_at = min(trained.n_points, int(rows * CANDIDATES_PER_NEIGHBOR * k))
    return [
        Held("sketches of the training points", EACH_PROCESS, trained.n_points, sketch, "float32"),
        Held("positions of the training points, as read and sorted", EACH_PROCESS, trained.n_points, width, copies=3),
        Held("sketches of training and new points", EACH_TASK, trained.n_points + rows, sketch, "float32"),
        Held("candidates and neighbours of a block", EACH_TASK, rows, 4 * k, "float64"),
        Held("training points that are candidates", EACH_TASK, looked_at, *trained.kept_row),
        Held("positions of neighbours", EACH_TASK, rows, k * width, "float64", 2),
        Held("decoded blocks of training points", CACHE, CACHE_BYTES, 1, "uint8"),
    ]
