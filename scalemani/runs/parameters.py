"""The parameters of a run: what is open is decided, what cannot act is left out, what the data cannot serve refused."""

from collections.abc import Collection, Sequence
from typing import Any

from scalemani.config.methods import beside, declared, part_of, provided
from scalemani.config.objectives import objective_of
from scalemani.config.params import Parameters, Situation, acting
from scalemani.config.routes import takes_kernel
from scalemani.config.stages import (
    GIVEN_LANDMARKS,
    GIVEN_START,
    PRECOMPUTED,
    Stage,
)
from scalemani.descents.phases import OF_PAIRS
from scalemani.descents.repulsion import chosen_method, make_repulsion
from scalemani.engine.task import Dimensions
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError
from scalemani.io.sources.side_data import Weights
from scalemani.runs.survey import Survey

SHOWN_COMPONENTS = 10


def decide_parameters(
    requested: Parameters, method: str, found: Survey, route: Sequence[Stage]
) -> tuple[Parameters, tuple[str, ...]]:
    """Return the parameters that a run uses, resolved and checked, and notes on those that have no effect."""
    names = {stage.name for stage in route}
    asked = follow_landmarks(requested, method, found, "landmarks" in names)
    n_points, most = found.dimensions.n_points, most_components(found, route)

    def resolve(kept: Parameters) -> Parameters:
        return kept.resolved(method, n_points, found.distinct_points, most)

    params = resolve(asked)
    stages = frozenset(name for stage in route for name in (stage.name, *stage.also_reads))
    repulsion = repulsion_method(params, n_points) if "layout" in stages else None
    here = Situation(
        method=method,
        asked=asked,
        params=params,
        n_points=n_points,
        stages=stages,
        placed_by_landmarks=placed_by_landmarks(route),
        neighbors=PRECOMPUTED if params.points.metric == PRECOMPUTED else params.neighbors.method_for(n_points),
        repulsion=repulsion,
    )
    used, notes = acting(here, resolve)
    check_components(used, found, most, takes_kernel(method))
    check_against_data(used, found.dimensions, names)
    if repulsion is not None:
        make_repulsion(repulsion, objective_of(method).kernel, used.layout.tolerance)
        check_start(used, found.dimensions.n_features)
    for check in provided_by(route, "check_parameters"):
        check(used)
    if found.side.weights is not None:
        check_weighted(used, found.side.weights)
    check_given_start(used, found, names)
    if "embedding" in names:
        check_connected(found)
    return used, notes


def follow_landmarks(asked: Parameters, method: str, found: Survey, chosen: bool) -> Parameters:
    """Return parameters that ask for as many landmarks as were given; refuse them where others or none are `chosen`."""
    named, given = asked.landmarks.method, found.side.landmarks
    if given is None:
        if named == GIVEN_LANDMARKS and chosen:
            raise ConfigError(
                "landmarks.method=given takes landmarks: give a file with --landmarks (landmarks= an array in Python)"
            )
        return asked
    count = len(given.points)
    if named != GIVEN_LANDMARKS or not chosen:
        what = f"{method} takes none" if named == GIVEN_LANDMARKS else f"landmarks.method={named} chooses others"
        raise ConfigError(f"{count} landmarks were given, and {what}: leave out one of the two")
    if asked.landmarks.n_landmarks not in (None, count):
        raise ConfigError(
            f"{count} landmarks were given, and landmarks.n_landmarks={asked.landmarks.n_landmarks} asks for another "
            "number: leave it out"
        )
    return asked.with_values({"landmarks": {"n_landmarks": count}})


def provided_by(route: Sequence[Stage], name: str) -> list[Any]:
    """Return what the methods that a route is of define under a name, in the modules of their stages."""
    own = (provided(stage.package, stage.name, name) for stage in route)
    return [found for found in own if found is not None]


def most_components(found: Survey, route: Sequence[Stage]) -> int | None:
    """Return how many components the data leave a linear or kernel method; None for other methods."""
    bounds = [most(found) for most in provided_by(route, "most_components")]
    return bounds[0] if bounds else None


