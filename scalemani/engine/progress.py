"""Progress of a run: its events, and the classes that show them as lines of a log or as bars."""

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TextIO

from scalemani.errors import ConfigError, ScalemaniWarning, nearest_name, printable

Positions = Callable[[], Any]  # returns (N, d) in input order
Callback = Callable[[int, float, Any], Any]  # iteration, objective, positions (N, d)
LOGS = ("text", "json")
SECONDS_BETWEEN_LINES = 20.0
SECONDS_BETWEEN_BARS = 0.25  # two looks of the bars of a notebook, while a stage is at work
REPORTED_COMPILING = 1.0  # seconds of compiling from which they are reported separately
TRUSTED_SECONDS = 1.0  # of expectation and of measurement that stand for as much as each other at the start
LEFT_SHARE = 0.1  # of the time that a stage has taken which takes longer than expected


class Progress:
    """Progress of a run: shows nothing unless a subclass does, and calls back from descents.

    What the run still takes is expected of its stages, corrected by how long those took that have ended.

    Attributes
    ----------
    callbacks : callables of (iteration, objective, embedding)
        Called every `callbacks_every` iterations of a descent, from the first one on, with a copy of the embedding.
    give_warning : callable of (message, kind) or None
        Replaces the line that a warning would be shown as.
    now : the clock, in seconds
    """

    callbacks: Sequence[Callback] = ()
    callbacks_every = 50
    give_warning: Callable[[str, type[ScalemaniWarning]], None] | None = None
    now: Callable[[], float] = staticmethod(time.monotonic)
    _expected: Mapping[str, float] = MappingProxyType({})
    _stage, _began = "", 0.0
    _measured = _foreseen = TRUSTED_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Stop showing anything."""

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Note the stages that a run has to do, with the expected seconds of each, of which the ratios count."""
        self._expected, self._measured, self._foreseen = seconds, TRUSTED_SECONDS, TRUSTED_SECONDS

    def begin(self, stage: str) -> None:
        """Note that a stage of the run begins."""
        self._began = self.now()
        self._stage = stage  # last: who reads it finds when it began

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Note that a stage has ended, of which `compiling` seconds were compilation."""
        self._measured += self.now() - self._began
        self._foreseen += self._expected.get(stage, 0.0)
        # A new one: another thread may read the one before.
        self._expected = {other: seconds for other, seconds in self._expected.items() if other != stage}
        self._stage = ""

    def remaining(self, by_rate: float = 0.0) -> float:
        """Return about how many seconds the run still takes; another thread than that of the run may ask.

        Of a stage that takes longer than expected, what its rate leaves counts, `by_rate` seconds.
        """
        expected, at_work = self._expected, self._expected.get(self._stage)
        elapsed, factor = self.now() - self._began, self._measured / self._foreseen
        if at_work is None:  # between two stages
            return factor * sum(expected.values())
        factor = max(factor, (self._measured + elapsed) / (self._foreseen + at_work))
        of_stage, least = factor * at_work - elapsed, LEFT_SHARE * elapsed
        of_stage = of_stage if of_stage > least else max(least, by_rate)
        return factor * (sum(expected.values()) - at_work) + of_stage

    def start(self, stage: str, total: int, unit: str = "block", done: int = 0) -> None:
        """Note that a stage has `total` units, `done` of them before this process; it may start several times."""

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
                try:
                    callback(iteration, objective, positions())
                except StopIteration as error:  # which ends generators, of which a descent is one
                    raise ConfigError(
                        "a callback raised StopIteration, which ends iterations and no fit: raise another exception, "
                        "such as KeyboardInterrupt, and fit again with the same store to resume"
                    ) from error

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Give or show a warning that concerns the result."""
        (self.give_warning or self.show_warning)(message, kind)


def plural(unit: str, count: int) -> str:
    """Return the name of a unit as it stands after a number."""
    return unit if count == 1 else f"{unit}{'es' if unit.endswith('s') else 's'}"


