"""What is decided of a run before its store is looked at: parameters, solver, stages, and the keys of results."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scalemani.config.functions import is_function, with_digest
from scalemani.config.methods import PixelsExtension, PlacementExtension, extensions
from scalemani.config.metrics import compares_rows, no_coordinates
from scalemani.config.objectives import objective_of
from scalemani.config.params import Parameters, Resolved, RunConfiguration, effective_parameters, names_of_parameters
from scalemani.config.params.conditions import POINTS
from scalemani.config.params.effects import DEFAULTS
from scalemani.config.routes import WITHOUT_POINTS, takes_kernel, takes_labels
from scalemani.config.stages import (
    AUTO,
    INPUT_LISTS,
    INPUT_START,
    LANDMARK_ROWS,
    LLL,
    PRECOMPUTED,
    REFINE,
    SIDE_DATA_LANDMARKS,
    Route,
    Stage,
)
from scalemani.config.units import format_bytes
from scalemani.descents.parts import parts_of
from scalemani.descents.phases import OF_PAIRS
from scalemani.descents.repulsion import chosen_method, make_repulsion
from scalemani.engine.memory_model import process_bytes
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError
from scalemani.io.sources.side_data import Weights
from scalemani.runs.survey import Survey
from scalemani.stages.landmarks import rule_of_method
from scalemani.stages.neighbors.choice import SearchChoice, choose_compared_search, choose_search
from scalemani.stages.table import STAGES
from scalemani.store.objects import digest
from scalemani.store.run_store import PLAN, RunStore

KEY_CHARACTERS = 16
SOLVER = "solver"  # in the plan that a store keeps: what embedding.solver=auto was resolved to, and by which figure
SEARCH = "search"  # likewise of neighbors.method=auto
STAGE = "embedding"
SHOWN_COMPONENTS = 10
PIECEWISE = (REFINE, "exact")  # solvers of W alone, which solve one piece as they do another
REFUSING = ("error", "largest")  # of affinities, whose pieces are known before any work


@dataclass(frozen=True)
class Earlier:
    """A run that points were appended to: its keys by stage, its points, and the digest of those that follow."""

    keys: Mapping[str, str]
    n_points: int
    appended: str


@dataclass(frozen=True)
class SolverChoice:
    """What `auto` is resolved to; bytes that a refinement takes in the driver, and that it may use (0: no limit)."""

    resolved: str
    needed: int
    memory: int

    @property
    def text(self) -> str:
        """The message to users."""
        takes = f"refinement takes {format_bytes(self.needed)} of the driver's memory"
        if self.resolved == REFINE:
            return f"embedding.solver=auto is refine: {takes}"
        return (
            f"embedding.solver=auto is lll: {takes}, which may use {format_bytes(self.memory)}; the embedding is "
            "that of the landmarks (landmarks.n_landmarks); with a larger --memory it is refined"
        )


@dataclass(frozen=True)
class Outline:
    """A method on the points of an input.

    `requested` are the parameters that users pass, `params` the resolved ones; `notes` say what has no effect; `keys`
    are by stage; `survey` is that of the points; `origins` say where points come from that are a component; `earlier`
    is the run that points were appended to; `solver` is what `auto` was resolved to, None where it was not requested;
    `search` likewise that of neighbours.
    """

    method: str
    requested: Parameters
    params: Resolved
    notes: tuple[str, ...]
    stages: Route
    keys: dict[str, str]
    survey: Survey
    origins: tuple[dict[str, Any], ...] = ()
    earlier: Earlier | None = None
    solver: SolverChoice | None = None
    search: SearchChoice | None = None


def outline_run(
    method: str,
    requested: Parameters,
    survey: Survey,
    origins: tuple[dict[str, Any], ...] = (),
    earlier: Earlier | None = None,
) -> Outline:
    """Decide what a run computes, after checking that its parameters fit the data.

    Parameters
    ----------
    method : a name of `scalemani.config.routes.ROUTES`.

    Raises
    ------
    ConfigError, DataError
        Where the parameters contradict each other, or the points cannot serve them.
    """
    side, requested = survey.side, with_known_function(requested)
    stages = requested.route(method, side.weights is not None)
    if side.labels is None and any("labels" in stage.key.side_data for stage in stages):
        weight = f"symmetric_affinities.target_weight={requested.symmetric_affinities.target_weight:g}"
        who = method if takes_labels(method) else f"{method} with {weight}"
        raise ConfigError(f"{who} learns from labels: give one a point with --labels FILE, or as y of fit")
    params, notes, search = decide_parameters(requested, method, survey, stages)
    if earlier is not None:
        notes = ()  # the parameters are the resolved ones of the earlier run, which nobody requested
    keys: dict[str, str] = {}
    for stage in stages:
        inputs = [keys[name] for name in stage.inputs if name not in stage.key.without] or [survey.content]
        inputs += [part.digest for part in (getattr(side, name) for name in stage.key.side_data) if part is not None]
        if earlier is not None and stage.key.continues:
            inputs += [earlier.keys[name] for name in stage.key.continues if name in earlier.keys]
            inputs.append(f"continued version {stage.key.continued_version}")
        keys[stage.name] = key_of(stage, params, inputs)
    return Outline(method, requested, params, notes, stages, keys, survey, origins, earlier, search=search)


def key_of(stage: Stage, params: Resolved, inputs: list[str]) -> str:
    """Return the key of a stage's result by the keys of its inputs and digests of what else it reads."""
    seed = params.seed if stage.seeded else None
    content = json.dumps([stage.name, stage.key.version, stage_params(stage, params), seed, inputs], sort_keys=True)
    return digest(content.encode())[:KEY_CHARACTERS]


