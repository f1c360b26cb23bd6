"""Which parameters act: a table of what each of the others needs.

A warning tells of a parameter that was set and cannot act, and no key holds it: one file of parameters serves several
methods and any number of points. Where a parameter asks for what another one rules out, as an exaggeration for no
iterations, both are refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scalemani.config.params.by_stage import NeighborsParams
from scalemani.config.params.parameters import FIRST_DOUBLING, Parameters, names_of_parameters
from scalemani.config.stages import GIVEN_LISTS, PRECOMPUTED, WINDOW
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


@dataclass(frozen=True)
class Condition:
    """Parameters that act only where another has some of its values.

    `names` of the parameters, and `on`, that of the other; `needs` says in words what it has to be and `holds` finds
    out. `refused` where the two contradict each other.
    """

    names: tuple[str, ...]
    on: str
    needs: str
    holds: Callable[[Situation], bool]
    refused: bool = False


def one_of(*values: Any, names: tuple[str, ...], on: str, refused: bool = False) -> Condition:
    """Return the condition that a parameter has one of some values."""
    return Condition(names, on, " or ".join(map(str, values)), lambda here: here.value(on) in values, refused)


def plain_iterations(here: Situation) -> int:
    """Return how many iterations of a descent, or of each strength of a homotopy, are not exaggerated at most."""
    return here.params.layout.max_iterations - (here.params.layout.exaggerated_iterations or 0)


def compares_windows(here: Situation) -> bool:
    """Return whether a descent goes on after its second window, at whose end the objective has fallen or has not."""
    return plain_iterations(here) > 2 * (here.params.layout.window or 1)


def of_stage(stage: str, *names: str) -> tuple[str, ...]:
    """Return the names that a stage's parameters have on the command line."""
    return tuple(f"{stage}.{name}" for name in names)


ENTROPIC = of_stage("affinities", "solver", "order", "tolerance")
SEARCHED = ("partition", "pynndescent", "leaves")
ROUNDS = of_stage("neighbors", "max_rounds", "few_candidates")
MEASURED = of_stage("neighbors", "recall", "sampled_queries")
TWO_WINDOWS = "above layout.exaggerated_iterations by more than two of layout.window"
SPECTRAL_DIRECTIONS = ("spectral", "spectral+l-bfgs", "spectral-minus")