def duration_text(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds: 0:02:10."""
    return str(timedelta(seconds=round(seconds)))


def as_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON, in which NaN and infinities, which JSON has not, are null."""
    return json.dumps(without_nan(value), indent=indent, allow_nan=False)


def without_nan(value: Any) -> Any:
    """Return a value with None for each number that is not finite."""
    if isinstance(value, dict):
        return {name: without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_line(event: str, message: str, **numbers: Any) -> str:
    """Return an event as a JSON object on one line: `time` (ISO 8601, UTC), `event`, `message` and its numbers."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return as_json({"time": now, "event": event, "message": message, **numbers})


class Units(NamedTuple):
    """The units that a stage has to do, when the first was begun, and how many are done and were done before it."""

    stage: str
    total: int
    unit: str
    started: float
    done: int = 0
    before: int = 0


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
        self._units: Units | None = None  # replaced as a whole: a stage may end between two looks at it
        self._began = self.now()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> "ProgressLines":
        self._heart.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._heart.join()

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Print how long a stage took, and how long the run still takes."""
        seconds, numbers, compiled = self.now() - self._began, {}, ""
        super().end(stage, compiling)
        self._units = None
        if compiling >= REPORTED_COMPILING:
            numbers = {"seconds_compiling": round(compiling, 1)}
            compiled = f", {compiling:.1f} s of them compiling kernels"
        self._write_with_rest(
            "end", f"{stage}: {seconds:.1f} s{compiled}", stage=stage, seconds=round(seconds, 1), **numbers
        )

    def start(self, stage: str, total: int, unit: str = "block", done: int = 0) -> None:
        """Print that a stage starts; a stage with nothing to do is passed over."""
        self._units = Units(stage, total, unit, self.now(), done, done) if total else None
        if total:
            to_do, earlier = (f"{total - done} of {total}", {"done": done}) if done else (str(total), {})
            message = f"{stage}: {to_do} {plural(unit, total)} to do"
            self._write("start", message, stage=stage, total=total, unit=unit, **earlier)

    def advance(self, done: int = 1) -> None:
        """Count what was finished."""
        with self._lock:
            if self._units is not None:
                self._units = self._units._replace(done=self._units.done + done)

    def note(self, message: str) -> None:
        """Print one line."""
        self._write("note", message)

    def show_warning(self, message: str, kind: type[ScalemaniWarning]) -> None:
        """Print one line, in quiet too."""
        self._write("warning", message, kind=kind.__name__)

    def _write(self, event: str, message: str, **numbers: Any) -> None:
        if self._quiet and event != "warning":
            return
        before = "" if self._quiet else time.strftime("%H:%M:%S ")
        line = json_line(event, message, **numbers) if self._as_json else f"{before}{printable(message)}"
        with self._lock:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def _write_with_rest(self, event: str, message: str, by_rate: float = 0.0, **numbers: Any) -> None:
        """Write a line with how long the run still takes, where something is expected of it."""
        if rest := self.remaining(by_rate):
            message += f"; about {duration_text(rest)} left"
            numbers["run_seconds_remaining"] = round(rest, 1)
        self._write(event, message, **numbers)

    def _beat(self) -> None:
        """Report how far the stage at work is, its rate, and the time left: that of the run, else of the stage."""
        while not self._ended.wait(self._seconds):
            if (units := self._units) is None:
                continue
            stage, total, unit, started, done, before = units
            elapsed, left = self.now() - started, 0.0
            numbers = {"stage": stage, "done": done, "total": total, "unit": unit, "seconds": round(elapsed, 1)}
            state = f"{stage}: {done} of {total} {plural(unit, total)} after {elapsed:.0f} s"
            if done > before:
                left = elapsed * (total - done) / (done - before)
                rest = self.remaining(left)
                numbers["seconds_remaining"] = round(min(left, rest) if rest else left, 1)
                state += f", {(done - before) / elapsed:.1f}/s"
                state += "" if rest else f"; at most {duration_text(left)} of this stage left"
            self._write_with_rest("progress", state, left, **numbers)


class ProgressBars(Progress):
    """One bar a stage: its name, units, elapsed time, and what is left of the run; notes are lines above the bars."""

    def __init__(self, stream: TextIO | None = None) -> None:
        import rich.console  # a tenth of a second that logs do without
        import rich.progress

        self._bars = rich.progress.Progress(
            rich.progress.TextColumn("{task.description:<22}", markup=False),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TextColumn("{task.fields[unit]}", markup=False),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TextColumn("{task.fields[rest]}"),
            console=rich.console.Console(file=stream),
        )

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
        """End the bar of a stage, and report what it spent on compiling."""
        super().end(stage, compiling)
        self._finish()
        if compiling >= REPORTED_COMPILING:
            self.note(f"{stage}: {compiling:.0f} s of it compiling kernels")

    def start(self, stage: str, total: int, unit: str = "block", done: int = 0) -> None:
        """Open the bar of a stage, or let it count from zero again; a stage with nothing to do gets none."""
        if total:
            self._finish(stage)
            fields: dict[str, Any] = {"total": total, "unit": plural(unit, total), "rest": self._rest}
            if not self._at_work():
                self._bars.add_task(stage, **fields)
            for bar in self._at_work():
                self._bars.update(bar.id, completed=done, **fields)

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        for bar in self._at_work():
            self._bars.update(bar.id, advance=done, rest=self._rest)

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(printable(message), highlight=False, markup=False, soft_wrap=True)

    @property
    def _rest(self) -> str:
        rest = self.remaining()
        return f"{duration_text(rest)} left" if rest else ""

    def _at_work(self) -> list[Any]:
        """Return the bar that still moves, if any."""
        return [task for task in self._bars.tasks if task.stop_time is None]

    def _finish(self, other: str = "") -> None:
        """Let the bar stand still, complete as a descent that has converged, unless it is that of the stage `other`."""
        for bar in self._at_work():
            if bar.description != other:
                self._bars.update(bar.id, total=bar.completed or bar.total, rest="")
                self._bars.stop_task(bar.id)


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

    def _finish(self, other: str = "") -> None:
        super()._finish(other)
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
