"""Tables of text: columns of equal width, the parameters of all stages, and the quality of landmarks."""

import inspect
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.utils import format_bytes

from scalemani.config.params import Parameters
from scalemani.errors import ConfigError, nearest_name
from scalemani.interfaces.cli.output import say
from scalemani.interfaces.estimators.parameters import PARAMETERS
from scalemani.kernels.measures import Measure

if TYPE_CHECKING:
    from scalemani.interfaces.tuning.landmarks import LandmarkQuality

PYTHON_NAMES = {path: name for name, path in PARAMETERS.items()}

COLUMNS = {
    "Nystrom error": "nystrom_error",
    "distance": "distance",
    "95 %": "high_distance",
    "largest": "largest_distance",
    "condition": "condition",
    "condition 95 %": "high_condition",
    "embedding": "embedding_error",
}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each of at least one row, cells aligned at the right of their columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def show_qualities(found: Sequence["LandmarkQuality"], as_json: bool) -> None:
    """Print what landmarks are worth: a line a method, or every method and seed as JSON."""
    if as_json:
        tables = [
            {name: value._asdict() if isinstance(value, Measure) else value for name, value in one._asdict().items()}
            for one in found
        ]
        say(json.dumps(tables, indent=1))
        return
    say(f"{found[0].n_landmarks} landmarks; {found[0].nystrom_error.n_sampled} points looked at")
    rows = [["method", *COLUMNS, "time", "memory"]]
    for method in dict.fromkeys(one.method for one in found):
        of_method = [one for one in found if one.method == method]
        means = [over_seeds([getattr(one, name) for one in of_method]) for name in COLUMNS.values()]
        seconds, memory = min(one.seconds for one in of_method), max(one.memory for one in of_method)
        rows.append([method, *means, f"{seconds:.2f} s", format_bytes(memory)])
    for line in aligned(rows):
        say(line)


def over_seeds(values: Sequence[Measure | float | None]) -> str:
    """Return the mean of a quantity over seeds and its standard error; of one seed that of the points looked at."""
    known = [value.value if isinstance(value, Measure) else value for value in values if value is not None]
    if not known:
        return "-"
    first = values[0]
    error = first.error if isinstance(first, Measure) else 0.0
    if len(known) > 1:
        error = float(np.std(known, ddof=1)) / math.sqrt(len(known))
    return f"{np.mean(known):.4g}" + (f" ± {error:.1g}" if error > 0.0 else "")


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
