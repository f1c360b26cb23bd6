"""A map of points without structure: each column of a sample in an order of its own, and the same method from there on.

What is left is how the values of each column are spread; no column says anything of another. How well distances to a
sample agree in this map, and to one of as many points in that of the run, does not depend on how many points either
has: what points without structure reach there says how well a point agrees where there is nothing to see.
"""

from collections import deque
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import cdist

from scalemani.config.metrics import compares_rows
from scalemani.config.objectives import objective_of
from scalemani.config.params import Resolved
from scalemani.config.stages import INPUT_START, PRECOMPUTED, SPECTRAL_START
from scalemani.descents.descent import State
from scalemani.descents.phases import descend, phases_of
from scalemani.descents.problem import problem_of
from scalemani.descents.pull import towards
from scalemani.descents.repulsion import chosen_method, mesh_values
from scalemani.engine.memory_model import Memory, Terms, array
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import StageTask
from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.doubt import agreements
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.landmarks.nearest import squares_to
from scalemani.kernels.neighbors.plain import distances_in, plain_squares
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS
from scalemani.stages.arrays.embeddings import StoredLayout
from scalemani.stages.arrays.points import StoredWorkPoints

QUERIES_AT_ONCE = 256
REFERENCES = 300  # points that distances to are compared: a correlation over half of them errs by a tenth at most


def memory(sizes: Sizes) -> Memory:
    """Return what the sample takes, as read and in float64, distances of some points, and the descent."""
    n, params = n_sampled(sizes.params, sizes.dimensions.n_points), sizes.params
    return Memory(
        {
            "sample of the null map, as read and in float64": points_held(sizes, n),
            "its affinities and positions": array("float64", n, 12 * params.affinity_neighbors + 40),
            "mesh of the null map": array("float64", mesh_values(n)) if n else 0,
        },
        task={"distances of some of its points to all": array("float64", QUERIES_AT_ONCE, 5 * n)},
    )


def compared(sizes: Sizes) -> Terms:
    """Return what comparing a block with a sample takes: points of both, and distances of some of them."""
    rows = sizes.dimensions.block_rows
    return {
        "points of a block, some in float64, and a sample": 2 * rows * sizes.dimensions.row_bytes
        + points_held(sizes, REFERENCES + QUERIES_AT_ONCE),
        "distances to the sample": array("float64", QUERIES_AT_ONCE, 10 * REFERENCES),
    }


def points_held(sizes: Sizes, count: int) -> float:
    """Return what so many points take as read and permuted, and in float64."""
    n_features = 0 if sizes.dimensions.sparse else sizes.dimensions.n_features
    return 4 * count * sizes.dimensions.row_bytes + 3 * array("float64", count, n_features)


def n_sampled(params: Resolved, n_points: int) -> int:
    """Return how many points the null map has; 0 where neighbours or affinities are precomputed or not entropic.

    Nor is there one where points are pulled to coordinates that were passed: these may hold what columns of the points
    say together, and cannot be made anew of permuted ones.
    """
    passed = params.layout.global_weight > 0 and params.layout.reference == INPUT_START
    known = params.points.metric != PRECOMPUTED and params.affinities.kind == "entropic" and not passed
    wanted = min(params.doubt.null_points, n_points) if known else 0
    return wanted if wanted > params.affinity_neighbors else 0


def null_agreements(task: StageTask, over: Mapper) -> np.ndarray:
    """Return the agreements (n,) of the null map, ascending; none where there is no such map."""
    params, n_points = task.params, task.dimensions.n_points
    count = n_sampled(params, n_points)
    if count == 0:
        return np.empty(0)
    stored, metric = task.stored(StoredWorkPoints).points, params.points.metric
    sample = stored.gather(sample_rows(params.seed, "doubt/sample", n_points, count))
    points = comparable(permuted_columns(sample, generator(params.seed, "doubt/columns")), metric)
    symmetric = affinities_of(*nearest_in(points, params.affinity_neighbors, metric, over), params)
    positions = spectral_positions(symmetric, params)
    if StoredLayout.STAGE in task.inputs:
        positions = descended(positions, symmetric, reference_in(points, positions, params), params, over)
    chosen = sample_rows(params.seed, "doubt/references", count, REFERENCES)
    return np.sort(agreements_with(points, points[chosen], metric, positions, positions[chosen]))


