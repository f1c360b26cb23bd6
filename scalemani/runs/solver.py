"""The solver of a run that names none: refinement where it fits the memory of the driver, landmarks beyond."""

from dataclasses import replace

from scalemani.config.params import Parameters
from scalemani.config.stages import AUTO, LLL, REFINE
from scalemani.engine.needs import PROCESS_BYTES, memory_need
from scalemani.engine.sizes import Sizes
from scalemani.runs.outline import SOLVER, Outline, SolverChoice, outline_run
from scalemani.runs.survey import Survey
from scalemani.stages.table import STAGES
from scalemani.store.run_store import PLAN, RunStore

STAGE = "embedding"


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


def solver_choice(outline: Outline, memory: int | None, store: RunStore) -> SolverChoice:
    """Return what `auto` is resolved to, from the outline of a run that refines."""
    params = outline.params
    sizes = Sizes(outline.survey.dimensions, params, None, outline.survey.side.weights is not None)
    need = memory_need(STAGES[STAGE].memory(sizes))
    # Arrays with a row for each point are mapped files where memory has no room for them.
    needed = PROCESS_BYTES + need.total(1) - need.growing
    # Landmarks are points, and a descent holds W on the driver in any case.
    always_refines = bool(params.given_instead) or params.layout.objective is not None
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
