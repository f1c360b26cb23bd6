"""Locally linear embedding of points that are combinations of landmarks."""

from dataclasses import replace

from scalemani.config.stages import DISTANCES_ROUTE, LANDMARK_WEIGHTS, Key, Stage

RECONSTRUCTION_WEIGHTS = Stage(
    "reconstruction_weights",
    ("work_points", "neighbors", "components"),
    package=__name__,
    key=Key(parameters=("local_reconstruction.reg",)),
)
LOCAL_RECONSTRUCTION = Stage(
    "local_reconstruction",
    ("work_points", "components", "reconstruction_weights", "landmarks", "landmark_weights"),
    package=__name__,
    key=Key(version=2, parameters_of=("landmark_embedding",), without=("work_points", "components", "landmarks")),
)
ROUTES = {
    "locally-linear-embedding": (
        *DISTANCES_ROUTE,
        replace(LANDMARK_WEIGHTS, solvers=()),
        RECONSTRUCTION_WEIGHTS,
        LOCAL_RECONSTRUCTION,
    )
}
