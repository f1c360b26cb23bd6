"""The routes from points to an embedding, as plain data that one can print.

`scalemani.config.stages` has the stages that several methods share. A method in `scalemani/methods` declares its own
stages and routes in its `__init__.py`.
"""

from scalemani.config.methods import declarations
from scalemani.config.objectives import OBJECTIVES
from scalemani.config.stages import (
    AFFINITY_ROUTE,
    CLUSTERING,
    DIFFUSION_ROUTE,
    EIGENVECTOR_STAGES,
    GRAPH,
    GRAPH_ROUTE,
    KERNEL_AFFINITIES,
    LANDMARK_COVARIANCES,
    LANDMARK_GRAPH,
    NEIGHBOR_COMPONENTS,
    NONLINEAR_ROUTE,
    SPECTRAL_ROUTE,
    Stage,
)

ROUTES: dict[str, tuple[Stage, ...]] = {
    "laplacian-eigenmaps": (*SPECTRAL_ROUTE, LANDMARK_COVARIANCES, LANDMARK_GRAPH),
    "spectral-clustering": (
        *AFFINITY_ROUTE,
        *EIGENVECTOR_STAGES,
        LANDMARK_COVARIANCES,
        LANDMARK_GRAPH,
        CLUSTERING,
    ),
    "diffusion-maps": DIFFUSION_ROUTE,
    **{name: route for method in declarations() for name, route in getattr(method, "ROUTES", {}).items()},
    **dict.fromkeys(OBJECTIVES, NONLINEAR_ROUTE),
    "knn-graph": (*GRAPH_ROUTE, GRAPH),
}

# The package that the module of each stage is in.
PACKAGES = {stage.name: stage.package for route in ROUTES.values() for stage in route}
# Methods that go on from neighbours, or from affinities, alone.
WITHOUT_POINTS = ("laplacian-eigenmaps", "spectral-clustering", "diffusion-maps", *OBJECTIVES)
WINDOWED = ("laplacian-eigenmaps", "spectral-clustering")  # methods of images and videos


def takes_labels(method: str) -> bool:
    """Return whether a method cannot do without labels."""
    return any(stage.reads_labels and not stage.optional for stage in ROUTES.get(method, ()))


def goes_by_distances(method: str) -> bool:
    """Return whether a method takes the edges of its graph as they are, without affinities."""
    return NEIGHBOR_COMPONENTS in ROUTES.get(method, ())


def takes_kernel(method: str) -> bool:
    """Return whether a method takes the affinities for a kernel, which is one where a point meets itself."""
    return KERNEL_AFFINITIES in ROUTES.get(method, ())
