"""The generalised eigenproblem over the landmarks: their coordinates in every embedding that follows."""

from typing import Any

from scalemani.chunked.work import Dimensions, DiskNeed, StageWork
from scalemani.kernels.spectral.eigenproblem import solve_reduced
from scalemani.params import Parameters
from scalemani.records.landmarks import StoredLandmarkEmbedding, StoredReduced
from scalemani.workers.budget import MemoryNeed

FACTOR_BYTES_PER_ENTRY = 8
DENSE_COPIES = 3  # A~, B~ and the factor, where the problem is solved dense or fills in


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the problem when its factor fills in completely: the worst case."""
    return MemoryNeed(0, DENSE_COPIES * FACTOR_BYTES_PER_ENTRY * params.n_landmarks**2)


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the landmarks' coordinates."""
    return DiskNeed(8 * params.n_components * (params.n_landmarks + 1))


def run(work: StageWork) -> dict[str, Any]:
    """Solve for the smallest eigenvalues, the trivial one left out; certify the residuals."""
    task = work.task
    work.executor.progress.start(task.stage, 1)
    reduced = StoredReduced(task.inputs["reduced"])
    laplacian, mass = reduced.read_matrix(StoredReduced.LAPLACIAN), reduced.read_matrix(StoredReduced.MASS)
    solution = solve_reduced(laplacian, mass, task.params.n_components, seed=task.params.seed)
    task.output.write_whole(
        {
            StoredLandmarkEmbedding.EIGENVALUES: solution.eigenvalues,
            StoredLandmarkEmbedding.VECTORS: solution.vectors,
        }
    )
    work.executor.progress.advance()
    return {
        "largest_residual": float(solution.residuals.max()),
        "near_zero_eigenvalues": int(solution.n_zero),
        "unused_landmarks": len(solution.dropped),
    }
