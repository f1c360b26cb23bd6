"""Which stages of a route a run needs, by its parameters and input; what a method cannot serve is refused."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from scalemani.config.methods import PixelsExtension, extensions
from scalemani.config.metrics import METRICS, has_coordinates, no_coordinates
from scalemani.config.other_names import check_method
from scalemani.config.routes import (
    EIGENVECTOR_STAGES,
    OF_GRAPHS,
    OF_PIXELS,
    REDUCING_SOLVERS,
    ROUTES,
    SOLVER_ROUTES,
    SPECTRAL_EMBEDDING,
    WITHOUT_POINTS,
    is_doubted,
    takes_kernel,
)
from scalemani.config.stages import (
    AFFINITIES,
    CLASSES,
    CLUSTERING,
    COMPARED_COMPONENTS,
    COMPONENTS,
    DOUBT,
    DUPLICATES,
    LANDMARKS,
    LAYOUT,
    LEAVE_OUT,
    LISTS,
    LLL,
    MADE_ROWS,
    NEIGHBORS,
    NORMALIZED_AFFINITIES,
    PARTITION,
    PRECOMPUTED,
    SPECTRAL_START,
    SYMMETRIC_AFFINITIES,
    WEIGHTS,
    WORK_POINTS,
    Route,
    Stage,
)
from scalemani.errors import ConfigError

READ_OFTEN = frozenset({NORMALIZED_AFFINITIES, LAYOUT})  # stages that read W, or make another of it, again and again
MADE_OF = (NEIGHBORS.name, AFFINITIES.name, COMPONENTS.name)  # of which rows of W are made
COMPARING_SEARCHES = ("exact", "leaves", "pynndescent")  # values of neighbors.method that need no coordinates


def route(
    method: str,
    solver: str,
    metric: str = "euclidean",
    start: str = SPECTRAL_START,
    neighbors: str = "",
    affinities: str | None = None,
    optional: Collection[str] = (),
) -> Route:
    """Return the stages of a method that a solver needs, in an order in which every stage follows its inputs.

    `optional` names the requested stages that not every run has: "weights" where points have some,
    "duplicates" where equal rows are one point, whose weight is their number, "classes" where affinities follow these,
    "landmark_covariances" where landmarks are joined by what is around them, "leave-out" where rows with a gap are left
    out, which is recorded as equal rows are, "made-rows" where the rows of W are not stored.

    Where the metric compares rows, stages that need coordinates are left out.
    Where it is "precomputed", neighbours take the place of points, and where the kind of `affinities` is, W
    does: stages that need points are left out.
    Where `neighbors` are those of pixels, W follows from the pixels alone, and no list of neighbours is stored.
    A descent with another start than the spectral embedding leaves out the stages that compute this. Landmarks stay:
    they tell which new points lie far out. Raises ConfigError for what the method does not take.
    """
    check_method(method, ROUTES)
    precomputed, compared = precomputed_input(metric, affinities), no_coordinates(metric)
    check_search(compared, neighbors)
    by_solver = solver in SOLVER_ROUTES and SPECTRAL_EMBEDDING in ROUTES[method]
    if not by_solver or LEAVE_OUT in optional:
        check_optional(method, solver, precomputed, neighbors, affinities, optional)
    if by_solver and DOUBT.name in optional:
        why = refusal_of_doubt(method, solver, affinities, WEIGHTS.name in optional)
        raise ConfigError(f"{why}: leave out doubt.measured")
    if by_solver and MADE_ROWS in optional:
        raise ConfigError(f"{refusal_of_made_rows(method, solver, optional)}: leave out symmetric_affinities.stored")
    known = stages_of_solver(method, solver, precomputed or compared) if by_solver else ROUTES[method]
    needed = [stage for stage in known if not stage.optional or stage.name in optional]
    if not by_solver:
        needed = [stage for stage in needed if not stage.solvers or solver in stage.solvers]
        if LAYOUT in needed and start != SPECTRAL_START:
            needed = [stage for stage in needed if stage is LANDMARKS or stage not in EIGENVECTOR_STAGES]
        if precomputed:
            needed = stages_without_points(method, solver, precomputed, affinities == PRECOMPUTED, needed)
        elif compared:
            needed = stages_of_compared_rows(method, solver, compared, needed)
        elif neighbors in extensions(PixelsExtension):
            needed = stages_of_pixels(method, neighbors, needed)
        if MADE_ROWS in optional:
            needed = stages_making_rows(needed)
    if LEAVE_OUT in optional and DUPLICATES not in needed:
        needed = [DUPLICATES, *needed]
    names = {stage.name for stage in needed}
    return tuple(replace(stage, inputs=tuple(name for name in stage.inputs if name in names)) for stage in needed)


def precomputed_input(metric: str, affinities: str | None) -> str:
    """Return in words what the input has in place of points; "" where it has points."""
    if affinities == PRECOMPUTED:
        return "affinities.kind=precomputed gives affinities"
    return "metric=precomputed gives neighbours" if metric == PRECOMPUTED else ""


def stages_of_solver(method: str, solver: str, precomputed: str) -> Route:
    """Return the stages of a method by the route of a solver; raise ConfigError where it has no such route."""
    of_solver = [stage for stage in SOLVER_ROUTES[solver] if stage.solvers]
    others = [name for name, stages in ROUTES.items() if set(of_solver) <= set(stages)]
    if method not in others or precomputed:
        needs = f"points, and {precomputed}" if precomputed else "no graph of all points"
        raise ConfigError(
            f"embedding.solver={solver} takes {needs}; {method} has another route: take one of {', '.join(others)} "
            "with points, or embedding.solver refine or exact"
        )
    return (*SOLVER_ROUTES[solver], *(stage for stage in ROUTES[method] if stage is CLUSTERING))


def stages_without_points(
    method: str, solver: str, precomputed: str, affinities: bool, stages: Sequence[Stage]
) -> list[Stage]:
    """Return the stages of a route from precomputed neighbours on, or from affinities, which are W then.

    Raises ConfigError for methods and solvers that need points.
    """
    if method not in WITHOUT_POINTS or solver in REDUCING_SOLVERS:
        raise ConfigError(
            f"{method} with embedding.solver={solver} needs points, and {precomputed} alone: "
            f"take {', '.join(WITHOUT_POINTS)} with embedding.solver refine or exact, or give points"
        )
    replaced, first, before = NEIGHBORS, replace(NEIGHBORS, inputs=("points", "work_points")), {PARTITION, LANDMARKS}
    if affinities:
        replaced, inputs = SYMMETRIC_AFFINITIES, ("points", *SYMMETRIC_AFFINITIES.inputs)
        first = replace(replaced, inputs=inputs, key=replace(replaced.key, parameters_of=(AFFINITIES.name,)))
        before |= {NEIGHBORS, AFFINITIES, COMPONENTS}
    return [first if stage is replaced else stage for stage in stages if stage not in before]


def check_search(compared: str, neighbors: str) -> None:
    """Refuse a search by coordinates for rows that, in words, have none."""
    if compared and neighbors not in ("", "auto", *COMPARING_SEARCHES):
        methods = ", ".join(("auto", *COMPARING_SEARCHES))
        raise ConfigError(f"neighbors.method={neighbors} needs coordinates, and {compared}: take {methods}")


def stages_of_compared_rows(method: str, solver: str, compared: str, stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages of a route for rows that a metric compares; raise ConfigError where coordinates are needed."""
    if method not in OF_GRAPHS or solver in REDUCING_SOLVERS:
        what = f"embedding.solver={solver}" if method in OF_GRAPHS else method
        raise ConfigError(
            f"{what} needs coordinates, and {compared}: take {', '.join(OF_GRAPHS)} with embedding.solver refine or "
            f"exact, or a metric with coordinates, {', '.join(filter(has_coordinates, METRICS))}"
        )
    return [COMPARED_COMPONENTS if stage is COMPONENTS else stage for stage in stages if stage is not LANDMARKS]


