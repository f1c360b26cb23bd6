"""The tables of `FORMAT.md`, made from the catalogue.

`python -m tests.stages.arrays.specification` writes them anew into the file, between its two markers.
"""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from scalemani.config.routes import PACKAGES
from scalemani.engine.reading import StoredStage
from scalemani.stages.table import BY_STAGE, SHARED, of_method
from scalemani.store.schema import ArrayDescription

FORMAT_FILE = Path(__file__).parents[3] / "scalemani" / "FORMAT.md"
FIRST_MARKER = "<!-- tables: python -m tests.stages.arrays.specification writes them -->"
LAST_MARKER = "<!-- end of tables -->"


DIMENSIONS: dict[str, str] = {
    "given_row": "the rows that were given, equal ones among them",
    "point": "the points, N",
    "point_bound": "the points, and one",
    "feature": "the columns of the points, D",
    "other_feature": "the same columns, across",
    "axis": "the axes of a sketch: partition.sketch_dimensions, at most D",
    "cell": "the cells of the partition",
    "cell_bound": "the cells, and one",
    "stretch": "the stretches of work rows of one cell",
    "stretch_bound": "these stretches, and one",
    "neighbor": "the neighbours of a point, k",
    "query": "the points by which the recall is measured: neighbors.sampled_queries, at most N",
    "figure": "the share, its standard error, and the number of points",
    "bridge": "the bridges between components",
    "range_piece": "the pieces that edges inside each range of blocks join, of all ranges",
    "piece": "the pieces of a graph, each embedded by itself",
    "end": "the ends of a bridge, 2",
    "source_block": "the blocks whose edges end in a block",
    "extent": "frames, rows and columns of an image: 3",
    "side": "pixels to each side, and frames before and after: 2",
    "kept_point": "the points of the largest component",
    "row": "the rows of a block",
    "row_bound": "the rows of a block, and one",
    "nonzero": "the nonzeros of a sparse matrix in CSR form",
    "landmark": "the landmarks, L",
    "anchor": "the points nearest to a landmark off the data: 8, at most N",
    "landmark_bound": "the landmarks, and one",
    "nearest_landmark": "the landmarks that a point is a combination of: landmark_weights.n_neighbors",
    "affinity_nonzero": "the nonzeros of a part of Z^T W Z",
    "mass_nonzero": "the nonzeros of a part of Z^T D Z",
    "laplacian_triangle_nonzero": "the nonzeros of Z^T (D - W) Z up to its diagonal",
    "mass_triangle_nonzero": "the nonzeros of Z^T D Z up to its diagonal",
    "component": "the dimensions of the embedding, d",
    "guard": "the vectors beyond those of the embedding that a refinement has, or one of another solver",
    "ritz_vector": "the dimensions of the embedding and up to 4 that follow, whose residuals are certified",
    "node": "the nodes of a coarse graph",
    "node_bound": "these nodes, and one",
    "joined_node": "these nodes; none on the last level",
    "leaf": "leaves that a point is in",
    "joined_point": "points of a group of leaves",
    "joined_edge": "candidates that these leaves give to their points",
    "stripe_edge": "neighbours in the lists of one stripe of points, or of two",
    "start_vector": "the eigenvectors of a coarse graph that refinement starts from",
    "class": "the classes of the labels, C",
    "cluster": "the clusters: clustering.n_clusters",
    "evaluation": "the iterations at which the objective was computed",
    "sampled_force": "the points at which exact forces were summed: all of 1,024, 256 to 1,024 of more",
    "null_point": "the points of a map without structure: doubt.null_points, at most N; none without such a map",
    "quantity": "iteration, objective, norm of the gradient: 3",
}


def stored_stages() -> list[type[StoredStage]]:
    """Return all stages that store arrays, in the order of the routes, those of methods last."""
    shared = [BY_STAGE[stage] for stage in PACKAGES if stage in BY_STAGE]
    return [*shared, *filter(None, map(of_method, PACKAGES))]


def dimension_meanings() -> dict[str, str]:
    """Return what the dimensions of all stages count."""
    own = (
        getattr(import_module(f"{package}.{stage}"), "DIMENSIONS", {})
        for stage, package in PACKAGES.items()
        if package != SHARED
    )
    return {**DIMENSIONS, **{name: meaning for dimensions in own for name, meaning in dimensions.items()}}


def format_tables() -> str:
    """Return a table of dimensions and one table of arrays a stage, in Markdown."""
    dims = table(("dimension", "what it counts"), dimension_meanings().items())
    return "\n\n".join(["### Dimensions", dims, *map(stage_section, stored_stages())])


def stage_section(stored: type[StoredStage]) -> str:
    """Return the section of a stage: its first sentence and its arrays."""
    header = ("path", "kind", "dimensions", "dtype", "units", "meaning", "what holds")
    says = (stored.__doc__ or "").splitlines()[0]
    return f"### {stored.STAGE}\n\n{says}\n\n{table(header, map(array_row, stored.ARRAYS))}"


def array_row(described: ArrayDescription) -> tuple[str, ...]:
    """Return the cells of an array in the table of its stage."""
    return (
        ", ".join(f"`{path}`" for path in described.paths),
        described.kind,
        ", ".join(described.dims) or "none",
        described.dtype if isinstance(described.dtype, str) else described.dtype.text,
        described.units,
        described.meaning,
        what_holds(described),
    )


def what_holds(described: ArrayDescription) -> str:
    """Return the invariants of an array in words, and why there are no more where they say little."""
    reason = f" ({described.no_invariant})" if described.no_invariant else ""
    return "; ".join(invariant.text for invariant in described.invariants) + reason


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    cells = list(header)
    return "\n".join(map(table_line, [cells, ["---"] * len(cells), *rows]))


def table_line(cells: Iterable[str]) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cells)} |"


def with_tables(text: str) -> str:
    """Return the text of `FORMAT.md` with the tables that the catalogue gives between its markers.

    Raises
    ------
    ValueError
        Where a marker is missing.
    """
    before, first, rest = text.partition(FIRST_MARKER)
    _, last, after = rest.partition(LAST_MARKER)
    if not first or not last:
        raise ValueError(f"{FORMAT_FILE} needs the lines {FIRST_MARKER!r} and {LAST_MARKER!r} around its tables")
    return f"{before}{first}\n\n{format_tables()}\n\n{last}{after}"


if __name__ == "__main__":
    FORMAT_FILE.write_text(with_tables(FORMAT_FILE.read_text()))
