"""Parameters from a TOML file; an error names the file, and the line where one is at fault."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalemani.config.limits import LIMITS, check_limit
from scalemani.config.params.parameters import Parameters
from scalemani.config.params.parsing import toml_values
from scalemani.errors import ConfigError

HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")


def with_configuration(params: Parameters, path: Path) -> Parameters:
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


def line_at_fault(params: Parameters, values: Mapping[str, Any], text: str) -> int | None:
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
