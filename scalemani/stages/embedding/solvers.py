"""The solvers of the embedding: by refinement, by landmarks, exact; and graphs in pieces, each solved by itself."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from scalemani.config.methods import ReductionExtension, extensions
from scalemani.config.stages import LLL, REFINE
from scalemani.engine.context import StageContext
from scalemani.kernels.spectral.accuracy import (
    ROUNDINGS,
    UNKNOWN,
    Following,
    following_value,
)
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps
from scalemani.kernels.spectral.eigenproblem import within_range
from scalemani.kernels.spectral.pieces import PieceTarget
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding
from scalemani.stages.embedding.by_blocks import residuals_and_blocks
from scalemani.stages.embedding.by_pieces import embed_pieces, pieces_of
from scalemani.stages.embedding.refining import by_refinement, vector_dtype
from scalemani.stages.embedding.solved import Solved
from scalemani.stages.embedding.streaming import StreamedGraph, residuals_of, unit_vectors, whole_matrix
from scalemani.stages.shared.output import create_embedding, over_landmarks

# Solvers whose vectors are Z times those of the landmarks, without a pass.
BY_LANDMARKS = (LLL, *extensions(ReductionExtension))
SMALL_EIGENVALUE = 32  # times the rounding of 1 - theta: eigenvalues below are computed as sums of squares


def by_pieces(context: StageContext) -> tuple[Solved | None, dict[str, Any]]:
    """Return the solution and certificates of a graph in pieces, each solved by itself; None where it is connected."""
    params = context.task.params
    if not params.may_fall_apart:
        return None, {}
    pieces = pieces_of(context, StreamedGraph(context).degrees)
    if pieces is None:
        return None, {}
    embedding, exact = params.embedding, params.embedding.solver == "exact"
    target = PieceTarget(
        params.n_components, exact, params.residual, embedding.max_passes, vector_dtype(params), params.seed
    )
    vectors, largest, certificates = embed_pieces(context, pieces, target)
    return Solved(vectors, *largest[1:]), certificates


def with_small_eigenvalues(context: StageContext, solved: Solved, rounding: float) -> Solved:
    """Return an embedding with eigenvalues in [0, 2], ascending; those that rounding reaches are computed anew.

    1 - theta has the rounding of theta, which is near 1. The quadratic form of L is a sum of squares, and exact for the
    vectors as they are.

    Parameters
    ----------
    rounding : of 1 - theta
    """
    if solved.vectors is None or solved.eigenvalues.min() >= SMALL_EIGENVALUE * rounding:
        return solved._replace(eigenvalues=within_range(solved.eigenvalues, rounding))
    values = StreamedGraph(context).quotients(solved.vectors)
    order = np.argsort(values, kind="stable")
    vectors = solved.vectors if (np.diff(order) > 0).all() else solved.vectors[:, order]
    return solved._replace(
        vectors=vectors, eigenvalues=within_range(values[order], rounding), residuals=solved.residuals[order]
    )


def rounding_of(dtype: DTypeLike) -> float:
    """Return the rounding of an inner product of unit vectors of a dtype."""
    return ROUNDINGS * float(np.finfo(dtype).eps)


def by_landmarks(context: StageContext) -> Solved:
    """Return the solution over the landmarks, whose vectors are Z times their coordinates: one pass certifies them.

    The same graph of tasks writes them by blocks, and they are not returned; where eigenvalues are so small that they
    have to be computed anew, vectors are returned, and not written.
    The coordinates of the next vector are not stored: its residual is taken to be the largest of those before it.
    """
    solved, vectors = context.task.stored(StoredLandmarkEmbedding), None
    if solved.eigenvalues.read().min() >= SMALL_EIGENVALUE * rounding_of(np.float64):
        create_embedding(context.task, StoredEmbedding.embedding)
        residuals = context.compute(residuals_and_blocks).residuals
    else:
        context.executor.progress.start(context.task.stage, 1, "pass")
        vectors = over_landmarks(context.task, solved.vectors.read(), context.workspace.empty)
        residuals = residuals_of(StreamedGraph(context), vectors)
    # A store that an older version wrote may not say it.
    following = solved.group.record["certificates"].get("following_eigenvalue")
    known = UNKNOWN if following is None else Following.one(1 - following, float(residuals.max()))
    return Solved(vectors, solved.eigenvalues.read(), residuals, known)


def by_exact_solver(context: StageContext) -> Solved:
    """Return what a sparse eigensolver finds in memory, to machine precision."""
    graph = StreamedGraph(context)
    context.executor.progress.start(context.task.stage, 1, "eigenproblem")
    affinities = whole_matrix(context.task)
    solution = exact_eigenmaps(affinities, context.task.params.n_components)
    following = following_value(affinities, 1 - solution.eigenvalues, unit_vectors(graph, solution.embedding))
    return Solved(solution.embedding, solution.eigenvalues, residuals_of(graph, solution.embedding), following)


SOLVERS = {
    REFINE: by_refinement,
    **dict.fromkeys(BY_LANDMARKS, by_landmarks),
    "lll+refine": by_refinement,
    "exact": by_exact_solver,
}
