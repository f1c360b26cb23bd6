"""Coordinates to start a descent from: of another run, of a file, or of an array."""

from pathlib import Path
from typing import Any

import numpy as np

from scalemani.config.stages import COMPUTED_STARTS
from scalemani.errors import ConfigError
from scalemani.io.sources import PointsSource, open_points
from scalemani.io.sources.side_data import AccompaniedPoints, with_init
from scalemani.runs.opened import Run, open_run
from scalemani.runs.several.shared_rows import shared_rows
from scalemani.store.run_store import MARKER, RunStore


def with_start(source: PointsSource, given: Any, ids: tuple[Any, Any] | None = None) -> AccompaniedPoints:
    """Return points with the coordinates from which their descent starts.

    Parameters
    ----------
    source : (N, D)
    given : a run that has an embedding or where it is; or coordinates (N, d), NaN in a row for a point without any, in
        an array or in any file that points come in
    ids : one identifier for each of the points and one for each row of what is given, arrays or files of them. None:
        rows at the same position are the same points; points beyond the last row of a run start among their neighbours

    Raises
    ------
    ConfigError, StoreError, DataError
        For what is neither, runs without an embedding, and coordinates or identifiers that do not fit the points.
    """
    n_points, opened = source.shape[0], opened_run(given)
    if opened is not None:
        coordinates, name = run_coordinates(opened), f"the run {opened.store.root}"
    elif isinstance(given, str | Path):
        coordinates, name = read_coordinates(given), str(given)
    else:
        coordinates, name = np.asarray(given), "init"
    if ids is None and opened is None:
        return with_init(source, coordinates, name)
    own, others = shared_rows(n_points, len(coordinates), ids)
    start = np.full((n_points, *coordinates.shape[1:]), np.nan)
    start[own] = coordinates[others]
    return with_init(source, start, name)


def opened_run(given: Any) -> Run | None:
    """Return the run that is given, or that is at a place; None for anything else."""
    if isinstance(given, Run):
        return given
    if not isinstance(given, str | Path) or "::" in str(given) or Path(given).is_file():
        return None
    return open_run(given) if RunStore(given).objects.get(MARKER) is not None else None


def run_coordinates(run: Run) -> np.ndarray:
    """Return the embedding (N, d) of a run in the order of what was given to it; NaN for points that it left out."""
    return run.of_input(np.asarray(run.embedding[...]), np.nan)


def read_coordinates(location: str | Path) -> np.ndarray:
    """Return the coordinates (N, d) in a file or store, NaN among them."""
    if "://" not in str(location) and not Path(str(location).partition("::")[0]).exists():
        raise ConfigError(
            f"init must be {', '.join(COMPUTED_STARTS)}, a run or a file of coordinates, got {str(location)!r}: "
            "there is neither a run nor a file of this name"
        )
    found = open_points(location)
    return found.read(0, found.shape[0])
