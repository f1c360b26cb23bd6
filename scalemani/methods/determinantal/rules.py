"""The rules of landmarks: what a choice draws of N points."""

from scalemani.kernels.landmarks.selection import Choice, Selected, at_rows
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.methods.determinantal.kernels.diverse import determinantal_rows, repulsive_rows


def repulsive(points: PointsByRow, choice: Choice) -> Selected:
    """Return landmarks by the approximation, which reads few points at a time."""
    n_landmarks, seed, n_sampled = choice.n_landmarks, choice.seed, max(choice.sample_points, choice.n_landmarks)
    found = repulsive_rows(points, n_landmarks, seed, choice.diversity, n_sampled)
    return at_rows(points, found.rows)._replace(certificates=found.certificates)


def determinantal(points: PointsByRow, choice: Choice) -> Selected:
    """Return landmarks by the process itself, of few points."""
    found = determinantal_rows(points, choice.n_landmarks, choice.seed, choice.diversity)
    return at_rows(points, found.rows)._replace(certificates=found.certificates)
