"""Invariants of embeddings: orthonormal columns, eigenvalues that are those of these, rows that are Z times others.

Products are summed over blocks. Where two orders meet, a check holds an array of N rows in memory: the embedding, and
what there is of the degrees.
"""

import functools
import weakref
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from scalemani.config.methods import SolverExtension, extensions
from scalemani.store.invariants import Block, Invariant, StoredRun, stored
from scalemani.store.invariants.matrices import row_numbers
from scalemani.store.invariants.orders import input_rows_of
from scalemani.store.invariants.values import mixed

ORTHONORMAL = 1e-4  # of inner products: refined vectors are float32 while they are iterated
QUOTIENTS = 1e-4  # of eigenvalues
INDEPENDENT = 1e-4  # of the least eigenvalue of the inner products of unit columns
OF_FAR_POINTS = 1e-6  # of how far off points lie: times `PRODUCTS`, the rounding of float64
PRODUCTS = 1e-9  # of sums of products in float64, relative to the sum of their magnitudes


def by_run(read: Callable[[StoredRun], np.ndarray]) -> Callable[[StoredRun], np.ndarray]:
    """Return a reader whose result is cached as long as its run exists."""
    cache: weakref.WeakKeyDictionary[StoredRun, np.ndarray] = weakref.WeakKeyDictionary()

    @functools.wraps(read)
    def reader(run: StoredRun) -> np.ndarray:
        if run not in cache:
            cache[run] = read(run)
        return cache[run]

    return reader


def graph_stage(run: StoredRun) -> str:
    """Return the stage that holds the W of which an embedding has the eigenvectors; "" where there is none."""
    stages = ("normalized_affinities", "symmetric_affinities")
    return next((one for one in stages if run.stored(one, "block-000000/degrees") is not None), "")


@by_run
def degrees_by_input(run: StoredRun) -> np.ndarray:
    """Return the degrees (N,) of W in input order; nothing where there is no W."""
    stage = graph_stage(run)
    if not stage:
        return np.empty(0)
    blocks = range(-(-run.n_points // run.block_rows))
    parts = [np.asarray(stored(run, stage, f"block-{block:06d}/degrees")[...]) for block in blocks]
    degrees = np.empty(run.n_points)
    degrees[input_rows_of(run, slice(0, run.n_points))] = np.concatenate(parts)
    return degrees


@by_run
def embedding_in_work_order(run: StoredRun) -> np.ndarray:
    """Return the spectral embedding (N, d), stored in input order, by work rows."""
    embedding = np.asarray(stored(run, "embedding", "embedding")[...])
    return embedding[input_rows_of(run, slice(0, run.n_points))]


def of_w(run: StoredRun) -> bool:
    """Return whether an embedding has eigenvectors of W: those of a graph of landmarks alone have not."""
    return bool(graph_stage(run)) and run.params["embedding"]["solver"] not in extensions(SolverExtension)


def pieces_of(run: StoredRun) -> np.ndarray | None:
    """Return the piece (N,) of each point in input order; None where the graph is one."""
    pieces = run.stored("embedding", "pieces")
    return None if pieces is None else np.asarray(pieces[...])


# The spectral embedding


def gram_of_block(block: Block) -> np.ndarray:
    """Return [1, Y]^T D [1, Y] of a block, of the points of one piece each: (1 + d, 1 + d)."""
    width = 1 + block.values.shape[1]
    if not of_w(block.run):
        return np.zeros((width, width))
    degrees = degrees_by_input(block.run)[block.start : block.start + len(block.values)]
    columns = np.column_stack([np.ones(len(block.values)), block.values])
    return np.asarray(columns.T @ (degrees[:, np.newaxis] * columns))


def not_orthonormal(gram: np.ndarray, run: StoredRun) -> int:
    """Count inner products of columns that are not as they should be; sums over pieces of a graph that fell apart."""
    if not gram.any():
        return 0
    pieces = pieces_of(run)
    sizes = np.array([run.n_points]) if pieces is None else np.bincount(pieces)
    held = np.array([np.count_nonzero(sizes > column + 1) for column in range(len(gram) - 1)])
    expected = np.diag(np.concatenate([gram[:1, 0], held]))
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected))).clip(1)
    return int(np.count_nonzero(~(np.abs(gram - expected) <= ORTHONORMAL * scale)))


D_ORTHONORMAL = Invariant(
    "D-orthonormal columns, and to the constant one, of eigenvectors of W (of a graph in pieces those of each)",
    gram_of_block,
    not_orthonormal,
)


