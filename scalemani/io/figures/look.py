"""How a picture looks: the colours of labels, distinct with any kind of colour vision, its size, legend and theme."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, check_known
from scalemani.io.sources import open_labels
from scalemani.io.sources.base import natural_order
from scalemani.io.sources.label_values import categories_of, colours_of_categories, is_absent

# Petroff (2021), Accessible color sequences for data visualization, arXiv:2107.02270: ten colours.
TEN_COLOURS = ("3f90da", "ffa90e", "bd1f01", "94a4a2", "832db6", "a96b59", "e76300", "b9ac70", "717581", "92dadd")
# Classes beyond ten: each the colour of a grid of 24^3 in sRGB, with a lightness from 0.35 to 0.85, that is farthest in
# Oklab from all before it, white, and the grey of points without a label; with deuteranopia where twice that is nearer.
# `tests/io/figures/test_palette.py` computes them. Those of glasbey 0.4 are half as far from each other or nearer.
FURTHER_COLOURS = """
ff64ff 004e00 0000ff 00377a 6f004e 0bf485 bc2cff e921a6 16b164 6f4e21 4e59e9 f490b1 007a4e a685ff 4300b1 85436f
858500 006490 d3b1ff 9b64b1 7ac800 00bcd3 b11690 85d390 4e4390 2c594e 0b43c8 d35985 d364d3 bcde4e 593737 5964b1
85162c c81664 6416e9 f4164e bc0bc8 4e2c64 c89085 ff6fc8 640090 850b7a 85bce9 d39000 ffb1b1 8585bc 43907a 8559de
ff9b6f ff5959 00902c bc85bc 6f6f37 2c7aa6 6f7ae9 2100d3 9037ff 909be9 00dec8 4ea69b 00c89b 859064 9b3737 d3c864
0b4e6f 9b0b59 b164ff e92ce9 645985 004eff b14ec8 4e4e64 006fc8 c8439b 436f64 bcc8f4 592cb1 b1c8b1 4eb1ff 7a2c00
37de2c 6f9b00 2c4321 4e6f00 ff1685 9bbc4e 21219b ff90e9 9b00a6 f4c800 90439b 6443d3 b15900 0b6437 bc854e d34343
b14e4e 90596f b16fd3 d3a690 d3a6d3 4316de 856f9b 00c837 debc85 649bbc d385e9 debcc8 a6000b b19bbc 9b7a90 7abc85
6f90f4 0b646f de9bff d390b1 2c37a6 e97a6f 2159a6 6f594e 6fb121 9b4e85 bc646f 4e4321 6f3790 d32cc8 59166f f45990
64c8bc 4ed36f ff2cd3 6f2c59 de59b1 217af4 439b4e 374ebc 85644e 592c85 0000bc 2c2cff 6fe921 a64ea6 004e43 a62c7a
a6902c 647a21 bc437a 7ae99b 857a64 6f0b7a 2190a6 43649b 85e96f a600de 854337 00434e b137de 6fbc59 0090ff 901600
9b9b7a 9b6fe9 64370b 850043 b12143 4e37d3 d390d3 162cbc 00e99b 6f4ebc ff37b1 00b190 435921 4e169b a6d337 374e85
2ca6de 7a0064 b1b19b 7a21e9 21c8f4 ff00f4 9b59d3 b1b1de 904ebc 37377a 2c4359 d3b100 852c64 433737 b16fb1 d30090
c82cde e9b159 6f219b 852c85 4e6fc8 7a9b59 850b9b 646f9b f4a6de 594e43 7aa6de 8585de bc90f4 437a59 bca621 59e9bc
0085bc 3759ff 166f59 6f8543 b1bc85 4e7a90 9b167a c86f90 a600bc 9016c8 2c7a21 59bcde ff4364 e9a6bc 64b16f 59deff
bc4ef4 2c4ede 90c89b 372190 854e21 a6d36f 21856f 854e85 e9377a 4e0bc8 7a85a6 210be9 8537d3 594e9b 4e37f4 9b16f4
b12164 856ff4 6464e9 bc21b1 6400bc b17a9b
"""
# Van der Walt and Smith (2015), viridis: even in lightness, read alike with and without colour.
VIRIDIS = ("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")
DENSITY = ("b8d4ea", "6baed6", "3182bd", "08519c", "08306b")
NO_LABEL = "d4d4d4"
RAMP_STEPS = 256
LARGEST_CLASSES = 256
LARGEST_LEGEND = 20
ROBUST_PERCENT = (0.5, 99.5)
LEGENDS = ("auto", "beside", "map")
SUFFIXES = (".png", ".svg", ".pdf")
SMALLEST_SIZE, LARGEST_SIZE = 200, 10_000  # pixels
SMALLEST_POINTS, LARGEST_POINTS = 0.1, 20.0  # times the usual size
SCREEN_DPI = 100
SIZES = "a height in pixels, WIDTHxHEIGHT in pixels such as 1600x900, paper or slide"
Size = int | str | tuple[int, int]
READABLE = 8.0  # contrast with the background, of names over coloured points with an outline of background
DARK_DENSITY = ("2b4f74", "3182bd", "6baed6", "b8d4ea", "ffffff")


def rgb(*codes: str) -> np.ndarray:
    """Return colours from hexadecimal codes, with # or without: (n, 3) float32 from 0 to 1."""
    return np.array([list(bytes.fromhex(code.lstrip("#"))) for code in codes], dtype=np.float32) / 255