def placed_by_landmarks(route: Sequence[Stage]) -> bool:
    """Return whether new points are placed by their weights over the landmarks, which a method may do otherwise."""
    names = {stage.name for stage in route}
    if "landmarks" not in names or {"layout", "affinity_weights"} & names:
        return False
    return all(part_of(stage.package, "new_points") is None for stage in route)


def check_components(params: Parameters, found: Survey, most: int | None, kernel: bool) -> None:
    """Refuse more components of a linear method than features, classes and landmarks allow."""
    if most is None:
        return
    n_landmarks, n_features = params.n_landmarks, found.dimensions.n_features
    if kernel and params.affinities.kind == "entropic":
        raise ConfigError(
            "affinities.kind must be gaussian or self-tuning where affinities are a kernel, got entropic: a kernel is "
            "one where a point meets itself, and entropic affinities are shares of a row"
        )
    classes = "" if found.side.labels is None else f", {len(found.side.labels.counts)} classes"
    if params.n_components > min(most, n_landmarks - 1):
        raise ConfigError(
            f"landmark_embedding.n_components must be at most {min(most, n_landmarks - 1)} for {n_features} features"
            f"{classes} and landmarks.n_landmarks={n_landmarks}, got {params.n_components}"
        )


def repulsion_method(params: Parameters, n_points: int) -> str:
    """Return how the repulsion of a descent is summed."""
    asked, kernel = params.layout, objective_of(str(params.layout.objective)).kernel
    return chosen_method(asked.repulsion, kernel, n_points, params.n_components, asked.exact_up_to)


def check_against_data(params: Parameters, dimensions: Dimensions, stages: Collection[str]) -> None:
    """Refuse parameters that the data cannot serve, before any work; those of stages that are not run do not matter."""
    n_points, k, n_landmarks = dimensions.n_points, params.n_neighbors, params.n_landmarks
    if k >= n_points:
        raise DataError(
            f"N={n_points} points, need more than n_neighbors (k={k}): give more points, or a smaller "
            "neighbors.n_neighbors or affinities.perplexity"
        )
    if "neighbors" in stages and params.neighbors.method == "leaves" and dimensions.sparse:
        raise ConfigError("neighbors.method=leaves takes dense points, and these are sparse: take auto, or partition")
    if "affinities" in stages:
        check_affinities(params, "weights" in stages)
    if "landmarks" in stages:
        check_landmarks(params, n_points)
    if "embedding" in stages and params.n_components >= n_points:
        raise ConfigError(f"landmark_embedding.n_components must be below N={n_points}, got {params.n_components}")
    if "clustering" in stages and params.clustering.n_clusters > n_landmarks:
        raise ConfigError(
            f"clustering.n_clusters must be at most landmarks.n_landmarks={n_landmarks}, got "
            f"{params.clustering.n_clusters}"
        )


def check_start(params: Parameters, n_features: int) -> None:
    """Refuse a start from principal components where there are none, or fewer than the embedding has dimensions."""
    if params.layout.init != "pca":
        return
    if params.points.metric == PRECOMPUTED:
        raise ConfigError(f"layout.init=pca needs points, and {params.given_instead}: take spectral or random")
    known = min(n_features, params.partition.sketch_dimensions)
    if params.n_components > known:
        raise ConfigError(
            f"layout.init=pca has {known} principal components, of {n_features} features and "
            f"partition.sketch_dimensions={params.partition.sketch_dimensions}, and "
            f"landmark_embedding.n_components={params.n_components} asks for more: take spectral or random"
        )


def check_given_start(params: Parameters, found: Survey, stages: Collection[str]) -> None:
    """Refuse a start where there is no descent or another start was asked for, one of another width, and none."""
    asked = params.layout.init == GIVEN_START
    if found.side.init is None:
        if asked and "layout" in stages:
            raise ConfigError(
                "layout.init=given takes coordinates to start from: give a run or a file with --init (init= in Python)"
            )
        return
    if "layout" not in stages or not asked:
        what = f"layout.init={params.layout.init} asks for another start" if "layout" in stages else "there is none"
        raise ConfigError(f"coordinates were given for the start of a descent, and {what}: leave out one of the two")
    if found.side.init.coordinates.shape[1] != params.n_components:
        raise ConfigError(
            f"the start has {found.side.init.coordinates.shape[1]} columns and the embedding "
            f"landmark_embedding.n_components={params.n_components}: give as many"
        )


