"""Input validation of the functions: neighbour lists, matrices, tables of points, labels and numbers."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.config.metrics import no_coordinates
from scalemani.config.params import Parameters
from scalemani.config.validation import check_count, check_seed, check_shape, check_squares, unmasked
from scalemani.errors import ConfigError, DataError, warn
from scalemani.io.sources import points_in_memory, rows_in_memory
from scalemani.io.sources.label_values import is_absent, values_of
from scalemani.kernels.arrays.coordinates import at_unit_scale
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.measures import COORDINATES, SETS, pair_distances, shuffled, squared_differences
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, PRECOMPUTED
from scalemani.kernels.spectral.eigenmaps import graph_degrees

SYMMETRY_TOLERANCE = 1e-9


def checked_values(**values: Any) -> list[Any]:
    """Return the values of parameters, named stage__parameter, checked as those of a run are."""
    names = {name.replace("__", "."): value for name, value in values.items()}
    params = Parameters().with_values(names)
    return [params.value(name) for name in names]


def checked_distances(distances: np.ndarray, least_neighbors: int = 2) -> np.ndarray:
    """Return the distances (n, k) as float32 or float64, or raise a DataError that says what is wrong and where."""
    table = np.asarray(unmasked(distances, "distances"))
    if table.dtype.kind not in "fiu" or table.ndim != 2 or table.shape[1] < least_neighbors:
        raise DataError(
            f"distances must be real numbers (n_points, k) with k >= {least_neighbors}, got {table.dtype} {table.shape}"
        )
    table = table.astype(
        np.float32 if table.dtype.kind == "f" and table.dtype.itemsize <= 4 else np.float64, copy=False
    )
    good = (table[:, 0] >= 0) & (table[:, 1:] >= table[:, :-1]).all(axis=1) & (table[:, -1] < np.inf)
    if not good.all():
        listed = ", ".join(map(str, np.flatnonzero(~good)[:5]))
        raise DataError(
            f"distances are NaN, infinite, negative or not ascending in row(s) {listed}: each row must hold the finite "
            "distances to a point's neighbours, nearest first, without the point itself: knn_graph(points).distances"
        )
    check_squares(float(table.max(initial=0)), "distances")
    return table


def checked_neighbors(indices: Any, n_points: int, n_neighbors: int | None = None) -> np.ndarray:
    """Return rows of neighbours (N, k) of N points, or raise DataError."""
    table = np.asarray(indices)
    shape = n_points, table.shape[-1] if n_neighbors is None and table.ndim else n_neighbors
    if table.dtype.kind not in "iu" or table.shape != shape or table.size == 0:
        raise DataError(
            f"indices must be (N, k) integers with N = {n_points} points, got {table.dtype} {table.shape}: "
            "give graph.indices"
        )
    bad = np.argwhere((table < 0) | (table >= n_points))
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"indices must be rows of points in [0, {n_points}), got {table[row, column]} in row {row}: -1 marks "
            "neighbours that a search did not find; search again"
        )
    selves = np.flatnonzero((table == np.arange(n_points)[:, None]).any(axis=1))
    if len(selves):
        raise DataError(f"{len(selves)} points list themselves, the first is row {selves[0]}: leave self out")
    return table


def checked_weights(values: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of a shape that are finite and not negative, or raise DataError."""
    table = np.asarray(values)
    if table.shape != shape or table.dtype.kind not in "fiu":
        raise DataError(f"{name} must be real numbers {shape}, got {table.dtype} {table.shape}")
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0)))
    if len(bad):
        raise DataError(f"{name} must be finite and not negative, got {table[tuple(bad[0])]} in row {bad[0][0]}")
    return table


def checked_sparse(matrix: Any, name: str) -> sp.csr_matrix:
    """Return a real, finite, nonempty matrix (m, n), sparse or dense, as CSR of floats; messages call it `name`."""
    try:
        checked = sp.csr_matrix(matrix)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be a sparse or dense matrix of real numbers ({error})") from error
    if checked.dtype.kind not in "fiub" or min(checked.shape) == 0 or not np.isfinite(checked.data).all():
        raise DataError(
            f"{name} must be a real, finite matrix with rows and columns, got dtype {checked.dtype}, shape "
            f"{checked.shape}, {np.count_nonzero(~np.isfinite(checked.data))} values that are not finite"
        )
    return checked if checked.dtype.kind == "f" else checked.astype(np.float64)


def check_affinities(affinities: sp.csr_matrix) -> None:
    """Refuse affinities (N, N) that are negative or asymmetric, and points without any."""
    if affinities.nnz and affinities.data.min() < 0:
        raise DataError(f"W must not be negative, its least entry is {affinities.data.min():.3g}")
    skew = abs(affinities - affinities.T)
    if skew.nnz and skew.max() > SYMMETRY_TOLERANCE * affinities.max():
        raise DataError(
            f"W must be symmetric, W - W^T reaches {skew.max():.3g}: pass symmetric_affinities(indices, values) "
            "or (W + W.T) / 2"
        )
    graph_degrees(affinities)  # which refuses points without any


