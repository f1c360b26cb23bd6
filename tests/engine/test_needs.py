"""Lists of what stages hold and write, and how they add up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalemani.engine.needs import (
    CACHE,
    EACH_PROCESS,
    EACH_TASK,
    ENCODED,
    GROWING,
    LOOKED_UP,
    MAPPED,
    PASSING,
    STORED,
    DiskNeed,
    Held,
    Written,
    disk_need,
    memory_need,
)

STEPS = ("", "one", "other", "third")
RECORDS = st.lists(
    st.builds(
        Held,
        name=st.just("an array"),
        span=st.sampled_from((EACH_PROCESS, EACH_TASK, GROWING, LOOKED_UP, CACHE)),
        rows=st.integers(0, 1000),
        columns=st.integers(1, 9),
        dtype=st.sampled_from(("uint8", "float32", "float64")),
        copies=st.integers(1, 3),
        step=st.sampled_from(STEPS),
    ),
    min_size=1,
)


def in_step(held, step, span):
    """Return the bytes of arrays of a span in a step, counted one by one from arrays that are made."""
    return sum(
        record.copies * np.empty((record.rows, record.columns), record.dtype).nbytes
        for record in held
        if record.span == span and record.step in ("", step)
    )


@given(RECORDS, st.integers(1, 64))
def test_a_need_covers_every_step_for_any_number_of_tasks_and_is_exact_for_one(held, n_tasks):
    need = memory_need(held)
    steps = {record.step for record in held if record.step} or {""}
    totals = {
        n: max(
            sum(in_step(held, step, span) for span in (EACH_PROCESS, GROWING, LOOKED_UP))
            + n * in_step(held, step, EACH_TASK)
            for step in steps
        )
        for n in (1, n_tasks)
    }
    in_files = max(in_step(held, step, EACH_PROCESS) + in_step(held, step, EACH_TASK) for step in steps)
    assert need.fixed + need.growing + need.per_task == totals[1]
    assert need.fixed + need.per_task == in_files
    assert need.fixed + need.growing + n_tasks * need.per_task >= totals[n_tasks]
    assert min(need.fixed, need.per_task, need.growing, need.cache) >= 0


def test_what_is_written_adds_up_by_what_becomes_of_it():
    written = [
        Written("labels", STORED, 10, 1, "int32"),
        Written("vectors", STORED, 10, 3, "float64"),
        Written("checkpoints", PASSING, 10, 3, "float32", 2),
        Written("points", ENCODED, 10, 784, "uint8"),
        Written("points", MAPPED, 10, 784, "uint8"),
    ]
    assert disk_need(written) == DiskNeed(stored=40 + 240, passing=240, points=10, uncached=7840)
