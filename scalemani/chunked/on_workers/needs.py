"""What refinement on workers holds: a task some panels and what a panel reaches, the driver the small coarse graphs."""

from numpy.typing import DTypeLike

from scalemani.chunked.needs import CACHE, EACH_PROCESS, EACH_TASK, GROWING, Held
from scalemani.chunked.on_workers.spread import is_spread, n_spread_levels
from scalemani.chunked.sizes import DENSE_COPIES, Sizes
from scalemani.kernels.arrays.columns import PANEL
from scalemani.kernels.spectral.coarsening import DENSE_NODES

COPIES_OF_VALUES, COPIES_OF_COLUMNS = 2, 5  # as read and cut; also beside the panel's own, in order, and by place
COPIES_OF_NUMBERS = 3  # of the nodes that a panel reaches: as found, as read, and their scales
PANELS_OF_TASK = 6  # of vectors and their products, and what is made of them
COLUMNS_OF_LEVEL = 6  # of 8 bytes: degrees, scales, shares, row pointers, nodes and members


def refined_on_workers(n_points: int, solver: str, on_cluster: bool, continued: bool) -> bool:
    """Return whether the vectors of a refinement are on workers: of many points, and from coarse graphs alone.

    Parameters
    ----------
    n_points : N.
    solver : of the embedding.
    on_cluster : whether there are workers.
    continued : whether it goes on from the vectors of an earlier run.
    """
    return on_cluster and is_spread(n_points) and solver == "refine" and not continued


def refines_on_workers(sizes: Sizes) -> bool:
    """Return whether the vectors of a planned refinement are on workers."""
    solver = sizes.params.embedding.solver
    return refined_on_workers(sizes.dimensions.n_points, solver, sizes.on_cluster, sizes.n_appended > 0)


def levels_on_workers(sizes: Sizes) -> int:
    """Return how many coarse graphs are on the workers, as expected."""
    return n_spread_levels(sizes.coarse_levels) if sizes.on_cluster else 0


def panels_held(graphs: list[tuple[int, int]], columns: int, dtype: DTypeLike) -> list[Held]:
    """List what a task holds that works on a panel of graphs on workers.

    Parameters
    ----------
    graphs : nodes and nonzeros of each.
    columns : of the vectors.
    dtype : of the vectors.
    """
    nonzeros = max(entries * min(1.0, PANEL / nodes) for nodes, entries in graphs)
    n_rows = max(nodes for nodes, _ in graphs)
    reached = min(nonzeros + PANEL, n_rows)
    return [
        Held("values of a panel of a graph", EACH_TASK, nonzeros, 1, "float32", COPIES_OF_VALUES),
        Held("columns of a panel of a graph", EACH_TASK, nonzeros, 1, "int32", COPIES_OF_COLUMNS),
        Held("their places among the nodes reached", EACH_TASK, nonzeros, 1, "int64"),
        Held("nodes that a panel reaches, and their scales", EACH_TASK, reached, 1, "int64", COPIES_OF_NUMBERS),
        Held("vectors of these nodes", EACH_TASK, reached, columns, dtype),
        Held("panels of vectors", EACH_TASK, min(PANEL, n_rows), columns, dtype, PANELS_OF_TASK),
        Held("panels that were read", CACHE, n_rows, columns, dtype),
    ]


def driver_levels_held(sizes: Sizes) -> list[Held]:
    """List the coarse graphs that the driver has in its memory."""
    levels = sizes.coarse_levels[levels_on_workers(sizes) :]
    nodes, nonzeros = (sum(level[part] for level in levels) for part in (0, 1))
    return [
        Held("coarsest graph, dense", EACH_PROCESS, DENSE_NODES, DENSE_NODES, copies=DENSE_COPIES),
        Held("columns of the coarse graphs of the driver", GROWING, nonzeros, 1, "int32"),
        Held("values of the coarse graphs of the driver", GROWING, nonzeros, 1, "float32"),
        Held("what is known of their nodes", GROWING, nodes, COLUMNS_OF_LEVEL, "float64"),
    ]
