"""W of images and videos: of the pixels in a window around each, by Gaussian weights or by an ensemble of trees."""

from typing import TYPE_CHECKING

from scalemani.config.methods import FieldsExtension, PixelAffinitiesExtension, PixelsExtension

if TYPE_CHECKING:
    from scalemani.stages.arrays.affinities import ComputedAffinities, PixelAffinities

WINDOW, ENSEMBLE = "window", "ensemble"


def of_window() -> "ComputedAffinities":
    """Return neighbours within a window, and their Gaussian affinities."""
    from scalemani.methods.pixels import window

    return window


def of_trees() -> "PixelAffinities":
    """Return the shares of spanning trees that edges are in."""
    from scalemani.methods.pixels import ensemble

    return ensemble


def window_fields() -> type:
    """Return the parameters of windows."""
    from scalemani.methods.pixels.parameters import WindowParams

    return WindowParams


def ensemble_fields() -> type:
    """Return the parameters of trees."""
    from scalemani.methods.pixels.parameters import EnsembleParams

    return EnsembleParams


EXTENSIONS = (
    PixelsExtension(WINDOW, of_window),
    FieldsExtension(WINDOW, window_fields, stage="neighbors"),
    PixelAffinitiesExtension(ENSEMBLE, of_trees),
    FieldsExtension(ENSEMBLE, ensemble_fields, stage="affinities"),
)
