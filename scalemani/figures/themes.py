"""The colours of a picture that mean nothing: its paper, text and lines, light or dark."""

from dataclasses import dataclass, replace

import numpy as np

from scalemani.errors import ConfigError, nearest_name
from scalemani.figures.distinct import linear_light
from scalemani.figures.palette import DENSITY, LabelColours, rgb

Colour = tuple[int, int, int]
READABLE = 8.0  # contrast with the paper, of names over coloured points with an edge of paper


@dataclass(frozen=True)
class Theme:
    """Paper, text, what is said below, and lines; points without a label; and density, from sparse to dense."""

    paper: Colour
    ink: Colour
    pale: Colour
    frame: Colour
    no_label: str
    density: tuple[str, ...]

    def of(self, colour: Colour | str) -> Colour:
        """Return a colour, or that of a role: "paper", "ink", "pale" or "frame"."""
        found: Colour = getattr(self, colour) if isinstance(colour, str) else colour
        return found

    def readable(self, colour: np.ndarray) -> Colour:
        """Return a colour (3,), from 0 to 1, made as far from the paper as text on it must be."""
        paper = np.array(self.paper) / 255
        end = 0.0 if paper.mean() > 0.5 else 1.0
        share = 1.0
        while contrast(end + (colour - end) * share, paper) < READABLE:
            share -= 0.02
        red, green, blue = (int(value) for value in np.rint((end + (colour - end) * share) * 255))
        return red, green, blue

    def recoloured(self, colours: LabelColours | None) -> LabelColours | None:
        """Return colours of labels with points without one as pale as on this paper."""
        if colours is None or colours.missing is None:
            return colours
        table = colours.colours.copy()
        table[colours.missing] = rgb((self.no_label,))[0]
        return replace(colours, colours=table)


THEMES = {
    "light": Theme((255, 255, 255), (40, 40, 40), (110, 110, 110), (225, 225, 225), "d4d4d4", DENSITY),
    "dark": Theme(
        (21, 23, 28),
        (232, 234, 239),
        (163, 171, 185),
        (54, 59, 70),
        "4a4f5a",
        ("2b4f74", "3182bd", "6baed6", "b8d4ea", "ffffff"),
    ),
}


def theme_of(name: str) -> Theme:
    """Return a theme by its name, or raise ConfigError."""
    if name not in THEMES:
        raise ConfigError(f"unknown theme {name!r}: {nearest_name(name, THEMES)}")
    return THEMES[name]


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """Return the contrast of two colours (3,) from 0 to 1: from 1 to 21, as WCAG 2.2 defines it."""
    low, high = sorted(float(linear_light(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)
