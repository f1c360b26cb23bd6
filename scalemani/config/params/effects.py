"""Which parameters act: a table of what each of the others needs.

A warning tells of a parameter that was set and cannot act, and no key holds it: one file of parameters serves several
methods and any number of points. Where a parameter asks for what another one rules out, as an exaggeration for no
iterations, both are refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scalemani.config.methods import listed
from scalemani.config.params.by_stage import NeighborsParams
from scalemani.config.params.parameters import FIRST_DOUBLING, Parameters, names_of_parameters
from scalemani.config.stages import SAMPLED_LANDMARKS, WINDOW
from scalemani.errors import ConfigError

POINTS = "the number of points"
DEFAULTS = Parameters()


@dataclass(frozen=True)
class Situation:
    """What decides which parameters act.

    `params` are resolved; `stages` are those whose parameters are read: by stages that are run, and by the placement of
    new points. `used` has the values that are used whatever was requested: the methods of "neighbors.method" and
    "layout.repulsion", None where there is none, and the number of POINTS.
    """

    method: str
    params: Parameters
    asked: Parameters
    stages: frozenset[str]
    used: Mapping[str, Any]

    def value(self, name: str) -> Any:
        """Return the value of a parameter that is in use."""
        return self.used[name] if name in self.used else self.params.value(name)


def plain_iterations(here: Situation) -> int:
    """Return how many iterations of a descent, or of each strength of a homotopy, are not exaggerated at most."""
    return here.params.layout.max_iterations - (here.params.layout.exaggerated_iterations or 0)


ONE_FRAME = "above those of one frame"
BANDWIDTH = "self-tuning, or gaussian without affinities.sigma"
ENTROPIC = "entropic, as neighbors.n_neighbors is given"
OTHER_SOLVER = "other than nystrom"
DOUBLED = f"above layout.exaggerated_iterations by more than {FIRST_DOUBLING}"
TWO_WINDOWS = "above layout.exaggerated_iterations by more than two of layout.window"
OWN_OBJECTIVE = "that of the method"
# What a parameter may have to be, in words, where these need a look at others too.
HOLDS: dict[str, Callable[[Situation], bool]] = {
    ONE_FRAME: lambda here: here.params.neighbors.image(here.value(POINTS))[0] > 1,
    BANDWIDTH: lambda here: here.params.affinities.takes_bandwidth_neighbor,
    ENTROPIC: lambda here: (
        here.params.affinities.kind == "entropic"
        or (here.asked.neighbors.n_neighbors is None and here.value("neighbors.method") != WINDOW)
    ),
    OTHER_SOLVER: lambda here: "landmark_graph" not in here.stages or here.params.embedding.solver != "nystrom",
    DOUBLED: lambda here: plain_iterations(here) > FIRST_DOUBLING,
    # A descent goes on after its second window, at whose end the objective has fallen or has not. Where it is to go to
    # the end, that it has not converged is no warning: 0 always has an effect.
    TWO_WINDOWS: lambda here: (
        here.params.layout.converged == 0 or plain_iterations(here) > 2 * (here.params.layout.window or 1)
    ),
    OWN_OBJECTIVE: lambda here: here.asked.layout.objective in (None, here.method),
}

# Parameters, another one, and what that has to be for these to act: one of some names, "other than" a name, "above" or
# "at most" a number, or in words of HOLDS. The first that fails is told.
CONDITIONS = (
    ("neighbors.max_rounds, neighbors.few_candidates", "neighbors.method", "partition, pynndescent, leaves"),
    ("neighbors.recall, neighbors.sampled_queries", "neighbors.method", "partition, pynndescent, leaves, given"),
    ("neighbors.n_probes", "neighbors.method", "partition"),
    ("neighbors.leaf_points", "neighbors.method", "leaves"),
    (
        "neighbors.window, neighbors.frames, neighbors.image_rows, neighbors.image_columns",
        "neighbors.method",
        "window",
    ),
    ("affinities.solver, affinities.order, affinities.tolerance", "affinities.kind", "entropic"),
    ("affinities.sigma", "affinities.kind", "gaussian"),
    ("affinities.trees, affinities.jitter", "affinities.kind", "ensemble"),
    ("components.queries_per_component", "components.disconnected", "connect"),
    ("points.distances", "points.metric", "precomputed"),
    ("landmarks.sample_points", "landmarks.method", ", ".join((*SAMPLED_LANDMARKS, *listed("SAMPLED")))),
    ("landmarks.sigma", "landmarks.method", "dpp, dpp-exact"),
    ("landmarks.update, landmarks.neighborhood", "landmarks.method", "dpp"),
    ("landmarks.geodesic", "landmarks.method", "dpp-exact"),
    ("landmarks.eta", "landmarks.method", "gp-active, gp"),
    ("landmarks.projection, landmarks.batch_points, landmarks.steps", "landmarks.method", "gp"),
    ("landmarks.snap", "landmarks.method", "kmeans, kmeans++"),
    ("landmark_graph.neighborhood, landmark_graph.covariances", "landmark_graph.kind", "bhattacharyya"),
    ("embedding.residual, embedding.max_passes", "embedding.solver", "refine, lll+refine"),
    ("layout.freeze", "layout.init", "given"),
    ("layout.momentum, layout.exaggerated_momentum, layout.doubled_for", "layout.direction", "momentum"),
    ("layout.doubled_for", "layout.init", "spectral, pca, random"),
    ("layout.kappa", "layout.direction", "spectral, spectral+l-bfgs, spectral-minus"),
    ("layout.pairs", "layout.direction", "l-bfgs, spectral+l-bfgs"),
    ("layout.exaggeration, layout.exaggerated_iterations", "layout.homotopy", "1"),
    ("layout.tolerance, layout.schedule", "layout.repulsion", "grid, barnes-hut, fgt"),
    (
        "neighbors.few_candidates",
        "neighbors.n_neighbors",
        f"at most {NeighborsParams.few_neighbors}",
    ),
    ("affinities.perplexity", "affinities.kind", ENTROPIC),
    ("neighbors.n_neighbors, affinities.n_neighbors", "neighbors.method", f"other than {WINDOW}"),
    ("neighbors.frames", POINTS, ONE_FRAME),
    ("affinities.n_neighbors", "affinities.kind", "other than precomputed"),
    ("affinities.bandwidth_neighbor", "affinities.kind", BANDWIDTH),
    ("components.queries_per_component", "points.metric", "other than precomputed"),
    ("landmark_weights.n_neighbors, landmark_weights.regularization", "embedding.solver", OTHER_SOLVER),
    ("layout.doubled_for", "layout.max_iterations", DOUBLED),
    ("layout.exaggeration, layout.exaggerated_momentum", "layout.exaggerated_iterations", "above 0"),
    ("layout.exaggerated_iterations, layout.exaggerated_momentum", "layout.exaggeration", "above 1"),
    ("layout.window", "layout.converged", "above 0"),
    ("layout.converged, layout.window", "layout.max_iterations", TWO_WINDOWS),
    ("layout.objective", "layout.objective", OWN_OBJECTIVE),
)
# Of these, that the two contradict each other is refused.
REFUSED = ("layout.exaggeration", "layout.objective")


def acting(here: Situation, resolve: Callable[[Parameters], Parameters]) -> tuple[Parameters, tuple[str, ...]]:
    """Return the resolved parameters without the requested ones that cannot act, and a note on each of these.

    Raises ConfigError for those that other parameters keep from acting. A value that is resolved anyway has no note.
    """
    asked = here.asked
    idle = {name: why for name in names_of_parameters() if (why := why_idle(name, here))}
    if not idle:
        return here.params, ()
    params = resolve(asked.with_values({name: DEFAULTS.value(name) for name in idle}))
    told = {
        name: f"{name}={asked.value(name)} has no effect: {why}"
        for name, why in idle.items()
        if asked.value(name) != params.value(name)
    }
    if refusals := [message for name, message in told.items() if name in REFUSED and reached(name, here)]:
        raise ConfigError("; ".join(refusals))
    return params, tuple(told.values())


def why_idle(name: str, here: Situation) -> str:
    """Return why a parameter does not act; "" where it acts or was not set."""
    if here.asked.value(name) == DEFAULTS.value(name):
        return ""
    if not reached(name, here):
        return f"no stage of {here.method} with embedding.solver={here.params.embedding.solver} reads it"
    for names, on, needs in CONDITIONS:
        if name in names.split(", ") and not is_met(on, needs, here):
            words = needs if needs in HOLDS else needs.replace(", ", " or ")
            return f"it takes {on} {words}, which is {here.value(on)} here"
    return ""


def is_met(on: str, needs: str, here: Situation) -> bool:
    """Return whether a parameter is what others need."""
    if needs in HOLDS:
        return HOLDS[needs](here)
    value = here.value(on)
    match needs.split():
        case ["above", number]:
            return bool(value > float(number))
        case ["at", "most", number]:
            return bool(value <= float(number))
        case ["other", "than", name]:
            return bool(value != name)
    return str(value) in needs.split(", ")


def reached(name: str, here: Situation) -> bool:
    """Return whether a stage that is run, or the placement of new points, reads a parameter."""
    if name == "affinities.perplexity" and here.asked.neighbors.n_neighbors is None:
        return "neighbors" in here.stages
    return name == "seed" or name.partition(".")[0] in here.stages