def ramp(codes: tuple[str, ...], steps: int = RAMP_STEPS) -> np.ndarray:
    """Return colours interpolated between the codes: (steps, 3) float32."""
    stops = rgb(*codes)
    at = np.linspace(0, len(stops) - 1, steps)
    return np.stack([np.interp(at, np.arange(len(stops)), channel) for channel in stops.T], axis=1).astype(np.float32)


def class_colours(n_classes: int) -> np.ndarray:
    """Return one colour for each class: (n_classes, 3), all different up to 256, then again the same."""
    colours = rgb(*TEN_COLOURS, *FURTHER_COLOURS.split())
    return colours[np.arange(n_classes) % len(colours)]


@dataclass(frozen=True)
class LabelColours:
    """The colour of each point is `colours[index[row]]`; `classes` are the names, empty for values along `limits`.

    Points without a label have the last colour, a pale grey, where there are any: `missing` is its index, else None.
    The names of classes leave it out. Without labels all points have one colour, no class and no limits.
    """

    index: np.ndarray
    colours: np.ndarray
    classes: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None
    missing: int | None = None


def colours_of_labels(labels: Any, n_points: int, no_label: str = NO_LABEL) -> LabelColours:
    """Return colours by class for strings and up to 256 different integers, along a ramp for all other numbers.

    NaN and empty strings are no labels; their colour has the code `no_label`. Classes are in the order of their
    categories where the labels have one, else in natural order: 2 before 10, in texts too. Categories that have a
    colour get it.
    """
    opened = open_labels(labels, n_points)
    values = np.asarray(opened)
    absent = is_absent(values)
    present, kind = values[~absent], values.dtype.kind
    whole = kind in "biuU" or bool(np.all(present == np.round(present)))
    names = np.unique(present) if whole else present
    if kind == "U" or (whole and len(names) <= LARGEST_CLASSES):
        order = class_order(names, categories_of(opened)) if kind == "U" else range(len(names))
        codes = np.argsort(order).astype(np.int32)[np.searchsorted(names, present)]
        classes = tuple(str(names[place]) if kind in "iuU" else f"{names[place]:.17g}" for place in order)
        by_category, limits = colours_of_categories(opened), None
        palette = class_colours(len(classes))
        named = zip(classes, palette, strict=True)
        colours = [rgb(by_category[name])[0] if name in by_category else usual for name, usual in named]
    else:
        finite = present[np.isfinite(present)].astype(np.float64)
        low, high = np.percentile(finite, ROBUST_PERCENT) if finite.size else (0.0, 1.0)
        share = np.clip((present.astype(np.float64) - low) / max(high - low, 1e-300), 0, 1)
        codes = np.rint(share * (RAMP_STEPS - 1)).astype(np.int32)
        colours, classes, limits = list(ramp(VIRIDIS)), (), (float(low), float(high))
    if not absent.any():
        return LabelColours(codes, np.array(colours), classes, limits)
    index = np.full(len(values), len(colours), np.int32)
    index[~absent] = codes
    return LabelColours(index, np.array([*colours, *rgb(no_label)]), classes, limits, len(colours))


