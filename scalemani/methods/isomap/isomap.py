"""Landmark Isomap: classical scaling of the landmarks by their geodesic distances, then points by those to landmarks.

Sources: Tenenbaum, de Silva and Langford, A global geometric framework for nonlinear dimensionality reduction, 2000; de
Silva and Tenenbaum, Global versus local methods in nonlinear dimensionality reduction, 2002, for the triangulation.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from scalemani.config.params import Resolved
from scalemani.engine.context import StageContext
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.errors import ConfigError
from scalemani.methods.isomap.geodesics import StoredGeodesics, StoredIsomap
from scalemani.methods.isomap.kernels import classical_scaling, residual_variance, sampled_paths, triangulation
from scalemani.stages.shared.output import embedding_memory, write_embedding

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey


def memory(sizes: Sizes) -> Memory:
    """Return what the distances take, and the embedding in both orders."""
    n_landmarks, together = sizes.params.n_landmarks, StoredGeodesics.TOGETHER
    n_points, lengths = sizes.dimensions.n_points, sizes.dimensions.distance_dtype
    # One way and both, centred, what LAPACK works in, of the coordinates, and off their means.
    of_solving = {"distances": 6 * array("float64", n_landmarks, n_landmarks)}
    return (
        embedding_memory(sizes)
        + certificate_memory(sizes)
        + Memory(
            process={
                "distances of all points to some landmarks, and decoded": 2 * array(lengths, n_points, together),
                # A landmark's distances, their squares, and these times a coordinate.
                "those to one landmark, in float64": array("float64", n_points, 3),
            },
            steps={"solving": Memory(of_solving)},
        )
    )


def certificate_memory(sizes: Sizes) -> Memory:
    """Return what the certificate by paths from sampled points takes."""
    n_points = sizes.dimensions.n_points
    of_certificate = {
        "paths from some sampled points, in float64": 2 * array("float64", n_points, StoredGeodesics.TOGETHER),
        "columns at unit length": 3 * array("float64", n_points, sizes.params.n_components),
    }
    return Memory(steps={"certificate": Memory(of_certificate)})


def run(context: StageContext) -> dict[str, Any]:
    """Scale the landmarks and triangulate the points; certify how well the coordinates keep the distances."""
    task = context.task
    paths = task.stored(StoredGeodesics)
    distances = paths.read_symmetric(task.params.n_landmarks)
    solution, least = classical_scaling(distances, task.params.n_components)
    if not task.output.committed(StoredIsomap.SOLVED):
        arrays = {StoredIsomap.eigenvalues: solution.eigenvalues, StoredIsomap.vectors: solution.vectors}
        task.output.write_whole(arrays, StoredIsomap.SOLVED)
    variance = residual_variance(distances, solution.vectors)
    empty, triangulated = context.workspace.empty, triangulation(distances, solution)
    placed = empty((task.dimensions.n_points, task.params.n_components), np.float64)
    placed[:] = 0.0
    n_parts = paths.n_parts(len(distances))
    context.executor.progress.start(task.stage, n_parts, "part")
    for part in range(n_parts):  # the points by the paths to some landmarks after the other
        triangulated.add(paths.to_points(part), part * paths.TOGETHER, placed)
        context.executor.progress.advance()
    certified = certified_by_sample(paths, placed, triangulated.exponent)
    write_embedding(context, StoredIsomap.embedding, np.ldexp(placed, triangulated.exponent, out=placed), empty)
    return {"residual_variance": variance, "least_eigenvalue": least, **certified}


def certified_by_sample(paths: StoredGeodesics, placed: np.ndarray, exponent: int) -> dict[str, float]:
    """Return how far positions (N, d) in units of 2^exponent are from an Isomap of all points, by sampled ones."""
    rows = paths.sampled_rows.read()
    parts = map(paths.read_from_sample, range(paths.n_parts(len(rows))))
    sampled = sampled_paths(parts, rows, placed, exponent)
    (residual, residual_error), (variance, variance_error) = sampled.residual(), sampled.variance()
    return {
        "residual": residual,
        "residual_error": residual_error,
        "points_residual_variance": variance,
        "points_residual_variance_error": variance_error,
    }


LANDMARKS_ARE_POINTS = True  # paths lead from point to point


def most_components(survey: "Survey") -> int:
    """Return how many components points have; a line has the distances of a line."""
    return 1 if survey.dimensions.n_features == 1 else survey.dimensions.n_points - 1


def check_parameters(params: Resolved) -> None:
    """Refuse landmarks off the data."""
    if params.landmarks.off_data:
        raise ConfigError(
            f"isomap measures paths between landmarks that are points, and landmarks.method={params.landmarks.method} "
            "puts them elsewhere: take another landmarks.method, or landmarks.snap=true"
        )
