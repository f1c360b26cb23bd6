"""What the data allow principal components."""

from scalemani.runs.survey import Survey


def most_components(found: Survey) -> int:
    """Return how many components points have: their features."""
    return found.dimensions.n_features
