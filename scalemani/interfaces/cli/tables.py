"""Tables of text whose columns are as wide as what they hold, and that of `landmarks`: a line a method."""

import json
import math
from collections.abc import Sequence

import numpy as np
from dask.utils import format_bytes

from scalemani.interfaces.cli.output import say
from scalemani.interfaces.functions.landmark_comparison import LandmarkQuality
from scalemani.kernels.measures import Measure

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
    """Return a line a row, cells aligned at the right of their columns.

    Parameters
    ----------
    rows : at least one; the header is one of them, and all have as many cells
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def show_qualities(found: Sequence[LandmarkQuality], as_json: bool) -> None:
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
