"""What a run has computed, out to files that other programs read, rows in input order."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.config.stages import DOUBT, GRAPH, PRECOMPUTED
from scalemani.errors import ConfigError, ScalemaniError, nearest_name, refuse_output_in_input
from scalemani.io.export import Progress, checked_target, companion_path, export, write_rows
from scalemani.io.export.anndata import Annotations, Clusters, write_anndata
from scalemani.io.export.writers import (
    CSV,
    SPARSE_WRITERS,
    SUFFIXES,
    WRITERS,
    block_rows,
    write_csv,
    write_map,
    write_map_csv,
)
from scalemani.io.figures import label_picture
from scalemani.io.sources import named_labels, open_points
from scalemani.io.sources.label_values import colours_of_categories
from scalemani.io.sources.lazy import LazyRows, lazy_rows
from scalemani.io.sources.side_data import map_points
from scalemani.io.sources.stores import is_anndata
from scalemani.runs.clusters import THIS_RUN, with_clusters
from scalemani.runs.doubt import Doubt
from scalemani.runs.input_order import Graph, GraphMatrix, RowMatrix
from scalemani.runs.opened import Run
from scalemani.runs.preprocessing.gaps import usable_rows
from scalemani.stages.arrays.affinities import StoredNormalizedAffinities, StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredClustering, StoredDiffusionCoordinates, StoredEmbedding
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPoints

SCANPY_NAMES = {"t-sne": "tsne"}  # of methods that scanpy has under another name
LOOKED_AT = 1000  # rows, among which one without a gap is looked for
INPUTS = ("obsm/X_pca",)  # by which neighbours are computed: not replaced by another method's components
UNKNOWN = -1


def annotations_of(run: Run) -> Annotations:
    """Return the results of a run by their places in an AnnData; rows that were left out have NaN and no neighbours.

    The embedding is `obsm["X_METHOD"]`, `X_tsne` of t-SNE; distances and affinities are `obsp["distances"]` and
    `obsp["connectivities"]`, described by `uns["neighbors"]`; clusters are `obs["spectral_clustering"]`. Diffusion maps
    are also there as scanpy has them, `obsm["X_diffmap"]` and `uns["diffmap_evals"]`: eigenvectors of the symmetric
    transition matrix, the constant one first. Scores of doubt are `obs["doubt_perturbation"]` and so on. Where equal
    rows are one point, its affinities stand in the first of these rows, and the others have none: what scanpy finds by
    `obsp["connectivities"]` is to be read at the first ones.
    """
    name = SCANPY_NAMES.get(run.method, run.method.replace("-", "_"))
    coordinates: dict[str, Any] = {f"obsm/X_{name}": run.retained_embedding} if run.embeds else {}
    results: dict[str, Any] = {}
    matrices: dict[str, RowMatrix] = {}
    if StoredNeighbors.STAGE in run.keys:
        matrices["distances"] = GraphMatrix(run.retained_graph)
    if StoredSymmetricAffinities.STAGE in run.keys:
        matrices["connectivities"] = run.retained_affinities
    if StoredDiffusionCoordinates.STAGE in run.keys:
        coordinates["obsm/X_diffmap"], eigenvalues = diffusion_basis(run)
        results["uns/diffmap_evals"] = lazy_rows(eigenvalues, "eigenvalues")
    for path, stored in coordinates.items():
        results[path] = lazy_rows(run.rows.by_input_rows(stored, np.nan, path), path)
    for key, matrix in matrices.items():
        results[f"obsp/{key}"] = run.spread_matrix(matrix)
    if StoredClustering.STAGE in run.keys:
        results[f"obs/{name}"] = Clusters(run.of_input(np.asarray(run.retained_labels[...]), UNKNOWN))
    if DOUBT.name in run.keys:
        columns = run.doubt_of_input().measured()
        del columns["places"]
        results |= {f"obs/doubt_{name}": lazy_rows(values, name) for name, values in columns.items()}
    if run.embeds:
        results[f"uns/{name}"] = {"params": parameters_of(run)}
    if matrices:
        results["uns/neighbors"] = neighbor_settings(run, matrices)
    return Annotations(run.n_input_points, results, tuple(path for path in INPUTS if path in results))


def parameters_of(run: Run) -> dict[str, Any]:
    """Return what distinguishes a result from others: method, seed, and parameters of all stages that have a value."""
    values = {
        f"{stage}.{name}": value if isinstance(value, bool | int | float | str) else str(value)
        for stage in run.keys
        for name, value in run.params.of_stage(stage).items()
        if value is not None
    }
    return {"scalemani": version("scalemani"), "method": run.method, "random_state": run.params.seed, **values}


def neighbor_settings(run: Run, matrices: Mapping[str, RowMatrix]) -> dict[str, Any]:
    """Return the entry of `uns` that leads scanpy to the matrices; it counts a point among its neighbours."""
    params: dict[str, Any] = {"method": "scalemani", "random_state": run.params.seed}
    if run.metric != PRECOMPUTED:
        params["metric"] = run.metric
    if "distances" in matrices:
        params["n_neighbors"] = int(run.graph.indices.shape[1]) + 1
    return {**{f"{name}_key": name for name in matrices}, "params": params}


def diffusion_basis(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvectors (M, d + 1) and eigenvalues (d + 1,) of the symmetric transition matrix, in memory.

    Of v with L v = lambda D v they are D^(1/2) v of unit length and 1 - lambda, the constant v first. Where equal rows
    are one point, that is so of all rows: each has its share of the degree of the point.
    """
    stored = run.stored(StoredEmbedding)
    graph = run.stored(StoredNormalizedAffinities)
    degrees = graph.read_degrees(run.dimensions.n_points)[run.order.work_rows]
    if run.rows.points is not None:
        degrees = degrees / np.bincount(run.rows.points)
    vectors = np.sqrt(degrees)[:, np.newaxis] * np.insert(stored.embedding.read(), 0, 1.0, axis=1)
    basis = vectors[run.rows.points_at(np.arange(len(run.rows)))]
    return basis / np.linalg.norm(basis, axis=0), np.append(1.0, 1.0 - stored.eigenvalues.read())


