"""From values that users give, in Python, on the command line or in a TOML file, to tables of parameters."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import ValidationError

from scalemani.config.limits import LIMITS, check_limit
from scalemani.config.params.fields import names_of
from scalemani.errors import ConfigError, nearest_name

if TYPE_CHECKING:
    from scalemani.config.params.parameters import Parameters

Table = TypeVar("Table")

BETWEEN_DOTTED = re.compile(
    r"[=\[\]{},\n]"
)  # what ends a dotted key of TOML, which takes time by the square of its parts
MOST_PARTS, LONGEST_NAME, MOST_BITS = 64, 200, 1024
TOO_DEEP = "nested too deeply; a table of parameters a stage is expected"
TOO_LARGE = "an integer is far beyond what any parameter takes: give a smaller one"
HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")


def replaced(stage: str, table: Table, values: Mapping[str, Any]) -> Table:
    """Return a copy of one stage's parameters with values replaced."""
    current = {name: getattr(table, name) for name in names_of(table)}
    for name in values:
        if name not in current:
            raise ConfigError(f"unknown parameter {stage}.{name}: {nearest_name(name, current) if current else 'none'}")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    return checked(stage, type(table), {**current, **plain})


def checked(stage: str, make: Callable[..., Table], values: Mapping[str, Any]) -> Table:
    """Make a table of parameters, or raise one ConfigError that says what came and what is allowed."""
    try:
        return make(**values)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False):
            name = ".".join(str(part) for part in (stage, *problem["loc"][:1]) if part)
            text = (
                problem["msg"]
                .replace("Input should be", "must be")
                .replace("greater than", ">")
                .replace("less than", "<")
            )
            text = text.replace("> or equal to", ">=").replace("< or equal to", "<=")
            text = text.removeprefix("Value error, ")
            kind = f" ({type(problem['input']).__name__})" if problem["type"].endswith("_type") else ""
            problems.append(f"{name} {text}, got {problem['input']!r}{kind}")
        raise ConfigError("; ".join(dict.fromkeys(problems))) from None


def parse_assignments(assignments: Iterable[str]) -> dict[str, dict[str, Any] | Any]:
    """Return nested values from `stage.parameter=value` strings, the form of the command line's --set."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator or not name:
            raise ConfigError(f"--set takes STAGE.PARAM=VALUE, got {assignment!r}")
        set_value(values, name, parse_value(text))
    return values


def set_value(values: dict[str, Any], name: str, value: Any) -> None:
    """Set a parameter by the name that it has on the command line, `stage.parameter` or `seed`, in nested values."""
    stage, dot, parameter = name.partition(".")
    if not dot:
        values[stage] = value
        return
    table = values.setdefault(stage, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{stage} takes a table of parameters, got {table!r}")
    table[parameter] = value


def checked_settings(settings: Any) -> Mapping[str, Any]:
    """Return settings by the names of --set, none for None; raise ConfigError for what is no flat table of them."""
    given = {} if settings is None else settings
    if not isinstance(given, Mapping) or any(isinstance(value, Mapping) for value in given.values()):
        raise ConfigError(
            f"settings takes values by the names of --set, such as {{'neighbors.recall': 0.99}}, got {settings!r}"
        )
    return given


def parse_value(text: str) -> Any:
    """Return a TOML value; what is not one is a string. `none` stands for a value left to the library."""
    if text.lower() == "none":
        return None
    try:
        return toml_values(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def toml_values(text: str) -> dict[str, Any]:
    """Return the values of a TOML text; raise TOMLDecodeError for one that is none, ConfigError beyond all bounds."""
    if any(part.count(".") > MOST_PARTS for part in BETWEEN_DOTTED.split(text)):
        raise ConfigError(TOO_DEEP)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ConfigError(TOO_DEEP) from None
    except ValueError as error:  # of Python, for integers of thousands of digits
        raise ConfigError(TOO_LARGE) from error
    check_bounds(values)
    return values


def check_bounds(values: Any) -> None:
    """Refuse names that no parameter has by their length, and integers that no message can hold, at any depth."""
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if longest := max((len(name) for name in value if len(name) > LONGEST_NAME), default=0):
                raise ConfigError(f"a name has {longest} letters; 'scalemani params' lists those of all parameters")
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise ConfigError(TOO_LARGE)


def with_configuration(params: "Parameters", path: Path) -> "Parameters":
    """Return parameters with those of a file in their place."""
    try:
        text = read_text(path)
        values = parse_tables(text)
        try:
            return params.with_values(values)
        except ConfigError as error:
            line = line_at_fault(params, values, text)
            raise ConfigError(f"{error} (line {line})" if line else str(error)) from error
    except ConfigError as error:
        raise ConfigError(f"configuration {path}: {error}") from error


def read_configuration(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    return parse_tables(read_text(path))


def read_text(path: Path) -> str:
    """Return the text of a file of bounded size."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ConfigError("no regular file: a pipe may never be written to, and a device may never end")
    try:
        with path.open("rb") as file:
            content = file.read(LIMITS["configuration"].most + 1)
        check_limit("configuration", len(content), "what was given")
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"must be UTF-8 text: {error}") from error


def parse_tables(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text."""
    try:
        return toml_values(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}") from error


def line_at_fault(params: "Parameters", values: Mapping[str, Any], text: str) -> int | None:
    """Return the line of the first value that is refused by itself; None where there is none, or it is not found."""
    for stage, table in values.items():
        names = [None, *table] if isinstance(table, Mapping) else [None]
        for name in names:
            part = table if not isinstance(table, Mapping) else {} if name is None else {name: table[name]}
            try:
                params.with_values({stage: part})
            except ConfigError:
                return line_of(stage, name, text)
    return None


def line_of(stage: str, name: str | None, text: str) -> int | None:
    """Return the line on which a parameter of a stage is given, or, without a name, where the stage begins."""
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := HEADER.match(line):
            table = header[1].strip("\"'")
            if name is None and table == stage:
                return number
        elif key := KEY.match(line):
            path = ".".join(filter(None, (table, key[1].replace('"', "").replace("'", ""))))
            if path in (stage, f"{stage}.{name}") or (name is None and path.startswith(f"{stage}.")):
                return number
    return None
