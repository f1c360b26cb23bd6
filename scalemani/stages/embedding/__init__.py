"""The embedding in input order: refined by passes over the graph, or Z times the landmarks' coordinates.

By landmarks alone, tasks compute all of it, block by block. For other solvers the driver does: the vectors, N rows
of a few columns, are held in memory or mapped, and so is the graph from the first pass over its
blocks on. Refinement starts from the eigenvectors of a coarse graph, with `lll+refine` also from the landmarks'
embedding. The coarse graphs precondition each step. The vectors are stored now and then: a refinement that was killed
resumes from there and ends the same to the last bit.
"""

from typing import Any, Protocol

import numpy as np

from scalemani.config.limits import MOST_ANGLE
from scalemani.config.methods import SolverExtension, extensions
from scalemani.config.params import Resolved
from scalemani.engine.checkpoints import Checkpoints
from scalemani.engine.context import StageContext, Steps
from scalemani.engine.memory_model import Disk, Memory, array, entries
from scalemani.engine.sizes import Sizes, coarse_graphs, pixels, written
from scalemani.errors import ShortfallWarning
from scalemani.kernels.landmarks.weights import LandmarkMap
from scalemani.kernels.spectral.accuracy import (
    SubspaceAccuracy,
    count_near_zero,
    subspace_accuracy,
)
from scalemani.kernels.spectral.eigenproblem import DENSE_LANDMARKS
from scalemani.kernels.spectral.refinement import (
    n_columns,
    n_start_columns,
)
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.embedding.by_blocks import memory_by_blocks, residuals_and_blocks
from scalemani.stages.embedding.by_pieces import memory_of_pieces
from scalemani.stages.embedding.refining import vector_dtype
from scalemani.stages.embedding.solved import guards_of, values_of
from scalemani.stages.embedding.solvers import BY_LANDMARKS, SOLVERS, by_pieces, rounding_of, with_small_eigenvalues
from scalemani.stages.shared.output import embedding_memory, write_embedding
from scalemani.store.groups import StageGroup

COPIES_IN_CHECKPOINT = 4  # vectors and directions, and their products
FEWEST_LANCZOS_VECTORS = 20  # of ARPACK
LEAST_RESIDUAL = 1e-13  # that passes in float64 reach


class SpectralSolver(Protocol):
    """A solver that a method adds, which embeds landmarks by themselves and all points by these.

    GRAPH names the stage whose group has what landmarks are embedded by.
    """

    GRAPH: str

    def memory(self, sizes: Sizes, /) -> Memory:
        """Return what the stage takes of memory."""
        ...

    def disk(self, sizes: Sizes, /) -> Disk:
        """Return what the stage writes."""
        ...

    def run(self, context: StageContext, /) -> dict[str, Any]:
        """Write the embedding; return certificates."""
        ...

    def landmark_map(self, landmarks: StoredLandmarks, group: StageGroup, params: Resolved, /) -> LandmarkMap:
        """Return how points are embedded by the landmarks."""
        ...


def solver_of_method(name: str) -> SpectralSolver | None:
    """Return the solver of a name that a method adds; None where none does."""
    extension = extensions(SolverExtension).get(name)
    if extension is None:
        return None
    solver: SpectralSolver = extension.load()
    return solver


def memory(sizes: Sizes) -> Memory:
    """Return what W takes where it is passed over again and again, the vectors, and a block."""
    params, n_points, width = sizes.params, sizes.dimensions.n_points, sizes.params.n_components
    if of_method := solver_of_method(params.embedding.solver):
        return of_method.memory(sizes)
    if params.embedding.solver in BY_LANDMARKS:
        return memory_by_blocks(sizes)
    exact = params.embedding.solver == "exact"  # its matrices are in memory in any case
    by_point = {"degrees, their roots, the trivial vector, damping": array("float64", n_points, 6)}
    on_the_way = {"one of these on its way, and an order": array("float64", n_points, 4)}
    held = embedding_memory(sizes) + Memory(
        process={**pixels(sizes), **on_the_way, **(by_point if exact else {})},
        task={"a block of W: as read, decoded, and where it lies": 3 * entries(sizes.block_nonzeros, "float32")},
        points={} if exact else by_point,
    )
    if exact:
        # W by blocks and whole, scaled from the left, and from both sides; ARPACK's basis, buffers and the answer.
        basis = 3 * array("float64", n_points, 2 * width + FEWEST_LANCZOS_VECTORS)
        matrices = Memory({"W and its scaled copies": 4 * entries(sizes.nonzeros)})
        following = {"the vector that follows": 2 * array("float64", n_points)}
        held += matrices + Memory(steps={"solving": Memory({"Lanczos vectors": basis}), "writing": Memory(following)})
    return held + memory_of_pieces(sizes) + (memory_of_passes(sizes) if params.embedding.by_passes else Memory())


