"""Progress of a run: its events, and the classes that show them as lines of a log or as bars."""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self, TextIO

from scalemani.engine.remaining import RunClock
from scalemani.errors import ConfigError, ScalemaniWarning, nearest_name, printable

Positions = Callable[[], Any]  # returns (N, d) in input order
Callback = Callable[[int, float, Any], Any]  # iteration, objective, positions (N, d)
LOGS = ("text", "json")
SECONDS_BETWEEN_LINES = 20.0
SECONDS_BETWEEN_BARS = 0.25  # two looks of the bars of a notebook, while a stage is at work
TOLD_COMPILING = 1.0  # seconds of compiling from which they are told apart


class Progress:
    """Progress of a run: shows nothing unless a subclass does, and calls back from descents.

    Attributes
    ----------
    callbacks : callables of (iteration, objective, embedding)
        Called every `callbacks_every` iterations of a descent, from the first one on, with a copy of the embedding.
    give_warning : callable of (message, kind) or None
        Replaces the line that a warning would be shown as.
    clock : how long the run still takes; None where nothing is expected of it
    """

    callbacks: Sequence[Callback] = ()
    callbacks_every = 50
    give_warning: Callable[[str, type[ScalemaniWarning]], None] | None = None
    clock: RunClock | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Stop showing anything."""

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Note which stages a run has to do, and about how many seconds each of them takes."""
        self.clock = RunClock(seconds)

    def begin(self, stage: str) -> None:
        """Note that a stage of the run begins."""
        if self.clock is not None:
            self.clock.begin(stage)

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Note that a stage has ended, of which `compiling` seconds were compilation."""
        if self.clock is not None:
            self.clock.end()

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Note that a stage has `total` units to do; it may start several times."""

    def advance(self, done: int = 1) -> None:
        """Note that units were finished."""

    def note(self, message: str) -> None:
        """Show one line."""

    def show_warning(self, message: str, kind: type[ScalemaniWarning]) -> None:
        """Show a warning as one line."""
        self.note(message)

    def iterate(self, iteration: int, objective: float, positions: Positions) -> None:
        """Call back after an iteration of a descent; `positions` are computed for each callback."""
        if iteration % self.callbacks_every == 0:
            for callback in self.callbacks:
                callback(iteration, objective, positions())

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Give or show a warning that concerns the result."""
        (self.give_warning or self.show_warning)(message, kind)


def plural(unit: str, count: int) -> str:
    """Return the name of a unit as it stands after a number."""
    return unit if count == 1 else f"{unit}{'es' if unit.endswith('s') else 's'}"


def duration_text(seconds: float) -> str:
    """Return seconds as people say them: 45 s, 2 min 10 s, 3 h 20 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join([f"{count} {unit}" for count, unit in parts if count][:2]) or "0 s"


def json_line(event: str, message: str, **numbers: Any) -> str:
    """Return an event as a JSON object on one line: `time` (ISO 8601, UTC), `event`, `message` and its numbers."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "event": event, "message": message, **numbers})


class ProgressLines(Progress):
    """A line when a stage starts and ends, one every 20 seconds while it is at work, one for each note and warning.

    Parameters
    ----------
    as_json : whether a line is an object, whose events are start, progress, end, note and warning
    """

    def __init__(
        self,
        stream: TextIO,
        as_json: bool = False,
        quiet: bool = False,
        seconds_between: float = SECONDS_BETWEEN_LINES,
    ) -> None:
        self._stream, self._as_json, self._quiet, self._seconds = stream, as_json, quiet, seconds_between
        self._stage, self._unit, self._total, self._done = "", "", 0, 0
        self._began = self._started = time.monotonic()  # of the stage, and of its units
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> "ProgressLines":
        if not self._quiet:
            self._heart.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if not self._quiet:
            self._heart.join()

    def begin(self, stage: str) -> None:
        """Keep when a stage begins."""
        super().begin(stage)
        self._began = time.monotonic()

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Print how long a stage took, and how long the run still takes."""
        super().end(stage, compiling)
        seconds = time.monotonic() - self._began
        with self._lock:
            self._stage = ""
        numbers = {"stage": stage, "seconds": round(seconds, 1)}
        told = f"{stage}: {seconds:.1f} s"
        if compiling >= TOLD_COMPILING:
            numbers["seconds_compiling"] = round(compiling, 1)
            told += f", {compiling:.1f} s of them compiling kernels, which are cached for the next run"
        self._write("end", *self._with_rest(told, numbers))

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Print that a stage starts; a stage with nothing to do is passed over."""
        with self._lock:
            self._stage, self._unit, self._total, self._done = stage if total else "", unit, total, 0
            self._started = time.monotonic()
        if total:
            numbers = {"stage": stage, "total": total, "unit": unit}
            self._write("start", f"{stage}: {total} {plural(unit, total)} to do", numbers)

    def advance(self, done: int = 1) -> None:
        """Count what was finished."""
        with self._lock:
            self._done += done

    def note(self, message: str) -> None:
        """Print one line."""
        self._write("note", message, {})

    def show_warning(self, message: str, kind: type[ScalemaniWarning]) -> None:
        """Print one line, in quiet too."""
        self._write("warning", message, {"kind": kind.__name__})

    def _write(self, event: str, message: str, numbers: dict[str, Any]) -> None:
        if self._quiet and event != "warning":
            return
        before = "" if self._quiet else time.strftime("%H:%M:%S ")
        line = json_line(event, message, **numbers) if self._as_json else f"{before}{printable(message)}"
        with self._lock:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds):
            state = self._state()
            if state is not None:
                self._write("progress", *state)

    def _state(self) -> tuple[str, dict[str, Any]] | None:
        """Return where the stage at work stands, with rate and remaining time once there is one; None without a stage.

        A stage may end between two looks at it: all of it is read under the lock.
        """
        with self._lock:
            stage, unit, total, done = self._stage, self._unit, self._total, self._done
            elapsed = time.monotonic() - self._started
        if not stage:
            return None
        numbers = {"stage": stage, "done": done, "total": total, "unit": unit, "seconds": round(elapsed, 1)}
        state = f"{stage}: {done} of {total} {plural(unit, total)} after {elapsed:.0f} s"
        if done:
            remaining = elapsed * (total - done) / done
            numbers["seconds_remaining"] = round(remaining, 1)
            state += f", {done / elapsed:.1f}/s, {remaining:.0f} s remaining"
        return self._with_rest(state, numbers)

    def _with_rest(self, message: str, numbers: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return a message and its numbers with how long the run still takes, where something is expected of it."""
        rest = 0.0 if self.clock is None else self.clock.remaining()
        if not rest:
            return message, numbers
        return f"{message}; about {duration_text(rest)} to the end of the run", {
            **numbers,
            "run_seconds_remaining": round(rest, 1),
        }


