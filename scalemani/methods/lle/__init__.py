"""Locally linear embedding of points that are combinations of landmarks."""

from dataclasses import replace

from scalemani.config.stages import DISTANCES_ROUTE, LANDMARK_WEIGHTS, Stage

LOCAL_RECONSTRUCTION = Stage(
    "local_reconstruction",
    ("work_points", "neighbors", "components", "landmarks", "landmark_weights"),
    also_reads=("landmark_embedding",),
    follows=("landmarks",),
    package=__name__,
)
ROUTES = {"locally-linear-embedding": (*DISTANCES_ROUTE, replace(LANDMARK_WEIGHTS, solvers=()), LOCAL_RECONSTRUCTION)}
