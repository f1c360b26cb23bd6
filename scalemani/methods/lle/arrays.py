"""What locally linear embeddings store."""

from scalemani.engine.reading import Whole
from scalemani.stages.arrays.embeddings import StoredLandmarkScores, component_values


class StoredLocalReconstruction(StoredLandmarkScores, stage="local_reconstruction"):
    """The locally linear embedding of points that are combinations of landmarks."""

    eigenvalues = component_values(
        "the sum of the squares that neighbours leave of each coordinate, whose squares sum to one; ascending"
    )
    vectors = Whole("landmark component", "float64", "the coordinates of the landmarks")
