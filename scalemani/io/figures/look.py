"""How a picture looks: the colours of labels, distinct with any kind of colour vision, its size, legend and theme."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, check_known
from scalemani.io.sources import open_labels
from scalemani.io.sources.base import natural_order, optional_module
from scalemani.io.sources.label_values import Measured, categories_of, colours_of_categories, is_absent
from scalemani.io.sources.labels import hexadecimal

# No colour of the twelve is within 40 steps of RGB of a mixture of others, in any proportion: an eye that blends pixels
# of several classes sees none of a class that is not there. All are apart in Oklab, with deuteranopia too.
TWELVE_COLOURS = (
    *("50afff", "ff7d3c", "1eaf3c", "9b00aa", "e1cd4b", "00919b"),
    *("ff46b9", "372dc8", "960f23", "46ebaf", "be55ff", "6e7800"),
)
# The same of colours that are apart with deuteranopia, protanopia and tritanopia alike.
COLOUR_BLIND = (
    *("1e4bff", "f59b96", "698200", "780078", "b4a000", "50e6fa"),
    *("f03c73", "053cb4", "9b230f", "00bee1", "9b7dff", "afe655"),
)
PALETTES = {"default": TWELVE_COLOURS, "colour-blind": COLOUR_BLIND}
# Classes beyond twelve: each the colour of a grid of 24^3 in sRGB, with a lightness from 0.35 to 0.85, that is farthest
# in Oklab from all before it, white, and the grey of points without a label; with deuteranopia if twice that is less.
# `tests/io/figures/test_palette.py` computes them. Those of glasbey 0.4 are half as far from each other or nearer.
FURTHER_COLOURS = """
164343 e99bff 6f597a 59166f c84e64 a6a685 006fff 7a7ac8 7a00e9 37644e 004e90 e99ba6 59c8c8 642c00 bc6400 bc6fb1 90d300
904e2c bc006f 904ed3 a69bde 852164 0000ff e916e9 4e59c8 ffbc90 908585 b19b00 43009b 00b190 9bc87a 376f9b 0be9f4 f4216f
6f2cb1 9b4e90 00854e 6f0b2c 4e436f 0000bc ff5964 00e964 d3b1de 2c85de ff64ff 9b646f 644343 bc2cb1 908543 f46fa6 7a6fff
439bc8 005921 4ec864 e94e0b 6f3785 4e43ff 8590ff d37a7a 4e4e9b d3b159 9bd3c8 a600e9 d36fe9 a62c4e 642c59 00647a d30b4e
f47ade 2c2c85 647a85 c8bc9b ffb100 004ed3 de2c9b 7a59b1 439021 0b6f2c 0b37a6 9b6fde bc000b 00b1c8 6f5900 ff90c8 6f9b9b
de00bc 4e00e9 90b143 373759 644300 a6b1b1 167a7a c84385 596464 7ad3f4 7ab1c8 7a0b85 902c90 85de85 ffb1de ff8590 374e4e
2100de 4e37a6 856437 006fbc f40b37 9bbce9 de4ede d36485 7a4364 6f43de 591690 b1bc16 b185b1 439b6f 43c8f4 bc9043 e98500
deb1b1 6f0b64 a643e9 bc9090 43c89b 90649b 853737 6f9b4e bcc8de b1d343 2c430b c82cf4 2137ff 437abc 6f2c37 169bf4 d390bc
7ae964 bc8564 6f856f bc90f4 7aa60b f421c8 4e00bc 7abc7a 00d34e b1644e b10090 21436f 4e8559 5990a6 bc16d3 9016f4 e959a6
6443bc 6f59d3 bc59d3 854385 7a6459 bcd39b 0b4e37 16bc6f a685f4 a637a6 a64e64 f4a64e a69ba6 370bb1 433737 4e64a6 c82c37
bc4e00 902c00 9064c8 37592c 7a4e43 4e2c7a 901643 a67a59 d3a67a 852cb1 bcde00 00649b 6485e9 a60b59 de85e9 6400b1 4e6ff4
3743bc 434e64 8516d3 a66490 c8c8bc 4e85b1 16856f 7a9bd3 64379b e95985 f4bcc8 d34ebc a637c8 374e0b d3906f e96459 e99bd3
9b216f 4ede85 646f43 375990 5916d3 37379b 4e596f ffa6a6 436f37 646f9b f4a67a 1616a6 374385 a62c00 bcd37a d39b90 2c00c8
21594e 434321 59d3b1 64437a 3737de 4e374e 435959 6464bc 2159a6 4e857a d35900 008516 bc43a6 9b4eb1 374e7a 16377a 9bd3ff
436f6f d3902c de3737 85647a e964e9 909bbc
"""
# Van der Walt and Smith (2015), viridis: even in lightness, read alike with and without colour.
VIRIDIS = ("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")
DENSITY = ("b8d4ea", "6baed6", "3182bd", "08519c", "08306b")
NO_LABEL, NO_LABEL_TEXT = "d4d4d4", "no label"
RAMP_STEPS = 256
LARGEST_CLASSES = 256
MOST_COLOURS = 256
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


def class_colours(n_classes: int, palette: str = "default") -> np.ndarray:
    """Return one colour for each class: (n_classes, 3), all different up to 256, then again the same."""
    return repeated(rgb(*PALETTES[palette], *FURTHER_COLOURS.split()), n_classes)


def repeated(colours: np.ndarray, n_classes: int) -> np.ndarray:
    """Return colours (K, 3) again and again, up to (n_classes, 3)."""
    return colours[np.arange(n_classes) % len(colours)]


@dataclass(frozen=True)
class Colours:
    """Which colours labels get.

    Attributes
    ----------
    classes : colours (K, 3) of classes in their order; None: those of their file, else the palette
    by_class : colours (3,) of some of the classes
    values : (RAMP_STEPS, 3) from the lowest value to the highest
    limits : these values, None where they follow from the data
    groups : the classes that have colours; others are pale; none: all have
    """

    classes: np.ndarray | None
    by_class: Mapping[str, np.ndarray]
    values: np.ndarray
    limits: tuple[float | None, float | None]
    groups: tuple[str, ...]


Palette = str | Sequence[str] | Mapping[Any, str]


def checked_colours(
    palette: Palette | None = None,
    cmap: Any = None,
    vmin: float | None = None,
    vmax: float | None = None,
    groups: Sequence[Any] | None = None,
) -> Colours:
    """Return which colours labels get, or raise ConfigError.

    Parameters
    ----------
    palette : of classes: "default", "colour-blind", a list of colours of Matplotlib such as "tab10", colours in the
        order of the classes, or colours by class; None: those of their file, else the default
    cmap : of values, a colour map of Matplotlib; None: viridis
    vmin, vmax : the values at its ends; None: the 0.5th and the 99.5th percentile
    groups : classes that have colours; others are pale, below them
    """
    if vmin is not None and vmax is not None and not vmin < vmax:
        raise ConfigError(f"vmin must be below vmax, got {vmin} and {vmax}")
    by_class, classes = {}, None
    if isinstance(palette, Mapping):
        by_class = {name_of(name): colour_of(colour) for name, colour in palette.items()}
    elif palette is not None:
        classes = listed_colours(palette)
    values = ramp(VIRIDIS)
    if cmap is not None:
        maps = optional_module("matplotlib", "figures").colormaps
        if isinstance(cmap, str):
            check_known(cmap, tuple(maps), f"unknown colour map {cmap!r}")
        values = maps.get_cmap(cmap)(np.linspace(0, 1, RAMP_STEPS))[:, :3].astype(np.float32)
    named = [groups] if isinstance(groups, str) else groups or ()
    return Colours(classes, by_class, values, (vmin, vmax), tuple(map(name_of, named)))


def name_of(label: Any) -> str:
    """Return the name of a class as legends have it."""
    return f"{float(label):.17g}" if isinstance(label, float | bool | np.bool_) else str(label)


def colour_of(colour: str) -> np.ndarray:
    """Return a colour (3,) from #rrggbb or a name of Matplotlib; ConfigError for no colour."""
    if (code := hexadecimal(colour) if isinstance(colour, str) else None) is None:
        raise ConfigError(f"a colour must be #rrggbb or, with Matplotlib installed, one of its names; got {colour!r}")
    return np.asarray(rgb(code)[0])


