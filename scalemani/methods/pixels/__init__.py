"""W of images and videos: of the pixels in a window around each, by Gaussian weights or by an ensemble of trees."""

from typing import TYPE_CHECKING

from scalemani.config.methods import PixelsExtension

if TYPE_CHECKING:
    from scalemani.stages.arrays.affinities import PixelAffinities


def of_window() -> "PixelAffinities":
    """Return Gaussian affinities of the pixels of a window."""
    from scalemani.methods.pixels import window

    return window


def of_trees() -> "PixelAffinities":
    """Return the shares of spanning trees that edges are in."""
    from scalemani.methods.pixels import ensemble

    return ensemble


EXTENSIONS = (PixelsExtension("window", of_window), PixelsExtension("ensemble", of_trees))
