"""What the data and other parameters allow Isomap."""

from scalemani.config.params import Parameters
from scalemani.errors import ConfigError
from scalemani.runs.survey import Survey


def most_components(found: Survey) -> int:
    """Return how many components points have; a line has the distances of a line."""
    return 1 if found.dimensions.n_features == 1 else found.dimensions.n_points - 1


def check_parameters(params: Parameters) -> None:
    """Refuse landmarks off the data."""
    if params.landmarks.off_data:
        raise ConfigError(
            f"isomap measures paths between landmarks that are points, and landmarks.method={params.landmarks.method} "
            "puts them elsewhere: take another landmarks.method, or landmarks.snap=true"
        )
