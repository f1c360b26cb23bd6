"""Kernel principal components by landmarks: the reduced kernel, centred, then Z times the landmarks' scores."""

from typing import TYPE_CHECKING, Any

from scalemani.engine.needs import EACH_PROCESS, Held
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageWork
from scalemani.methods.kernel_pca.kernels import centered_kernel, kernel_components
from scalemani.stages.arrays.embeddings import StoredLandmarkScores, component_values
from scalemani.stages.arrays.landmarks import StoredReduced
from scalemani.stages.shared.moments import gram_held, summed_gram
from scalemani.stages.shared.output import embedding_held, write_over_landmarks, write_scores

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey


class StoredKernelComponents(StoredLandmarkScores, stage="kernel_components"):
    """Kernel principal components of points that are combinations of landmarks."""

    eigenvalues = component_values("the leading eigenvalues of the centred kernel, descending")
    vectors = Whole("landmark component", "float64", "the scores of the landmarks")


COPIES_OF_KERNEL = 8  # the kernel, centred, whitened, with Z' Z, its factor, and eigenvectors


def memory(sizes: Sizes) -> list[Held]:
    """List the sums, the reduced problem, and the embedding in both orders."""
    n_landmarks = sizes.params.n_landmarks
    return [
        *gram_held(sizes),
        Held("reduced kernel", EACH_PROCESS, n_landmarks, n_landmarks, copies=COPIES_OF_KERNEL, step="solving"),
        embedding_held(sizes),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Solve the reduced problem; certify how far the kernel is from having no eigenvalue below zero."""
    task, output = work.task, StoredKernelComponents(work.task.output)
    reduced, gram = task.stored(StoredReduced), summed_gram(work)
    kernel = centered_kernel(reduced.read_matrix(reduced.LAPLACIAN), reduced.read_matrix(reduced.MASS), gram)
    solution, least = kernel_components(kernel, gram, task.params.n_components)
    write_scores(output, solution.eigenvalues, solution.vectors)
    if -least > solution.eigenvalues[-1]:
        work.warn(
            f"kernel_components: the kernel is not positive semidefinite, its least eigenvalue on the landmarks is "
            f"{least:.3g}, farther from zero than the last of the components, {solution.eigenvalues[-1]:.3g}: raise "
            "neighbors.n_neighbors or lower affinities.sigma"
        )
    write_over_landmarks(work, output)
    return {"least_eigenvalue": least}


def most_components(found: "Survey") -> int:
    """Return how many components points have: one less than points."""
    return found.dimensions.n_points - 1
