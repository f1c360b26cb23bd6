"""What the stage `embedding` takes of memory and disk: lists by solver."""

import numpy as np

from scalemani.chunked.landmark_maps import landmark_map_held
from scalemani.chunked.needs import EACH_PROCESS, EACH_TASK, GROWING, PASSING, Held, Written
from scalemani.chunked.sizes import Sizes, coarse_graphs_held, pixels_held, written
from scalemani.kernels.spectral.refinement import n_columns, n_start_columns
from scalemani.params import Parameters
from scalemani.records.embeddings import StoredEmbedding

COPIES_OF_VECTORS = 8  # vectors, directions, what is added, their products, and what a correction makes
COPIES_IN_CHECKPOINT = 4  # vectors and directions, and their products
COPIES_OF_BLOCK = 3  # as read, decoded, and where they lie from then on
COLUMNS_OF_POINT, COLUMNS_ON_THE_WAY = 6, 4
COPIES_OF_MATRIX = 4  # W by blocks and whole, scaled from the left, and from both sides
FEWEST_LANCZOS_VECTORS, COPIES_OF_LANCZOS = 20, 3  # of ARPACK: the basis, what it works in, and the answer


def vector_dtype(params: Parameters) -> type:
    """Return the type of the vectors while they are refined, or where they are not."""
    refined_roughly = params.embedding.by_passes and params.residual >= params.embedding.float32_reaches
    return np.float32 if refined_roughly else np.float64


def memory(sizes: Sizes) -> list[Held]:
    """List W where it is passed over again and again, the vectors, and what a block takes."""
    if sizes.params.embedding.by_landmark_graph:
        return landmark_map_held(sizes)
    params, n_points, width = sizes.params, sizes.dimensions.n_points, sizes.params.n_components
    in_files = EACH_PROCESS if params.embedding.solver == "exact" else GROWING  # its matrices are in memory in any case
    held = [
        Held("values of a block of W", EACH_TASK, sizes.block_nonzeros, 1, "float32", COPIES_OF_BLOCK),
        Held("columns of a block of W", EACH_TASK, sizes.block_nonzeros, 1, "int32", COPIES_OF_BLOCK),
        Held("embedding and rows, in work and in input order", in_files, n_points, width + 1, "float64", 2, "writing"),
        *pixels_held(sizes),
        Held("degrees, their roots, the trivial vector, damping", in_files, n_points, COLUMNS_OF_POINT),
        Held("one of these on its way, and an order", EACH_PROCESS, n_points, COLUMNS_ON_THE_WAY),
    ]
    if params.embedding.solver == "exact":
        held.append(
            Held("values of W and its scaled copies", EACH_PROCESS, sizes.nonzeros, 1, "float64", COPIES_OF_MATRIX)
        )
        held.append(
            Held("columns of W and its scaled copies", EACH_PROCESS, sizes.nonzeros, 1, "int32", COPIES_OF_MATRIX)
        )
        basis = 2 * width + FEWEST_LANCZOS_VECTORS
        held.append(Held("Lanczos vectors", EACH_PROCESS, n_points, basis, copies=COPIES_OF_LANCZOS, step="solving"))
    return [*held, *passes_held(sizes)]


def passes_held(sizes: Sizes) -> list[Held]:
    """List what refinement takes beside."""
    params, n_points, width = sizes.params, sizes.dimensions.n_points, sizes.params.n_components
    if not params.embedding.by_passes:
        return []
    columns, dtype = n_columns(width, n_points), vector_dtype(params)
    starting = n_start_columns(width, n_points) + width
    held = [
        Held("values of W", GROWING, sizes.nonzeros, 1, "float32"),
        Held("columns of W", GROWING, sizes.nonzeros, 1, "int32"),
        *coarse_graphs_held(sizes),
    ]
    if sizes.n_appended:
        appended = sizes.n_appended_nonzeros
        held.append(Held("W's rows of the appended points", EACH_PROCESS, appended, 2, "float32", 2, "start"))
    return [
        *held,
        Held("start vectors and their products", GROWING, n_points, starting, dtype, 2, "start"),
        Held("first vectors and directions", GROWING, n_points, columns, dtype, 4, "start"),
        Held("vectors while they are refined", GROWING, n_points, columns, dtype, COPIES_OF_VECTORS, "passes"),
        Held("vectors as refined", GROWING, n_points, columns, dtype, COPIES_IN_CHECKPOINT, "scaling"),
        Held("vectors wanted", GROWING, n_points, width, dtype, 1, "scaling"),
        Held("vectors wanted", GROWING, n_points, width, dtype, 1, "writing"),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: the embedding; and the checkpoints of a refinement."""
    n_points, width = sizes.dimensions.n_points, sizes.params.n_components
    stored = written(StoredEmbedding.ARRAYS, sizes)
    if not sizes.params.embedding.by_passes:
        return stored
    columns = COPIES_IN_CHECKPOINT * n_columns(width, n_points)
    return [*stored, Written("vectors of two checkpoints", PASSING, n_points, columns, vector_dtype(sizes.params), 2)]
