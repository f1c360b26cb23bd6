"""The fast Gauss transform: Gaussian sums by Hermite and Taylor expansions, with bounds of their errors."""

from typing import TYPE_CHECKING

from scalemani.config.methods import RepulsionExtension

if TYPE_CHECKING:
    from scalemani.kernels.repulsion.pair_sums import ApproximateSums


def transform() -> "type[ApproximateSums]":
    """Return the transform."""
    from scalemani.methods.fast_gauss.kernels.fast_gauss import FastGauss

    return FastGauss


EXTENSIONS = (RepulsionExtension("fgt", transform, ("gaussian",), "order"),)
