"""What a store holds of the stages of a run and of runs before it, and the removal of what no run uses."""

from dataclasses import dataclass
from typing import Any

from scalemani.errors import ConfigError
from scalemani.runs.opened import Run

FOLDER = "stages"


@dataclass(frozen=True)
class StoredResult:
    """What a store holds of one stage at one key.

    Attributes
    ----------
    stage, key : str
        The stage, and the digest of all that its result follows from.
    complete : bool
        Whether the stage has ended.
    n_bytes : int
        Bytes of what is committed.
    used : bool
        Whether the last run in the store reads or is this result.
    params : dict
        The stage's parameters; empty where the stage has not ended.
    """

    stage: str
    key: str
    complete: bool
    n_bytes: int
    used: bool
    params: dict[str, Any]


def list_results(run: Run) -> list[StoredResult]:
    """Return all results in the store of a run, those of the last run first, each in the order of its stages."""
    results, objects = [], run.store.objects
    places = [(stage, key) for stage in objects.names(FOLDER) for key in objects.names(f"{FOLDER}/{stage}")]
    for stage, key in places:
        group = run.store.group(stage, key, run.dimensions.block_rows)
        record = group.record if group.complete else {}
        used = run.keys.get(stage) == key
        results.append(StoredResult(stage, key, group.complete, group.committed_bytes, used, record.get("params", {})))
    order = {stage: place for place, stage in enumerate(run.keys)}
    return sorted(results, key=lambda one: (not one.used, order.get(one.stage, len(order)), one.stage))


def remove_unused(run: Run) -> list[StoredResult]:
    """Remove the results that the last run in the store does not use; return what was removed.

    Raises
    ------
    ConfigError
        For a run of the largest component, which starts from results of all points that its plan does not name.
    StoreLockedError
        Where another command works on the run.
    """
    if run.is_component:
        raise ConfigError(
            f"{run.store.root} holds a run of the largest component, which starts from results of all points: nothing "
            "is removed; run it in a new folder to have less"
        )
    with run.store.locked():
        unused = [result for result in list_results(run) if not result.used]
        for result in unused:
            path = f"{FOLDER}/{result.stage}/{result.key}"
            run.store.objects.delete(f"{path}/complete.json")  # what is half removed counts as not there
            run.store.objects.delete_below(f"{path}/marks")
            run.store.objects.delete_below(path)
    return unused