class ProgressBars(Progress):
    """One bar a stage: its name, units, elapsed and remaining time, that of the run; notes are lines above the bars."""

    def __init__(self, stream: TextIO | None = None) -> None:
        import rich.console  # a tenth of a second that logs do without
        import rich.progress

        self._bars = rich.progress.Progress(
            rich.progress.TextColumn("{task.description:<22}", markup=False),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TextColumn("{task.fields[unit]}", markup=False),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(compact=True),
            rich.progress.TextColumn("{task.fields[rest]}"),
            console=rich.console.Console(file=stream),
        )
        self._bar: Any = None
        self._stage = ""

    def __enter__(self) -> "ProgressBars":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def begin(self, stage: str) -> None:
        """End the bar of an earlier stage."""
        super().begin(stage)
        self._finish()

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """End the bar of a stage, and tell what it spent on compiling."""
        super().end(stage, compiling)
        self._finish()
        if compiling >= TOLD_COMPILING:
            self.note(f"{stage}: {compiling:.0f} s of it compiling kernels, which are cached for the next run")

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Open the bar of a stage, or let it count from zero again; a stage with nothing to do gets none."""
        if not total:
            return
        if self._bar is not None and self._stage == stage:
            self._bars.update(self._bar, completed=0, total=total, unit=plural(unit, total))
            return
        self._finish()
        self._bar = self._bars.add_task(stage, total=total, unit=plural(unit, total), rest=self._rest)
        self._stage = stage

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        if self._bar is not None:
            self._bars.update(self._bar, advance=done, rest=self._rest)

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(printable(message), highlight=False, markup=False, soft_wrap=True)

    @property
    def _rest(self) -> str:
        return "" if self.clock is None else f"run: {duration_text(self.clock.remaining())}"

    def _finish(self) -> None:
        """Let the last bar stand still, complete: a descent that has converged has no iterations left."""
        for task in self._bars.tasks:
            if task.id == self._bar:
                self._bars.update(task.id, total=task.completed or task.total, rest="")
                self._bars.stop_task(task.id)
        self._bar, self._stage = None, ""


class NotebookBars(ProgressBars):
    """The same bars as one output of a cell, which is drawn again as the run proceeds; it needs no widgets."""

    def __enter__(self) -> "NotebookBars":
        from IPython.display import display  # there, since this process is a kernel

        self._output: Any = display(self._bars, display_id=True)
        self._shown_at = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self._finish()

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        super().advance(done)
        if time.monotonic() - self._shown_at >= SECONDS_BETWEEN_BARS:
            self._show()

    def note(self, message: str) -> None:
        """Print a line below the bars."""
        print(printable(message))

    def _finish(self) -> None:
        super()._finish()
        self._show()

    def _show(self) -> None:
        self._output.update(self._bars)
        self._shown_at = time.monotonic()


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, whose cells show more than text."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def progress_for(stream: TextIO | None, log: str = "text", quiet: bool = False) -> Progress:
    """Return the progress that is shown on a stream; on None, as without a standard error, none.

    `log` is "text", bars where `stream` is a terminal or the standard error of a notebook and lines otherwise, or
    "json", one object in each line; raises ConfigError for another one.
    """
    if log not in LOGS:
        raise ConfigError(f"unknown log {log!r}: {nearest_name(log, LOGS)}")
    if stream is None or getattr(stream, "closed", False):
        return Progress()
    notebook = stream is sys.stderr and in_notebook()
    if quiet or log == "json" or not (notebook or stream.isatty()):
        return ProgressLines(stream, as_json=log == "json", quiet=quiet)
    return NotebookBars() if notebook else ProgressBars(stream)
