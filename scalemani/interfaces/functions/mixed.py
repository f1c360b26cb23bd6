"""One W of several groups of columns, each with its metric: `mixed_affinities`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from scalemani.config.choices import Seed
from scalemani.config.params import Parameters
from scalemani.config.validation import check_seed
from scalemani.errors import ConfigError, DataError, check_known
from scalemani.interfaces.estimators.transformers import knn_graph
from scalemani.interfaces.functions.spectral import symmetric_affinities
from scalemani.interfaces.functions.validation import checked_metric
from scalemani.interfaces.wording import names_arguments
from scalemani.io.export import checked_target
from scalemani.io.export.atomic import replaced_file
from scalemani.io.sources import rows_in_memory
from scalemani.io.sources.label_values import is_absent
from scalemani.io.sources.labels import OBS, open_columns, open_labels
from scalemani.io.sources.tables import index_columns, index_of_files
from scalemani.kernels.affinities.mixing import COMBINATIONS, combined, log_memberships
from scalemani.kernels.arrays.columns import moments
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.measures import squared_distances_to
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS

# Of the spread of a group: nearer points are as good as equal in it, and the other groups choose among them.
TIED = 1e-3
FEWEST_POINTS = 4


@names_arguments()
def mixed_affinities(  # noqa: PLR0913 - what a run takes of neighbours and affinities
    groups: Sequence[Any],
    combine: Literal["mean", "product", "union"] = "mean",
    perplexity: float | None = None,
    *,
    weights: Sequence[float] | None = None,
    n_neighbors: int | None = None,
    random_state: Seed = 0,
    workers: int | None = None,
    memory: str | int | None = None,
) -> sp.csr_matrix:
    r"""Return one W of several groups of columns of the same points, each with its metric; everything is in memory.

    `affinity="precomputed"` of every estimator of affinities takes it, as does `scalemani embed` from an .npz.

    Parameters
    ----------
    groups : two or more, each with a row for each point, in one order: (points, metric), or points alone for
        "euclidean". Points are what `fit` takes, read whole; Euclidean columns count as they are scaled. The metric is
        "euclidean", "cosine", "correlation", "hellinger" or "hamming". Hamming groups may be categories: the columns
        of a frame, a table of texts, one column, `file.parquet::job,city`, `file.csv::job` or `file.h5ad::obs/job`;
        their distance is the share of columns that differ
    combine : "mean", "product" or "union", as below
    perplexity : K, in each group. None: 30, or a third of the other points if these are fewer than 90
    weights : (G,) numbers above zero, how often each group counts; only their ratios matter. None: all once
    n_neighbors : k, above K. None: three times the perplexity
    random_state : seed of the searches
    workers, memory : of the searches, as in `knn_graph`

    Returns
    -------
    (N, N) CSR matrix of float32, symmetric bit for bit, without a diagonal, each point with degree 1/2 or more

    Raises
    ------
    ConfigError
        For fewer than two groups, an unknown metric or combination, weights that are not one number a group, and a
        perplexity out of range.
    DataError
        For groups of different numbers of rows, missing values, rows that a metric does not take, and a group that is
        the same in every row.

    Notes
    -----
    Candidates of a point i are its k nearest in each group and in all groups together, each at the same spread; where
    they tie in a group, as categories do, the other groups choose. For every candidate j and group g,
    mu_g(j|i) = exp(-beta_gi (d_g(i,j)^2 - d_g(i,1)^2)), one for the nearest in g, at the beta_gi where the affinities
    p_g(j|i) ~ mu_g(j|i) to the k nearest in g have perplexity K. With weights v_g that sum to the number G of groups,
    P(j|i) is

    * mean: ~ sum_g v_g p_g(j|i), p_g with a sum of one over all candidates. Near in any group, each with the same
      share; the mean over an ensemble of graphs.
    * union: ~ 1 - prod_g (1 - mu_g(j|i))^v_g, umap's union of fuzzy sets, a + b - a b of two. Near in any group; what
      is as near as the nearest in one counts in full, however many there are.
    * product: ~ prod_g mu_g(j|i)^(v_g t_i) for the k candidates where it is largest, t_i such that perplexity is K,
      and a thousandth of the mean. Near in all groups: the Gaussian of the sum of the squared distances, each in units
      of its bandwidth. Made for clusters that no group shows alone.

    Rows of P sum to one, and W = (P + P^T) / 2. With several equal groups, mean and product are W of one of them. Where
    K or more candidates are equal to a point in a group, as in a column of few categories, mu is one for these and
    e^-700 for the others: the thousandth is what then joins points of different categories in a product.

    References
    ----------
    Carreira-Perpinan and Zemel, Proximity graphs for clustering and manifold learning, 2005, for means of graphs;
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.8.4.
    McInnes, Healy and Melville, UMAP, arXiv:1802.03426, section 3.1, for unions.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.arange(40.0).reshape(-1, 1) // 2
    >>> colours = np.array(["red", "blue"] * 20)
    >>> W = mixed_affinities([places, (colours, "hamming")], combine="product", perplexity=4)
    >>> same = colours[:, None] == colours
    >>> W.shape, bool(W.toarray()[~same].max() < W.toarray()[same].max())
    ((40, 40), True)
    """
    check_known(combine, COMBINATIONS, f"combine {combine!r} is unknown")
    tables = opened_groups(groups)
    n_points, counts = tables[0].shape[0], checked_weights(weights, len(tables))
    requested = {"affinities": {"perplexity": perplexity}, "neighbors": {"n_neighbors": n_neighbors}}
    params = Parameters().with_values(requested).resolved("laplacian-eigenmaps", n_points)
    params.affinities.check_reach(params.n_neighbors)
    seed = check_seed(random_state)
    scaled = [at_unit_spread(table, number) for number, table in enumerate(tables)]
    lists = []
    for searched in range(len(tables) + 1):  # the last is of all groups together
        shares = [1.0 if searched in (number, len(tables)) else TIED for number in range(len(tables))]
        rows = joined_columns([part * share for part, share in zip(scaled, shares, strict=True)])
        graph = knn_graph(rows, params.n_neighbors, random_state=seed, workers=workers, memory=memory)
        lists.append(np.asarray(graph.indices))
    candidates = np.sort(np.hstack(lists), axis=1)
    values, calibration = np.empty(candidates.shape, np.float32), (params.n_neighbors, params.perplexity)
    for tile in slices(n_points, TILE_ROWS):
        near = candidates[tile]
        repeated = np.diff(near, axis=1, prepend=-1) == 0
        squares = [squared_distances_to(rows[tile], rows, near) for rows in tables]
        logs = [log_memberships(away, repeated, *calibration) for away in squares]
        values[tile] = combined(np.stack(logs), combine, counts, *calibration)
    return symmetric_affinities(candidates, values)


def write_mixed_affinities(path: str, groups: Sequence[Any], **arguments: Any) -> None:
    """Write `mixed_affinities` into an .npz, as `scipy.sparse.load_npz` reads it."""
    target, _ = checked_target(path, (".npz",), "affinities are a sparse matrix")
    affinities = mixed_affinities(groups, **arguments)
    with replaced_file(target) as file:
        sp.save_npz(file, affinities, compressed=False)


def opened_groups(groups: Sequence[Any]) -> list[Points]:
    """Return the mapped rows (N, D) of each group; refuse fewer than two, and different numbers of rows."""
    if not isinstance(groups, list | tuple) or len(groups) < 2:
        raise ConfigError(
            f"groups must be a list of two or more, each points or (points, metric), got {type(groups).__name__}"
        )
    tables = [opened_group(group) for group in groups]
    n_rows = {table.shape[0] for table in tables}
    if len(n_rows) > 1 or min(n_rows) < FEWEST_POINTS:
        raise DataError(
            f"groups must have a row for each point, in one order, and at least {FEWEST_POINTS}, got "
            f"{', '.join(str(table.shape[0]) for table in tables)} rows: give the same points in each"
        )
    return tables


def opened_group(group: Any) -> Points:
    """Return the rows (N, D) of one group as its metric maps them."""
    paired = isinstance(group, tuple) and len(group) == 2 and isinstance(group[1], str)
    points, named = group if paired else (group, EUCLIDEAN)
    metric = checked_metric(named, "each group is a table of points")
    if METRICS[metric].of_sets:
        raise ConfigError(
            f"{metric} is no metric of a group: give bits with hamming, or the affinities of two runs, whose mean is "
            "(W + V) / 2"
        )
    bits = open_categories(points) if metric == "hamming" else None
    return rows_in_memory(points, metric) if bits is None else bits


def checked_weights(weights: Sequence[float] | None, n_groups: int) -> np.ndarray:
    """Return how often each group counts, (G,) with the sum G."""
    counts = np.asarray([1.0] * n_groups if weights is None else weights)
    if counts.shape != (n_groups,) or counts.dtype.kind not in "fiu" or not np.all((counts > 0) & np.isfinite(counts)):
        raise ConfigError(f"weights must be {n_groups} numbers above zero, one for each group, got {weights!r}")
    return counts * (n_groups / np.sum(counts, dtype=np.float64))


def at_unit_spread(rows: Points, number: int) -> Points:
    """Return rows (N, D) in float64 over the root of their total variance, dense ones about their mean."""
    table = rows.astype(np.float64)
    means, variances = mean_variance_axis(table, axis=0) if sp.issparse(table) else moments(table)
    total = float(variances.sum())
    if not total > 0:
        raise DataError(f"group {number + 1} has the same values in every row, and no point near another: leave it out")
    return (table if sp.issparse(table) else table - means) * (1.0 / np.sqrt(total))


def joined_columns(parts: list[Points]) -> Points:
    """Return the columns of all tables (N, D) as one table, sparse where one is."""
    return sp.hstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.hstack(parts)


PARQUET = ".parquet"
TABLE_SUFFIXES = (PARQUET, ".csv")


def open_categories(points: Any) -> sp.csr_matrix | None:
    """Return columns of categories as sparse bits (N, C), one for each value of each column; None for other points.

    Parameters
    ----------
    points : a frame, a table of Arrow, one column, a table (N, D) of texts, or columns of a file:
        `file.parquet::job,city`, `file.csv::job` or `file.h5ad::obs/job`

    Raises
    ------
    DataError
        For values that are missing, and columns that hold other things than numbers and texts.
    """
    columns = columns_of_categories(points)
    if columns is None:
        return None
    parts = []
    for name, column in columns.items():
        values = open_labels(column)
        if (absent := np.flatnonzero(is_absent(values))).size:
            raise DataError(
                f"column {name} has no category in {len(absent)} rows, the first row {absent[0]}: fill it in, or leave "
                "out the rows or the column"
            )
        codes = np.unique(values, return_inverse=True)[1]
        parts.append(sp.csr_matrix((np.ones(len(codes)), codes, np.arange(len(codes) + 1))))
    return sp.csr_matrix(sp.hstack(parts, format="csr"))


def columns_of_categories(points: Any) -> Mapping[Any, Any] | None:
    """Return columns (N,) by name or number; None for points that are no such columns."""
    if isinstance(points, str | Path):
        name, _, member = str(points).partition("::")
        stored = Path(name).suffix.lower() in TABLE_SUFFIXES or member.split("/")[0] == OBS
        columns = open_columns(points) if stored else None
        if columns is not None and not member and Path(name).suffix.lower() == PARQUET:
            index = index_of_files(Path(name))
            return {key: column for key, column in columns.items() if key not in index}
        return columns
    names = getattr(points, "column_names", getattr(points, "columns", None))  # of Arrow; of pandas and polars
    if names is not None:
        left_out = index_columns(points.schema) if hasattr(points, "column_names") else ()
        return {name: points[name] for name in names if name not in left_out}
    if len(getattr(points, "shape", ())) == 1:
        return {getattr(points, "name", None) or "0": points}
    of_texts = isinstance(points, np.ndarray) and points.ndim == 2 and points.dtype.kind in "OSU"
    return dict(enumerate(points.T)) if of_texts else None
