"""What kernel discriminants store."""

from scalemani.engine.reading import Whole
from scalemani.stages.arrays.embeddings import StoredReduction, component_values, embedding_rows


class StoredKernelDiscriminants(StoredReduction, stage="kernel_discriminants"):
    """Kernel discriminants of classes, in the span of the kernel's columns that landmarks combine."""

    embedding = embedding_rows("[K Z, K 1] times `directions` less `mean`, rows in input order")
    eigenvalues = component_values(
        "the share of the regularised scatter of each component that lies between classes, descending"
    )
    directions = Whole("landmark_bound component", "float64", "what rows of [K Z, K 1] take")
    mean = Whole("component", "float64", "the mean of the coordinates before it is taken off")
