"""The generalised eigenproblem over the landmarks: their coordinates in every embedding that follows."""

from typing import Any

from scalemani.engine.context import StageContext, Steps
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.sizes import Sizes
from scalemani.kernels.spectral.eigenproblem import (
    DENSE_LANDMARKS,
    GUARD_VECTORS,
    LARGEST_EIGENVALUE,
    MAX_BLOCKS,
    PANEL_COLUMNS,
    is_dense,
    solve_reduced,
    within_range,
)
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding, StoredReduced

DENSE_UP_TO = 1000  # landmarks; of 2,000 a Krylov space takes a third of LAPACK's time


def memory(sizes: Sizes) -> Memory:
    """Return what the lower triangles take, and either way of solving: so few may be in use that it is done dense."""
    n_landmarks, n_components = sizes.params.n_landmarks, sizes.params.n_components
    n_dense = n_landmarks if is_dense(n_landmarks, n_components) else DENSE_LANDMARKS
    space = array("float64", n_landmarks, MAX_BLOCKS * (n_components + 1 + GUARD_VECTORS))
    factor = {
        "Cholesky factor": array("float64", n_landmarks, (n_landmarks + PANEL_COLUMNS) / 2),
        "rows of it as they are filled in": 3 * array("float64", PANEL_COLUMNS, n_landmarks),
        "Krylov space and its image": 2 * space,
    }
    dense = {"dense A~, B~ and what LAPACK works in": 4 * array("float64", n_dense, n_dense)}
    triangles = {"lower triangles of A~ and B~": 2 * entries(sizes.reduced_entries)}
    return Memory(triangles, steps={"dense": Memory(dense), "factor": Memory(factor)})


def run(context: StageContext) -> dict[str, Any]:
    """Solve for the smallest eigenvalues, the trivial one left out; certify the residuals and where others begin."""
    task = context.task
    context.executor.progress.start(task.stage, 1, "eigenproblem")
    reduced = task.stored(StoredReduced)
    laplacian, mass = reduced.read_triangle(StoredReduced.LAPLACIAN), reduced.read_triangle(StoredReduced.MASS)
    solution = solve_reduced(
        laplacian,
        mass,
        task.params.n_components,
        following=True,
        over=context.executor.over,
        dense_up_to=DENSE_UP_TO,
    )
    task.output.write_whole(
        {
            StoredLandmarkEmbedding.eigenvalues: within_range(solution.eigenvalues),
            StoredLandmarkEmbedding.vectors: solution.vectors,
        }
    )
    context.executor.progress.advance()
    return {
        "largest_residual": float(solution.residuals.max()),
        # Beyond the last landmark there is none, and the largest that there may be stands for it.
        "following_eigenvalue": min(solution.following, LARGEST_EIGENVALUE),
        "near_zero_eigenvalues": int(solution.n_zero),
        "unused_landmarks": len(solution.dropped),
    }


def graphs(context: StageContext) -> Steps:
    """Yield what the driver does alone."""
    yield "eigenproblem of the landmarks"
