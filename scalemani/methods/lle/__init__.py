"""Locally linear embedding of points that are combinations of landmarks."""

from dataclasses import replace

from scalemani.config.stages import DISTANCES_ROUTE, LANDMARK_WEIGHTS, Stage

RECONSTRUCTION_WEIGHTS = Stage(
    "reconstruction_weights",
    ("work_points", "neighbors", "components"),
    parameters=("local_reconstruction.reg",),
    package=__name__,
)
LOCAL_RECONSTRUCTION = Stage(
    "local_reconstruction",
    ("work_points", "components", "reconstruction_weights", "landmarks", "landmark_weights"),
    also_reads=("landmark_embedding",),
    follows=("work_points", "components", "landmarks"),
    version=2,
    package=__name__,
)
ROUTES = {
    "locally-linear-embedding": (
        *DISTANCES_ROUTE,
        replace(LANDMARK_WEIGHTS, solvers=()),
        RECONSTRUCTION_WEIGHTS,
        LOCAL_RECONSTRUCTION,
    )
}
