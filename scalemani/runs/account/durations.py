"""About how long the stages of a run take, before they run: by the last run in the folder, or as they usually do."""

import contextlib

from scalemani.errors import ScalemaniError
from scalemani.runs.opened import Run
from scalemani.runs.plan import Plan
from scalemani.store.run_store import PLAN, RunStore

# Seconds for a million points of 784 bytes on two processors, as measured; what they are to each other is what counts,
# as a run corrects them by how long its own stages take.
USUAL_SECONDS = {
    "points": 2.0,
    "partition": 7.0,
    "work_points": 5.5,
    "neighbors": 20.0,
    "affinities": 2.0,
    "components": 0.6,
    "symmetric_affinities": 5.0,
    "coarse_graphs": 6.0,
    "coarse_embedding": 3.5,
    "embedding": 3.0,
    "landmarks": 1.5,
    "layout": 68.0,
}
OTHER_SECONDS = 3.0  # of a stage that is not listed
LEAST_SECONDS = 0.05  # of a stage of few points
POINTS = 1_000_000


def earlier_seconds(store: RunStore, n_rows: int) -> dict[str, float]:
    """Return the seconds of the stages of the last run in a folder, in proportion to the number of rows given."""
    if store.objects.get_json(PLAN) is None:
        return {}
    earlier = Run(store.root)
    records = earlier.records()
    if not records:  # how many rows were given is read from the first of the stages
        return {}
    share = n_rows / earlier.n_input_points
    return {name: record["seconds"] * share for name, record in records.items()}


def expected_seconds(plan: Plan) -> dict[str, float]:
    """Return about how many seconds each stage takes that is not complete, by its name."""
    n_points, found = plan.dimensions.n_points, {}
    with contextlib.suppress(ScalemaniError):  # of a damaged record nothing is expected, and the run makes it anew
        found = earlier_seconds(RunStore(plan.stages[0].group.root), plan.sizes.n_given_rows or n_points)
    return {
        planned.stage.name: found.get(planned.stage.name, usual_seconds(planned.stage.name, n_points))
        for planned in plan.stages
        if not planned.group.complete
    }


def usual_seconds(stage: str, n_points: int) -> float:
    """Return the seconds that a stage takes of points as they usually are."""
    return LEAST_SECONDS + USUAL_SECONDS.get(stage, OTHER_SECONDS) * n_points / POINTS
