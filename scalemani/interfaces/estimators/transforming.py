"""New points in a finished run, from Python: what `scalemani transform` and `scalemani append` do."""

from pathlib import Path
from typing import Any

from scalemani.config.validation import check_flag
from scalemani.interfaces.estimators.running import executor_for, give
from scalemani.io.sources import take_representation
from scalemani.runs.appending import Grown, append_points
from scalemani.runs.new_points.transforming import Transformed, transform_points
from scalemani.runs.opened import Run, open_run


def transform(
    run: Run | str | Path,
    points: Any,
    out: str | Path,
    *,
    use_rep: str | None = None,
    scheduler: Any = None,
    workers: int | None = None,
    memory: str | int | None = None,
    verbose: bool = False,
) -> Transformed:
    """Place new points in a finished run and write their coordinates, by blocks; the same call resumes.

    Finished blocks are kept in the folder OUT.transform beside the output, which goes at the end.

    Parameters
    ----------
    run : a run as `open_run` gives it, or its folder or URL
    points : (n, D), the new points, as `fit` of an estimator takes them
    out : where the coordinates (n, d) float64 go: .npy, .parquet or .zarr. Clusters (n,) int32 of a run of spectral
        clustering go beside them: OUT.labels.npy
    use_rep : of points that are an AnnData, or the path of one, as in `LaplacianEigenmaps`
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

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import scalemani as sm
    >>> points = np.random.default_rng(0).normal(size=(200, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = sm.LaplacianEigenmaps(store=f"{folder}/run").fit(points)
    ...     found = sm.transform(f"{folder}/run", points[:5], f"{folder}/placed.npy")
    ...     np.load(f"{folder}/placed.npy").shape
    (5, 2)
    """
    opened = run if isinstance(run, Run) else open_run(run)
    given = take_representation(points, use_rep)
    given = str(given) if isinstance(given, Path) else given
    with executor_for(scheduler, workers, memory, verbose) as executor:
        found = transform_points(opened, given, out, executor)
    for message, kind in found.warnings:
        give(message, kind)
    return found


def append(
    run: Run | str | Path,
    points: Any,
    *,
    freeze: bool = False,
    use_rep: str | None = None,
    scheduler: Any = None,
    workers: int | None = None,
    memory: str | int | None = None,
    verbose: bool = False,
) -> Grown:
    """Append points to a finished run; the same call resumes.

    The cells of the run stay, and its neighbour lists but where appended points come nearer: the search through cells
    costs what the appended points cost in a new run. All points are read, put in order and sketched once more, and a
    round over neighbours of neighbours looks at what has changed. Affinities are computed anew, eigenvectors are
    refined from the earlier ones too, and a descent starts where it had ended. The run in the store is the earlier one
    until the new one is complete, and its results stay there. Rows that a run ends with are not appended once more.

    Parameters
    ----------
    run : a run as `open_run` gives it, or its folder or URL
    points : (n, D), as `fit` of an estimator takes them, as wide and of the same type as those of the run
    freeze : whether a descent keeps the earlier points exactly where they are
    use_rep : of points that are an AnnData, or the path of one, as in `LaplacianEigenmaps`
    scheduler, workers, memory, verbose : as in `LaplacianEigenmaps`

    Returns
    -------
    Grown
        `run`, of all points with the appended ones last; `appended`, how many these are; and `moved`, how far the
        others have moved as a share of their spread.

    Raises
    ------
    DataError
        For points of another width or type, values that are not finite, and no points.
    ConfigError
        For runs of labels, of given neighbour lists, or with components left out, and `freeze` without a descent.
    StoreError, MemoryBudgetError, DiskSpaceError
        As in a run of all points.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import scalemani as sm
    >>> points = np.random.default_rng(0).normal(size=(220, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = sm.LaplacianEigenmaps(store=folder).fit(points[:200])
    ...     grown = sm.append(folder, points[200:])
    ...     grown.run.embedding.shape, grown.appended
    ((220, 2), 20)
    """
    opened, keeps = run if isinstance(run, Run) else open_run(run), check_flag(freeze, "freeze")
    with executor_for(scheduler, workers, memory, verbose) as executor:
        return append_points(opened, take_representation(points, use_rep), executor, keeps)
