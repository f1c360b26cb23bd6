"""Principal components by landmarks: the reduced problem from sums over all points, then Z times landmarks' scores."""

from typing import TYPE_CHECKING, Any

from scalemani.engine.needs import EACH_PROCESS, Held
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageWork
from scalemani.methods.pca.kernels import principal_components
from scalemani.stages.arrays.embeddings import StoredLandmarkScores, component_values
from scalemani.stages.shared.moments import moments_held, summed_moments
from scalemani.stages.shared.output import embedding_held, write_over_landmarks, write_scores

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey


class StoredPrincipalComponents(StoredLandmarkScores, stage="principal_components"):
    """Principal components of points that are combinations of landmarks."""

    eigenvalues = component_values("the variance along each component, descending")
    vectors = Whole("landmark component", "float64", "the scores of the landmarks", "as given")


COPIES_OF_GRAM = 3  # Z' Z dense, its factor, and what the triangular solves return
COPIES_OF_MOMENTS = 4  # centred, whitened, and the singular vectors


def memory(sizes: Sizes) -> list[Held]:
    """List the sums, the reduced problem, and the embedding in both orders."""
    n_landmarks, features = sizes.params.n_landmarks, sizes.dimensions.n_features
    return [
        *moments_held(sizes),
        Held("Z' Z and its factor", EACH_PROCESS, n_landmarks, n_landmarks, copies=COPIES_OF_GRAM, step="solving"),
        Held("moments, whitened", EACH_PROCESS, n_landmarks, features, copies=COPIES_OF_MOMENTS, step="solving"),
        embedding_held(sizes),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Solve the reduced problem; certify the share of the scatter that the components hold."""
    task, output = work.task, StoredPrincipalComponents(work.task.output)
    found = summed_moments(work)
    solution = principal_components(found.gram, found.centered(), task.params.n_components)
    write_scores(output, solution.eigenvalues / (task.dimensions.n_points - 1), solution.vectors)
    write_over_landmarks(work, output)
    total = found.total_scatter
    return {"explained_share": float(solution.eigenvalues.sum() / total) if total > 0 else 1.0}


def most_components(found: "Survey") -> int:
    """Return how many components points have: their features."""
    return found.dimensions.n_features