def listed_colours(palette: Any) -> np.ndarray:
    """Return the colours (K, 3) of a palette by its name, or of a list of them."""
    if not isinstance(palette, str):
        if not len(palette):
            raise ConfigError("palette must have a colour or more, got none")
        return np.stack([colour_of(colour) for colour in palette])
    if palette in PALETTES:
        return class_colours(MOST_COLOURS, palette)
    maps = optional_module("matplotlib", "figures").colormaps
    lists = [name for name in maps if len(getattr(maps[name], "colors", range(LARGEST_CLASSES))) < LARGEST_CLASSES]
    check_known(palette, (*PALETTES, *lists), f"unknown palette {palette!r}")
    return np.asarray(maps[palette].colors, np.float32)[:, :3]


USUAL_COLOURS = checked_colours()


@dataclass(frozen=True)
class LabelColours:
    """The colour of each point is `colours[index[row]]`; `classes` are the names, empty for values along `limits`.

    Points without a label have the last colour, a pale grey, where there are any: `missing` is its index, else None.
    The names of classes leave it out. Without labels all points have one colour, no class and no limits. `others` says
    what pale points are.
    """

    index: np.ndarray
    colours: np.ndarray
    classes: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None
    missing: int | None = None
    others: str = NO_LABEL_TEXT

    def of(self, shown: np.ndarray, no_label: str) -> "LabelColours":
        """Return the same of the points that are shown, (N,) bool; others are pale, below them."""
        colours, missing = self.colours, self.missing
        if missing is None:
            colours, missing = np.concatenate([colours, rgb(no_label)]), len(colours)
        index = np.where(shown, self.index, missing).astype(np.int32)
        return replace(self, index=index, colours=colours, missing=missing, others="others")


