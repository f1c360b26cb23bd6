"""What a picture is made of, in pixels from its upper left corner, and how it is drawn: as pixels, or as a page."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError
from scalemani.export.atomic import replaced_file
from scalemani.figures.themes import THEMES, Colour, Theme
from scalemani.sources.base import optional_module

FINER = 4  # pixels of a disc in each direction for one of the picture: its edge is smooth
POINTS_AN_INCH = 72
ANCHORS = {"l": "left", "m": "center", "r": "right"}
SUFFIXES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Pixels:
    """An image (h, w, 3) uint8 at its own size."""

    left: float
    top: float
    image: np.ndarray


@dataclass(frozen=True)
class Words:
    """A line of text whose middle height is at y, and whose left end, middle or right end (l, m, r) is at x.

    `colour` is one, or the role of one in the theme.
    """

    x: float
    y: float
    text: str
    size: float
    colour: Colour | str = "ink"
    anchor: str = "l"
    halo: bool = False

    def moved(self, across: float, down: float) -> "Words":
        """Return the same text at another place."""
        return replace(self, x=self.x + across, y=self.y + down)


@dataclass(frozen=True)
class Discs:
    """Discs (n, 2) of one radius, a colour (n, 3) from 0 to 1 each; rings where `filled` is false."""

    places: np.ndarray
    radius: float
    colours: np.ndarray
    opacity: float = 1.0
    filled: bool = True


@dataclass(frozen=True)
class Stroke:
    """A line through places (n, 2)."""

    places: tuple[tuple[float, float], ...]
    colour: Colour | str = "frame"
    width: float = 1.0

    def moved(self, across: float, down: float) -> "Stroke":
        """Return the same line at another place."""
        return replace(self, places=tuple((x + across, y + down) for x, y in self.places))


@dataclass
class Drawing:
    """A picture of `width` times `height` pixels, `dpi` of them an inch; later parts lie over earlier ones."""

    width: int
    height: int
    dpi: int
    theme: Theme = THEMES["light"]
    parts: list[Pixels | Words | Discs | Stroke] = field(default_factory=list)

    def add(self, *parts: Pixels | Words | Discs | Stroke) -> None:
        """Draw parts over those that are there."""
        self.parts.extend(parts)


def font_file() -> Path:
    """Return a font that comes with Matplotlib: the same in pixels and on pages, with Latin, Greek and Cyrillic."""
    return Path(optional_module("matplotlib", "figures").get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


def font_of(size: float) -> Any:
    """Return the font of pictures, in pixels."""
    return optional_module("PIL.ImageFont", "figures").truetype(str(font_file()), size)


def widths_of(texts: Sequence[str], size: float) -> np.ndarray:
    """Return the widths (n,) of texts in pixels."""
    font = font_of(size)
    return np.array([font.getlength(text) for text in texts])


def as_pixels(drawing: Drawing) -> Any:
    """Return a drawing as a picture of Pillow."""
    theme = drawing.theme
    picture = optional_module("PIL.Image", "figures").new("RGB", (drawing.width, drawing.height), theme.paper)
    pen = optional_module("PIL.ImageDraw", "figures").Draw(picture)
    for part in drawing.parts:
        match part:
            case Pixels(left, top, image):
                picture.paste(optional_module("PIL.Image", "figures").fromarray(image), (round(left), round(top)))
            case Words(x, y, text, size, colour, anchor, halo):
                edge = {"stroke_width": max(1, round(size / 8)), "stroke_fill": theme.paper} if halo else {}
                pen.text((x, y), text, fill=theme.of(colour), font=font_of(size), anchor=f"{anchor}m", **edge)
            case Stroke(places, colour, width):
                pen.line(places, fill=theme.of(colour), width=max(1, round(width)), joint="curve")
            case Discs():
                stamp_discs(picture, part)
    return picture


def stamp_discs(picture: Any, discs: Discs) -> None:
    """Draw discs or rings on a picture of Pillow, with smooth edges."""
    image, drawing = (optional_module(f"PIL.{name}", "figures") for name in ("Image", "ImageDraw"))
    side = 2 * int(np.ceil(discs.radius)) + 3
    mask = image.new("L", (side * FINER, side * FINER), 0)
    low, high = ((side / 2 + sign * discs.radius) * FINER for sign in (-1, 1))
    level = round(255 * discs.opacity)
    outline = {"fill": level} if discs.filled else {"outline": level, "width": ring_width(discs.radius) * FINER}
    drawing.Draw(mask).ellipse((low, low, high - 1, high - 1), **outline)
    mask = mask.resize((side, side), image.Resampling.BOX)
    for (x, y), colour in zip(discs.places, np.rint(discs.colours * 255).astype(int), strict=True):
        picture.paste(tuple(int(value) for value in colour), (round(x - side / 2), round(y - side / 2)), mask)


def ring_width(radius: float) -> int:
    """Return the width of the line of a ring."""
    return max(1, round(radius / 4))


def write_page(drawing: Drawing, path: Path) -> None:
    """Write a drawing as .svg or .pdf: text stays text, lines and discs stay lines and discs, images have their pixels.

    The same drawing gives the same bytes.
    """
    matplotlib = optional_module("matplotlib", "figures")
    figures = optional_module("matplotlib.figure", "figures")
    inches = drawing.width / drawing.dpi, drawing.height / drawing.dpi
    settings = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "scalemani"}
    form = path.suffix.lower()[1:]
    undated = {"Date": None} if form == "svg" else {"CreationDate": None}
    with matplotlib.rc_context(settings):
        figure = figures.Figure(figsize=inches, dpi=drawing.dpi, facecolor=hexadecimal(drawing.theme.paper))
        axes = figure.add_axes((0, 0, 1, 1))
        for number, part in enumerate(drawing.parts):
            draw_on_page(axes, part, POINTS_AN_INCH / drawing.dpi, number, drawing.theme)
        axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0), aspect="auto")
        axes.set_axis_off()
        with replaced_file(path) as file:
            figure.savefig(file, format=form, dpi=drawing.dpi, metadata=undated)


def draw_on_page(axes: Any, part: Pixels | Words | Discs | Stroke, points: float, order: int, theme: Theme) -> None:
    """Draw one part of a picture on the axes of Matplotlib.

    Parameters
    ----------
    axes : in pixels, y downwards
    part : what is drawn
    points : 1/72 inch, that a pixel is
    order : of the part: what has a higher one lies on top
    theme : of the picture
    """
    match part:
        case Pixels(left, top, image):
            height, width = image.shape[:2]
            extent = (left, left + width, top + height, top)
            axes.imshow(image, extent=extent, interpolation="none", zorder=order)
        case Words(x, y, text, size, colour, anchor, halo):
            style = {"fontsize": size * points, "ha": ANCHORS[anchor], "va": "center", "parse_math": False}
            if halo:  # outlines below, and the text itself on top: it stays one that can be searched and edited
                paper = hexadecimal(theme.paper)
                stroke = optional_module("matplotlib.patheffects", "figures").Stroke
                effects = [stroke(linewidth=size / 4 * points, foreground=paper)]
                axes.text(x, y, text, color=paper, zorder=order, path_effects=effects, **style)
            axes.text(x, y, text, color=hexadecimal(theme.of(colour)), zorder=order, family="DejaVu Sans", **style)
        case Stroke(places, colour, width):
            axes.plot(*np.array(places).T, color=hexadecimal(theme.of(colour)), linewidth=width * points, zorder=order)
        case Discs(places, radius, colours, opacity, filled):
            face = {"facecolors": colours, "linewidths": 0} if filled else {"facecolors": "none", "edgecolors": colours}
            line = {} if filled else {"linewidths": ring_width(radius) * points}
            axes.scatter(*places.T, s=(2 * radius * points) ** 2, alpha=opacity, zorder=order, **face, **line)


def hexadecimal(colour: Colour) -> str:
    """Return a colour as a page names it."""
    return f"#{bytes(colour).hex()}"


def save(picture: Any, path: Path) -> None:
    """Write a picture of Pillow as .png, in one step."""
    with replaced_file(path) as file:
        picture.save(file, format="PNG")


def write_drawing(drawing: Drawing, path: Path) -> None:
    """Write a drawing as .png, .svg or .pdf, in one step."""
    if path.suffix.lower() == ".png":
        with replaced_file(path) as file:
            as_pixels(drawing).save(file, format="PNG", dpi=(drawing.dpi, drawing.dpi))
    else:
        write_page(drawing, path)


def checked_suffix(path: Path) -> None:
    """Refuse a picture in another form."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"a picture is written as .png, .svg or .pdf, got {path}")
