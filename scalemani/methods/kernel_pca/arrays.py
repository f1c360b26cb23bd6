"""What kernel principal components store."""

from scalemani.engine.reading import Whole
from scalemani.stages.arrays.embeddings import StoredLandmarkScores, component_values


class StoredKernelComponents(StoredLandmarkScores, stage="kernel_components"):
    """Kernel principal components of points that are combinations of landmarks."""

    eigenvalues = component_values("the leading eigenvalues of the centred kernel, descending")
    vectors = Whole("landmark component", "float64", "the scores of the landmarks")