def with_known_function(requested: Parameters) -> Parameters:
    """Return parameters whose metric, where it is a function of users, is named with the digest of this function."""
    metric = requested.points.metric
    return requested.with_values({"points.metric": with_digest(metric)}) if is_function(metric) else requested


def stage_params(stage: Stage, params: Resolved) -> dict[str, Any]:
    """Return the parameters on which a stage's result depends: of the stage, and others that it reads by stage."""
    read = {name: params.of_stage(name) for name in stage.key.parameters_of}
    for name in stage.key.parameters:
        group, _, parameter = name.partition(".")
        if parameter in (keyed := params.of_stage(group)):
            read[name] = keyed[parameter]
    return {**params.of_stage(stage.name), **read}


def outline_within(method: str, requested: Parameters, survey: Survey, memory: int | None, store: RunStore) -> Outline:
    """Return the outline of a run whose driver may use so many bytes (None: no limit); errors: `outline_run`.

    A run that is resumed keeps its solver, however much memory there is now.

    Parameters
    ----------
    store : of the run, which may not be there yet.
    """
    outline = outline_run(method, requested, survey)
    if requested.embedding.solver != AUTO or STAGE not in outline.keys:
        return outline
    choice = solver_choice(outline, memory, store)
    if choice.resolved != REFINE:
        outline = outline_run(method, requested.with_values({"embedding": {"solver": choice.resolved}}), survey)
    return replace(outline, solver=choice)


def with_note_on_lists(outline: Outline, passed: Parameters) -> Outline:
    """Return the outline of a run, with a note where lists are too short for the perplexity that points would have.

    `passed` are the parameters before they followed the input.
    """
    params, wanted = outline.params, passed.decided(outline.method, outline.survey.dimensions.n_points)
    usual, chosen = wanted.affinities.perplexity, (passed.neighbors.n_neighbors, passed.affinities.n_neighbors)
    shorter = usual is not None and params.perplexity < usual
    if not shorter or any(chosen) or "affinities" not in outline.keys or params.affinities.kind != "entropic":
        return outline
    takes = passed.with_values({"affinities.perplexity": usual}).usual_neighbors
    note = (
        f"affinities.perplexity is {params.perplexity:.3g} in place of {usual:.3g}: a third of the "
        f"{params.n_neighbors} neighbours a point in the lists; pass lists of {takes} for {usual:.3g}"
    )
    return replace(outline, notes=(*outline.notes, note))


def solver_choice(outline: Outline, memory: int | None, store: RunStore) -> SolverChoice:
    """Return what `auto` is resolved to, from the outline of a run that refines."""
    params = outline.params
    sizes = Sizes(outline.survey.dimensions, params, None, outline.survey.side.weights is not None)
    # Arrays with a row for each point are mapped files where memory has no room for them.
    needed = process_bytes() + STAGES[STAGE].memory(sizes).with_cache(0, in_memory=False).total()
    # Landmarks are points, a descent holds W on the driver in any case, and pieces are solved one by one.
    separate = params.components.disconnected == "separate"
    no_landmarks = bool(params.precomputed_input) or compares_rows(params.points.metric)
    always_refines = no_landmarks or separate or params.layout.objective is not None
    fits = always_refines or not memory or needed <= memory
    return SolverChoice(stored_solver(outline, store) or (REFINE if fits else LLL), needed, memory or 0)