def agreements_of_block(task: StageTask, block: int, positions: np.ndarray) -> np.ndarray:
    """Return the agreements of a block of work rows of a map at positions (N, d); 0 where points have none."""
    start, stop = task.dimensions.rows(block)
    metric = task.params.points.metric
    if metric == PRECOMPUTED:
        return np.zeros(stop - start)
    chosen, references = task.once(references_of)
    points = task.stored(StoredWorkPoints).points.read_block(block)
    return agreements_with(points, references, metric, positions[start:stop], positions[chosen])


def references_of(task: StageTask) -> tuple[np.ndarray, Points]:
    """Return the work rows (m,) that points are compared with, and these points."""
    chosen = sample_rows(task.params.seed, "doubt/references", task.dimensions.n_points, REFERENCES)
    return chosen, comparable(task.stored(StoredWorkPoints).points.gather(chosen), task.params.points.metric)


def agreements_with(
    points: Points, references: Points, metric: str, positions: np.ndarray, of_references: np.ndarray
) -> np.ndarray:
    """Return the agreements (n,) of points (n, D) at positions (n, d) with references (m, D), comparable, at (m, d)."""
    parts = [
        agreements(
            distances(comparable(points[part], metric), references, metric), cdist(positions[part], of_references)
        )
        for part in slices(points.shape[0], QUERIES_AT_ONCE)
    ]
    return np.concatenate(parts)


def comparable(points: Points, metric: str) -> Points:
    """Return points (n, D) as `distances` compares them: sets of what is above zero, or float64."""
    of_sets = not compares_rows(metric) and METRICS[metric].of_sets
    return points > 0 if of_sets else points.astype(np.float64)


def distances(points: Points, others: Points, metric: str) -> np.ndarray:
    """Return the distances (n, m) of points, or their squares where these are not compared row by row."""
    if compares_rows(metric):
        return distances_in(metric, points, others)
    if sp.issparse(points) or points.dtype == np.bool_:
        return plain_squares(points, others)
    every = np.ascontiguousarray(np.broadcast_to(np.arange(len(others)), (len(points), len(others))))
    return squares_to(points, others, every)


def permuted_columns(points: Points, draws: np.random.Generator) -> Points:
    """Return points (n, D), dense or sparse, with the values of each column in a random order of their own."""
    if not sp.issparse(points):
        return draws.permuted(points, axis=0)
    columns = points.tocsc(copy=True)
    for first, last in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
        columns.indices[first:last] = draws.choice(columns.shape[0], last - first, replace=False)
    return columns.tocsr()