def energies_of_block(block: Block) -> np.ndarray:
    """Return the sums of W_ij (y_i - y_j)^2 / 2 over the rows of a block of W: (d,)."""
    run, stage = block.run, graph_stage(block.run)
    folder = f"block-{block.start // run.block_rows:06d}"
    if not of_w(run) or pieces_of(run) is not None or run.stored(stage, f"{folder}/values") is None:
        return np.full(block.values.shape[1], -1.0)
    names = ("indptr", "indices", "values")
    ends, columns, values = (np.asarray(stored(run, stage, f"{folder}/{name}")[...]) for name in names)
    positions, rows = embedding_in_work_order(run), np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    sums = np.zeros(block.values.shape[1])
    for column in range(len(sums)):
        differences = positions[block.start + rows, column] - positions[columns, column]
        sums[column] = 0.5 * (values * differences**2).sum()
    return sums


def other_quotients(energies: np.ndarray, run: StoredRun) -> int:
    """Count columns whose eigenvalue is not their Rayleigh quotient, which D-orthonormal columns have by energy."""
    if (energies < 0).any():
        return 0
    values = np.asarray(stored(run, "embedding", "eigenvalues")[...])
    return int(np.count_nonzero(~(np.abs(energies - values) <= QUOTIENTS * (values + np.finfo(np.float32).eps))))


QUOTIENTS_OF_W = Invariant(
    "each column the eigenvalue's: the sum of W_ij (y_i - y_j)^2 / 2 is `eigenvalues`",
    energies_of_block,
    other_quotients,
)


def several_pieces(block: Block) -> int:
    """Count numbers of pieces that grow with their number: pieces are numbered by size."""
    if block.start:
        return 0
    sizes = np.bincount(np.asarray(stored(block.run, block.stage, block.path)[...]).clip(0))
    return int(np.count_nonzero(np.diff(sizes) > 0)) + int(len(sizes) < 2) + int((sizes == 0).any())


BY_SIZE = Invariant("numbered by size, two pieces at least", several_pieces)


def other_scales(block: Block) -> int:
    """Count rows that are not those of the spectral embedding times |1 - eigenvalue|^time."""
    run, rows = block.run, slice(block.start, block.start + len(block.values))
    time, pieces = run.params["diffusion_coordinates"]["time"], run.stored("embedding", "pieces")
    values = np.asarray(stored(run, "embedding", "eigenvalues")[...])
    if pieces is not None:
        values = np.asarray(stored(run, "embedding", "piece_eigenvalues")[...])[np.asarray(pieces[rows])]
    expected = np.asarray(stored(run, "embedding", "embedding")[rows]) * np.abs(1 - values) ** time
    return int(np.count_nonzero(~(np.abs(block.values - expected) <= PRODUCTS * np.abs(expected)).all(axis=1)))


DIFFUSED = Invariant("`embedding` times |1 - eigenvalue|^time", other_scales)

# Z times the landmarks' coordinates


def weights_of_rows(run: StoredRun, start: int, stop: int, n_landmarks: int) -> sp.csr_matrix:
    """Return rows of Z (n, L) in work order."""
    ends = run.stored("affinity_weights", "indptr")
    if ends is not None:
        bounds = np.asarray(ends[start : stop + 1])
        entries = slice(int(bounds[0]), int(bounds[-1]))
        parts = (np.asarray(stored(run, "affinity_weights", name)[entries]) for name in ("values", "indices"))
        return sp.csr_matrix((*parts, bounds - bounds[0]), (stop - start, n_landmarks))
    indices, values = (np.asarray(stored(run, "landmark_weights", name)[start:stop]) for name in ("indices", "values"))
    bounds = np.arange(0, indices.size + 1, max(1, indices.shape[1]))
    return sp.csr_matrix((values.ravel(), indices.ravel(), bounds), (stop - start, n_landmarks))


def numbers_between(rows: np.ndarray) -> np.ndarray:
    """Return a number in [1, 2) for each row, by which sums over rows in two orders show rows that are exchanged."""
    return 1 + mixed(rows) / 2.0**64


