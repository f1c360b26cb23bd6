"""From values that users give, in Python, on the command line or in a TOML file, to tables of parameters."""

import bisect
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from scalemani.config.limits import LIMITS, check_limit
from scalemani.config.metrics import METRIC_NAMES
from scalemani.config.other_names import value_instead
from scalemani.errors import ConfigError

if TYPE_CHECKING:
    from scalemani.config.params.parameters import Parameters

Table = TypeVar("Table")

BETWEEN_DOTTED = re.compile(
    r"[=\[\]{},\n]"
)  # what ends a dotted key of TOML, which takes time by the square of its parts
MOST_PARTS, LONGEST_NAME, MOST_BITS = 64, 200, 1024
TOO_DEEP = "nested too deeply; a table of parameters a stage is expected"
TOO_LARGE = "an integer is far beyond what any parameter takes: give a smaller one"
QUOTED = re.compile(r"'([^']+)'")
# Words of messages, and what stands for them in ours.
WORDS = {
    "Value error, ": "",
    "Input should be": "must be",
    "greater than": ">",
    "less than": "<",
    "> or equal to": ">=",
    "< or equal to": "<=",
}


def by_name(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names of --set, of tables of values by stage; those that have such a name keep it."""
    named: dict[str, Any] = {}
    for stage, table in values.items():
        if isinstance(table, Mapping) and table:
            named |= {f"{stage}.{name}": value for name, value in table.items()}
        else:
            named[str(stage)] = table
    return named


def checked(stage: str, make: Callable[..., Table], values: Mapping[str, Any]) -> Table:
    """Make a table of parameters, or raise one ConfigError that says what came and what is allowed."""
    try:
        return make(**values)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False):
            name, text = ".".join(filter(None, (stage, *map(str, problem["loc"][:1])))), problem["msg"]
            for theirs, ours in WORDS.items():
                text = text.replace(theirs, ours)
            kind = f" ({type(problem['input']).__name__})" if problem["type"].endswith("_type") else ""
            allowed = METRIC_NAMES if name == "points.metric" else QUOTED.findall(text)
            meant = value_instead(name, problem["input"], allowed)
            problems.append(f"{name} {text}, got {problem['input']!r}{kind}{f': {meant}' * bool(meant)}")
        raise ConfigError("; ".join(dict.fromkeys(problems))) from None


def parse_assignments(assignments: Iterable[str], parse: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """Return values by name from `stage.parameter=value` strings, the form of the command line's --set.

    `parse` reads the text of a value; None: as `parse_value` does.
    """
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator or not name:
            raise ConfigError(f"--set takes STAGE.PARAM=VALUE, got {assignment!r}")
        values[name] = (parse or parse_value)(text)
    return values


def checked_settings(settings: Any) -> Mapping[str, Any]:
    """Return settings by the names of --set, none for None; raise ConfigError for what is no flat table of them."""
    mapping = {} if settings is None else settings
    names_and_values = isinstance(mapping, Mapping) and all(isinstance(name, str) for name in mapping)
    if not names_and_values or any(isinstance(value, Mapping) for value in mapping.values()):
        raise ConfigError(
            f"settings takes values by the names of --set, such as {{'neighbors.recall': 0.99}}, got {settings!r}"
        )
    return mapping


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
    """Return parameters with those of a file in their place; a message has the first line at fault."""
    try:
        text = read_text(path)
        values = parse_tables(text)
    except ConfigError as error:
        raise ConfigError(f"configuration {path}: {error}") from error
    try:
        return params.with_values(values)
    except ConfigError:
        lines = text.split("\n")
        shorter = range(1, len(lines))
        last = 1 + bisect.bisect_left(shorter, True, key=lambda n: refusal(params, lines[:n]) is not None)
        raise ConfigError(f"configuration {path}: {refusal(params, lines[:last])} (line {last})") from None


def refusal(params: "Parameters", lines: Sequence[str]) -> ConfigError | None:
    """Return the error of the first lines of a TOML text; None where there is none, or a value continues below them."""
    try:
        params.with_values(toml_values("\n".join(lines)))
    except tomllib.TOMLDecodeError:
        return None
    except ConfigError as error:
        return error
    return None


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
