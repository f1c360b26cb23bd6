"""What determinantal landmarks can serve."""

from scalemani.config.params import Parameters
from scalemani.methods.determinantal.kernels.determinantal import refuse_large


def check_landmarks(params: Parameters, n_points: int) -> None:
    """Refuse more points than the exact process takes."""
    if params.landmarks.method == "dpp-exact":
        refuse_large(n_points)
