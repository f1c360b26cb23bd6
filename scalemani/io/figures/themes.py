"""Colours of a picture that carry no meaning: background, text and lines, light or dark."""

from dataclasses import dataclass, replace

import numpy as np

from scalemani.errors import ConfigError, nearest_name
from scalemani.io.figures.palette import DENSITY, NO_LABEL, LabelColours, rgb

READABLE = 8.0  # contrast with the background, of names over coloured points with an outline of background


@dataclass(frozen=True)
class Theme:
    """Background, text, secondary text and frames as codes; points without a label; and density, sparse to dense."""

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


def theme_of(name: str) -> Theme:
    """Return a theme by its name, or raise ConfigError."""
    if name not in THEMES:
        raise ConfigError(f"unknown theme {name!r}: {nearest_name(name, THEMES)}")
    return THEMES[name]


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """Return the contrast of two colours (3,) from 0 to 1: from 1 to 21, as WCAG 2.2 defines it."""
    colours = np.stack([one, other])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return float((high + 0.05) / (low + 0.05))