def nearest_in(points: Points, n_neighbors: int, metric: str, over: Mapper = map) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest others of each point (n, D) and their squared distances, ascending: (n, k) each."""
    n_points, squared = points.shape[0], not compares_rows(metric)
    indices, squares = np.empty((n_points, n_neighbors), np.int64), np.empty((n_points, n_neighbors))

    def fill(part: slice) -> None:
        away = distances(points[part], points, metric)
        away[np.arange(away.shape[0]), np.arange(part.start, part.start + away.shape[0])] = np.inf
        nearest = np.argpartition(away, n_neighbors - 1, axis=1)[:, :n_neighbors]
        values = np.take_along_axis(away, nearest, axis=1)
        order = np.argsort(values, axis=1, kind="stable")
        indices[part], squares[part] = (np.take_along_axis(one, order, axis=1) for one in (nearest, values))

    run(over(fill, slices(n_points, QUERIES_AT_ONCE)))
    return indices, squares if squared else squares**2


def affinities_of(indices: np.ndarray, squares: np.ndarray, params: Resolved) -> sp.csr_matrix:
    """Return the symmetric affinities (n, n) of points by their neighbours (n, k) at squared distances."""
    shape, bounds = (len(indices), len(indices)), np.arange(0, indices.size + 1, indices.shape[1])
    values = entropic_affinities(squares, params.perplexity, solver=params.affinities.solver, order="bounds").values
    directed = sp.csr_matrix((values.ravel(), indices.ravel(), bounds), shape)
    return (0.5 * (directed + directed.T)).tocsr()


def reference_in(points: Points, spectral: np.ndarray, params: Resolved) -> np.ndarray | None:
    """Return what permuted points (n, D) are pulled to, whose spectral map is (n, d); None: nothing."""
    if params.layout.global_weight == 0:
        return None
    return spectral if params.layout.reference == SPECTRAL_START else principal_positions(points, params)


def principal_positions(points: Points, params: Resolved) -> np.ndarray:
    """Return the leading principal components (n, d) of points (n, D), dense or sparse."""
    values = points.astype(np.float64)
    middle = np.asarray(values.mean(axis=0)).ravel()

    def products(vector: np.ndarray) -> np.ndarray:
        along = values.T @ vector.ravel() - middle * vector.sum()
        return np.asarray(values @ along - middle @ along)

    n_points = values.shape[0]
    start = generator(params.seed, "doubt/start").normal(size=n_points)
    squares = LinearOperator((n_points, n_points), matvec=products, dtype=np.float64)
    variances, vectors = eigsh(squares, params.n_components, which="LA", v0=start)
    return np.asarray(vectors[:, ::-1] * np.sqrt(np.maximum(variances[::-1], 0.0)))


def descended(
    spectral: np.ndarray, symmetric: sp.csr_matrix, reference: np.ndarray | None, params: Resolved, over: Mapper
) -> np.ndarray:
    """Return the map (n, d) that a descent makes of the spectral one (n, d) of the same affinities, as in a run.

    It is pulled towards a `reference` (n, d) where there is one.
    """
    rows = AffinityRows(
        symmetric.indptr.astype(np.int64), symmetric.indices.astype(np.uint32), symmetric.data.astype(np.float32)
    )
    descent, objective = params.descent, objective_of(params.descent.objective, params.descent.dof)
    problem, start = problem_of(rows, objective, descent.strength, over), spectral * (descent.start_deviation or 1.0)
    if reference is not None:
        affinities = problem.scale * float(symmetric.data.sum(dtype=np.float64))
        pull = towards(reference, params.layout.global_weight * affinities)
        problem, start = replace(problem, pull=pull), pull.turned(start)
    n_points = len(spectral)
    method = chosen_method("auto", objective.kernel, n_points, params.n_components, descent.exact_up_to)
    return deque(descend(problem, phases_of(descent, n_points), method, State(start)), 1)[0].positions


def spectral_positions(symmetric: sp.csr_matrix, params: Resolved) -> np.ndarray:
    """Return the leading eigenvectors (n, d) of the random walk over affinities, at deviation one."""
    roots = 1.0 / np.sqrt(np.asarray(symmetric.sum(axis=1)).ravel())
    start = generator(params.seed, "doubt/start").normal(size=len(roots))
    scaled = sp.diags(roots) @ symmetric @ sp.diags(roots)
    _, vectors = eigsh(scaled, params.n_components + 1, which="LA", v0=start)
    positions = np.ascontiguousarray(roots[:, np.newaxis] * vectors[:, -2::-1])
    return positions / positions.std(axis=0)


def p_values_of(scores: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Return what share (N,) of points without structure agrees as well: of the null (n,), ascending, and itself."""
    return (1.0 + len(null) - np.searchsorted(null, scores, side="left")) / (1.0 + len(null))
