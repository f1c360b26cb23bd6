"""The parameters of kernel discriminants."""

from scalemani.config.params.fields import Part, parameters


@parameters()
class KernelDiscriminantsParams:
    """Kernel discriminants: the share `ridge` of the mean scatter that is added to the scatter in every direction."""

    ridge: Part = 1e-3
