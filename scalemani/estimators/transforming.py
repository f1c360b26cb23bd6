"""New points in a finished run, from Python: what `scalemani transform` does."""

from pathlib import Path
from typing import Any

from scalemani.estimators.running import executor_for
from scalemani.estimators.telling import give
from scalemani.new_points.transforming import Transformed, transform_points
from scalemani.runs.opened import Run, open_run


def transform(
    run: Run | str | Path,
    points: Any,
    out: str | Path,
    *,
    scheduler: Any = None,
    workers: int | None = None,
    memory: str | int | None = None,
    verbose: bool = False,
) -> Transformed:
    """Place new points in a finished run and write their coordinates, by blocks; called again it goes on.

    Finished blocks are kept in the folder OUT.transform beside the output, which goes at the end.

    Parameters
    ----------
    run : a run as `open_run` gives it, or its folder or URL
    points : (n, D), the new points: whatever `fit` of an estimator takes
    out : where the coordinates (n, d) float64 go: .npy, .parquet or .zarr. Clusters (n,) int32 of a run of spectral
        clustering go beside them: OUT.labels.npy
    scheduler, workers, memory, verbose : as in `LaplacianEigenmaps`; workers place points that are given by a path or
        URL

    Returns
    -------
    Transformed
        `certificates`, `labels` (where the clusters are, or None) and `warnings`, which are also given.

    Raises
    ------
    DataError
        For points with other columns, and with values that are not finite.
    StoreError, ConfigError, MemoryBudgetError
        For a run that is not finished, an output that cannot be, and a budget that cannot hold a block.
    """
    opened = run if isinstance(run, Run) else open_run(run)
    given = str(points) if isinstance(points, Path) else points
    with executor_for(scheduler, workers, memory, verbose) as executor:
        found = transform_points(opened, given, out, executor)
    for message, kind in found.warnings:
        give(message, kind)
    return found
