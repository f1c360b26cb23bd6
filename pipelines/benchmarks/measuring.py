"""What the benchmarks share: a command timed as a whole with the peak memory of all its processes, and the machine."""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

SECONDS_BETWEEN_SAMPLES = 0.1
STATUS_OF_TIMEOUT = 124
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Measured:
    """What a command took: wall seconds, the largest sum of resident bytes over its processes, their processor seconds.

    And what it printed.
    """

    seconds: float
    peak_bytes: int
    output: str
    processor_seconds: float


def measured(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    observe: Callable[[int, float], object] | None = None,
) -> Measured:
    """Run a command to its end; raises CalledProcessError where it fails.

    `observe` is called at each sample with the resident bytes and the processor seconds of all its processes.
    """
    started, peak, before = time.perf_counter(), 0, processor_seconds_of_children()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    ) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            resident = tree_bytes(watched)
            peak = max(peak, resident)
            if observe is not None:
                observe(resident, tree_seconds(watched))
            time.sleep(SECONDS_BETWEEN_SAMPLES)
        seconds = time.perf_counter() - started
        output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    return Measured(seconds, peak, output, processor_seconds_of_children() - before)


def processor_seconds_of_children() -> float:
    """Return the processor seconds of all processes below this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured_within(patience: float, command: Sequence[str], environment: Mapping[str, str]) -> Measured | str:
    """Run a command for so many seconds at most; return how it ended where that is not well."""
    try:
        return measured(["timeout", str(patience), *command], environment)
    except subprocess.CalledProcessError as error:
        stopped = error.returncode == STATUS_OF_TIMEOUT
        return f"stopped after {patience:g}" if stopped else f"failed ({error.returncode})"


def tree_bytes(process: psutil.Process) -> int:
    """Return the resident bytes of a process and its children."""
    total = 0
    try:
        for member in (process, *process.children(recursive=True)):
            total += member.memory_info().rss
    except psutil.Error:
        return total
    return total


def tree_seconds(process: psutil.Process) -> float:
    """Return the processor seconds so far of a process, its children, and those of its children that have ended."""
    total = 0.0
    try:
        for member in (process, *process.children(recursive=True)):
            total += sum(member.cpu_times()[:4])
    except psutil.Error:
        return total
    return total


def scalemani(*arguments: str) -> Measured:
    """Run the command line of this environment."""
    return measured([sys.executable, "-m", "scalemani", *arguments])


def records(run: Path) -> dict[str, Any]:
    """Return what `info --json` says of a run."""
    return json.loads(scalemani("info", str(run), "--json").output)


def stage_rows(run: Path, total: Measured, n_points: int) -> list[dict[str, Any]]:
    """Return what a command took as a whole, and each stage of its run: seconds, peak memory, certificates."""
    rows = [{"stage": "whole", "seconds": total.seconds, "peak GB": total.peak_bytes / 1e9}]
    for stage, record in records(run)["stages"].items():
        row = {"stage": stage, "seconds": record["seconds"], "us a point": 1e6 * record["seconds"] / n_points}
        rows.append({**row, "peak GB": record["peak_memory"] / 1e9, "found": record["certificates"]})
    return rows


def settings(**values: Any) -> list[str]:
    """Return --set options: stage__parameter=value."""
    return [f"--set={name.replace('__', '.')}={value}" for name, value in values.items()]


def machine() -> str:
    """Return the machine and the date, for tables."""
    memory = psutil.virtual_memory().total / 2**30
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    python, date = platform.python_version(), time.strftime("%Y-%m-%d")
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, Python {python}, {date}"


def text(value: Any) -> str:
    """Return a value as a table shows it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a table for people, and as one line of JSON for programs."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[text(row.get(name, "")) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    print(machine())
    for line in [names, *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
    print(json.dumps(rows), flush=True)
