"""What landmarks of a Gaussian process can serve."""

from scalemani.config.params import Parameters
from scalemani.methods.gaussian_process.kernels.batches import batch_size


def check_landmarks(params: Parameters, n_points: int) -> None:
    """Refuse batches of no more points than landmarks."""
    if params.landmarks.method == "gp":
        batch_size(n_points, params.n_landmarks, params.landmarks.batch_points)
