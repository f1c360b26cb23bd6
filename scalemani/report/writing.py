"""From a run to the file of its report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError
from scalemani.export.rows import replaced_file
from scalemani.figures.palette import LARGEST_CLASSES
from scalemani.report.map_data import map_data
from scalemani.report.page import page
from scalemani.report.quality import measure_quality
from scalemani.runs.opened import Run
from scalemani.sources import open_columns, open_labels

NAME = "report.html"
SUFFIXES = (".html", ".htm")


def write_report(
    run: Run,
    path: str | Path | None = None,
    labels: Any = (),
    *,
    n_sampled: int | None = None,
    random_state: Any = 0,
) -> Path:
    """Write the page about a run and return its path.

    Parameters
    ----------
    run : a run, finished or not
    path, labels, n_sampled, random_state : those of `ReportedRun.report`, as are the errors
    """
    target = checked_target(run, path)
    found = named_labels(labels, run.n_input_points)
    classes = next((values for values in found.values() if is_classes(values)), None)
    quality = measure_quality(run, classes, n_sampled, random_state)
    text = page(run, quality, map_data(run, found))
    with replaced_file(target) as file:
        file.write(text.encode())
    return target


def is_classes(values: np.ndarray) -> bool:
    """Return whether values (N,) are a class for each point, and not numbers or names that most points have alone."""
    given = values.dtype.kind in "biu" or (values.dtype.kind == "U" and bool(np.all(values != "")))
    return given and len(np.unique(values)) <= LARGEST_CLASSES


def named_labels(labels: Any, n_points: int) -> dict[str, np.ndarray]:
    """Return labels (N,) each by their names: those they are given under, of their files, or by their numbers."""
    if isinstance(labels, Mapping):
        return {str(name): open_labels(given, n_points) for name, given in labels.items()}
    listed = labels if isinstance(labels, list | tuple) else [labels]
    found: dict[str, np.ndarray] = {}
    for number, given in enumerate(listed, start=1):
        named = {f"labels {number}": given}
        if isinstance(given, str | Path):
            named = open_columns(given, n_points)
        for name, values in named.items():
            found[name if name not in found else f"{name} ({number})"] = open_labels(values, n_points)
    return found


def checked_target(run: Run, path: str | Path | None) -> Path:
    """Return where the page goes, or raise ConfigError."""
    if path is None:
        if "://" in str(run.store.root):
            raise ConfigError(f"{run.store.root} is no folder: say where the report goes, as in report.html")
        return Path(run.store.root) / NAME
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"a report is written as .html, got {path}")
    return target
