"""The generalised eigenproblem over the landmarks: their coordinates in every embedding that follows."""

from typing import Any

from scalemani.engine.needs import EACH_PROCESS, Held, entries_held
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageWork
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

DENSE_COPIES = 4  # A~, B~ and what LAPACK works in, where the problem is solved dense
COPIES_OF_SPACE = 2  # the Krylov space and its image
DENSE_UP_TO = 1000  # landmarks; of 2,000 a Krylov space takes a third of LAPACK's time


def memory(sizes: Sizes) -> list[Held]:
    """List the lower triangles, and what either way of solving takes: dense matrices, or a factor and a Krylov space.

    So many landmarks may be in use that the problem is solved dense.
    """
    n_landmarks, n_components, entries = sizes.params.n_landmarks, sizes.params.n_components, sizes.reduced_entries
    n_dense = n_landmarks if is_dense(n_landmarks, n_components) else DENSE_LANDMARKS
    width = n_components + 1 + GUARD_VECTORS
    return [
        *entries_held("the lower triangles of A~ and B~", EACH_PROCESS, entries, 2),
        Held("dense matrices", EACH_PROCESS, n_dense, n_dense, "float64", DENSE_COPIES, "dense"),
        Held("Cholesky factor", EACH_PROCESS, n_landmarks, (n_landmarks + PANEL_COLUMNS) / 2, step="factor"),
        Held("rows of it as they are filled in", EACH_PROCESS, PANEL_COLUMNS, n_landmarks, copies=3, step="factor"),
        Held("Krylov space", EACH_PROCESS, n_landmarks, MAX_BLOCKS * width, copies=COPIES_OF_SPACE, step="factor"),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Solve for the smallest eigenvalues, the trivial one left out; certify the residuals and where others begin."""
    task = work.task
    work.executor.progress.start(task.stage, 1, "eigenproblem")
    reduced = task.stored(StoredReduced)
    laplacian, mass = reduced.read_triangle(StoredReduced.LAPLACIAN), reduced.read_triangle(StoredReduced.MASS)
    solution = solve_reduced(
        laplacian,
        mass,
        task.params.n_components,
        following=True,
        over=work.executor.over,
        dense_up_to=DENSE_UP_TO,
    )
    task.output.write_whole(
        {
            StoredLandmarkEmbedding.eigenvalues: within_range(solution.eigenvalues),
            StoredLandmarkEmbedding.vectors: solution.vectors,
        }
    )
    work.executor.progress.advance()
    return {
        "largest_residual": float(solution.residuals.max()),
        # Beyond the last landmark there is none, and the largest that there may be stands for it.
        "following_eigenvalue": min(solution.following, LARGEST_EIGENVALUE),
        "near_zero_eigenvalues": int(solution.n_zero),
        "unused_landmarks": len(solution.dropped),
    }