PICTURE = ".png"  # of the clusters of an image
ANNDATA, ANNDATA_FILE = "anndata", ".h5ad"  # all results together, as scanpy reads them
MAP = "map"  # a table of what there is of each point
TABLES, GROUPS = (".npz", ".parquet", ".zarr"), (".npz", ".zarr")


class Format(NamedTuple):
    """The suffixes of the files that hold a result, why not others, and the names of columns where arrays have none."""

    suffixes: tuple[str, ...]
    why: str = ""
    columns: tuple[str, ...] = ()


FORMATS = {  # by the name of the property of `Run`
    "embedding": Format((*SUFFIXES, CSV), columns=("component",)),
    "labels": Format((*SUFFIXES, CSV, PICTURE), columns=("label",)),
    "graph": Format(TABLES, "a graph has indices and distances", ("neighbor", "distance")),
    "affinities": Format(GROUPS, "affinities are a sparse matrix"),
    "landmarks": Format(TABLES, "landmarks have rows and points", ("row", "feature")),
    "curve": Format(TABLES, "a curve has iteration, objective and gradient_norm"),
    "doubt": Format(TABLES, "doubt has several columns", Doubt._fields),
    "snapshots": Format(GROUPS, "snapshots are several embeddings"),
    "eigenvalues": Format(SUFFIXES, columns=("eigenvalue",)),
}


