"""Orders of a tile's rows in which entropic affinities are solved, for comparisons with the one by density."""

from typing import TYPE_CHECKING

from scalemani.config.methods import OrderExtension

if TYPE_CHECKING:
    from scalemani.kernels.affinities.entropic import RowOrder


def mst() -> "RowOrder":
    """Return the order along a minimum spanning tree of the rows."""
    from scalemani.methods.affinity_orders.kernels import mst

    return mst


def path() -> "RowOrder":
    """Return the order along a path from neighbour to neighbour."""
    from scalemani.methods.affinity_orders.kernels import path

    return path


def raster() -> "RowOrder":
    """Return the order of the rows."""
    from scalemani.methods.affinity_orders.kernels import raster

    return raster


def random() -> "RowOrder":
    """Return a random order."""
    from scalemani.methods.affinity_orders.kernels import random

    return random


EXTENSIONS = (
    OrderExtension("mst", mst, by_graph=True),
    OrderExtension("path", path, by_graph=True),
    OrderExtension("raster", raster),
    OrderExtension("random", random),
)
