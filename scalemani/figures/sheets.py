"""How panels, their legends and lines of text share a picture: one that grows with its panels, or a page of a size."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalemani.errors import ConfigError

SMALLEST_SIZE, LARGEST_SIZE = 200, 10_000  # pixels
SMALLEST_PANEL = 80
ROW_SHAPE = 1.6  # width to height of a picture that grows with its panels


@dataclass(frozen=True)
class Page:
    """A picture of fixed size: pixels, how many are an inch, and the height of text."""

    width: int
    height: int
    dpi: int
    text: int


# Paper: two columns of a journal, 7.2 inches, with text of 7 points. Slide: 16:9.
PAGES = {"paper": Page(2160, 1620, 300, 29), "slide": Page(1920, 1080, 144, 28)}
SCREEN_DPI = 100
SIZES = "a height in pixels, WIDTHxHEIGHT in pixels such as 1600x900, paper or slide"
Size = int | str | tuple[int, int]


@dataclass(frozen=True)
class Sheet:
    """Where everything goes, in pixels: panels row by row with their legends at their right."""

    width: int
    height: int
    dpi: int
    text: int
    panel: tuple[int, int]
    corners: tuple[tuple[int, int], ...]  # left and top of each panel


def checked_size(size: Any) -> int | Page:
    """Return a height in pixels, or a page.

    Raises
    ------
    ConfigError
        For another word, and for fewer than 200 or more than 10,000 pixels.
    """
    found = parsed_size(size)
    sides = (found,) if isinstance(found, int) else (found.width, found.height)
    if not all(SMALLEST_SIZE <= side <= LARGEST_SIZE for side in sides):
        raise ConfigError(f"size must be at least {SMALLEST_SIZE} pixels and at most {LARGEST_SIZE:,}, got {size}")
    return found


def parsed_size(size: Any) -> int | Page:
    """Return a height in pixels, or a page, of any extent."""
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    if isinstance(size, str) and size.lower() in PAGES:
        return PAGES[size.lower()]
    pair = re.fullmatch(r"(\d{1,6})(?:x(\d{1,6}))?", size.strip().lower()) if isinstance(size, str) else None
    sides = [int(side) for side in pair.groups() if side] if pair else list(size) if isinstance(size, tuple) else []
    if len(sides) == 1:
        return sides[0]
    if len(sides) != 2 or not all(isinstance(side, int) for side in sides):
        raise ConfigError(f"size must be {SIZES}, got {size!r}")
    return Page(sides[0], sides[1], SCREEN_DPI, text_height(*sides))


def text_height(width: int, height: int) -> int:
    """Return the height of text for a picture, in pixels."""
    return max(12, min(28, max(width, height) // 45))


def text_of(size: int | Page) -> int:
    """Return the height of text of a picture, in pixels."""
    return text_height(size, size) if isinstance(size, int) else size.text


def grid_shape(n_labels: int, n_pairs: int, size: int | Page) -> tuple[int, int]:
    """Return rows and columns of panels: a row for each labels where these have several pairs, else large panels."""
    if n_pairs > 1:
        return n_labels, n_pairs
    shape = ROW_SHAPE if isinstance(size, int) else size.width / size.height
    columns = max(range(1, n_labels + 1), key=lambda count: (min(shape / count, 1 / -(-n_labels // count)), -count))
    return -(-n_labels // columns), columns


def arrange(
    size: int | Page, grid: tuple[int, int], legends: Sequence[int], captioned: bool, titled: bool, flat: bool
) -> Sheet:
    """Return where panels go.

    Parameters
    ----------
    size : the height of a panel, or the page that all of them share
    grid : rows and columns
    legends : the width of the legend of each panel, row by row
    captioned, titled : whether each panel, and the picture, has a line above
    flat : whether panels are half as high as wide, for one dimension
    """
    rows, columns = grid
    text = text_of(size)
    margin = text
    beside = [max(legends[column::columns], default=0) for column in range(columns)]
    above = round(1.5 * text) if captioned else 0
    top = margin + (round(1.4 * text) + margin if titled else 0)
    bottom = 2 * margin + text
    if isinstance(size, int):
        side = size if columns == 1 else size * 2 // 3
        panel = (side, side // 2 if flat else side)
    else:
        across = size.width - margin * (columns + 1) - sum(beside)
        down = size.height - top - bottom - rows * above - (rows - 1) * margin
        panel = (across // columns, down // rows)
    if min(panel) < SMALLEST_PANEL:
        raise ConfigError(
            f"{rows * columns} panels with their legends leave {max(panel[0], 0)} x {max(panel[1], 0)} pixels to each: "
            "give a larger size, fewer labels, or the names of classes on the map"
        )
    corners, left = [], margin
    lefts = []
    for column in range(columns):
        lefts.append(left)
        left += panel[0] + margin + beside[column]
    for row in range(rows):
        down_to = top + above + row * (panel[1] + above + margin)
        corners += [(found, down_to) for found in lefts]
    if isinstance(size, int):
        height = top + rows * (panel[1] + above) + (rows - 1) * margin + bottom
        return Sheet(left, height, SCREEN_DPI, text, panel, tuple(corners))
    return Sheet(size.width, size.height, size.dpi, text, panel, tuple(corners))
