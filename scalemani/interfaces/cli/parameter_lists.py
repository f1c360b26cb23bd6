"""What `params` prints: the parameters of every stage, their defaults, and the names that they have in Python."""

import inspect
from typing import Any

from scalemani.config.params import Parameters
from scalemani.errors import ConfigError, nearest_name
from scalemani.interfaces.cli.output import say
from scalemani.interfaces.estimators.parameters import PARAMETERS

PYTHON_NAMES = {path: name for name, path in PARAMETERS.items()}


def parameter_tables(stage: str | None) -> dict[str, dict[str, Any]]:
    """Return the parameters of a stage, or of all, with what stands in their docstrings.

    Raises ConfigError for a stage that there is none of.
    """
    params = Parameters()
    values = {name: table for name, table in params.as_dict().items() if table and isinstance(table, dict)}
    names = list(values)
    if stage is not None and stage not in names:
        raise ConfigError(f"no stage {stage!r} takes parameters: {nearest_name(stage, names)}")
    return {
        name: {
            "about": inspect.getdoc(type(getattr(params, name))) or "",
            "parameters": [
                {"name": path, "default": value, "python": PYTHON_NAMES.get(path, "settings")}
                for key, value in values[name].items()
                for path in [f"{name}.{key}"]
            ],
        }
        for name in names
        if stage in (None, name)
    }


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