def stored_solver(outline: Outline, store: RunStore) -> str | None:
    """Return the solver of the last run in a store, where that resolved `auto` or refined for the same points."""
    plan = store.objects.intact(PLAN) or {}
    try:
        points = plan["within"][0]["components"] if plan["within"] else plan["keys"]["points"]
        same = plan["method"] == outline.method and points in (outline.keys["points"], outline.keys.get("components"))
        solver = plan[SOLVER]["resolved"] if SOLVER in plan else plan["params"]["embedding"]["solver"]
    except (KeyError, TypeError, IndexError):  # of an older version, or damaged: what it says is decided anew
        return None
    return solver if same and (SOLVER in plan or solver == REFINE) else None


def decide_parameters(
    requested: Parameters, method: str, survey: Survey, route: Route
) -> tuple[Resolved, tuple[str, ...], SearchChoice | None]:
    """Return the parameters that a run uses, resolved and checked, notes on those without effect, and the search."""
    names = {stage.name for stage in route}
    if survey.side.lists is None and requested.neighbors.method == INPUT_LISTS:
        raise ConfigError("neighbors.method=given takes neighbour lists: give them with --graph (graph= in Python)")
    request = follow_landmarks(requested, method, survey, route)
    n_points, most = survey.dimensions.n_points, most_components(survey, route)
    sizes_of_data = (n_points, survey.distinct_points, most)
    search = chosen_search(request, survey, request.resolved(method, *sizes_of_data)) if "neighbors" in names else None

    def decide(wanted: Parameters) -> Parameters:
        decided = wanted.decided(method, *sizes_of_data)
        return decided if search is None else decided.with_values({"neighbors": {"method": search.resolved}})

    params = decide(request)
    stages = frozenset(name for stage in route for name in (stage.name, *stage.key.parameters_of))
    if placed_by_landmarks(route):
        stages |= {"landmark_weights"}
    if params.affinities.precomputed and "embedding" in names:
        stages |= {"components"}  # what is done with pieces of W is decided here
    repulsion = repulsion_method(params, n_points) if "layout" in stages else None
    neighbors = PRECOMPUTED if params.points.metric == PRECOMPUTED else params.neighbors.method_for(n_points)
    in_use = {"neighbors.method": neighbors, "layout.repulsion": repulsion, POINTS: n_points}
    decided, notes = effective_parameters(RunConfiguration(method, params, request, stages, in_use), decide)
    used = decided.as_resolved(method)
    check_components(used, survey, most, takes_kernel(method))
    check_against_data(used, survey.dimensions, names)
    if repulsion is not None:
        make_repulsion(repulsion, objective_of(method, used.layout.dof).kernel, used.layout.tolerance)
        check_start(used, survey.dimensions.n_features)
        for part in parts_of(used.layout):
            part.check_parameters(used.layout, n_points, survey.side.weights is not None)
    for stage in route:
        if check := STAGES[stage.name].check_parameters:
            check(used)
    if survey.side.weights is not None:
        check_weighted(used, survey.side.weights)
    check_input_start(used, survey, names)
    check_pieces(used, survey, method, names)
    return used, (*notes, *notes_on_landmarks(request, method, route)), search


def chosen_search(requested: Parameters, survey: Survey, params: Resolved) -> SearchChoice | None:
    """Return what neighbors.method=auto is for some points; None where it is not requested, or follows their number."""
    sizes, many = Sizes(survey.dimensions, params), survey.dimensions.n_points > requested.neighbors.exact_below
    if compares_rows(requested.points.metric):
        return choose_compared_search(sizes) if requested.neighbors.method == AUTO and many else None
    return (
        choose_search(survey.sample, sizes) if requested.neighbors.follows_data and survey.sample is not None else None
    )


