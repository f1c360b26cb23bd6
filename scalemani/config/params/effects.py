"""Which parameters act: a table of what each of the others needs.

A warning tells of a parameter that was set and cannot act, and no key holds it: one file of parameters serves several
methods and any number of points. Where a parameter asks for what another one rules out, as an exaggeration for no
iterations, both are refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from scalemani.config.params.by_stage import NeighborsParams
from scalemani.config.params.parameters import FIRST_DOUBLING, Parameters, names_of_parameters
from scalemani.config.stages import PRECOMPUTED, WINDOW
from scalemani.errors import ConfigError

POINTS = "the number of points"
DEFAULTS = Parameters()


@dataclass(frozen=True)
class Situation:
    """What decides which parameters act.

    `params` are resolved; `stages` those that are run, and those whose parameters these read; `placed_by_landmarks`
    says whether new points are; `neighbors` and `repulsion` are the methods that are used, whatever was asked for; None
    where there is none.
    """

    method: str
    params: Parameters
    asked: Parameters
    n_points: int
    stages: frozenset[str]
    placed_by_landmarks: bool
    neighbors: str
    repulsion: str | None = None

    def value(self, name: str) -> Any:
        """Return the value of a parameter that is in use."""
        used = {"neighbors.method": self.neighbors, "layout.repulsion": self.repulsion, POINTS: self.n_points}
        return used[name] if name in used else self.params.value(name)


class Condition(NamedTuple):
    """Parameters that act only where another has some of its values.

    `names` of the parameters, and `on`, that of the other; `needs` says in words what it has to be and `holds` finds
    out.
    """

    names: str
    on: str
    needs: str
    holds: Callable[[Situation], bool]


def plain_iterations(here: Situation) -> int:
    """Return how many iterations of a descent, or of each strength of a homotopy, are not exaggerated at most."""
    return here.params.layout.max_iterations - (here.params.layout.exaggerated_iterations or 0)


def compares_windows(here: Situation) -> bool:
    """Return whether a descent goes on after its second window, at whose end the objective has fallen or has not."""
    return plain_iterations(here) > 2 * (here.params.layout.window or 1)


TWO_WINDOWS = "above layout.exaggerated_iterations by more than two of layout.window"

# Parameters, and the values of another one with which alone they act.
ACTING_WITH = (
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
    (
        "landmarks.sample_points",
        "landmarks.method",
        "kmeans, kmeans++, kmeans++ seeding, minmax, dpp, gp-active, gp",
    ),
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
)
# Of these, that the two contradict each other is refused.
REFUSED = ("layout.exaggeration", "layout.objective")

CONDITIONS = (
    Condition(
        "neighbors.few_candidates",
        "neighbors.n_neighbors",
        f"of {NeighborsParams.few_neighbors} at most",
        lambda here: here.params.n_neighbors <= NeighborsParams.few_neighbors,
    ),
    Condition(
        "affinities.perplexity",
        "affinities.kind",
        "entropic",
        lambda here: (
            here.params.affinities.kind == "entropic"
            or (here.asked.neighbors.n_neighbors is None and here.neighbors != WINDOW)
        ),
    ),
    Condition(
        "neighbors.n_neighbors, affinities.n_neighbors",
        "neighbors.method",
        "other than window",
        lambda here: here.neighbors != WINDOW,
    ),
    Condition(
        "neighbors.frames",
        POINTS,
        "above those of one frame",
        lambda here: here.params.neighbors.image(here.n_points)[0] > 1,
    ),
    Condition(
        "affinities.n_neighbors",
        "affinities.kind",
        "other than precomputed",
        lambda here: not here.params.affinities.precomputed,
    ),
    Condition(
        "affinities.bandwidth_neighbor",
        "affinities.kind",
        "self-tuning, or gaussian without affinities.sigma",
        lambda here: here.params.affinities.takes_bandwidth_neighbor,
    ),
    Condition(
        "components.queries_per_component",
        "points.metric",
        "other than precomputed",
        lambda here: here.neighbors != PRECOMPUTED,
    ),
    Condition(
        "landmark_weights.n_neighbors, landmark_weights.regularization",
        "embedding.solver",
        "other than nystrom",
        lambda here: "landmark_graph" not in here.stages or here.params.embedding.solver != "nystrom",
    ),
    Condition(
        "layout.doubled_for",
        "layout.max_iterations",
        f"above layout.exaggerated_iterations by more than {FIRST_DOUBLING}",
        lambda here: plain_iterations(here) > FIRST_DOUBLING,
    ),
    Condition(
        "layout.exaggeration, layout.exaggerated_momentum",
        "layout.exaggerated_iterations",
        "above 0",
        lambda here: here.params.layout.exaggerated_iterations != 0,
    ),
    Condition(
        "layout.exaggerated_iterations, layout.exaggerated_momentum",
        "layout.exaggeration",
        "above 1",
        lambda here: here.params.layout.exaggeration != 1,
    ),
    Condition("layout.window", "layout.converged", "above 0", lambda here: here.params.layout.converged != 0),
    Condition(
        "layout.converged",
        "layout.max_iterations",
        TWO_WINDOWS,
        # Where the descent is to go to the end, that it has not converged is no warning: 0 always has an effect.
        lambda here: here.params.layout.converged == 0 or compares_windows(here),
    ),
    Condition("layout.window", "layout.max_iterations", TWO_WINDOWS, compares_windows),
    Condition(
        "layout.objective",
        "layout.objective",
        "that of the method",
        lambda here: here.asked.layout.objective in (None, here.method),
    ),
)


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
    for names, on, values in ACTING_WITH:
        if name in names.split(", ") and str(here.value(on)) not in values.split(", "):
            return f"it takes {on} {values.replace(', ', ' or ')}, which is {here.value(on)} here"
    for condition in CONDITIONS:
        if name in condition.names.split(", ") and not condition.holds(here):
            return f"it takes {condition.on} {condition.needs}, which is {here.value(condition.on)} here"
    return ""


def reached(name: str, here: Situation) -> bool:
    """Return whether a stage that is run, or the placement of new points, reads a parameter."""
    stage = name.partition(".")[0]
    if name == "affinities.perplexity" and here.asked.neighbors.n_neighbors is None:
        return "neighbors" in here.stages
    if stage == "landmark_weights" and here.placed_by_landmarks:
        return True
    return stage == "seed" or stage in here.stages