def memory_of_passes(sizes: Sizes) -> Memory:
    """Return what refinement takes in addition."""
    n_points, width, dtype = sizes.dimensions.n_points, sizes.params.n_components, vector_dtype(sizes.params)
    vectors = array(dtype, n_points, n_columns(width, n_points))
    wanted = {"vectors wanted": array(dtype, n_points, width)}
    guards = {"vectors that follow": array("float32", n_points, n_guards(sizes))}
    start = 2 * array(dtype, n_points, n_start_columns(width, n_points) + width)
    appended = {
        "W's rows of the appended points": 4 * array("float32", sizes.n_appended_nonzeros),
        "work rows of the earlier run": 3 * array("int64", n_points),
    }
    return coarse_graphs(sizes) + Memory(
        points={"W": entries(sizes.nonzeros, "float32")},
        steps={
            "start": Memory(
                appended if sizes.n_appended else {},
                points={"start vectors and their products": start, "first vectors and directions": 4 * vectors},
            ),
            # Vectors, directions, what is added, their products, and what a correction makes.
            "passes": Memory(points={"vectors while they are refined": 8 * vectors}),
            "scaling": Memory(
                points={
                    "vectors and directions, and their products": COPIES_IN_CHECKPOINT * vectors,
                    **wanted,
                    **guards,
                }
            ),
            "writing": Memory(points={**wanted, **guards}),
        },
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the embedding, the vectors that follow; and the checkpoints of a refinement."""
    n_points, params = sizes.dimensions.n_points, sizes.params
    if of_method := solver_of_method(params.embedding.solver):
        return of_method.disk(sizes)
    stored = written([StoredEmbedding.embedding, StoredEmbedding.eigenvalues], sizes)
    stored = {**stored, **written([StoredEmbedding.guards], sizes, guard=n_guards(sizes))}
    if params.may_fall_apart:  # two points each at least
        pieces = [StoredEmbedding.pieces, StoredEmbedding.piece_eigenvalues]
        stored = {**stored, **written(pieces, sizes, piece=n_points // 2)}
    if not params.embedding.by_passes:
        return Disk(stored)
    columns = 2 * COPIES_IN_CHECKPOINT * n_columns(params.n_components, n_points)
    return Disk(stored, {"vectors of two checkpoints": array(vector_dtype(params), n_points, columns)})


def n_guards(sizes: Sizes) -> int:
    """Return how many vectors that follow are stored."""
    embedding, n_points, width = sizes.params.embedding, sizes.dimensions.n_points, sizes.params.n_components
    if embedding.by_passes:
        return max(0, n_columns(width, n_points) - width)
    return int(embedding.solver == "exact" and n_points > DENSE_LANDMARKS)


def run(context: StageContext) -> dict[str, Any]:
    """Solve to the residual, write the embedding in input order, and certify how far it is from the exact one."""
    params = context.task.params
    solver = params.embedding.solver
    if of_method := solver_of_method(solver):
        return of_method.run(context)
    rounding = rounding_of(vector_dtype(params))
    solved, of_pieces = by_pieces(context)
    if solved is None:
        solved = with_small_eigenvalues(context, SOLVERS[solver](context), rounding)
    residual = of_pieces.get("residual", float(solved.residuals.max()))
    if params.embedding.by_passes and residual > params.residual:
        context.warn(
            f"embedding: residual {residual:.1e} after {solved.passes} passes is above the "
            f"{params.residual:.1e} asked for: raise embedding.max_passes",
            ShortfallWarning,
        )
    accuracy = subspace_accuracy(1 - solved.eigenvalues, solved.residuals, solved.following, rounding, largest=1.0)
    if solver in BY_LANDMARKS:
        # The residual of the next vector is not known: its value is one from above.
        widest = max(abs(accuracy.eigengap), accuracy.eigengap_error_bound)
        accuracy = accuracy._replace(eigengap_error_bound=widest)
    n_zero = count_near_zero(solved.eigenvalues)
    if n_zero > 1:
        warn_of_parts(context, n_zero)
    else:
        warn_of_angle(context, accuracy, float(solved.eigenvalues[-1]))
    if solved.vectors is not None:
        write_embedding(context, StoredEmbedding.embedding, solved.vectors, context.workspace.empty, guards_of(solved))
    context.task.output.write_whole(values_of(solved, params.n_components))
    Checkpoints(context.task.output).clear()
    measured = {"residual": residual, "passes": solved.passes, **accuracy._asdict()}
    return {**measured, "near_zero_eigenvalues": n_zero, **of_pieces}


def graphs(context: StageContext) -> Steps:
    """Yield what follows from the landmarks, or what the driver does alone."""
    if context.task.params.embedding.solver not in BY_LANDMARKS:
        yield "the graph is passed over by the driver, until the residual is reached"
        return
    yield residuals_and_blocks
    yield "of a graph in pieces, or of eigenvalues that vanish, the driver passes over the graph in its place"


def warn_of_parts(context: StageContext, n_zero: int) -> None:
    """Say that eigenvalues are zero to rounding; not of the start of a descent."""
    params = context.task.params
    if params.layout.objective is not None:
        return
    if params.affinities.precomputed or params.neighbors.of_pixels:
        remedy = "give affinities that join these parts, or those of one part"
    else:
        bandwidths = {"entropic": " or affinities.perplexity", "gaussian": " or affinities.sigma"}
        remedy = f"raise neighbors.n_neighbors{bandwidths.get(params.affinities.kind or '', '')}"
    context.warn(
        f"{context.task.stage}: {n_zero} eigenvalues are zero to rounding, where that of the constant vector should be "
        f"the only one: the graph falls into {n_zero} parts that next to nothing joins, and the embedding is one basis "
        f"of many of the vectors that separate these; {remedy}",
        ShortfallWarning,
    )


def known_of_angle(accuracy: SubspaceAccuracy) -> str:
    """Return in words what residuals say of the angle between an embedding and the exact one."""
    if accuracy.angle_bound is not None:
        return f"the embedding is only known to be within {accuracy.angle_bound:.2g} rad of the exact one"
    unresolved = "no angle between the embedding and the exact one follows"
    if accuracy.resolved_angle_bound is None:
        return unresolved
    first = accuracy.resolved_components
    return f"{unresolved}, only one of {accuracy.resolved_angle_bound:.2g} rad at most for its first {first} columns"


def warn_of_angle(context: StageContext, accuracy: SubspaceAccuracy, last: float) -> None:
    """Warn that the subspace is not separated from its neighbours, and say what separates it; not of a descent's start.

    `last` is the largest eigenvalue of the embedding: gaps are no wider than that where those at hand are not in order.
    """
    params = context.task.params
    angle = accuracy.angle_bound
    if params.layout.objective is not None or (angle is not None and angle <= MOST_ANGLE):
        return
    count = params.n_components
    gap = accuracy.eigengap if accuracy.eigengap > 0 else last / count
    needed = min(params.residual / 10, MOST_ANGLE * gap / (2 * np.sqrt(count)))
    remedy = f"ask for embedding.residual={needed:.0e} or less, or for " if needed >= LEAST_RESIDUAL else "ask for "
    refine = "refine the embedding (embedding.solver=refine), or ask for "
    by_solver = {"exact": "ask for ", **dict.fromkeys(BY_LANDMARKS, refine)}
    context.warn(
        f"{context.task.stage}: eigenvalues {count} and {count + 1} are {accuracy.eigengap:.1e} apart: at these "
        f"residuals this gap is wrong by up to {accuracy.eigengap_error_bound:.0e}, and {known_of_angle(accuracy)}; "
        f"{by_solver.get(params.embedding.solver, remedy)}another landmark_embedding.n_components"
    )