def export_result(run: Run, path: str | Path, what: str | None = None, progress: Progress | None = None) -> str:
    """Write what a run has computed, rows in input order, by blocks, and return the name of what was written.

    Parameters
    ----------
    run
        A run that has it.
    path
        Where to. `embedding`, `labels` and `eigenvalues` go into .npy, .parquet or .zarr; an embedding and labels also
        into .csv, with the input row of each; the clusters of an image or video also into .png; `graph` into .npz
        (SciPy's CSR, distances), .parquet or .zarr; `affinities` into .npz (SciPy's CSR) or .zarr (CSR as AnnData has
        it); `landmarks`, `curve` and `doubt` into .npz, .parquet or .zarr; `snapshots` into .npz or .zarr. A .zarr that
        is there is not replaced: one that holds the same stays, anything else is refused. All that scanpy reads goes
        into an AnnData, .h5ad or .zarr, next to what is in one that is there: see `annotations_of`.
    what
        One of these names, or `anndata`. None: `anndata` for an .h5ad and for a .zarr that is an AnnData; else the
        graph of a run that ends in it, or the embedding.
    progress
        Called with the number of rows of an embedding just written.

    Raises
    ------
    ConfigError
        For another name, or a file that cannot hold it.
    StoreError
        For what the run has not computed, saying how to have it; where the place cannot be written.
    """
    anndata = Path(path).suffix.lower() == ANNDATA_FILE or is_anndata(str(path))
    name = what or (ANNDATA if anndata else "graph" if GRAPH.name in run.keys else "embedding")
    if name == ANNDATA:
        target, _ = checked_target(path, (ANNDATA_FILE, ".zarr"), "an AnnData is a file or a zarr store")
        write_anndata(annotations_of(run), target)
        return name
    if name not in FORMATS:
        raise ConfigError(f"a run has no {name!r} to export: {nearest_name(name, (*FORMATS, ANNDATA, MAP))}")
    described = FORMATS[name]
    target, suffix = checked_target(path, described.suffixes, described.why)
    refuse_points_of_run(run, target)
    result = getattr(run, name)
    if isinstance(result, RowMatrix):
        SPARSE_WRITERS[suffix](result, target)
    elif suffix == PICTURE:
        label_picture(result[...], image_of(run), target)
    elif suffix == CSV:
        write_csv({"row": input_rows(run), described.columns[0]: lazy_rows(result, name)}, target)
    elif isinstance(result, Graph) and suffix == ".npz":
        matrix = GraphMatrix(run.retained_graph)
        SPARSE_WRITERS[suffix](run.spread_matrix(matrix) if run.fills_gaps else matrix, target)
    elif isinstance(result, tuple | Graph):
        WRITERS[suffix](named_arrays(result, described, suffix), target)
    elif name == "embedding":
        export(result, path, progress)
    elif suffix == ".parquet" and described.columns:
        WRITERS[suffix]({described.columns[0]: lazy_rows(result, name)}, target)
    else:
        rows = lazy_rows(result, name)
        write_rows(rows.read, rows.shape, rows.dtype, path, block_rows(rows))
    return name


def export_run(
    run: Run,
    path: str | Path,
    what: str | None = None,
    labels: Any = (),
    neighbors: bool = False,
    escape_formulas: bool = False,
) -> str | None:
    """Write a result of a run, or a map where `what` is one or there are labels or neighbours.

    The map that `what` names has the clusters of the run, where it has some, and its scores of doubt, where these were
    measured. Errors are those of `export_result` and `export_map`.

    Returns the file of the input rows of the results, which is written where components were left out and the format
    has no place for them; else None.
    """
    listed = list(labels) if isinstance(labels, list | tuple) else [] if labels is None else [labels]
    if what == MAP:
        listed += columns_of_run(run, listed)
    if escape_formulas and not (listed and str(path).lower().endswith(CSV)):
        raise ConfigError("--escape-formulas is for the texts of a .csv with --labels: leave it out")
    sources = [one for part in listed for one in (part.values() if isinstance(part, Mapping) else [part])]
    refuse_output_in_input(path, run.store.root, *(one for one in sources if isinstance(one, str | Path)))
    if listed or neighbors or what == MAP:
        if what not in (None, "embedding", MAP):
            clusters = ", and give --labels run for the clusters of the run as a column" if what == "labels" else ""
            raise ConfigError(
                f"--labels and --neighbors write a map, which --what {what} is not: leave it out{clusters}"
            )
        export_map(run, path, listed, neighbors, escape_formulas)
        return None
    rows = run.input_rows
    if export_result(run, path, what) == ANNDATA or rows is None or str(path).lower().endswith(CSV):
        return None
    companion = companion_path(path, "input_rows")
    write_rows(lambda start, stop: rows[start:stop], rows.shape, rows.dtype, companion)
    return companion


def columns_of_run(run: Run, labels: Sequence[Any]) -> list[Any]:
    """Return what a run knows of each point, as labels: its clusters, unless `labels` name them, and its doubt."""
    columns: list[Any] = []
    named = [one for one in labels if isinstance(one, str | Path)]
    if StoredClustering.STAGE in run.keys and not any(with_clusters(one, run) is not one for one in named):
        columns.append(THIS_RUN)
    if DOUBT.name in run.keys:
        scores = run.doubt_of_input().measured()
        del scores["places"]
        columns.append({f"doubt_{name}": values for name, values in scores.items()})
    return columns


