"""A picture of an embedding that stays readable at ten million points."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError
from scalemani.export import rows_per_block
from scalemani.export.rows import replaced_file
from scalemani.figures.palette import LARGEST_LEGEND, VIRIDIS, LabelColours, colours_of_labels, ramp
from scalemani.figures.shading import Canvas, panel_limits, robust_limits, shade
from scalemani.sources.base import PointsSource, optional_module
from scalemani.sources.opening import open_points

SAMPLED_ROWS = 200_000
GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo one spread rows evenly over a strip
SMALLEST_SIZE = 200
INK, PALE = (40, 40, 40), (120, 120, 120)


def embedding_picture(
    embedding: Any, path: str | Path, labels: Any = None, size: int = 1200, title: str = "", names: Any = None
) -> int:
    """Draw an embedding as a .png and return the number of points that lie outside the view.

    Parameters
    ----------
    embedding, labels, size, title, names : those of `drawn_embedding`
    path : ends in .png

    Raises
    ------
    ConfigError
        For another suffix, a size under 200, or where Pillow is not installed (extra `figures`).
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    if Path(path).suffix.lower() != ".png":
        raise ConfigError(f"a picture is written as .png, got {path}")
    picture, n_outside = drawn_embedding(embedding, labels, size, title, names)
    save(picture, Path(path))
    return n_outside


def drawn_embedding(
    embedding: Any, labels: Any = None, size: int = 1200, title: str = "", names: Any = None
) -> tuple[Any, int]:
    """Return an embedding as a picture of Pillow, and the number of points that lie outside the view.

    Two dimensions give one panel, three or more the three pairs of the first three, one a strip in which height means
    nothing but the class. Pixels are shaded by the logarithm of how many points they hold. Axes have one unit unless
    their extents differ more than fourfold. Far outliers are left outside the view, and counted below it.

    Parameters
    ----------
    embedding : (N, d) array or whatever `open_points` takes; read by blocks of rows, twice
    labels : one for each point, as `open_labels` takes them: up to 256 classes are mixed by colour in every pixel,
        other numbers follow a colour ramp; None colours by density
    size : height in pixels, and width of one panel
    title : above the picture
    names : what a legend calls the classes, in sorted order of the labels; None for the labels themselves

    Raises
    ------
    ConfigError
        For a size under 200, or where Pillow is not installed (extra `figures`).
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    optional_module("PIL.Image", "figures")
    if size < SMALLEST_SIZE:
        raise ConfigError(f"size must be at least {SMALLEST_SIZE} pixels, got {size}")
    source = open_points(embedding)
    colours = None if labels is None else colours_of_labels(labels, source.shape[0])
    canvases = draw_panels(source, colours, size)
    panels = [shade(canvas, density_only=colours is None) for canvas in canvases]
    n_outside = max(canvas.n_outside for canvas in canvases)
    note = f"{source.shape[0]:,} points"
    if n_outside:
        note += f", {n_outside:,} of them outside the view"
    shown = legend_names(colours, names) if colours else ()
    return compose(panels, title, note, colours, shown), n_outside


def draw_panels(source: PointsSource, colours: LabelColours | None, size: int) -> list[Canvas]:
    """Return one canvas for each pair of columns that is shown."""
    n_shown = min(source.shape[1], 3)
    limits = column_limits(source, n_shown)
    index, table = (colours.index, colours.colours) if colours else (None, np.zeros((1, 3), dtype=np.float32))
    if n_shown == 1:
        n_bands = len(colours.colours) if colours and 1 < len(colours.classes) <= LARGEST_LEGEND else 1
        spread = np.array([limits[0], (-0.1, n_bands + 0.1)])
        canvases = [Canvas(size, size // 2, spread)]
    else:
        pairs = list(combinations(range(n_shown), 2))
        side = size if len(pairs) == 1 else size * 2 // 3
        canvases = [Canvas(side, side, panel_limits(limits[list(pair)], side, side)) for pair in pairs]
    for start, rows in blocks(source):
        stop = start + len(rows)
        chosen = index[start:stop] if index is not None else np.zeros(len(rows), dtype=np.int32)
        if n_shown == 1:
            jitter = np.arange(start, stop) * GOLDEN_RATIO % 1
            band = n_bands - 1 - chosen if n_bands > 1 else 0
            canvases[0].add(rows[:, 0], band + 0.15 + 0.7 * jitter, chosen, table)
        else:
            for canvas, (across, up) in zip(canvases, pairs, strict=True):
                canvas.add(rows[:, across], rows[:, up], chosen, table)
    return canvases


def blocks(source: PointsSource) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, rows) in order."""
    step = rows_per_block(source.shape[1] * source.dtype.itemsize, source.preferred_rows)
    for start in range(0, source.shape[0], step):
        yield start, source.read(start, min(start + step, source.shape[0]))