def less_combined(vectors: tuple[str, str], block: Block) -> np.ndarray:
    """Return weighted sums of rows of a block less those of Z times coordinates, and of magnitudes: (2, d)."""
    run, stop = block.run, block.start + len(block.values)
    stage, path = vectors[0] or block.stage, vectors[1]
    if stage == "landmark_embedding" and not over_landmarks(run):
        return np.zeros((2, block.values.shape[1]))
    coordinates = np.asarray(stored(run, stage, path)[...])
    combined = weights_of_rows(run, block.start, stop, len(coordinates)) @ coordinates
    terms = numbers_between(np.arange(block.start, stop))[:, np.newaxis] * block.values
    expected = numbers_between(input_rows_of(run, slice(block.start, stop)))[:, np.newaxis] * combined
    return np.stack(
        [terms.sum(axis=0) - expected.sum(axis=0), np.abs(terms).sum(axis=0) + np.abs(expected).sum(axis=0)]
    )


def over_landmarks(run: StoredRun) -> bool:
    """Return whether the embedding is Z times vectors of the landmarks: no pass over W, no pieces."""
    refined = run.params["embedding"]["solver"] in ("refine", "lll+refine", "exact")
    return of_w(run) and not refined and pieces_of(run) is None


def sums_differ(total: np.ndarray, run: StoredRun) -> int:
    """Count columns whose sums differ by more than rounding."""
    return int(np.count_nonzero(~(np.abs(total[0]) <= PRODUCTS * total[1])))


def combined_of(stage: str, path: str) -> Invariant:
    """Return that rows are Z times the coordinates of the landmarks, in input order; "": those of the same stage."""
    text = f"Z times `{stage}/{path}`, where no refinement follows" if stage else f"Z times `{path}`"
    return Invariant(text, functools.partial(less_combined, (stage, path)), sums_differ)


# Matrices over the landmarks


def whole_matrix(run: StoredRun, name: str) -> np.ndarray:
    """Return a symmetric matrix (L, L) of `reduced` by its lower triangle, dense."""
    parts = (np.asarray(stored(run, "reduced", f"{name}_{part}")[...]) for part in ("values", "indices", "indptr"))
    values, columns, ends = parts
    triangle = sp.csr_matrix((values, columns, ends), (len(ends) - 1,) * 2).toarray()
    return np.asarray(triangle + np.tril(triangle, -1).T)


def not_reduced_solution(block: Block) -> int:
    """Count entries of V^T L V and V^T M V that are not those of orthonormal eigenvectors; by the first block."""
    if block.start:
        return 0
    vectors = np.asarray(stored(block.run, block.stage, block.path)[...])
    values = np.asarray(block.array("eigenvalues")[...])
    laplacian, mass = (whole_matrix(block.run, name) for name in ("laplacian_triangle", "mass_triangle"))
    products = vectors.T @ mass @ vectors - np.eye(len(values)), vectors.T @ laplacian @ vectors - np.diag(values)
    return int(sum(np.count_nonzero(~(np.abs(one) <= 1e-7)) for one in products))


def triangle_sums(block: Block) -> np.ndarray:
    """Return the sum of the entries of symmetric matrices whose lower triangles these are, and that of magnitudes."""
    name = block.path.rpartition("/")[2].removesuffix("_values")
    on_diagonal = row_numbers(block, f"{name}_indptr") == block.rows_of(f"{name}_indices")
    twice = np.where(on_diagonal, 1.0, 2.0) * block.values
    return np.array([twice.sum(), np.abs(twice).sum()])


def other_total(total: np.ndarray, run: StoredRun) -> int:
    """Return 1 where the entries of Z^T W Z, or of Z^T D Z, do not add up to the degrees: rows of Z sum to one."""
    return int(not abs(total[0] - degrees_by_input(run).sum()) <= PRODUCTS * (total[1] + abs(total[0])))


ALL_DEGREES = Invariant("adding up, with the upper triangle, to the degrees of W", triangle_sums, other_total)


def nonzero_row_sums(block: Block) -> int:
    """Count rows of a symmetric matrix, of which this is the lower triangle, that do not sum to zero."""
    if block.start:
        return 0
    matrix = whole_matrix(block.run, block.path.removesuffix("_values"))
    return int(np.count_nonzero(~(np.abs(matrix.sum(axis=1)) <= PRODUCTS * np.abs(matrix).sum(axis=1))))


ZERO_ROWS = Invariant("rows of the symmetric matrix summing to zero", nonzero_row_sums)
REDUCED_SOLUTION = Invariant(
    "orthonormal in Z^T D Z, and `eigenvalues` on the diagonal of V^T Z^T (D - W) Z V", not_reduced_solution
)