def colours_of_labels(
    labels: Any, n_points: int, no_label: str = NO_LABEL, chosen: Colours = USUAL_COLOURS
) -> LabelColours:
    """Return colours by class for strings and up to 256 different integers, along a ramp for all other numbers.

    Counts of genes (`Measured`) are along a ramp, however few differ. NaN and empty strings are no labels; their
    colour has the code `no_label`. Classes are in the order of their categories where the labels have one, else in
    natural order: 2 before 10, in texts too. Categories that have a colour get it, unless others are `chosen`.
    """
    opened = open_labels(labels, n_points)
    values = np.asarray(opened)
    absent = is_absent(values)
    present, kind = values[~absent], values.dtype.kind
    whole = not isinstance(opened, Measured) and (kind in "biuU" or bool(np.all(present == np.round(present))))
    names = np.unique(present) if whole else present
    classes: tuple[str, ...] = ()
    limits = None
    if kind == "U" or (whole and len(names) <= LARGEST_CLASSES):
        order = class_order(names, categories_of(opened)) if kind == "U" else range(len(names))
        codes = np.argsort(order).astype(np.int32)[np.searchsorted(names, present)]
        classes = tuple(str(names[place]) if kind in "iuU" else f"{names[place]:.17g}" for place in order)
        colours = colours_of_classes(classes, colours_of_categories(opened), chosen)
    else:
        limits = limits_of(present, chosen)
        share = np.clip((present.astype(np.float64) - limits[0]) / max(limits[1] - limits[0], 1e-300), 0, 1)
        codes = np.rint(share * (RAMP_STEPS - 1)).astype(np.int32)
        colours = chosen.values
    found = LabelColours(codes, colours, classes, limits)
    if absent.any():
        index = np.full(len(values), len(colours), np.int32)
        index[~absent] = codes
        found = LabelColours(index, np.concatenate([colours, rgb(no_label)]), classes, limits, len(colours))
    return in_groups(found, chosen.groups, no_label) if chosen.groups else found


def limits_of(values: np.ndarray, chosen: Colours) -> tuple[float, float]:
    """Return the values (n,) at the ends of a ramp: the chosen ones, else percentiles."""
    finite = values[np.isfinite(values)].astype(np.float64)
    usual = np.percentile(finite, ROBUST_PERCENT) if finite.size else (0.0, 1.0)
    low, high = (float(end if one is None else one) for one, end in zip(chosen.limits, usual, strict=True))
    return low, high


def colours_of_classes(classes: tuple[str, ...], of_file: Mapping[str, str], chosen: Colours) -> np.ndarray:
    """Return the colours (K, 3) of classes: the chosen ones, else those of their file, else the palette."""
    colours = class_colours(len(classes)) if chosen.classes is None else repeated(chosen.classes, len(classes))
    in_file = {name: rgb(code)[0] for name, code in of_file.items()} if chosen.classes is None else {}
    for number, name in enumerate(classes):
        colours[number] = chosen.by_class.get(name, in_file.get(name, colours[number]))
    return colours


def in_groups(colours: LabelColours, groups: tuple[str, ...], no_label: str) -> LabelColours:
    """Return the colours of labels of which only some classes have one."""
    if colours.limits is not None:
        raise ConfigError("groups are of classes, and these labels are values: leave groups out")
    for name in groups:
        check_known(name, colours.classes, f"no class {name!r} among the groups")
    shown = np.array([name in groups for name in colours.classes] + [False] * (colours.missing is not None))
    return colours.of(shown[colours.index], no_label)


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
    """The size, title, kind of legend, theme, relative size of points, and colours."""

    size: Page
    title: str
    legend: str
    theme: Theme
    point_size: float
    colours: Colours

    def points(self, pixels: float) -> float:
        """Return pixels in points of 1/72 inch, in which Matplotlib gives widths and heights of text."""
        return pixels * 72 / self.size.dpi


def checked_look(
    size: Size = 1200,
    title: str = "",
    legend: str = "auto",
    theme: str = "light",
    point_size: float = 1.0,
    colours: Colours = USUAL_COLOURS,
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
    colours : those of labels, made by `checked_colours`
    """
    check_known(legend, LEGENDS, f"unknown legend {legend!r}")
    check_known(theme, THEMES, f"unknown theme {theme!r}")
    if not SMALLEST_POINTS <= point_size <= LARGEST_POINTS:
        raise ConfigError(
            f"point_size must be from {SMALLEST_POINTS} to {LARGEST_POINTS} times the usual, got {point_size}"
        )
    page, words = checked_size(size), " ".join(title.split())
    return Look(page, words, legend, THEMES[theme], float(point_size), colours)


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