def column_limits(source: PointsSource, n_shown: int) -> np.ndarray:
    """Return what to show of each of the first columns: (n_shown, 2)."""
    stride = -(-source.shape[0] // SAMPLED_ROWS)
    lowest, highest = np.full(n_shown, np.inf), np.full(n_shown, -np.inf)
    sampled = []
    for start, rows in blocks(source):
        shown = rows[:, :n_shown].astype(np.float64)
        finite = np.where(np.isfinite(shown), shown, np.nan)
        lowest = np.fmin(lowest, np.fmin.reduce(finite, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(finite, axis=0))
        sampled.append(finite[-start % stride :: stride])
    sample = np.concatenate(sampled)
    sample = sample[np.isfinite(sample).all(axis=1)]
    if not len(sample):
        raise DataError(f"{source.description} has no finite row to draw")
    return robust_limits(sample, lowest, highest)


def compose(
    panels: list[np.ndarray], title: str, note: str, colours: LabelColours | None, names: tuple[str, ...]
) -> Any:
    """Return the whole picture: title, panels, legend and a line about the points."""
    image = optional_module("PIL.Image", "figures")
    drawing = optional_module("PIL.ImageDraw", "figures")
    fonts = optional_module("PIL.ImageFont", "figures")
    height, width = panels[0].shape[:2]
    text = max(12, min(28, max(width, height) // 45))
    margin = text
    font, heading = fonts.load_default(text), fonts.load_default(round(text * 1.4))
    top = margin + (round(text * 1.4) + margin if title else 0)
    bottom = 2 * margin + text
    legend = legend_width(font, colours, names, text)
    across = len(panels) * (width + margin) + margin
    picture = image.new("RGB", (across + legend, max(top + height + bottom, 0)), "white")
    pen = drawing.Draw(picture)
    if title:
        pen.text((margin, margin), title, fill=INK, font=heading)
    pairs = list(combinations(range(1, 4), 2))
    for number, panel in enumerate(panels):
        left = margin + number * (width + margin)
        pixels = np.rint(np.clip(panel, 0, 1) * 255).astype(np.uint8)
        picture.paste(image.fromarray(pixels), (left, top))
        pen.rectangle((left - 1, top - 1, left + width, top + height), outline=(225, 225, 225))
        if len(panels) > 1:
            caption = "components {} (across) and {} (up)".format(*pairs[number])
            pen.text((left + text // 2, top + text // 3), caption, fill=PALE, font=font)
    pen.text((margin, top + height + margin // 2), note, fill=PALE, font=font)
    if colours:
        draw_legend(pen, font, (across, top, text), colours, names)
    return picture


def legend_names(colours: LabelColours, names: Any) -> tuple[str, ...]:
    """Return what a legend calls the classes, and last the points without one; nothing for values along a ramp."""
    if not colours.classes:
        return ()
    named = tuple(map(str, colours.classes if names is None else names))
    if colours.missing is None:
        return named
    return (*named, f"no label ({np.count_nonzero(colours.index == colours.missing):,})")


def legend_width(font: Any, colours: LabelColours | None, names: tuple[str, ...], text: int) -> int:
    """Return the pixels that a legend takes beside the panels."""
    if colours is None:
        return 0
    shown = [*names[:LARGEST_LEGEND], more(names)] if names else [f"{limit:.3g}" for limit in colours.limits]
    return 3 * text + round(max(font.getlength(name) for name in shown))


def more(names: tuple[str, ...]) -> str:
    """Return the last line of a legend that does not list all classes."""
    return f"and {len(names) - LARGEST_LEGEND:,} more" if len(names) > LARGEST_LEGEND else ""


def draw_legend(
    pen: Any, font: Any, place: tuple[int, int, int], colours: LabelColours, names: tuple[str, ...]
) -> None:
    """Draw a swatch and name for each class, or the colour ramp with its ends; `place` is left, top and text size."""
    left, top, text = place
    step = round(text * 1.5)
    if names:
        for number, name in enumerate(names[:LARGEST_LEGEND]):
            y = top + number * step
            fill = tuple(int(value) for value in np.rint(colours.colours[number] * 255))
            pen.ellipse((left, y, left + text, y + text), fill=fill)
            pen.text((left + text * 1.5, y), name, fill=INK, font=font, anchor="la")
        pen.text((left, top + LARGEST_LEGEND * step), more(names), fill=PALE, font=font)
        return
    tall = 10 * step
    for y, colour in enumerate(ramp(VIRIDIS, tall)[::-1]):
        pen.line((left, top + y, left + text, top + y), fill=tuple(int(value) for value in np.rint(colour * 255)))
    for limit, y in zip(colours.limits, (top + tall - text, top), strict=True):
        pen.text((left + text * 1.5, y), f"{limit:.3g}", fill=INK, font=font)


def save(picture: Any, path: Path) -> None:
    """Write a picture as .png, in one step."""
    with replaced_file(path) as file:
        picture.save(file, format="PNG")