# Columns of embeddings without W


def products_of_columns(block: Block) -> np.ndarray:
    """Return [1, Y]^T [1, Y] of a block, and below it what stands for it of the eigenvalues: (2 + d, 1 + d)."""
    columns = np.column_stack([np.ones(len(block.values)), block.values])
    values = np.asarray(block.array("eigenvalues")[...]) if block.start == 0 else np.zeros(block.values.shape[1])
    return np.vstack([columns.T @ columns, [0.0, *values]])


def unlike(squares: Callable[[np.ndarray, float], np.ndarray], total: np.ndarray, run: StoredRun) -> int:
    """Count inner products of columns that are not as they should be, by eigenvalues and the number of points."""
    gram, expected = total[:-1], np.concatenate([total[:1, 0], squares(total[-1, 1:], total[0, 0])])
    lengths = np.sqrt(expected)
    allowed = 1e-7 * np.outer(lengths, lengths) + np.finfo(float).tiny
    return int(np.count_nonzero(~(np.abs(gram - np.diag(expected)) <= allowed)))


def ones(values: np.ndarray, n_points: float) -> np.ndarray:
    """Return the squared length (d,) that each column must have: 1."""
    return np.ones_like(values)


def eigenvalues(values: np.ndarray, n_points: float) -> np.ndarray:
    """Return the squared length (d,) that each column must have: its eigenvalue."""
    return values


def variances(values: np.ndarray, n_points: float) -> np.ndarray:
    """Return the squared length (d,) that each column must have: N - 1 times its eigenvalue."""
    return values * (n_points - 1)


CENTRED_ORTHONORMAL = Invariant(
    "of centred and orthonormal columns", products_of_columns, functools.partial(unlike, ones)
)
SQUARES_ARE_EIGENVALUES = Invariant(
    "of centred and orthogonal columns, whose squares add up to `eigenvalues`",
    products_of_columns,
    functools.partial(unlike, eigenvalues),
)
VARIANCES_ARE_EIGENVALUES = Invariant(
    "of centred and orthogonal columns, whose variances are `eigenvalues`",
    products_of_columns,
    functools.partial(unlike, variances),
)


def centred_sums(block: Block) -> np.ndarray:
    """Return the sums of the columns of a block, and those of their magnitudes: (2, d)."""
    sizes = np.abs(block.values).sum(axis=0)
    if block.has("axes") and block.has("mean"):  # of points that lie far from the origin, a difference is rounded
        sizes += OF_FAR_POINTS * len(block.values) * np.abs(block.all_of("mean")) @ np.abs(block.all_of("axes"))
    return np.stack([block.values.sum(axis=0), sizes])


CENTRED = Invariant("of columns that sum to zero", centred_sums, sums_differ)


def orthonormal_columns(block: Block) -> int:
    """Count inner products of columns of a short array that are not those of orthonormal ones; by the first block."""
    if block.start:
        return 0
    columns = np.asarray(stored(block.run, block.stage, block.path)[...], np.float64)
    rounding = 1e-9 if block.values.dtype == np.float64 else 1e-4
    return int(np.count_nonzero(~(np.abs(columns.T @ columns - np.eye(columns.shape[1])) <= rounding)))


def gram_of_columns(block: Block) -> np.ndarray:
    """Return the inner products (m, m) of the columns of a block."""
    columns = block.values.astype(np.float64)
    return np.asarray(columns.T @ columns)


def not_identity(gram: np.ndarray, run: StoredRun) -> int:
    """Count inner products that are not those of orthonormal columns, by their sums over all blocks."""
    return int(np.count_nonzero(~(np.abs(gram - np.eye(len(gram))) <= ORTHONORMAL)))


def dependent_columns(block: Block) -> int:
    """Return 1 where columns are nearly combinations of each other; by the first block."""
    if block.start:
        return 0
    columns = np.asarray(stored(block.run, block.stage, block.path)[...], np.float64)
    columns = columns / np.linalg.norm(columns, axis=0)
    return int(not np.isfinite(columns).all() or not np.linalg.eigvalsh(columns.T @ columns)[0] > INDEPENDENT)


INDEPENDENT_COLUMNS = Invariant("of columns none of which is nearly a combination of others", dependent_columns)
ORTHONORMAL_COLUMNS = Invariant("of orthonormal columns", orthonormal_columns)
ORTHONORMAL_ROWS = Invariant("of orthonormal columns", gram_of_columns, not_identity)  # of a row array
