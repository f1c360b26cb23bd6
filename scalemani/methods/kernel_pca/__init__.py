"""Principal components for a sparse kernel K = I + W, of points that are combinations of landmarks."""

from dataclasses import replace

from scalemani.config.stages import KERNEL_ROUTE, LANDMARK_WEIGHTS, LANDMARKS, REDUCED, Stage

KERNEL_COMPONENTS = Stage(
    "kernel_components",
    ("work_points", "symmetric_affinities", "landmark_weights", "reduced"),
    also_reads=("landmark_embedding",),
    follows=("symmetric_affinities",),
    version=2,
    package=__name__,
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
