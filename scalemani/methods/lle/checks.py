"""What the data allow locally linear embeddings."""

from scalemani.runs.survey import Survey


def most_components(found: Survey) -> int:
    """Return how many components points have: one less than points."""
    return found.dimensions.n_points - 1
