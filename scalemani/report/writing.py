"""From a run to the file of its report."""

from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError
from scalemani.export.atomic import replaced_file
from scalemani.figures.palette import LARGEST_CLASSES
from scalemani.report.map_data import map_data
from scalemani.report.page import page
from scalemani.report.quality import measure_quality
from scalemani.runs.opened import Run
from scalemani.sources import named_labels

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