def stages_of_pixels(method: str, neighbors: str, stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages of a route for pixels, which stay in their order; raise ConfigError for other methods.

    What reads W reads the pixels too, of which its rows are made.
    """
    if method not in OF_PIXELS:
        raise ConfigError(
            f"neighbors.method={neighbors} is for {' and '.join(OF_PIXELS)}, got {method}: take one of these, or "
            "another neighbors.method"
        )
    in_order = {
        WORK_POINTS: replace(WORK_POINTS, inputs=("points",)),
        SYMMETRIC_AFFINITIES: replace(
            SYMMETRIC_AFFINITIES,
            inputs=("work_points",),
            seeded=True,
            key=replace(SYMMETRIC_AFFINITIES.key, parameters_of=("neighbors", "affinities")),
        ),
    }
    remaining = [
        in_order.get(stage, stage) for stage in stages if stage not in (PARTITION, NEIGHBORS, AFFINITIES, COMPONENTS)
    ]
    return [
        replace(stage, inputs=tuple(dict.fromkeys(("work_points", *stage.inputs))))
        if SYMMETRIC_AFFINITIES.name in stage.inputs
        else stage
        for stage in remaining
    ]


def stages_making_rows(stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages of a route on which W is not stored: what reads it makes its rows of affinities each time.

    By landmarks alone two passes read W, which would take as much of a disk as points and neighbours together.
    """
    reading = []
    for stage in stages:
        more = tuple(name for name in MADE_OF if name not in stage.inputs)
        if SYMMETRIC_AFFINITIES.name in stage.inputs:  # of whose key they are a part already
            key = replace(stage.key, without=(*stage.key.without, *more))
            stage = replace(stage, inputs=(*stage.inputs, *more), key=key)
        reading.append(stage)
    return reading


def refusal_of_made_rows(method: str, solver: str, optional: Collection[str]) -> str:
    """Return why the rows of W have to be stored; "" where they need not."""
    able = [
        name for name, stages in ROUTES.items() if SPECTRAL_EMBEDDING in stages and not READ_OFTEN.intersection(stages)
    ]
    if method not in able or solver != LLL:
        return f"rows of W are read too often, but by {' and '.join(able)} with embedding.solver={LLL}"
    changed = "weights" if WEIGHTS.name in optional else "classes" if CLASSES.name in optional else ""
    return changed and f"rows of W follow the {changed} of points"


def refusal_of_doubt(method: str, solver: str, affinities: str | None, weighted: bool) -> str:
    """Return why the doubt of points cannot be measured; "" where it can."""
    if not is_doubted(method):
        measured = ", ".join(filter(is_doubted, ROUTES))
        return f"{method} has no place for each point with all others fixed, which {measured} have"
    if solver in SOLVER_ROUTES and SPECTRAL_EMBEDDING in ROUTES[method]:
        return f"embedding.solver={solver} has no graph of all points, by which refine, lll and exact place each"
    if affinities == PRECOMPUTED:
        return "precomputed affinities have no neighbours that a map could be compared with"
    return "points with weights are not placed one by one" if weighted else ""


def check_optional(
    method: str, solver: str, precomputed: str, neighbors: str, affinities: str | None, optional: Collection[str]
) -> None:
    """Raise ConfigError for the first optional stage that a method, pixels or a precomputed input cannot have."""
    merges, weighted = DUPLICATES.name in optional, WEIGHTS.name in optional
    weighing = [name for name, stages in ROUTES.items() if WEIGHTS in stages]
    unweighted = "" if method in weighing else f"{method} takes no weights, which {', '.join(weighing)} take"
    pixels = f"neighbors.method={neighbors} is for pixels" if neighbors in extensions(PixelsExtension) else ""
    no_graph = "" if LISTS in ROUTES[method] else f"{method} has no neighbour graph"
    kernel = f"affinities are a kernel in {method}, whatever the classes" if takes_kernel(method) else ""
    refusals = {  # by what is asked for: how it is given, and why it cannot be had
        LEAVE_OUT: (f"points.missing={LEAVE_OUT}", precomputed or pixels),
        LISTS.name: ("--graph (graph=)", no_graph or precomputed or ("equal rows are to be one" if merges else "")),
        DUPLICATES.name: (
            "--deduplicate (duplicates.tolerance), which makes weights of equal rows",
            unweighted or precomputed or pixels,
        ),
        WEIGHTS.name: (
            "--weights (sample_weight=)",
            unweighted or pixels or (precomputed if affinities == PRECOMPUTED else ""),
        ),
        CLASSES.name: ("symmetric_affinities.target_weight", kernel or pixels),
        DOUBT.name: ("doubt.measured", refusal_of_doubt(method, solver, affinities, weighted) or pixels),
        MADE_ROWS: (
            "symmetric_affinities.stored",
            refusal_of_made_rows(method, solver, optional) or precomputed or pixels,
        ),
    }
    for requested, (how, why) in refusals.items():
        if requested in optional and why:
            raise ConfigError(f"{why}: leave out {how}")
