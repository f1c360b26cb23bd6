"""The routes from points to an embedding, as plain data that one can print.

`scalemani.config.stages` has the stages that several methods share. A method in `scalemani/methods` declares its
stages and routes in its `__init__.py`.
"""

from dataclasses import replace

from scalemani.config.methods import MethodRoute, ReductionExtension, SolverExtension, extensions
from scalemani.config.objectives import OBJECTIVES, Objective
from scalemani.config.stages import (
    AFFINITY_ROUTE,
    CLUSTERING,
    COARSE_EMBEDDING,
    COARSE_GRAPHS,
    DIFFUSION_COORDINATES,
    DOUBT,
    EMBEDDING,
    GRAPH,
    GRAPH_ROUTE,
    KERNEL_AFFINITIES,
    LANDMARK_EMBEDDING,
    LANDMARK_SOLVERS,
    LANDMARK_WEIGHTS,
    LANDMARKS,
    LAYOUT,
    NEIGHBOR_COMPONENTS,
    NORMALIZED_AFFINITIES,
    REDUCED,
    SPECTRAL_DOUBT,
    WEIGHTED_ROUTE,
    Route,
    Stage,
)

# Solvers of the eigenproblem that is reduced to the landmarks: methods have some that make a Z of their own.
REDUCING_SOLVERS = (*LANDMARK_SOLVERS, *extensions(ReductionExtension))
WEIGHTS_STAGES: Route = tuple(
    stage for reduction in extensions(ReductionExtension).values() for stage in reduction.stages
)


def reading_weights(stage: Stage) -> Stage:
    """Return a stage that reads Z, whichever stage makes it."""
    place = stage.inputs.index(LANDMARK_WEIGHTS.name) + 1
    others = (other.name for other in WEIGHTS_STAGES)
    return replace(stage, inputs=(*stage.inputs[:place], *others, *stage.inputs[place:]))


SPECTRAL_EMBEDDING = reading_weights(EMBEDDING)
EIGENVECTOR_STAGES = (
    LANDMARKS,
    LANDMARK_WEIGHTS,
    *WEIGHTS_STAGES,
    replace(reading_weights(REDUCED), solvers=REDUCING_SOLVERS),
    replace(LANDMARK_EMBEDDING, solvers=REDUCING_SOLVERS),
    COARSE_GRAPHS,
    COARSE_EMBEDDING,
    SPECTRAL_EMBEDDING,
)
SPECTRAL_ROUTE = (*WEIGHTED_ROUTE, *EIGENVECTOR_STAGES)
# Solvers of the spectral embedding that have a route of their own, and the stages that only these have.
SOLVER_ROUTES: dict[str, Route] = {name: solver.route for name, solver in extensions(SolverExtension).items()}
SOLVER_STAGES = tuple(dict.fromkeys(stage for route in SOLVER_ROUTES.values() for stage in route if stage.solvers))


def nonlinear_route(objective: Objective) -> Route:
    """Return the stages of an objective: single points have a part of their own in one that divides by one sum."""
    return (*SPECTRAL_ROUTE, LAYOUT, *(() if objective.combine == "sum-log" else (DOUBT,)))


ROUTES: dict[str, Route] = {
    "laplacian-eigenmaps": (*SPECTRAL_ROUTE, *SOLVER_STAGES, SPECTRAL_DOUBT),
    "spectral-clustering": (*AFFINITY_ROUTE, *EIGENVECTOR_STAGES, *SOLVER_STAGES, CLUSTERING),
    "diffusion-maps": (*WEIGHTED_ROUTE, NORMALIZED_AFFINITIES, *EIGENVECTOR_STAGES, DIFFUSION_COORDINATES),
    **{name: method.route for name, method in extensions(MethodRoute).items()},
    **{name: nonlinear_route(objective) for name, objective in OBJECTIVES.items()},
    "knn-graph": (*GRAPH_ROUTE, GRAPH),
}

# The package that the module of each stage is in.
PACKAGES = {stage.name: stage.package for route in ROUTES.values() for stage in route}
# Methods that go on from neighbours, or from affinities, alone.
WITHOUT_POINTS = ("laplacian-eigenmaps", "spectral-clustering", "diffusion-maps", *OBJECTIVES)
OF_GRAPHS = (*WITHOUT_POINTS, "knn-graph")  # methods that need no coordinates of points
OF_PIXELS = ("laplacian-eigenmaps", "spectral-clustering")  # methods of images and videos


def is_doubted(method: str) -> bool:
    """Return whether the doubt of the points of a method can be measured."""
    return any(stage.name == DOUBT.name for stage in ROUTES.get(method, ()))


def takes_labels(method: str) -> bool:
    """Return whether a method cannot do without labels."""
    return any("labels" in stage.key.side_data and not stage.optional for stage in ROUTES.get(method, ()))


def goes_by_distances(method: str) -> bool:
    """Return whether a method takes the edges of its graph as they are, without affinities."""
    return NEIGHBOR_COMPONENTS in ROUTES.get(method, ())


def takes_kernel(method: str) -> bool:
    """Return whether a method takes the affinities for a kernel, which is one where a point meets itself."""
    return KERNEL_AFFINITIES in ROUTES.get(method, ())
