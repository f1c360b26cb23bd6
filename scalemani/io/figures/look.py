"""How a picture looks: its size, title, legend, theme and the size of its points."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, nearest_name
from scalemani.io.figures.palette import DENSITY, NO_LABEL, LabelColours, rgb

LEGENDS = ("auto", "beside", "map")
SUFFIXES = (".png", ".svg", ".pdf")
SMALLEST_SIZE, LARGEST_SIZE = 200, 10_000  # pixels
SMALLEST_POINTS, LARGEST_POINTS = 0.1, 20.0  # times the usual size
SCREEN_DPI = 100
SIZES = "a height in pixels, WIDTHxHEIGHT in pixels such as 1600x900, paper or slide"
Size = int | str | tuple[int, int]
READABLE = 8.0  # contrast with the background, of names over coloured points with an outline of background


@dataclass(frozen=True)
class Theme:
    """Codes of background, text, secondary text, frames and points without a label; density from sparse to dense."""

    paper: str
    ink: str
    pale: str
    frame: str
    no_label: str
    density: tuple[str, ...]

    def readable(self, colour: np.ndarray) -> np.ndarray:
        """Return a colour (3,), from 0 to 1, moved as far from the background as text on it must be."""
        paper = rgb((self.paper,))[0]
        end = 0.0 if paper.mean() > 0.5 else 1.0
        shades = (end + (colour - end) * share for share in np.linspace(1, 0, 51))
        return next(shade for shade in shades if contrast(shade, paper) >= READABLE)

    def recoloured(self, colours: LabelColours | None) -> LabelColours | None:
        """Return colours of labels with points without one as pale as on this background."""
        if colours is None or colours.missing is None:
            return colours
        table = colours.colours.copy()
        table[colours.missing] = rgb((self.no_label,))[0]
        return replace(colours, colours=table)


DARK_DENSITY = ("2b4f74", "3182bd", "6baed6", "b8d4ea", "ffffff")
THEMES = {
    "light": Theme("ffffff", "282828", "6e6e6e", "e1e1e1", NO_LABEL, DENSITY),
    "dark": Theme("15171c", "e8eaef", "a3abb9", "363b46", "4a4f5a", DARK_DENSITY),
}


@dataclass(frozen=True)
class Page:
    """A picture of fixed size: pixels, how many are an inch, and the height of text in pixels."""

    width: int
    height: int
    dpi: int
    text: int


# Paper: two columns of a journal, 7.2 inches, with text of 7 points. Slide: 16:9.
PAGES = {"paper": Page(2160, 1620, 300, 29), "slide": Page(1920, 1080, 144, 28)}


@dataclass(frozen=True)
class Look:
    """The size (that of a panel in pixels, or a page), title, kind of legend, theme and relative size of points."""

    size: int | Page
    title: str
    legend: str
    theme: Theme = THEMES["light"]
    point_size: float = 1.0

    @property
    def text(self) -> int:
        """The height of text in pixels."""
        return text_height(self.size, self.size) if isinstance(self.size, int) else self.size.text

    @property
    def dpi(self) -> int:
        """Pixels an inch."""
        return SCREEN_DPI if isinstance(self.size, int) else self.size.dpi

    def points(self, pixels: float) -> float:
        """Return pixels in points of 1/72 inch, in which Matplotlib gives widths and heights of text."""
        return pixels * 72 / self.dpi


def checked_look(
    size: Size = 1200, title: str = "", legend: str = "auto", theme: str = "light", point_size: float = 1.0
) -> Look:
    """Return how a picture looks, or raise ConfigError.

    Parameters
    ----------
    size : the height of a panel in pixels; or that of the whole picture: "paper" (7.2 x 5.4 inches at 300 dpi),
        "slide" (1920 x 1080 pixels), "1600x900" or (1600, 900)
    title : above the picture
    legend : where the names of classes are: "beside" the panel, on their clusters in the "map", or "auto": beside up to
        20 classes, on the map of more
    theme : "light" or "dark" background
    point_size : how many times as large discs are as usual, from 0.1 to 20; where points are dense there are no discs
    """
    if legend not in LEGENDS:
        raise ConfigError(f"unknown legend {legend!r}: {nearest_name(legend, LEGENDS)}")
    if theme not in THEMES:
        raise ConfigError(f"unknown theme {theme!r}: {nearest_name(theme, THEMES)}")
    if not SMALLEST_POINTS <= point_size <= LARGEST_POINTS:
        raise ConfigError(
            f"point_size must be from {SMALLEST_POINTS} to {LARGEST_POINTS} times the usual, got {point_size}"
        )
    return Look(checked_size(size), " ".join(title.split()), legend, THEMES[theme], float(point_size))


def checked_size(size: Any) -> int | Page:
    """Return the height of a panel in pixels, or a page, or raise ConfigError."""
    written = "x".join(map(str, size)) if isinstance(size, tuple) else str(size).strip().lower()
    if written in PAGES:
        return PAGES[written]
    parts = re.fullmatch(r"(\d{1,6})(?:x(\d{1,6}))?", written)
    if parts is None:
        raise ConfigError(f"size must be {SIZES}, got {size!r}")
    sides = [int(side) for side in parts.groups() if side]
    if not all(SMALLEST_SIZE <= side <= LARGEST_SIZE for side in sides):
        raise ConfigError(f"size must be at least {SMALLEST_SIZE} pixels and at most {LARGEST_SIZE:,}, got {size}")
    return sides[0] if len(sides) == 1 else Page(sides[0], sides[1], SCREEN_DPI, text_height(*sides))


def text_height(width: int, height: int) -> int:
    """Return the height of text for a picture, in pixels."""
    return max(12, min(28, max(width, height) // 45))


def checked_suffix(path: Path) -> None:
    """Refuse a picture in another format."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"a picture is written as .png, .svg or .pdf, got {path}")


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """Return the contrast of two colours (3,) from 0 to 1: from 1 to 21, as WCAG 2.2 defines it."""
    colours = np.stack([one, other])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return float((high + 0.05) / (low + 0.05))
