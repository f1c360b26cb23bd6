"""What a run has computed as an AnnData holds it, where scanpy looks for it, a row for every point that was given."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.export.anndata_elements import Annotations
from scalemani.export.rows import blocks
from scalemani.export.sparse import SparseMatrix
from scalemani.records.affinities import StoredNormalizedAffinities, StoredSymmetricAffinities
from scalemani.records.embeddings import StoredClustering, StoredDiffusionCoordinates, StoredEmbedding
from scalemani.records.graph import StoredNeighbors
from scalemani.records.points import StoredWorkPoints
from scalemani.routes import PRECOMPUTED
from scalemani.runs.input_order import GraphMatrix, InputOrder
from scalemani.runs.opened import Run
from scalemani.sources.lazy import LazyRows, lazy_rows

SCANPY_NAMES = {"t-sne": "tsne"}  # of methods that scanpy has under another name
GIVEN = ("obsm/X_pca",)  # by which neighbours are found: not replaced by another method's components
UNKNOWN = -1


def annotations_of(run: Run) -> Annotations:
    """Return the results of a run by their places in an AnnData; rows that were left out have NaN and no neighbours.

    The embedding is `obsm["X_METHOD"]`, `X_tsne` of t-SNE; distances and affinities are `obsp["distances"]` and
    `obsp["connectivities"]`, described by `uns["neighbors"]`; clusters are `obs["spectral_clustering"]`. Diffusion maps
    are also there as scanpy has them, `obsm["X_diffmap"]` and `uns["diffmap_evals"]`: eigenvectors of the symmetric
    transition matrix, the constant one first. Where equal rows are one point, its affinities stand in the first of
    these rows, and the others have none: what scanpy finds by `obsp["connectivities"]` is to be read at the first ones.
    """
    name = SCANPY_NAMES.get(run.method, run.method.replace("-", "_"))
    arrays: dict[str, LazyRows] = {}
    settings: dict[str, Mapping[str, Any]] = {name: {"params": parameters_of(run)}} if run.embeds else {}
    clusters = {}
    if run.embeds:
        arrays[f"obsm/X_{name}"] = lazy_rows(run.embedding, "the embedding")
    if StoredDiffusionCoordinates.STAGE in run.keys:
        arrays["obsm/X_diffmap"], arrays["uns/diffmap_evals"] = diffusion_basis(run)
    if StoredClustering.STAGE in run.keys:
        clusters[f"obs/{name}"] = run.of_input(np.asarray(run.labels[...]), UNKNOWN)
    matrices = graphs_of(run)
    if matrices:
        settings["neighbors"] = neighbor_settings(run, matrices)
    rows = run.input_rows
    if rows is not None:
        arrays = {path: every_row(found, rows, run.n_input_points, path) for path, found in arrays.items()}
        matrices = {path: MatrixOfEveryRow(found, rows, run.n_input_points) for path, found in matrices.items()}
    return Annotations(
        run.n_input_points,
        arrays,
        {f"obsp/{key}": matrix for key, matrix in matrices.items()},
        clusters,
        {f"uns/{key}": values for key, values in settings.items()},
        tuple(path for path in GIVEN if path in arrays),
    )


def parameters_of(run: Run) -> dict[str, Any]:
    """Return what tells a result from others: method, seed, and the parameters of all stages that have a value."""
    values = {
        f"{stage}.{name}": value if isinstance(value, bool | int | float | str) else str(value)
        for stage in run.keys
        for name, value in run.params.of_stage(stage).items()
        if value is not None
    }
    return {"scalemani": version("scalemani"), "method": run.method, "random_state": run.params.seed, **values}


def graphs_of(run: Run) -> dict[str, SparseMatrix]:
    """Return the distances and the affinities (M, M) of a run that has them."""
    found: dict[str, SparseMatrix] = {}
    if StoredNeighbors.STAGE in run.keys:
        found["distances"] = GraphMatrix(run.graph)
    if StoredSymmetricAffinities.STAGE in run.keys:
        found["connectivities"] = run.affinities
    return found


def neighbor_settings(run: Run, matrices: Mapping[str, SparseMatrix]) -> dict[str, Any]:
    """Return the entry of `uns` that leads scanpy to the matrices; it counts a point among its neighbours."""
    params: dict[str, Any] = {"method": "scalemani", "random_state": run.params.seed}
    if run.metric != PRECOMPUTED:
        params["metric"] = run.metric
    if "distances" in matrices:
        params["n_neighbors"] = int(run.graph.indices.shape[1]) + 1
    return {**{f"{name}_key": name for name in matrices}, "params": params}


def diffusion_basis(run: Run) -> tuple[LazyRows, LazyRows]:
    """Return the eigenvectors (M, d + 1) and eigenvalues (d + 1,) of the symmetric transition matrix.

    Of v with L v = lambda D v they are D^(1/2) v of unit length and 1 - lambda, the constant v first. Where equal rows
    are one point, that is so of all rows: each has its share of the degree of the point.
    """
    stored = StoredEmbedding(run.group(StoredEmbedding.STAGE))
    order = InputOrder(StoredWorkPoints(run.group(StoredWorkPoints.STAGE)), run.rows)
    graph = StoredNormalizedAffinities(run.group(StoredNormalizedAffinities.STAGE))
    degrees = graph.read_degrees(run.dimensions.n_points)[order.work_rows]
    if run.rows.points is not None:
        degrees = degrees / np.bincount(run.rows.points)
    vectors, roots = stored.embedding.zarr(), np.sqrt(degrees)
    shape, kind = (len(run.rows), vectors.shape[1] + 1), np.dtype(np.float64)

    def unscaled(start: int, stop: int) -> np.ndarray:
        points = run.rows.points_at(np.arange(start, stop))
        scales = roots[points, np.newaxis]
        return np.hstack([scales, scales * stored.embedding.gather(points)])

    every = LazyRows(shape, kind, unscaled, "the eigenvectors", vectors.chunks[0])
    lengths = np.sqrt(sum(np.square(rows).sum(axis=0) for _, rows in blocks(every)))

    def read(start: int, stop: int) -> np.ndarray:
        return unscaled(start, stop) / lengths

    eigenvalues = np.concatenate([[1.0], 1.0 - stored.eigenvalues.read()])
    return LazyRows(shape, kind, read, "the eigenvectors", vectors.chunks[0]), lazy_rows(eigenvalues, "eigenvalues")


def every_row(found: LazyRows, rows: np.ndarray, n_rows: int, path: str) -> LazyRows:
    """Return an array with a row for every point that was given, NaN in those that were left out.

    Parameters
    ----------
    found : (M, ...)
    rows : (M,) the rows of `found`, ascending
    n_rows : of all points
    path : of the array in an AnnData; only arrays in `obsm` have a row a point
    """
    if not path.startswith("obsm/"):
        return found

    def read(start: int, stop: int) -> np.ndarray:
        first, last = np.searchsorted(rows, [start, stop])
        filled = np.full((stop - start, *found.shape[1:]), np.nan, found.dtype)
        filled[rows[first:last] - start] = found.read(int(first), int(last))
        return filled

    return LazyRows((n_rows, *found.shape[1:]), found.dtype, read, found.description, found.preferred_rows)


class MatrixOfEveryRow:
    """A sparse matrix (n_rows, n_rows) of which another has rows and columns (M,), ascending; the others are empty."""

    def __init__(self, matrix: SparseMatrix, rows: np.ndarray, n_rows: int) -> None:
        self._matrix, self._rows = matrix, rows
        self.shape, self.dtype = (n_rows, n_rows), matrix.dtype
        counts = np.zeros(n_rows + 1, np.int64)
        counts[rows + 1] = np.diff(matrix.indptr)
        self.indptr = np.cumsum(counts)

    def rows(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop)."""
        first, last = np.searchsorted(self._rows, [start, stop])
        found = self._matrix.rows(int(first), int(last))
        bounds = self.indptr[start : stop + 1] - self.indptr[start]
        return sp.csr_matrix((found.data, self._rows[found.indices], bounds), shape=(stop - start, self.shape[1]))
