"""Sums of a kernel over the cells of a tree, after Barnes and Hut."""

from typing import TYPE_CHECKING

from scalemani.config.methods import RepulsionExtension

if TYPE_CHECKING:
    from scalemani.kernels.repulsion.pair_sums import ApproximateSums


def trees() -> "type[ApproximateSums]":
    """Return the sums over trees."""
    from scalemani.methods.barnes_hut.kernels import BarnesHut

    return BarnesHut


EXTENSIONS = (RepulsionExtension("barnes-hut", trees, ("gaussian", "student"), "theta", finer=True),)
