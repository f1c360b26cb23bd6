"""The parameters of stages that a single method has; see `by_stage` for the others."""

from typing import Annotated

from pydantic import Field

from scalemani.params.fields import Part, parameters


@parameters()
class DiffusionCoordinatesParams:
    """Diffusion maps: columns are scaled by |1 - eigenvalue|^`time`, the steps of the random walk; 0 scales nothing."""

    time: Annotated[float, Field(ge=0)] = 1.0


@parameters()
class KernelDiscriminantsParams:
    """Kernel discriminants: the share `ridge` of the mean scatter that is added to the scatter in every direction."""

    ridge: Part = 1e-3


@parameters()
class LocalReconstructionParams:
    """Locally linear embedding: `reg` times the trace of a point's Gram matrix is added to each entry of its diagonal.

    That is the number of this name in scikit-learn. `landmark_weights.regularization`, of the points' weights over the
    landmarks, is a share of the mean of the diagonal.
    """

    reg: Part = 1e-3