def export_map(
    run: Run, path: str | Path, labels: Sequence[Any] = (), neighbors: bool = False, escape_formulas: bool = False
) -> None:
    """Write the embedding of a run as a table that viewers open as it is.

    The columns are x and y (and z), component_1 and so on of an embedding of other dimensions; those of the
    labels, and NAME_color (#rrggbb) of categories that have separate colours, as AnnData stores them; with `neighbors`
    one of {"ids": [...], "distances": [...]}, the neighbours of each point in the graph of the run, by ascending
    distance; and `input_row` where rows were left out.

    Parameters
    ----------
    run
        A run that ends in an embedding.
    path
        A .parquet, or without neighbours a .csv, whose first column is the input `row`; what is there is replaced.
    labels
        Labels or values, one a row of the input: files with one column or several (see `open_columns`), folders of
        runs, whose clusters are meant, arrays, frames, or these by their names.
    neighbors
        Whether the neighbours are written.
    escape_formulas
        Whether texts of a .csv that begin with =, +, -, @, a tab or the end of a line, which spreadsheets run as
        formulas, have an apostrophe before them. Numbers stay numbers.

    Raises
    ------
    ConfigError, DataError
        For another suffix, and labels that are not one a point or have a name twice.
    StoreError
        Where the run has no embedding or no graph, and when the place cannot be written.
    """
    suffixes, why = ((".parquet",), "neighbours are lists") if neighbors else ((".parquet", CSV), "a map is a table")
    target, suffix = checked_target(path, suffixes, why)
    refuse_points_of_run(run, target)
    columns: dict[str, np.ndarray] = {} if run.input_rows is None else {"input_row": run.input_rows}
    for location in labels:
        for name, values in named_labels(with_clusters(location, run), run.n_input_points).items():
            if name in columns:
                raise ConfigError(f"{location} has a column {name!r}, and so has what comes before it: rename it")
            columns[name] = values if run.fills_gaps else run.of_results(values)
    for name in list(columns):
        if (colours := colours_of_categories(columns[name])) and f"{name}_color" not in columns:
            columns[f"{name}_color"] = np.array([colours.get(value, "") for value in columns[name].tolist()], dtype=str)
    graph = [lazy_rows(part, "the neighbour graph") for part in run.graph] if neighbors else None
    positions = lazy_rows(run.embedding, "the embedding")
    if suffix == CSV:
        columns.pop("input_row", None)
        write_map_csv(input_rows(run), positions, columns, target, escape_formulas)
    else:
        write_map(positions, columns, graph, target)


def refuse_points_of_run(run: Run, target: str) -> None:
    """Refuse a file that holds the points of a run: a table of their shape whose first row without a gap is theirs.

    A run does not know where its points came from, so that what is there is looked at.
    """
    if run.metric == PRECOMPUTED or run.params.affinities.precomputed or not Path(target).is_file():
        return
    try:
        there = open_points(target, gaps=True)
        if there.shape != (run.n_input_points, run.dimensions.n_features):
            return
        looked_at = map_points(run.metric, there)
        rows, usable = usable_rows(looked_at, run.metric, 0, min(LOOKED_AT, there.shape[0]), run.dimensions.sparse)
    except ScalemaniError:  # no points, whose place an export may take
        return
    first_point = run.stored(StoredPoints).points.gather(np.zeros(1, np.int64))
    if len(usable) and np.array_equal(*(sp.csr_matrix(one).toarray() for one in (rows[:1], first_point))):
        raise ConfigError(f"{target} holds the points of {run.store.root}, which would be lost: choose another name")


def input_rows(run: Run) -> LazyRows:
    """Return the row of the input that each row of the results belongs to."""
    return lazy_rows(np.arange(run.n_input_points) if run.input_rows is None else run.input_rows, "rows")


def image_of(run: Run) -> tuple[int, int, int]:
    """Return frames, rows and columns of the image whose pixels a run has clustered; raise ConfigError for others."""
    pixels = run.params.pixels
    if pixels is None:
        raise ConfigError(
            "labels go into .png where they are those of an image, and this run has neighbors.method="
            f"{run.params.neighbors.method}: take {', '.join(SUFFIXES)}"
        )
    return pixels.image(run.params, run.dimensions.n_points)


def named_arrays(result: Any, described: Format, suffix: str) -> dict[str, LazyRows]:
    """Return the arrays of a result that are there by their names, in a table by those of their columns."""
    of_graph = isinstance(result, Graph)
    arrays = {"indices": result.indices, "distances": result.distances} if of_graph else result._asdict()
    columns = described.columns if suffix == ".parquet" and described.columns else tuple(arrays)
    named = zip(columns, arrays.values(), strict=True)
    return {column: lazy_rows(array, column) for column, array in named if array is not None}
