"""All results that a store holds, those of other parameters than the last run's among them, and removing these."""

from dataclasses import dataclass
from typing import Any

from scalemani.errors import ConfigError
from scalemani.runs.opened import Run
from scalemani.store.groups import StageGroup

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
        The stage's own parameters; empty where the stage has not ended.
    """

    stage: str
    key: str
    complete: bool
    n_bytes: int
    used: bool
    params: dict[str, Any]


def list_results(run: Run) -> list[StoredResult]:
    """Return all results in the store of a run, those of the last run first, each in the order of its stages."""
    found = []
    for group in groups_of(run):
        record = group.record if group.complete else {}
        stage, key = group.stage, group.path.rsplit("/", 1)[1]
        used = run.keys.get(stage) == key
        found.append(StoredResult(stage, key, group.complete, group.committed_bytes, used, record.get("params", {})))
    order = list(run.keys)
    last = len(order)
    return sorted(
        found, key=lambda one: (not one.used, order.index(one.stage) if one.stage in order else last, one.stage)
    )


def remove_unused(run: Run) -> list[StoredResult]:
    """Remove the results that the last run in the store does not use; return what was removed.

    Raises
    ------
    ConfigError
        For a run of the largest component, which goes on from results of all points that its plan does not name.
    StoreLockedError
        Where another command works on the run.
    """
    if run.input_rows is not None:
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


def groups_of(run: Run) -> list[StageGroup]:
    """Return the groups of every stage and key in the store of a run."""
    objects, block_rows = run.store.objects, run.dimensions.block_rows
    stages = objects.names(FOLDER)
    return [run.store.group(stage, key, block_rows) for stage in stages for key in objects.names(f"{FOLDER}/{stage}")]
