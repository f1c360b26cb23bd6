"""Principal components for a sparse kernel K = I + W, of points that are combinations of landmarks."""

from dataclasses import replace

from scalemani.config.stages import KERNEL_ROUTE, LANDMARK_WEIGHTS, LANDMARKS, REDUCED, Key, Stage

KERNEL_COMPONENTS = Stage(
    "kernel_components",
    ("work_points", "symmetric_affinities", "landmark_weights", "reduced"),
    package=__name__,
    key=Key(version=2, parameters_of=("landmark_embedding",), without=("symmetric_affinities",)),
)
ROUTES = {
    "kernel-pca": (
        *KERNEL_ROUTE,
        LANDMARKS,
        replace(LANDMARK_WEIGHTS, solvers=()),
        replace(REDUCED, solvers=()),
        KERNEL_COMPONENTS,
    )
}
