"""The rules of landmarks: what a choice draws of N points."""

from scalemani.config.params import Parameters
from scalemani.engine.needs import EACH_PROCESS, Held
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.quality import SIGMA_QUERIES
from scalemani.kernels.landmarks.selection import Choice, Selected, at_rows
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS
from scalemani.methods.determinantal.kernels import (
    COVERAGE_POINTS,
    PROPOSED,
    determinantal_rows,
    refuse_large,
    repulsive_rows,
)


def repulsive(points: PointsByRow, choice: Choice) -> Selected:
    """Return landmarks by the approximation, which reads few points at a time."""
    n_landmarks, seed, n_sampled = choice.n_landmarks, choice.seed, max(choice.sample_points, choice.n_landmarks)
    found = repulsive_rows(points, n_landmarks, seed, choice.diversity, n_sampled)
    return at_rows(points, found.rows)._replace(certificates=found.certificates)


def determinantal(points: PointsByRow, choice: Choice) -> Selected:
    """Return landmarks by the process itself, of few points."""
    found = determinantal_rows(points, choice.n_landmarks, choice.seed, choice.diversity)
    return at_rows(points, found.rows)._replace(certificates=found.certificates)


def check_landmarks(params: Parameters, n_points: int) -> None:
    """Refuse more points than the exact process takes."""
    if params.landmarks.method == "dpp-exact":
        refuse_large(n_points)


COPIES_OF_KERNEL = 5  # distances, kernel, eigenvectors, what LAPACK works in, and those that are kept


def landmarks_held(sizes: Sizes) -> list[Held]:
    """List the random points that sigma is chosen by, what the draw takes, and what its coverage is measured by."""
    dimensions, asked, n_landmarks = sizes.dimensions, sizes.params.landmarks, sizes.params.n_landmarks
    n_points, features, dtype = dimensions.n_points, dimensions.n_features, dimensions.dtype
    n_looked = min(n_points, COVERAGE_POINTS)
    held = [
        Held("random points, as read and in the order drawn", EACH_PROCESS, 2 * n_landmarks, features, dtype, 2),
        Held("distances of random points", EACH_PROCESS, min(n_landmarks, SIGMA_QUERIES), n_landmarks, copies=3),
        Held("a tile of points in float64", EACH_PROCESS, TILE_ROWS, features, "float64", 2),
        Held("points whose coverage is measured", EACH_PROCESS, n_looked, features, dtype),
        Held("points that fix the sketches, centred", EACH_PROCESS, min(MOST_SAMPLE_ROWS, n_landmarks), features),
    ]
    if asked.method == "dpp-exact":
        return [
            *held,
            Held("points in float64", EACH_PROCESS, n_points, features, copies=2),
            Held("kernel and its eigenvectors", EACH_PROCESS, n_points, n_points, copies=COPIES_OF_KERNEL),
        ]
    n_sampled = 0 if asked.neighborhood is None else min(n_points, max(asked.sample_points, n_landmarks))
    return [
        *held,
        Held("bounds of probabilities", EACH_PROCESS, n_points),
        Held("points proposed together", EACH_PROCESS, PROPOSED, features, dtype, 2),
        Held("landmarks in the order drawn", EACH_PROCESS, n_landmarks, features, dtype),
        Held("sample that neighbourhoods are measured in", EACH_PROCESS, n_sampled, features, dtype, 2),
    ]
