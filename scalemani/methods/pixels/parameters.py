"""The parameters of windows of pixels, and of ensembles of trees."""

from typing import Annotated

from pydantic import AfterValidator, Field

from scalemani.config.params.conditions import POINTS, Acts, Configuration, OneOf, Where
from scalemani.config.params.fields import Count, CountOrZero, Positive, Tuned, Unkeyed, parameters

OF_WINDOW = Acts("neighbors.method", OneOf("window"))
OF_TREES = Acts("affinities.kind", OneOf("ensemble"))


def odd(width: int) -> int:
    """Return an odd number; raise ValueError for an even one."""
    if width % 2 == 0:
        raise ValueError("must be odd: the pixel is in the middle of its window")
    return width


WindowWidth = Annotated[int, Field(ge=3), AfterValidator(odd)]


def has_frames(here: Configuration) -> bool:
    """Return whether pixels are those of a video."""
    return here.part(WindowParams).image(here.value(POINTS))[0] > 1


@parameters()
class WindowParams:
    """`method` window is for images and videos.

    The neighbours of a pixel are the others in a square of `window` x `window` pixels around it, and the same pixel in
    so many `frames` before and after. `image_rows` and `image_columns` are set by the image; give them for a table of
    pixels, row by row, with other features.
    """

    window: Unkeyed[Annotated[WindowWidth, OF_WINDOW]] = 11
    frames: Unkeyed[Annotated[CountOrZero, OF_WINDOW, Acts(POINTS, Where("above those of one frame", has_frames))]] = 1
    image_rows: Unkeyed[Annotated[Count | None, OF_WINDOW]] = None
    image_columns: Unkeyed[Annotated[Count | None, OF_WINDOW]] = None

    @property
    def reach(self) -> tuple[int, int]:
        """How far a window goes: pixels to each side, and frames before and after."""
        return self.window // 2, self.frames

    def image(self, n_pixels: int) -> tuple[int, int, int]:
        """Return frames, rows and columns of so many pixels."""
        rows, columns = self.image_rows or 1, self.image_columns or n_pixels
        return n_pixels // (rows * columns), rows, columns

    def neighbors_in_window(self, n_pixels: int) -> int:
        """Return the most neighbours that a pixel has within its window."""
        return self.window**2 - 1 + 2 * self.frames * (self.image(n_pixels)[0] > 1)


@parameters()
class EnsembleParams:
    """An `ensemble` of minimum spanning trees is for images: an edge weighs the share of the trees that it is in.

    It has `trees` minimum spanning trees, each of pixels that are jittered. The standard deviation of the jitter is the
    share `jitter` of the mean distance of a pixel to those of its window. Both are those of [LLL] 4.8.4.
    """

    trees: Tuned[Annotated[Count, OF_TREES]] = 10
    jitter: Tuned[Annotated[Positive, OF_TREES]] = 0.4
