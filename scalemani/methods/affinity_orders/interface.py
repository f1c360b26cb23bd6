"""Orders over all rows, in which each row's search starts from the beta of another: the comparisons of the thesis."""

from typing import Any, Literal, NamedTuple

import numpy as np

from scalemani.config.choices import BandwidthSolver, Seed
from scalemani.config.params import Parameters
from scalemani.config.params.parameters import PERPLEXITY
from scalemani.config.validation import check_count, check_seed
from scalemani.errors import ConfigError, DataError, check_known
from scalemani.interfaces.functions.spectral import Affinities
from scalemani.interfaces.functions.validation import checked_distances, checked_neighbors
from scalemani.kernels.affinities.entropic import in_sequence
from scalemani.kernels.affinities.entropy import brackets, entropy_problem
from scalemani.methods.affinity_orders.kernels import affinities_along, mst, path, random, zigzag

WholeOrder = Literal["density", "mst", "path", "raster", "random"]


def affinity_order(
    distances: Any,
    method: WholeOrder = "density",
    *,
    indices: Any = None,
    kappa: int | None = None,
    image_columns: int | None = None,
    random_state: Seed = 0,
) -> np.ndarray:
    """Return from which row each row of a whole set starts: an order of `affinities_in_order`.

    Runs and `entropic_affinities` keep orders within 1,024 rows, so that blocks do not matter; these are for
    comparisons.

    Parameters
    ----------
    distances : (n, k) array-like, distances to the k nearest neighbours, ascending, self excluded
    method : "density": rows by the distance to their `kappa`-th neighbour. "mst": breadth-first over the minimum
        spanning forest of the edges to `kappa` neighbours. "path": algorithm 2 among `kappa` neighbours. "raster": rows
        as they stand, or with `image_columns` left to right and right to left in turn. "random"
    indices : (n, k) int, rows of the neighbours, for "mst" and "path"
    kappa : neighbours that an order looks at; None: all k, for "density" 30 or all of fewer
    image_columns : columns of an image whose pixels the rows are, in row-major order
    random_state : seed of "path" and "random"

    Returns
    -------
    (n,) int64, the row that each starts from, -1 for none

    Raises
    ------
    ConfigError
        For an unknown method, a number out of range, and "mst" or "path" without `indices`.
    DataError
        For distances or indices that `entropic_affinities` does not take.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 2.3.4.

    Examples
    --------
    >>> affinity_order([[1.0, 3.0], [1.0, 1.0], [1.0, 2.0]], kappa=2)
    array([ 2, -1,  1])
    """
    check_known(method, ("density", "mst", "path", "raster", "random"), f"order {method!r} is unknown")
    squares = np.square(checked_distances(distances).astype(np.float64))
    n_rows, k = squares.shape
    seed, least = check_seed(random_state), min(30, k) if method == "density" else k
    used = check_count(least if kappa is None else kappa, "kappa", 1, k, "the number of neighbours that a row has")
    if method in ("mst", "path"):
        if indices is None:
            raise ConfigError(f"order {method!r} follows the graph: give indices=graph.indices")
        lists = checked_neighbors(indices, n_rows, k)[:, :used].astype(np.int64)
        return (mst if method == "mst" else path)(squares[:, :used], lists, seed, 0)[1]
    if method == "density":
        return in_sequence(np.argsort(squares[:, used - 1], kind="stable"))[1]
    if method == "random":
        return random(squares, None, seed, 0)[1]
    columns = n_rows if image_columns is None else image_columns
    return in_sequence(zigzag(n_rows, check_count(columns, "image_columns", 1, n_rows, "the number of rows")))[1]


def affinities_in_order(
    distances: Any,
    order: Any,
    perplexity: float = PERPLEXITY,
    *,
    solver: BandwidthSolver = "halley",
    tol: float = 1e-10,
) -> Affinities:
    """Return entropic affinities whose search starts, in each row, from the beta of another row, over the whole set.

    That is how the thesis compares orders. `entropic_affinities` hands on beta times the spread of a row's distances
    instead, by which orders hardly differ.

    Parameters
    ----------
    distances : (n, k) array-like, as in `entropic_affinities`
    order : (n,) int, as `affinity_order` returns it, or one's own: the row that each starts from, -1 for the middle of
        its bounds. Rows lead back to such a one
    perplexity, solver, tol : as in `entropic_affinities`

    Returns
    -------
    Affinities, with `bounds`

    Raises
    ------
    ConfigError
        For a perplexity, solver or tolerance that cannot be used.
    DataError
        For distances that `entropic_affinities` does not take, and an order that names no rows or runs in a circle.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, sections 2.3.4 and 2.4.

    Examples
    --------
    >>> affinities_in_order([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [-1, 0], perplexity=2).iterations
    array([3, 0], dtype=int32)
    """
    squares = np.square(checked_distances(distances).astype(np.float64))
    names = {"kind": "entropic", "perplexity": perplexity, "solver": solver, "tolerance": tol}
    requested = Parameters().with_values({"affinities": names}).resolved("laplacian-eigenmaps").affinities
    requested.check_reach(squares.shape[1])
    parents = checked_order(order, len(squares))
    solved = affinities_along(squares, parents, requested.perplexity, solver, tol)
    problem = entropy_problem(squares.shape[1], requested.perplexity, tol)
    return Affinities(*solved, bounds=brackets(squares, problem))


class OrderLengths(NamedTuple):
    """Sums over rows n that start from m.

    `log_beta`: S_beta, of |log beta_n - log beta_m|; `points`: S_y, of |y_n - y_m|^2, None without points.
    """

    log_beta: float
    points: float | None


def order_lengths(order: Any, beta: Any, points: Any = None) -> OrderLengths:
    """Return how far rows are from those that they start from: (2.16) of the thesis.

    Parameters
    ----------
    order : (n,) int, as in `affinities_in_order`
    beta : (n,) above zero, as in `Affinities`; saturated rows have the largest float64
    points : (n, D), or None

    Returns
    -------
    OrderLengths

    Raises
    ------
    DataError
        For an order that names no rows or runs in a circle.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 2.4.2.

    Examples
    --------
    >>> order_lengths([-1, 0, 1], [1.0, 2.0, 1.0]).log_beta.__round__(3)
    1.386
    """
    logarithms = np.log(np.asarray(beta, np.float64))
    parents = checked_order(order, len(logarithms))
    rows = np.flatnonzero(parents >= 0)
    length = float(np.abs(logarithms[rows] - logarithms[parents[rows]]).sum())
    if points is None:
        return OrderLengths(length, None)
    table = np.asarray(points, np.float64)
    return OrderLengths(length, float(np.square(table[rows] - table[parents[rows]]).sum()))


def checked_order(order: Any, n_rows: int) -> np.ndarray:
    """Return parents (n,) int64 of n rows; raise DataError for others than rows, and for circles."""
    parents = np.asarray(order)
    if parents.shape != (n_rows,) or parents.dtype.kind not in "iu" or parents.min() < -1 or parents.max() >= n_rows:
        raise DataError(
            f"an order has a row from -1 to {n_rows - 1} for each of {n_rows}, got {parents.dtype} {parents.shape}: "
            "give what affinity_order returns"
        )
    parents = parents.astype(np.int64)
    ancestors = parents.copy()
    for _ in range(n_rows.bit_length()):  # twice as far back each time
        ancestors = np.where(ancestors >= 0, ancestors[ancestors], -1)
    if (ancestors >= 0).any():
        raise DataError(
            f"row {int(np.argmax(ancestors >= 0))} of an order starts from itself, by way of others: each row has to "
            "lead back to a -1"
        )
    return parents
