"""Whether every object is what was committed, and whether groups say the same of each other."""

from collections.abc import Iterator, Mapping

from scalemani.audit.findings import Finding, none_wrong
from scalemani.audit.stored import StoredGroup, StoredRun, digest, side_by_side
from scalemani.errors import StoreError
from scalemani.store.schema import ArrayDescription, numberless

STORED = "store"
EXAMPLES = 3  # paths that a finding names
Descriptions = Mapping[str, tuple[ArrayDescription, ...]]


def check_digests(run: StoredRun) -> Iterator[Finding]:
    """Check marks, records and objects of all groups, and what each group says of those that it was made from."""
    unfinished = sorted(stage for stage, group in run.groups.items() if not group.record)
    yield none_wrong(STORED, "stages are finished", len(unfinished), "complete.json is missing or damaged", unfinished)
    groups = [group for group in run.groups.values() if group.record]
    strangers = [group.path for group in groups if (group.record.get("stage"), group.record.get("key")) != named(group)]
    yield none_wrong(STORED, "records are those of their groups", len(strangers), "", strangers[:EXAMPLES])
    objects = [(group, key) for group in groups for key in group.committed]
    damaged = [path for path in side_by_side(damage, objects) if path is not None]
    yield none_wrong(
        STORED, f"digests of {len(objects)} objects", len(damaged), "missing or not as committed", damaged[:EXAMPLES]
    )
    wrong = [line for group in groups for line in wrong_inputs(run, group)]
    yield none_wrong(STORED, "results were made of these inputs", len(wrong), "by inputs.json", wrong[:EXAMPLES])


def named(group: StoredGroup) -> tuple[str, str]:
    """Return the stage and key by the path of a group, which its record must repeat."""
    return group.stage, group.key


def damage(place: tuple[StoredGroup, str]) -> str | None:
    """Return the path of an object that is not what was committed, None for one that is."""
    group, key = place
    content, committed = group.place.read(f"{group.path}/arrays/{key}"), group.committed[key]
    intact = content is not None and (len(content), digest(content)) == committed
    return None if intact else f"{group.path}/arrays/{key}"


def wrong_inputs(run: StoredRun, group: StoredGroup) -> list[str]:
    """Return which inputs a group was made from that are not those of the run."""
    recorded = group.place.describe(f"{group.path}/inputs.json")
    if recorded is None:
        return [f"{group.path}/inputs.json is missing or damaged"]
    return [
        f"{stage} of {group.stage}"
        for stage, content in recorded.items()
        if stage in run.groups and run.groups[stage].record and content != run.groups[stage].content_digest
    ]


def check_arrays(run: StoredRun, descriptions: Descriptions) -> Iterator[Finding]:
    """Check that the arrays of each group are among those that are described, of a dtype that they can have."""
    strange, unreadable = [], []
    for stage, group in run.groups.items():
        described = {numberless(path): one for one in descriptions.get(stage, ()) for path in one.paths}
        for name in group.names:
            known = described.get(numberless(name))
            try:
                array = group.array(name)
            except StoreError as error:
                unreadable.append(str(error))
                continue
            if known is not None and (str(array.dtype) not in known.dtypes or array.ndim != len(known.dims)):
                strange.append(f"{group.path}/{name}: {array.dtype}, {array.ndim} dimensions")
    yield none_wrong(STORED, "arrays can be read", len(unreadable), "", unreadable[:EXAMPLES])
    yield none_wrong(STORED, "arrays are as described", len(strange), "by dtype and dimensions", strange[:EXAMPLES])
