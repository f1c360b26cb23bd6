"""The parameters of locally linear embedding."""

from scalemani.config.params.fields import Part, parameters


@parameters()
class LocalReconstructionParams:
    """Locally linear embedding: `reg` times the trace of a point's Gram matrix is added to each entry of its diagonal.

    That is the number of this name in scikit-learn. `landmark_weights.regularization`, of the points' weights over the
    landmarks, is a share of the mean of the diagonal.
    """

    reg: Part = 1e-3
