"""What `plan --explain` prints: the lists of what a stage holds and writes, and the sums that the plan shows."""

from collections.abc import Iterator

import numpy as np

from scalemani.engine.needs import ENCODED, MAPPED, PASSING, Held, Written, memory_need, span_bytes, steps_of
from scalemani.engine.workers.budget import PROCESS_BYTES
from scalemani.interfaces.cli.output import say
from scalemani.runs.plan import Plan, PlannedStage
from scalemani.runs.resources import overhead_bytes

Line = tuple[str, int, str]  # what is meant, its bytes, and for how long or how often


def show_needs(plan: Plan, name: str) -> None:
    """Print what a stage holds in memory and what it writes, and how both add up to what the plan shows."""
    planned = plan.planned(name)
    say(f"memory of {name}")
    for record in planned.held:
        step = f", step: {record.step}" if record.step else ""
        say(record_line(record, record.bytes, f"{record.span.value}{step}"))
    for line in memory_sums(planned):
        say(sum_line(*line))
    say(f"\ndisk of {name}")
    for written in planned.written:
        say(record_line(written, encoded_bytes(plan, written), written.stay.value))
    for line in disk_sums(plan, planned):
        say(sum_line(*line))


def memory_sums(planned: PlannedStage) -> Iterator[Line]:
    """Yield how the memory of a stage adds up; the last line is what the plan shows."""
    steps, need, tasks = steps_of(planned.held), planned.fit.need, planned.tasks_in_one_process
    for step in steps if len(steps) > 1 else []:
        for span, n_bytes in span_bytes(planned.held, step).items():
            if n_bytes:
                yield f"step {step} in sum", n_bytes, span.value
    asked = memory_need(planned.held)
    yield "Python and its libraries, kernels compiled", PROCESS_BYTES, "a process"
    yield "held by a process", asked.fixed, "the largest step with one task, less that task"
    yield f"{tasks} tasks at once in a process, {need.per_task} each", tasks * need.per_task, "the largest step"
    yield "cache", need.cache, f"of {asked.cache} that it could use"
    yield "growing with the points", need.growing, "in memory" if planned.fit.in_memory else "in files"
    yield "memory of a process", planned.memory, "as planned"


def disk_sums(plan: Plan, planned: PlannedStage) -> Iterator[Line]:
    """Yield how the disk of a stage adds up; the last line is what the plan shows."""
    stored = sum(encoded_bytes(plan, record) for record in planned.written if record.stay not in (PASSING, MAPPED))
    overhead = overhead_bytes(plan.dimensions.n_blocks)
    yield "arrays that are stored", stored, "in sum"
    yield "marks, descriptions, and what rounding to blocks of the disk takes", overhead, "in sum"
    if planned.group.complete:
        yield "written before", stored + overhead, "complete"
    else:
        committed = stored + overhead - planned.disk.stored
        yield "written before", committed, "subtracted"
        yield "checkpoints and mapped arrays", planned.disk.passing, "until the stage ends"
    yield "disk", sum(planned.disk), "as planned"


def encoded_bytes(plan: Plan, record: Written) -> int:
    """Return what arrays take: rows of the points are known as encoded."""
    return (
        int(record.rows * record.copies * plan.outline.survey.stored_row_bytes)
        if record.stay == ENCODED
        else record.bytes
    )


def record_line(record: Held | Written, n_bytes: int, when: str) -> str:
    """Return a line of a list."""
    dtype, copies = np.dtype(record.dtype).name, f"x {record.copies:g}" if record.copies != 1 else ""
    shape = f"{record.rows:.0f} x {record.columns:g}"
    return f"  {record.name:<58}{shape:>20} {dtype:<8}{copies:<6}{n_bytes:>15}  {when}"


def sum_line(name: str, n_bytes: int, when: str) -> str:
    """Return a line of a sum."""
    return f"{name:<95}{n_bytes:>15}  {when}"
