"""Landmark Isomap: classical scaling of the landmarks by their geodesic distances, then Z times their coordinates."""

from typing import Any

import numpy as np

from scalemani.chunked.needs import EACH_PROCESS, Held, Written
from scalemani.chunked.output import embedding_held, embedding_over_landmarks, over_landmarks, write_embedding
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import StageWork
from scalemani.kernels.spectral.scaling import classical_scaling, residual_variance
from scalemani.records.landmark_scores import StoredIsomap
from scalemani.records.landmarks import StoredGeodesics

COPIES_OF_DISTANCES = 6  # one way and both, centred, what LAPACK works in, of the coordinates, and off their means


def memory(sizes: Sizes) -> list[Held]:
    """List the distances, and the embedding in both orders."""
    n_landmarks = sizes.params.n_landmarks
    return [
        Held("distances", EACH_PROCESS, n_landmarks, n_landmarks, copies=COPIES_OF_DISTANCES, step="solving"),
        embedding_held(sizes),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: the embedding and the landmarks' coordinates."""
    return embedding_over_landmarks(sizes, "coordinates")


def run(work: StageWork) -> dict[str, Any]:
    """Scale the landmarks and embed the points; certify how well the coordinates keep the distances."""
    task, output = work.task, StoredIsomap(work.task.output)
    ways = StoredGeodesics(task.inputs["geodesics"]).read_matrix(task.params.n_landmarks)
    distances = np.minimum(ways, ways.T)  # a path and its way back are summed in other orders
    solution, least = classical_scaling(distances, task.params.n_components)
    if not task.output.committed(output.SOLVED):
        arrays = {output.EIGENVALUES: solution.eigenvalues, output.VECTORS: solution.vectors}
        task.output.write_whole(arrays, output.SOLVED)
    variance = residual_variance(distances, solution.vectors)
    empty = work.workspace().empty
    write_embedding(work, output.EMBEDDING, over_landmarks(task, output.vectors.read(), empty), empty)
    return {"residual_variance": variance, "least_eigenvalue": least}
