"""What linear discriminants store."""

from scalemani.engine.reading import Whole
from scalemani.stages.arrays.embeddings import StoredReduction, component_values, embedding_rows

DIMENSIONS = {"direction": "the dimensions of what discriminants are found in, at most D and L"}


class StoredDiscriminants(StoredReduction, stage="discriminants"):
    """Linear discriminants of classes, in the span of the landmarks' moments."""

    embedding = embedding_rows("(points - mean) @ axes, rows in input order")
    eigenvalues = component_values("the share of the scatter of each component that lies between classes, descending")
    mean = Whole("feature", "float64", "the points' mean", "as given")
    axes = Whole("feature component", "float64", "the directions", "1 / as given")
    span = Whole("feature direction", "float64", "orthonormal axes of what directions are found in")
