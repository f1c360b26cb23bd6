"""A hundred million pixels of 64 bytes on two cores: graph, spectral map by landmarks and clusters within 8 GB.

The points are `scalemani generate planet-pixels`. One command makes them and computes the run; started again after a
kill it resumes. A ledger, FOLDER/ledger-POINTS.json, is written while it runs and has for each stage the seconds and
processor seconds of all starts, the peak of resident memory, and the bytes of the run on the disk when the stage ended
and at most while it ran. `reading` is the pass over the points before the first stage; when a run is resumed, that pass
and the check of what is stored count for the stage that is resumed. A table is printed at the end, also of a run that
failed.

    python pipelines/benchmarks/hundred_million.py FOLDER [--points 100000000] [--memory 8GB] [--by-stage] [--table]

With --by-stage each stage is a command, as Airflow has it. --table prints the ledger of a run, which may be running.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import machine, measured, settings, show

METHOD = "spectral-clustering"
STAGES = (
    *("points", "partition", "work_points", "neighbors", "affinities", "components", "symmetric_affinities"),
    *("landmarks", "landmark_weights", "reduced", "landmark_embedding", "embedding", "clustering"),
)
GENERATING, READING = "generate", "reading"
SETTINGS = settings(
    neighbors__n_neighbors=15,
    neighbors__recall=0.9,
    affinities__perplexity=5,
    embedding__solver="lll",
    symmetric_affinities__stored="false",
    landmark_embedding__n_components=4,
    clustering__n_clusters=30,
)
SECONDS_BETWEEN_LOOKS = 1.0  # at which stages are complete
SECONDS_BETWEEN_SIZES = 20.0  # a hundred million points have some forty thousand files
WAIT_SECONDS = 3600  # for a command that outlived this one and holds the run


@dataclass
class Ledger:
    """What each stage took, in a file that is replaced as a whole."""

    path: Path
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> "Ledger":
        """Return the ledger in a file, an empty one where there is none."""
        return cls(path, json.loads(path.read_text())["stages"] if path.exists() else {})

    def finished(self, stage: str) -> bool:
        """Return whether a stage has ended."""
        return bool(self.stages.get(stage, {}).get("finished"))

    def entry(self, stage: str) -> dict[str, Any]:
        """Return the entry of a stage, a new one where there is none."""
        empty = {"starts": 0, "finished": False, "seconds": 0.0, "processor_seconds": 0.0}
        return self.stages.setdefault(stage, {**empty, "peak_bytes": 0, "stored_bytes": 0, "most_stored_bytes": 0})

    def save(self) -> None:
        """Write the file: a kill leaves the former one or this one."""
        partial = self.path.with_suffix(".partial")
        with partial.open("w") as file:
            json.dump({"machine": machine(), "stages": self.stages}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)


class Watch:
    """Writes into a ledger what a command takes, stage by stage: a stage ends when its record is in the run."""

    def __init__(self, ledger: Ledger, run: Path, only: str | None = None) -> None:
        self.ledger, self.run, self.only = ledger, run, only
        self.looked = self.sized = time.perf_counter()
        self.processor_seconds, self.peak_bytes, self.stage = 0.0, 0, self.current()
        self.ledger.entry(self.stage)["starts"] += 1

    def current(self) -> str:
        """Return what is running: the only stage of this command, or the first that has no record."""
        if self.only is not None:
            return self.only
        if not (self.run / "stages").exists():
            return READING
        stages = (stage for stage in STAGES if not any((self.run / "stages" / stage).glob("*/complete.json")))
        return next(stages, STAGES[-1])

    def __call__(self, resident_bytes: int, processor_seconds: float) -> None:
        """Look at a running command: its resident bytes, and its processor seconds so far."""
        self.peak_bytes = max(self.peak_bytes, resident_bytes)
        now = time.perf_counter()
        if now - self.looked < SECONDS_BETWEEN_LOOKS:
            return
        current = self.current()
        self.add(now, processor_seconds)
        if current != self.stage or now - self.sized > SECONDS_BETWEEN_SIZES:
            self.write(finished=current != self.stage)
        if current != self.stage:
            self.finish(STAGES[first_of(self.stage) : first_of(current)])
            self.stage = current
            self.ledger.entry(current)["starts"] += 1

    def finish(self, stages: Sequence[str]) -> None:
        """Say that stages have ended, some of them within one look."""
        for stage in stages:
            self.ledger.entry(stage)["finished"] = True

    def add(self, now: float, processor_seconds: float) -> None:
        """Count the time since the last look for the stage that was running."""
        entry = self.ledger.entry(self.stage)
        entry["seconds"] += now - self.looked
        entry["processor_seconds"] += max(0.0, processor_seconds - self.processor_seconds)
        entry["peak_bytes"] = max(entry["peak_bytes"], self.peak_bytes)
        self.looked, self.processor_seconds, self.peak_bytes = now, processor_seconds, 0

    def write(self, finished: bool) -> None:
        """Write the ledger, with the bytes that the run has on the disk."""
        entry, self.sized = self.ledger.entry(self.stage), time.perf_counter()
        stored = stored_bytes(self.run)
        entry["most_stored_bytes"] = max(entry["most_stored_bytes"], stored)
        entry |= {"finished": finished, "stored_bytes": stored}
        self.ledger.save()


def first_of(stage: str) -> int:
    """Return the place of a stage in their order; what precedes the stages has the first."""
    return STAGES.index(stage) if stage in STAGES else 0


def stored_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder; files may be removed meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def watched(ledger: Ledger, run: Path, arguments: list[str], only: str | None = None) -> None:
    """Run a command of scalemani, and write into the ledger what it takes; raises CalledProcessError."""
    watch = Watch(ledger, run, only)
    try:
        total = measured([sys.executable, "-m", "scalemani", *arguments], observe=watch)
    except (subprocess.CalledProcessError, KeyboardInterrupt):
        watch.write(finished=False)
        raise
    watch.add(time.perf_counter(), total.processor_seconds)
    watch.finish(STAGES if only is None else ())
    watch.write(finished=True)


def rows_of(ledger: Ledger, run: Path, n_points: int) -> list[dict[str, Any]]:
    """Return a row a stage, and one of all."""
    rows = []
    for stage, entry in ledger.stages.items():
        records = [json.loads(path.read_text()) for path in (run / "stages" / stage).glob("*/complete.json")]
        rows.append(
            {
                "stage": stage if entry["finished"] else f"{stage} (not finished)",
                "starts": entry["starts"],
                "seconds": entry["seconds"],
                "processor seconds": entry["processor_seconds"],
                "us a point": 1e6 * entry["processor_seconds"] / n_points,
                "peak GB": entry["peak_bytes"] / 1e9,
                "disk GB": entry["stored_bytes"] / 1e9,
                "at most GB": entry["most_stored_bytes"] / 1e9,
                "certificates": records[-1]["certificates"] if records else "",
            }
        )
    sums = {name: sum(row[name] for row in rows) for name in ("seconds", "processor seconds", "us a point")}
    most = {name: max((row[name] for row in rows), default=0.0) for name in ("peak GB", "disk GB", "at most GB")}
    return [*rows, {"stage": "all", **sums, **most}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=100_000_000)
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--by-stage", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    n_points = arguments.points
    points, run = (arguments.folder / name for name in (f"pixels-{n_points}.zarr", f"run-{n_points}"))
    ledger = Ledger.of(arguments.folder / f"ledger-{n_points}.json")
    if arguments.table:
        show(rows_of(ledger, run, n_points))
        return
    common = [str(points), str(run), "--method", METHOD, "--memory", arguments.memory, *SETTINGS]
    common += ["--wait", str(WAIT_SECONDS)]
    try:
        if not ledger.finished(GENERATING):
            generate = ["generate", "planet-pixels", str(points), "--n-points", str(n_points)]
            watched(ledger, points, generate, GENERATING)
        if arguments.by_stage:
            for stage in STAGES:
                if not ledger.finished(stage):
                    watched(ledger, run, ["stage", stage, *common, "--quiet"], stage)
        elif not ledger.finished(STAGES[-1]):
            watched(ledger, run, ["embed", *common])
    finally:
        show(rows_of(ledger, run, n_points))


if __name__ == "__main__":
    main()