def notes_on_landmarks(requested: Parameters, method: str, route: Route) -> tuple[str, ...]:
    """Return a note on requested landmarks where no coordinates depend on them: of a descent from refined vectors."""
    names = {stage.name for stage in route}
    if not {"landmarks", "layout"} <= names or any("landmarks" in stage.inputs for stage in route):
        return ()
    names = {name for name in names_of_parameters() if name.startswith("landmarks.")}
    named = [
        f"{name}={requested.value(name)}" for name in sorted(names) if requested.value(name) != DEFAULTS.value(name)
    ]
    note = f"no effect on coordinates of {method} with embedding.solver={requested.embedding.resolved_solver}"
    why = "landmarks decide which new points lie far out"
    return (f"{', '.join(named)}: {note}; {why}",) if named else ()


def follow_landmarks(requested: Parameters, method: str, survey: Survey, route: Route) -> Parameters:
    """Return parameters that ask for as many landmarks as the input has; refuse them where others or none are chosen.

    They ask for rows of the points where the input has them as such, and where the method takes no others.
    """
    named, landmarks = requested.landmarks.method, survey.side.landmarks
    chosen = any(stage.name == "landmarks" for stage in route)
    if landmarks is None:
        if named in SIDE_DATA_LANDMARKS and chosen:
            raise ConfigError(
                f"landmarks.method={named} takes landmarks: give a file with --landmarks (landmarks= an array in "
                "Python)"
            )
        return requested
    count = len(landmarks.points)
    if named not in SIDE_DATA_LANDMARKS or not chosen:
        what = f"{method} takes none" if named in SIDE_DATA_LANDMARKS else f"landmarks.method={named} chooses others"
        raise ConfigError(f"{count} landmarks were passed, and {what}: leave out one of the two")
    if requested.landmarks.n_landmarks not in (None, count):
        raise ConfigError(
            f"{count} landmarks were passed, and landmarks.n_landmarks={requested.landmarks.n_landmarks} asks for "
            "another number: leave it out"
        )
    needed = requested.embedding.by_affinities or any(STAGES[stage.name].landmarks_are_points for stage in route)
    rows = {"method": LANDMARK_ROWS} if landmarks.are_rows or needed else {}
    return requested.with_values({"landmarks": {"n_landmarks": count, **rows}})


def most_components(survey: Survey, route: Route) -> int | None:
    """Return how many components the data leave a linear or kernel method; None for other methods."""
    bounds = [most(survey) for stage in route if (most := STAGES[stage.name].most_components)]
    return bounds[0] if bounds else None


def placed_by_landmarks(route: Route) -> bool:
    """Return whether new points are placed by their weights over the landmarks, which a method may do otherwise."""
    names = {stage.name for stage in route}
    return {"landmarks", "layout"} & names == {"landmarks"} and all(
        stage.name not in extensions(PlacementExtension) for stage in route
    )


def check_components(params: Resolved, survey: Survey, most: int | None, kernel: bool) -> None:
    """Refuse more components of a linear method than features, classes and landmarks allow."""
    if most is None:
        return
    n_landmarks, n_features = params.n_landmarks, survey.dimensions.n_features
    if kernel and params.affinities.kind in ("entropic", "uniform"):
        raise ConfigError(
            "affinities.kind must be gaussian or self-tuning where affinities are a kernel, got "
            f"{params.affinities.kind}: a kernel is one where a point meets itself and falls off from there, and "
            "entropic affinities are shares of a row, uniform ones the same for all neighbours"
        )
    classes = "" if survey.side.labels is None else f", {len(survey.side.labels.counts)} classes"
    if params.n_components > min(most, n_landmarks - 1):
        raise ConfigError(
            f"landmark_embedding.n_components must be at most {min(most, n_landmarks - 1)} for {n_features} features"
            f"{classes} and landmarks.n_landmarks={n_landmarks}, got {params.n_components}"
        )


def repulsion_method(decided: Parameters, n_points: int) -> str:
    """Return how the repulsion of a descent is summed."""
    layout = decided.layout
    kernel = objective_of(str(layout.objective), layout.dof).kernel
    n_dims = decided.landmark_embedding.n_components or 0
    return chosen_method(layout.repulsion, kernel, n_points, n_dims, layout.exact_up_to)


