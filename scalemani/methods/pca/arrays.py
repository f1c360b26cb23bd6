"""What principal components store."""

from scalemani.engine.reading import Whole
from scalemani.stages.arrays.embeddings import StoredLandmarkScores, component_values


class StoredPrincipalComponents(StoredLandmarkScores, stage="principal_components"):
    """Principal components of points that are combinations of landmarks."""

    eigenvalues = component_values("the variance along each component, descending")
    vectors = Whole("landmark component", "float64", "the scores of the landmarks", "as given")
