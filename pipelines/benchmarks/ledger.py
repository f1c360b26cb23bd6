"""The ledger of a run: one line a finished block, with the process, when it began and how long it took."""

import re
from pathlib import Path
from typing import NamedTuple


class Task(NamedTuple):
    """A finished block. `step` is its stage, and the round where a stage has several; times in seconds."""

    stage: str
    step: str
    block: int
    process: str
    begin: float
    seconds: float

    @property
    def end(self) -> float:
        """When it was committed."""
        return self.begin + self.seconds


def read_ledger(path: Path) -> list[Task]:
    """Return the tasks of a ledger in the order in which they ended."""
    tasks = []
    for line in path.read_text().splitlines():
        stage, unit, measured = line.split(" ")
        process, begin, seconds = measured.split(":")
        found = re.fullmatch(r"(?:(.*)-)?block-(\d+)", unit.rpartition("/")[2])
        assert found is not None, line
        step = f"{stage} {found[1]}" if found[1] else stage
        tasks.append(Task(stage, step, int(found[2]), process, float(begin), float(seconds)))
    return tasks


def spans(tasks: list[Task]) -> dict[str, list[Task]]:
    """Return the tasks of every step, in the order in which the steps began."""
    found: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: task.begin):
        found.setdefault(task.step, []).append(task)
    return found
