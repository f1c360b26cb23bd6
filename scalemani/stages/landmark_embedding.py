"""The generalised eigenproblem over the landmarks: their coordinates in every embedding that follows."""

from typing import Any

from scalemani.engine.needs import EACH_PROCESS, Held
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageWork
from scalemani.kernels.spectral.eigenproblem import LARGEST_EIGENVALUE, solve_reduced, within_range
from scalemani.stages.arrays.landmarks import StoredLandmarkEmbedding, StoredReduced

DENSE_COPIES = 4  # A~, B~, the factor and what LAPACK works in, where the problem is solved dense or fills in


def memory(sizes: Sizes) -> list[Held]:
    """List the problem where its matrices are full: the worst case."""
    n_landmarks = sizes.params.n_landmarks
    return [
        Held("values of A~ and B~", EACH_PROCESS, n_landmarks, n_landmarks, "float64", 2),
        Held("columns of A~ and B~", EACH_PROCESS, n_landmarks, n_landmarks, "int32", 2),
        Held("dense matrices and their factor", EACH_PROCESS, n_landmarks, n_landmarks, "float64", DENSE_COPIES),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Solve for the smallest eigenvalues, the trivial one left out; certify the residuals and where others begin."""
    task = work.task
    work.executor.progress.start(task.stage, 1, "eigenproblem")
    reduced = StoredReduced(task.inputs["reduced"])
    laplacian, mass = reduced.read_matrix(StoredReduced.LAPLACIAN), reduced.read_matrix(StoredReduced.MASS)
    solution = solve_reduced(laplacian, mass, task.params.n_components, following=True, seed=task.params.seed)
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