def check_against_data(params: Resolved, dimensions: Dimensions, stages: Collection[str]) -> None:
    """Refuse parameters that the data cannot serve, before any work; those of stages that are not run do not matter."""
    n_points, k, n_landmarks = dimensions.n_points, params.n_neighbors, params.n_landmarks
    if k >= n_points:
        smaller = "neighbors.n_neighbors" + " or affinities.perplexity" * ("affinities" in stages)
        raise DataError(
            f"N={n_points} points, need more than n_neighbors (k={k}): give more points, or a smaller {smaller}"
        )
    if "neighbors" in stages and params.neighbors.method == "leaves" and dimensions.sparse:
        raise ConfigError("neighbors.method=leaves takes dense points, and these are sparse: take auto, or partition")
    if params.duplicates.tolerance and compares_rows(params.points.metric):
        raise ConfigError(
            f"duplicates.tolerance={params.duplicates.tolerance:g} needs coordinates, and "
            f"{no_coordinates(params.points.metric)}: take 0, which merges equal rows"
        )
    if "affinities" in stages:
        check_affinities(params, "weights" in stages)
    if "landmarks" in stages:
        check_landmarks(params, n_points)
    if "embedding" in stages and params.n_components >= n_points:
        raise ConfigError(f"landmark_embedding.n_components must be below N={n_points}, got {params.n_components}")
    if "clustering" in stages and params.clustering.n_clusters > n_points:
        raise ConfigError(
            f"clustering.n_clusters must be at most the number of points, N={n_points}, got "
            f"{params.clustering.n_clusters}"
        )
    if "clustering" in stages and params.clustering.n_clusters > n_landmarks:
        raise ConfigError(
            f"clustering.n_clusters must be at most landmarks.n_landmarks={n_landmarks}, got "
            f"{params.clustering.n_clusters}"
        )
    if "clustering" in stages and (params.clustering.n_columns or 1) > params.n_components:
        raise ConfigError(
            f"clustering.n_columns must be at most landmark_embedding.n_components={params.n_components}, got "
            f"{params.clustering.n_columns}"
        )


def check_start(params: Resolved, n_features: int) -> None:
    """Refuse a start or reference of principal components where there are none, or fewer than dimensions."""
    layout = params.layout
    if layout.init == "pca":
        name, instead = "layout.init", "take spectral or random"
    elif layout.global_weight > 0 and layout.reference == "pca":
        name, instead = "layout.reference", "take spectral, or give coordinates"
    else:
        return
    if params.points.metric == PRECOMPUTED:
        raise ConfigError(f"{name}=pca needs points, and {params.precomputed_input}: {instead}")
    if compares_rows(params.points.metric):
        raise ConfigError(f"{name}=pca needs coordinates, and {no_coordinates(params.points.metric)}: {instead}")
    known = min(n_features, params.partition.sketch_dimensions)
    if params.n_components > known:
        raise ConfigError(
            f"{name}=pca has {known} principal components, of {n_features} features and "
            f"partition.sketch_dimensions={params.partition.sketch_dimensions}, and "
            f"landmark_embedding.n_components={params.n_components} asks for more: {instead}"
        )


def check_input_start(params: Resolved, survey: Survey, stages: Collection[str]) -> None:
    """Refuse a start or reference without a descent, next to another one, of another width, and none."""
    layout, side = params.layout, survey.side
    for part, coordinates, what, option in (
        ("init", side.init, "start", "--init"),
        ("reference", side.reference, "reference", "--global-reference"),
    ):
        asked = getattr(layout, part)
        if coordinates is None:
            if asked == INPUT_START and "layout" in stages:
                raise ConfigError(
                    f"layout.{part}=given takes coordinates of a {what}: give a run or a file with {option} "
                    f"({part}= in Python)"
                )
            continue
        if part == "reference" and "layout" in stages and layout.global_weight == 0:
            continue  # a cell of a grid has the weight 0; that the reference has no effect is told
        if "layout" not in stages or asked != INPUT_START:
            why = f"layout.{part}={asked} asks for another {what}" if "layout" in stages else "there is none"
            raise ConfigError(
                f"coordinates were passed for the {what} of a descent, and {why}: leave out one of the two"
            )
        if coordinates.coordinates.shape[1] != params.n_components:
            raise ConfigError(
                f"the {what} has {coordinates.coordinates.shape[1]} columns and the embedding "
                f"landmark_embedding.n_components={params.n_components}: give as many"
            )
        places = coordinates.coordinates[np.isfinite(coordinates.coordinates).all(axis=1)]
        if part == "reference" and (len(places) == 0 or np.ptp(places, axis=0).max() == 0):
            raise ConfigError("the reference has one place for all points, and no arrangement: give another one")