def checked_affinities(matrix: Any, n_points: int | None = None, noun: str = "") -> sp.csr_matrix:
    """Return symmetric affinities W (N, N) in CSR form; `noun` says what N, if any, is the number of."""
    affinities = checked_sparse(matrix, "W")
    if affinities.shape != (affinities.shape[0], affinities.shape[0] if n_points is None else n_points):
        wanted = "" if n_points is None else f" with N = {n_points} {noun}"
        raise DataError(f"W must be (N, N){wanted}, got {affinities.shape}")
    check_affinities(affinities)
    return affinities


def rows_of_affinities(affinities: sp.csr_matrix) -> AffinityRows:
    """Return affinities (N, N) as the rows that a descent reads."""
    return AffinityRows(affinities.indptr.astype(np.int64), affinities.indices.astype(np.uint32), affinities.data)


def checked_metric(metric: str, use: str) -> str:
    """Return the name of a metric, checked as that of a run is; `use` says in words what points are needed for."""
    if metric == PRECOMPUTED:
        raise ConfigError(f"{use}, and metric='precomputed' stands for neighbours: give points and their metric")
    known = Parameters().with_values({"points": {"metric": metric}}).points.metric
    if compared := no_coordinates(known):
        raise ConfigError(f"{use}, by their coordinates, and {compared}: take another metric")
    return known


def sampled(n_points: int, n_sampled: int | None, random_state: Any, name: str) -> np.ndarray:
    """Return the rows to look at, ascending."""
    seed = check_seed(random_state)
    wanted = n_points if n_sampled is None else check_count(n_sampled, "n_sampled")
    return sample_rows(seed, f"measures/{name}", n_points, wanted)


def measured_rows(points: Any, metric: str) -> Points:
    """Return points (N, D), sparse ones sparse, in whose Euclidean distances those of a metric ascend; sets boolean."""
    name = checked_metric(metric, "what is measured are points")
    rows = rows_in_memory(points, name)
    return rows > 0 if METRICS[name].of_sets else rows


def check_both(points: Any, embedding: Any, metric: str) -> tuple[Points, np.ndarray]:
    """Return points, as `measured_rows` does, and their embedding as tables of as many rows, at least three."""
    table, positions = measured_rows(points, metric), points_in_memory(embedding, "embedding")
    check_shape(table.shape, "points", 3)
    if table.shape[0] != len(positions):
        raise DataError(
            f"embedding has {len(positions)} rows, points {table.shape[0]}: give one position for each point"
        )
    return table, positions


def distances_of_pairs(
    points: Any, embedding: Any, metric: str, n_sampled: int | None, random_state: Any
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return distances of sampled points to others of the sample in data and embedding, (M, S) each, and N."""
    table, positions = check_both(points, embedding, metric)
    seed = check_seed(random_state)
    rows = shuffled(sampled(len(positions), n_sampled, seed, "pairs"), seed)
    how = SETS if table.dtype == np.bool_ else COORDINATES
    in_data = table[rows] if how is SETS else at_unit_scale(table[rows])[0]
    in_map = pair_distances(at_unit_scale(positions[rows])[0], squared_differences)
    return pair_distances(in_data, how.pairs), in_map, len(positions)


def check_alike(one: Any, reference: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return two tables of one shape."""
    first, second = points_in_memory(one, "embedding"), points_in_memory(reference, "reference")
    if first.shape != second.shape:
        raise DataError(f"embedding {first.shape} and reference {second.shape} must have one shape (N, d)")
    return first, second


def check_labels(labels: Any, name: str, n_points: int | None) -> np.ndarray:
    """Return classes (N,) of one type, of which some may be none, or raise DataError; see `is_absent`."""
    classes = values_of(labels, name)
    if classes.ndim != 1 or len(classes) == 0 or len(classes) != (n_points or len(classes)):
        wanted = "(N,)" if n_points is None else f"({n_points},)"
        raise DataError(f"{name} must be one class for each point, {wanted}, got shape {classes.shape}")
    try:
        kinds = np.unique(np.asarray(classes)[~is_absent(classes)])
    except TypeError as error:  # objects that have no order
        raise DataError(f"{name} must be classes of one type: give numbers or texts ({error})") from error
    if kinds.dtype.kind == "f" and not np.array_equal(kinds, np.rint(kinds)):
        raise DataError(f"{name} must be classes, got numbers with fractions: round them, or group them first")
    return classes


def labelled_points(*labels: np.ndarray, least: int = 1, name: str = "") -> np.ndarray:
    """Return the rows of points that have a class in each of some lists (N,), and warn of the others.

    Messages begin with the `name` of a column. DataError where the rows are fewer than `least`.
    """
    absent = np.any([is_absent(classes) for classes in labels], axis=0)
    rows, n_points, where = np.flatnonzero(~absent), len(absent), f"{name}: " if name else ""
    if len(rows) < least:
        raise DataError(
            f"{where}{len(rows)} of {n_points} points have a label, at least {least} must: give more points one"
        )
    if len(rows) < n_points:
        warn(f"{where}{n_points - len(rows)} of {n_points} points have no label and count in no measure of labels")
    return rows


def check_clusterings(labels: Any, reference: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes that points have in two lists of as many, without the points that have none in one of them."""
    classes = check_labels(labels, "labels", None)
    others = check_labels(reference, "reference", len(classes))
    rows = labelled_points(classes, others)
    return classes[rows], others[rows]