def check_connected(found: Survey) -> None:
    """Refuse affinities that were given and fall into components: eigenvectors then tell these apart, and no more."""
    sizes = found.components_given
    if len(sizes) > 1:
        raise DisconnectedGraphError(
            f"the affinities that were given have {len(sizes)} components (largest: {list(sizes[:SHOWN_COMPONENTS])}), "
            "which eigenvectors tell apart and no more: give those of the largest alone "
            "(scipy.sparse.csgraph.connected_components labels them), of more neighbours a point, or take a descent "
            "with another start (layout.init=random)"
        )


def check_affinities(params: Parameters, weighted: bool) -> None:
    """Refuse affinities that the neighbours cannot serve; where points are `weighted`, `check_weighted` does."""
    if params.affinities.by_trees and not params.neighbors.by_window:
        raise ConfigError(
            "affinities.kind=ensemble is of the pixels of images: give an image with neighbors.method=window, or take "
            "another kind"
        )
    k = params.affinity_neighbors
    if k > params.n_neighbors:
        raise ConfigError(
            f"affinities.n_neighbors must be at most neighbors.n_neighbors={params.n_neighbors}, got {k}: affinities "
            "are those of the nearest neighbours that the graph holds"
        )
    if not weighted:
        params.affinities.check_reach(k)
    if params.affinities.takes_bandwidth_neighbor and params.affinities.bandwidth_neighbor > k:
        raise ConfigError(
            f"affinities.bandwidth_neighbor must be at most n_neighbors (k={k}), "
            f"got {params.affinities.bandwidth_neighbor}"
        )


def check_weighted(params: Parameters, weights: Weights) -> None:
    """Refuse what points with weights cannot have: other affinities, a perplexity out of reach, some directions."""
    if params.affinities.kind != "entropic":
        raise ConfigError(
            f"affinities.kind must be entropic for points with weights, got {params.affinities.kind}: set it, or give "
            "the points repeated"
        )
    if params.embedding.solver in {*declared("REDUCTIONS"), *declared("SOLVERS")}:
        raise ConfigError(
            f"embedding.solver={params.embedding.solver} knows no weights: take another, or give the points repeated"
        )
    k = params.affinity_neighbors
    params.affinities.check_reach(k, weights.fewest_neighbors(k))
    if params.layout.objective is not None and params.layout.direction in OF_PAIRS:
        raise ConfigError(
            f"layout.direction={params.layout.direction} knows no weights: take momentum, spectral+l-bfgs or another"
        )


def check_landmarks(params: Parameters, n_points: int) -> None:
    """Refuse numbers of landmarks, of their neighbours and of components that do not fit each other or the points."""
    n_landmarks = params.n_landmarks
    if n_landmarks > n_points:
        raise ConfigError(f"landmarks.n_landmarks must be at most N={n_points}, got {n_landmarks}")
    if params.landmark_neighbors > n_landmarks:
        raise ConfigError(
            f"landmark_weights.n_neighbors must be at most landmarks.n_landmarks={n_landmarks}, "
            f"got {params.landmark_neighbors}"
        )
    if params.embedding.by_affinities and (params.landmarks.off_data or params.neighbors.by_window):
        raise ConfigError(
            f"embedding.solver={params.embedding.solver} takes landmarks that are points, and neighbours that are "
            "stored: take another landmarks.method or landmarks.snap=true, another neighbors.method than window, or "
            "solver lll"
        )
    if check := beside("LANDMARK_RULES", params.landmarks.method, "check_landmarks"):
        check(params, n_points)
    joined = params.landmark_graph.joined(n_landmarks)
    if params.embedding.by_landmark_graph and joined >= n_landmarks:
        raise ConfigError(f"landmark_graph.n_neighbors must be below landmarks.n_landmarks={n_landmarks}, got {joined}")
    by_landmarks = params.embedding.reduces or params.embedding.by_landmark_graph
    if by_landmarks and params.n_components >= n_landmarks:
        raise ConfigError(
            f"landmark_embedding.n_components must be below landmarks.n_landmarks={n_landmarks}, got "
            f"{params.n_components}; landmarks.n_landmarks must be at least {params.n_components + 1}"
        )