CONDITIONS = (
    one_of(*SEARCHED, names=ROUNDS, on="neighbors.method"),
    one_of(*SEARCHED, GIVEN_LISTS, names=MEASURED, on="neighbors.method"),
    one_of("partition", names=("neighbors.n_probes",), on="neighbors.method"),
    one_of("leaves", names=("neighbors.leaf_points",), on="neighbors.method"),
    Condition(
        ("neighbors.few_candidates",),
        "neighbors.n_neighbors",
        f"of {NeighborsParams.few_neighbors} at most",
        lambda here: here.params.n_neighbors <= NeighborsParams.few_neighbors,
    ),
    Condition(
        ("affinities.perplexity",),
        "affinities.kind",
        "entropic",
        lambda here: (
            here.params.affinities.kind == "entropic"
            or (here.asked.neighbors.n_neighbors is None and here.neighbors != WINDOW)
        ),
    ),
    one_of(
        WINDOW, names=of_stage("neighbors", "window", "frames", "image_rows", "image_columns"), on="neighbors.method"
    ),
    Condition(
        ("neighbors.n_neighbors", "affinities.n_neighbors"),
        "neighbors.method",
        "other than window",
        lambda here: here.neighbors != WINDOW,
    ),
    Condition(
        ("neighbors.frames",),
        POINTS,
        "above those of one frame",
        lambda here: here.params.neighbors.image(here.n_points)[0] > 1,
    ),
    Condition(
        ("affinities.n_neighbors",),
        "affinities.kind",
        "other than precomputed",
        lambda here: not here.params.affinities.precomputed,
    ),
    one_of("entropic", names=ENTROPIC, on="affinities.kind"),
    one_of("gaussian", names=("affinities.sigma",), on="affinities.kind"),
    one_of("ensemble", names=of_stage("affinities", "trees", "jitter"), on="affinities.kind"),
    Condition(
        ("affinities.bandwidth_neighbor",),
        "affinities.kind",
        "self-tuning, or gaussian without affinities.sigma",
        lambda here: here.params.affinities.takes_bandwidth_neighbor,
    ),
    one_of("connect", names=("components.queries_per_component",), on="components.disconnected"),
    one_of(PRECOMPUTED, names=("points.distances",), on="points.metric"),
    Condition(
        ("components.queries_per_component",),
        "points.metric",
        "other than precomputed",
        lambda here: here.neighbors != PRECOMPUTED,
    ),
    one_of(
        "kmeans",
        "kmeans++",
        "kmeans++ seeding",
        "minmax",
        "dpp",
        "gp-active",
        "gp",
        names=("landmarks.sample_points",),
        on="landmarks.method",
    ),
    one_of("dpp", "dpp-exact", names=("landmarks.sigma",), on="landmarks.method"),
    one_of("dpp", names=of_stage("landmarks", "update", "neighborhood"), on="landmarks.method"),
    one_of("dpp-exact", names=("landmarks.geodesic",), on="landmarks.method"),
    one_of("gp-active", "gp", names=("landmarks.eta",), on="landmarks.method"),
    one_of("gp", names=of_stage("landmarks", "projection", "batch_points", "steps"), on="landmarks.method"),
    one_of("kmeans", "kmeans++", names=("landmarks.snap",), on="landmarks.method"),
    one_of("bhattacharyya", names=of_stage("landmark_graph", "neighborhood", "covariances"), on="landmark_graph.kind"),
    Condition(
        of_stage("landmark_weights", "n_neighbors", "regularization"),
        "embedding.solver",
        "other than nystrom",
        lambda here: "landmark_graph" not in here.stages or here.params.embedding.solver != "nystrom",
    ),
    one_of("refine", "lll+refine", names=of_stage("embedding", "residual", "max_passes"), on="embedding.solver"),
    one_of("given", names=("layout.freeze",), on="layout.init"),
    one_of(
        "momentum",
        names=("layout.momentum", "layout.exaggerated_momentum", "layout.doubled_for"),
        on="layout.direction",
    ),
    one_of("spectral", "pca", "random", names=("layout.doubled_for",), on="layout.init"),
    Condition(
        ("layout.doubled_for",),
        "layout.max_iterations",
        f"above layout.exaggerated_iterations by more than {FIRST_DOUBLING}",
        lambda here: plain_iterations(here) > FIRST_DOUBLING,
    ),
    one_of(*SPECTRAL_DIRECTIONS, names=("layout.kappa",), on="layout.direction"),
    one_of("l-bfgs", "spectral+l-bfgs", names=("layout.pairs",), on="layout.direction"),
    one_of(1, names=("layout.exaggeration",), on="layout.homotopy", refused=True),
    one_of(1, names=("layout.exaggerated_iterations",), on="layout.homotopy"),
    Condition(
        ("layout.exaggeration",),
        "layout.exaggerated_iterations",
        "above 0",
        lambda here: here.params.layout.exaggerated_iterations != 0,
        refused=True,
    ),
    Condition(
        ("layout.exaggerated_momentum",),
        "layout.exaggerated_iterations",
        "above 0",
        lambda here: here.params.layout.exaggerated_iterations != 0,
    ),
    Condition(
        ("layout.exaggerated_iterations", "layout.exaggerated_momentum"),
        "layout.exaggeration",
        "above 1",
        lambda here: here.params.layout.exaggeration != 1,
    ),
    Condition(("layout.window",), "layout.converged", "above 0", lambda here: here.params.layout.converged != 0),
    Condition(
        ("layout.converged",),
        "layout.max_iterations",
        TWO_WINDOWS,
        # Where the descent is to go to the end, that it has not converged is no warning: 0 always has an effect.
        lambda here: here.params.layout.converged == 0 or compares_windows(here),
    ),
    Condition(("layout.window",), "layout.max_iterations", TWO_WINDOWS, compares_windows),
    one_of("grid", "barnes-hut", "fgt", names=of_stage("layout", "tolerance", "schedule"), on="layout.repulsion"),
    Condition(
        ("layout.objective",),
        "layout.objective",
        "that of the method",
        lambda here: here.asked.layout.objective in (None, here.method),
        refused=True,
    ),
)


def acting(here: Situation, resolve: Callable[[Parameters], Parameters]) -> tuple[Parameters, tuple[str, ...]]:
    """Return the resolved parameters without the requested ones that cannot act, and a note on each of these.

    Raises ConfigError for those that other parameters keep from acting. A value that is resolved anyway has no note.
    """
    idle = {name: why for name in names_of_parameters() if (why := why_idle(name, here)) is not None}
    if not idle:
        return here.params, ()
    params = resolve(here.asked.with_settings({name: DEFAULTS.value(name) for name in idle}))
    told = {name: why for name, why in idle.items() if here.asked.value(name) != params.value(name)}
    messages = {name: f"{name}={here.asked.value(name)} has no effect: {text}" for name, (text, _) in told.items()}
    if refusals := [messages[name] for name, (_, refused) in told.items() if refused]:
        raise ConfigError("; ".join(refusals))
    return params, tuple(messages.values())


def why_idle(name: str, here: Situation) -> tuple[str, bool] | None:
    """Return why a parameter does not act and whether that is refused; None where it acts or was not set."""
    if here.asked.value(name) == DEFAULTS.value(name):
        return None
    if not reached(name, here):
        return f"no stage of {here.method} with embedding.solver={here.params.embedding.solver} reads it", False
    for condition in CONDITIONS:
        if name in condition.names and not condition.holds(here):
            return (
                f"it takes {condition.on} {condition.needs}, which is {here.value(condition.on)} here",
                condition.refused,
            )
    return None


def reached(name: str, here: Situation) -> bool:
    """Return whether a stage that is run, or the placement of new points, reads a parameter."""
    stage = name.partition(".")[0]
    if name == "affinities.perplexity" and here.asked.neighbors.n_neighbors is None:
        return "neighbors" in here.stages
    if stage == "landmark_weights" and here.placed_by_landmarks:
        return True
    return stage == "seed" or stage in here.stages
