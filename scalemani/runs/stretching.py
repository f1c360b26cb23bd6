"""How the embedding of a run stretches at its points, by the neighbours that its graph has, tile by tile."""

from collections.abc import Iterator

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.config.stages import PRECOMPUTED
from scalemani.config.validation import check_count
from scalemani.errors import ConfigError
from scalemani.kernels.arrays.grouping import compact_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.kernels.rows.metrics import METRICS
from scalemani.kernels.stretch import Stretch, local_stretch
from scalemani.runs.opened import Run
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints

NEIGHBORS = 15  # of a point, by default: enough for two or three directions, and near
CACHE_BYTES = 2**28  # of decoded blocks of points and lists
TILE_BYTES = 2**26  # of the neighbourhoods of a tile, in float64
ELLIPSES = 16  # at most, from side to side of a map


def stretch_of(
    run: Run, n_neighbors: int | None = None, n_dimensions: int | None = None, rows: np.ndarray | None = None
) -> Stretch:
    """Return how the embedding of a run stretches, as `Run.stretch` does, at stored points in input order.

    Parameters
    ----------
    n_neighbors, n_dimensions : those of `Run.stretch`
    rows : (M,) of the stored points; None: all
    """
    refuse_without_coordinates(run)
    if StoredNeighbors.STAGE not in run.keys:
        raise ConfigError(
            f"{run.method} has no neighbour graph, by which the stretch of a map is fitted: take a method that has "
            "one, such as t-sne or laplacian-eigenmaps"
        )
    positions, graph = run.stored_embedding.read(), run.stored(StoredNeighbors)
    lists, points = graph.indices(graph.final_step), run.stored(StoredWorkPoints).points
    width, n_dims = lists.zarr().shape[1], positions.shape[1]
    m = check_count(
        n_dims if n_dimensions is None else n_dimensions, "n_dimensions", 1, n_dims, "columns of the embedding"
    )
    # With fewer neighbours than unknowns the fit is exact, and says nothing of how linear the map is.
    k = check_count(
        min(NEIGHBORS, width) if n_neighbors is None else n_neighbors,
        "n_neighbors",
        m + 1,
        width,
        "neighbours in the graph",
    )
    order = run.order
    work_rows = np.arange(len(positions)) if rows is None else order.work_rows[rows]
    at_once = min(TILE_ROWS, max(1, TILE_BYTES // (8 * (k + 1) * (run.dimensions.n_features + k))))

    def parts() -> Iterator[Stretch]:
        for part in slices(len(work_rows), at_once):
            near = lists.gather(work_rows[part], CACHE_BYTES)[:, :k]
            labels, places = compact_rows(np.hstack([work_rows[part, np.newaxis], near]))
            coordinates = dense_rows(points.gather(labels, CACHE_BYTES)).astype(np.float64)
            yield local_stretch(coordinates[places], positions[order.input_rows[labels]][places], m)

    by_work_row = Stretch(*map(np.concatenate, zip(*parts(), strict=True)))
    if np.isnan(by_work_row.area).all():
        raise ConfigError(
            f"the {k} neighbours of no point span {m} directions in the data: "
            "the data are a line, or copies of few rows; take fewer n_dimensions or merge duplicates"
        )
    return by_work_row if rows is not None else Stretch(*(values[order.work_rows] for values in by_work_row))


def refuse_without_coordinates(run: Run) -> None:
    """Raise ConfigError for a run whose points have no coordinates, and so no directions."""
    if run.metric == PRECOMPUTED or run.params.affinities.kind == PRECOMPUTED:
        raise ConfigError("directions in the data need points, and the run has none: embed the points themselves")
    if compares_rows(run.metric) or METRICS[run.metric].of_sets:
        raise ConfigError(
            f"rows compared by {run.metric} have no directions: use a metric that maps rows, such as euclidean"
        )


def ellipses_of(run: Run) -> np.ndarray:
    """Return the metric (M, d, d) at some rows of the results of a run, spread evenly over its map, NaN at the others.

    Of each cell of a grid over the map the first point has one.
    """
    positions = run.stored_embedding.read()
    low, high = np.quantile(positions, [0.005, 0.995], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = np.nan_to_num((positions - low) / (high - low).max() * ELLIPSES).clip(-1, ELLIPSES).astype(np.int64)
    rows = np.sort(np.unique(cells, axis=0, return_index=True)[1])
    metric = np.full((len(run.rows), positions.shape[1], positions.shape[1]), np.nan)
    metric[run.rows.numbered(rows)] = stretch_of(run, rows=rows).metric
    return metric