def class_order(names: np.ndarray, categories: tuple[str, ...]) -> list[int]:
    """Return the positions of names (K,) in the order in which a legend has them; categories come first."""
    ranks = {category: rank for rank, category in enumerate(categories)}
    keys = [(ranks.get(name, len(ranks)), natural_order(name)) for name in names.tolist()]
    return sorted(range(len(names)), key=keys.__getitem__)


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
        (paper,) = rgb(self.paper)
        end = 0.0 if paper.mean() > 0.5 else 1.0
        shades = (end + (colour - end) * share for share in np.linspace(1, 0, 51))
        return next(shade for shade in shades if contrast(shade, paper) >= READABLE)


THEMES = {
    "light": Theme("#ffffff", "#282828", "#6e6e6e", "#e1e1e1", NO_LABEL, DENSITY),
    "dark": Theme("#15171c", "#e8eaef", "#a3abb9", "#363b46", "#4a4f5a", DARK_DENSITY),
}


@dataclass(frozen=True)
class Page:
    """A picture of fixed size: pixels, how many are an inch, and the height of text in pixels.

    Of a `panel`, it is the size that its picture grows around.
    """

    width: int
    height: int
    dpi: int
    text: int
    panel: bool = False


# Paper: two columns of a journal, 7.2 inches, with text of 7 points. Slide: 16:9.
PAGES = {"paper": Page(2160, 1620, 300, 29), "slide": Page(1920, 1080, 144, 28)}


@dataclass(frozen=True)
class Look:
    """The size, title, kind of legend, theme and relative size of points."""

    size: Page
    title: str
    legend: str
    theme: Theme
    point_size: float

    def points(self, pixels: float) -> float:
        """Return pixels in points of 1/72 inch, in which Matplotlib gives widths and heights of text."""
        return pixels * 72 / self.size.dpi


def checked_look(
    size: Size = 1200, title: str = "", legend: str = "auto", theme: str = "light", point_size: float = 1.0
) -> Look:
    """Return how a picture looks, or raise ConfigError.

    Parameters
    ----------
    size : the height of a panel in pixels; or that of the whole picture: "paper" (7.2 x 5.4 inches at 300 dpi),
        "slide" (1920 x 1080 pixels), "1600x900" or (1600, 900)
    title : above the picture
    legend : where the names of classes are: "beside" the panel, on their clusters in the "map", or "auto": "beside" up
        to 20 classes, "map" for more
    theme : "light" or "dark" background
    point_size : how many times as large discs are as usual, from 0.1 to 20; where points are dense there are no discs
    """
    check_known(legend, LEGENDS, f"unknown legend {legend!r}")
    check_known(theme, THEMES, f"unknown theme {theme!r}")
    if not SMALLEST_POINTS <= point_size <= LARGEST_POINTS:
        raise ConfigError(
            f"point_size must be from {SMALLEST_POINTS} to {LARGEST_POINTS} times the usual, got {point_size}"
        )
    return Look(checked_size(size), " ".join(title.split()), legend, THEMES[theme], float(point_size))


def checked_size(size: Any) -> Page:
    """Return the size of a picture or, where it is one height, of its panels; or raise ConfigError."""
    written = "x".join(map(str, size)) if isinstance(size, tuple) else str(size).strip().lower()
    if written in PAGES:
        return PAGES[written]
    parts = re.fullmatch(r"(\d{1,6})(?:x(\d{1,6}))?", written)
    if parts is None:
        raise ConfigError(f"size must be {SIZES}, got {size!r}")
    width, height = int(parts[1]), int(parts[2] or parts[1])
    if min(width, height) < SMALLEST_SIZE or max(width, height) > LARGEST_SIZE:
        raise ConfigError(f"size must be at least {SMALLEST_SIZE} pixels and at most {LARGEST_SIZE:,}, got {size}")
    return Page(width, height, SCREEN_DPI, max(12, min(28, max(width, height) // 45)), panel=parts[2] is None)


def checked_suffix(path: Path) -> str:
    """Return the suffix of a picture in small letters; refuse another format."""
    if (suffix := path.suffix.lower()) not in SUFFIXES:
        raise ConfigError(f"a picture is written as .png, .svg or .pdf, got {path}")
    return suffix


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """Return the contrast of two colours (3,) from 0 to 1: from 1 to 21, as WCAG 2.2 defines it."""
    colours = np.stack([one, other])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return float((high + 0.05) / (low + 0.05))