def check_pieces(params: Resolved, survey: Survey, method: str, stages: Collection[str]) -> None:
    """Refuse pieces that a method or solver cannot embed, and affinities in pieces where these are not wanted."""
    wanted, solver, sizes = params.components.disconnected, params.embedding.solver, survey.affinity_components
    if wanted == "separate" and (method not in WITHOUT_POINTS or ("embedding" in stages and solver not in PIECEWISE)):
        what = f"{method} with embedding.solver={solver}" if method in WITHOUT_POINTS else method
        raise ConfigError(
            f"components.disconnected=separate embeds each piece from eigenvectors of its own, and {what} does not: "
            f"take {', '.join(WITHOUT_POINTS)} with embedding.solver {' or '.join(PIECEWISE)}, or "
            "components.disconnected connect or largest"
        )
    if not params.affinities.precomputed or "embedding" not in stages or len(sizes) < 2 or wanted not in REFUSING:
        return
    raise DisconnectedGraphError(
        f"the precomputed affinities have {len(sizes)} components (largest: {list(sizes[:SHOWN_COMPONENTS])}), and "
        f"components.disconnected={wanted}: give those of the largest alone "
        "(scipy.sparse.csgraph.connected_components labels them), or take components.disconnected=separate, which "
        "embeds each by itself"
    )


def check_affinities(params: Resolved, weighted: bool) -> None:
    """Refuse affinities that the neighbours cannot serve; where points are `weighted`, `check_weighted` does."""
    if params.affinities.of_pixels and not params.neighbors.of_pixels:
        raise ConfigError(
            f"affinities.kind={params.affinities.kind} is of the pixels of images: give an image with "
            f"neighbors.method={' or '.join(extensions(PixelsExtension))}, or take another kind"
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


def check_weighted(params: Resolved, weights: Weights) -> None:
    """Refuse what points with weights cannot have: other affinities, a perplexity out of reach, some directions."""
    if params.affinities.kind != "entropic":
        raise ConfigError(
            f"affinities.kind must be entropic for points with weights, got {params.affinities.kind}: set it, or give "
            "the points repeated"
        )
    if params.embedding.by_affinities or params.embedding.without_graph:
        raise ConfigError(
            f"embedding.solver={params.embedding.solver} knows no weights: take another, or give the points repeated"
        )
    k = params.affinity_neighbors
    params.affinities.check_reach(k, weights.fewest_neighbors(k))
    if params.layout.objective is not None and params.layout.direction in OF_PAIRS:
        raise ConfigError(
            f"layout.direction={params.layout.direction} knows no weights: take momentum, spectral+l-bfgs or another"
        )


def check_landmarks(params: Resolved, n_points: int) -> None:
    """Refuse numbers of landmarks, of their neighbours and of components that do not fit each other or the points."""
    n_landmarks = params.n_landmarks
    if n_landmarks > n_points:
        raise ConfigError(f"landmarks.n_landmarks must be at most N={n_points}, got {n_landmarks}")
    if params.landmark_neighbors > n_landmarks:
        raise ConfigError(
            f"landmark_weights.n_neighbors must be at most landmarks.n_landmarks={n_landmarks}, "
            f"got {params.landmark_neighbors}"
        )
    if params.embedding.by_affinities and (params.landmarks.off_data or params.neighbors.of_pixels):
        raise ConfigError(
            f"embedding.solver={params.embedding.solver} takes landmarks that are points, and neighbours that are "
            "stored: take another landmarks.method or landmarks.snap=true, another neighbors.method than "
            f"{' or '.join(extensions(PixelsExtension))}, or solver lll"
        )
    if rule := rule_of_method(params.landmarks.method):
        rule.check(params, n_points)
    by_landmarks = params.embedding.reduces or params.embedding.without_graph
    if by_landmarks and params.n_components >= n_landmarks:
        raise ConfigError(
            f"landmark_embedding.n_components must be below landmarks.n_landmarks={n_landmarks}, got "
            f"{params.n_components}; landmarks.n_landmarks must be at least {params.n_components + 1}"
        )
