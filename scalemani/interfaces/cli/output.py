"""What a command prints: lines of printable letters, on a standard error that may go away; tables of parameters.

Commands start with this module: it loads no library.
"""

import contextlib
import inspect
import io
import itertools
import os
import shlex
import sys
from typing import Any, TextIO, cast

import typer

from scalemani.engine.progress import as_json, json_line
from scalemani.errors import check_known, printable


def say(text: object, err: bool = False) -> None:
    """Print lines on standard output or error, unprintable letters escaped."""
    typer.echo("\n".join(printable(line) for line in str(text).split("\n")), err=err)


def say_json(result: object) -> None:
    """Print a result as JSON; what is not finite is null."""
    say(as_json(result, indent=1))


def quoted(word: str) -> str:
    """Return a word as a shell takes it, on one line and in printable letters."""
    if word.isprintable():
        return shlex.quote(word)
    letters = (
        one if one.isprintable() and one not in "\\'" else "".join(f"\\{byte:03o}" for byte in os.fsencode(one))
        for one in word
    )
    return f"$'{''.join(letters)}'"


class Outlasting(io.TextIOBase):
    """A stream for people that writes on into nothing once it cannot be written any more."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text if that can be done."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._divert()
        return len(text)

    def flush(self) -> None:
        """Hand on what was written, if that can be done."""
        try:
            self._stream.flush()
        except OSError:
            self._divert()

    def isatty(self) -> bool:
        """Return whether somebody may be looking."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor, for what writes without Python."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream."""
        return self._stream.encoding

    def _divert(self) -> None:
        # What the stream still holds is written at the end of the process, whose status a failure would change.
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), self._stream.fileno())


def outlasting(stream: TextIO | None) -> TextIO:
    """Return standard error for a command; where it was closed, nothing, so that no file takes its descriptor."""
    return cast(TextIO, Outlasting(open(os.devnull, "w") if stream is None else stream))


def print_event(event: str, message: str, before: str = "") -> None:
    """Print one line on standard error, in the form of the progress; text begins with `before`."""
    arguments = sys.argv[1:]
    as_json = "--log=json" in arguments or ("--log", "json") in itertools.pairwise(arguments)
    say(json_line(event, message) if as_json else f"{before}{message}", err=True)


def parameter_tables(stage: str | None) -> dict[str, dict[str, Any]]:
    """Return the parameters of a stage, or of all, with what stands in their docstrings.

    Raises ConfigError for a stage that there is none of.
    """
    from scalemani.config.params import Parameters, by_name
    from scalemani.interfaces.wording import ARGUMENT_OF, SETTINGS

    params, tables = Parameters(), dict[str, dict[str, Any]]()
    for name, default in by_name(params.as_dict()).items():
        owner, _, parameter = name.partition(".")
        if parameter:
            about = inspect.getdoc(type(params.value(owner))) or ""
            row = {"name": name, "default": default, "python": ARGUMENT_OF.get(name, SETTINGS)}
            tables.setdefault(owner, {"about": about, "parameters": []})["parameters"].append(row)
    if stage is None:
        return tables
    check_known(stage, tables, f"no stage {stage!r} takes parameters")
    return {stage: tables[stage]}


def show_parameters(tables: dict[str, dict[str, Any]], with_text: bool) -> None:
    """Print a line a parameter: what --set takes, its default, its name in Python; above them what they mean."""
    say(f"{'--set':<44}{'default':<16}in Python")
    for table in tables.values():
        if with_text:
            say(f"\n{table['about']}\n")
        for row in table["parameters"]:
            shown = "follows" if row["default"] is None else str(row["default"])
            say(f"{row['name']:<44}{shown:<16}{row['python']}")
    say("\n'follows': decided by the method, the points or another parameter; 'scalemani info RUN' shows it.")
