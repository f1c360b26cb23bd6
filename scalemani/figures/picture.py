"""A picture of an embedding that stays readable at ten million points and at hundreds of classes."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError
from scalemani.figures.composing import Look, checked_look, compose, legend_entries, names_classes, ringed
from scalemani.figures.drawing import Drawing, as_pixels, checked_suffix, write_drawing
from scalemani.figures.legends import legend_width
from scalemani.figures.palette import LabelColours, colours_of_labels
from scalemani.figures.panels import Pair, Panel, blocks, column_limits
from scalemani.figures.sheets import Sheet, arrange, grid_shape
from scalemani.sources.base import PointsSource, optional_module
from scalemani.sources.opening import open_points

MOST_PANELS = 12
USUAL = checked_look()
VECTOR_POINTS = 5_000  # up to so many are discs one by one on a page; more are an image on it


def embedding_picture(
    embedding: Any, path: str | Path, labels: Any = None, look: Look = USUAL, marked: Any = None
) -> int:
    """Draw an embedding as .png, .svg or .pdf, and return the number of points that lie outside the view.

    On pages (.svg, .pdf) text, lines and up to 5,000 points stay such; more points are an image of the given size.

    Parameters
    ----------
    embedding, labels, look, marked : those of `drawn_embedding`
    path : where to write; its suffix chooses the format

    Raises
    ------
    ConfigError
        For another suffix, and what `drawn_embedding` refuses.
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    checked_suffix(Path(path))
    optional_module("PIL.Image", "figures")
    most = 0 if Path(path).suffix.lower() == ".png" else VECTOR_POINTS
    drawing, n_outside = draw(embedding, labels, look, marked, most)
    write_drawing(drawing, Path(path))
    return n_outside


def drawn_embedding(embedding: Any, labels: Any = None, look: Look = USUAL, marked: Any = None) -> tuple[Any, int]:
    """Return an embedding as a picture of Pillow, and the number of points that lie outside the view.

    Two dimensions give one panel, three or more the three pairs of the first three, one a strip in which height means
    nothing but the class. Pixels are shaded by the logarithm of how many points they hold. Axes have one unit unless
    their extents differ more than fourfold. Far outliers are left outside the view, and counted below it.

    Parameters
    ----------
    embedding : (N, d) array or whatever `open_points` takes; read by blocks of rows, twice
    labels : one for each point, as `open_labels` takes them: texts and up to 256 whole numbers are classes, which are
        mixed by colour in every pixel; other numbers follow a colour ramp from their 0.5th to their 99.5th percentile;
        points without a label are pale, below all others; several labels by their names give a panel each; None
        colours by density
    look : its size, title, legend, theme and point size, made by `checked_look`
    marked : (N,) bool, points to be ringed, such as those whose certificate is poor; at most 2,000 of them are

    Raises
    ------
    ConfigError
        For more than 12 panels, a page too small for them, or where Pillow and
        Matplotlib are not installed (extra `figures`).
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    optional_module("PIL.Image", "figures")
    drawing, n_outside = draw(embedding, labels, look, marked)
    return as_pixels(drawing), n_outside


def picture_or_path(embedding: Any, path: str | Path | None, labels: Any, look: Look, marked: Any) -> Any:
    """Return a picture of Pillow, or write it and return its path; parameters are those of `embedding_picture`."""
    if path is None:
        return drawn_embedding(embedding, labels, look, marked)[0]
    embedding_picture(embedding, path, labels, look, marked)
    return Path(path)


def draw(embedding: Any, labels: Any, look: Look, marked: Any = None, most_discs: int = 0) -> tuple[Drawing, int]:
    """Return the parts of a picture, and the number of points outside the view.

    Parameters
    ----------
    embedding, labels, marked : those of `drawn_embedding`
    look : its size, title and legend
    most_discs : points up to which each is a disc of its own, and not part of an image
    """
    source = open_points(embedding)
    columns = {name: look.theme.recoloured(found) for name, found in coloured_columns(labels, source.shape[0]).items()}
    pairs: list[Pair | None] = [None] if source.shape[1] == 1 else list(combinations(range(min(source.shape[1], 3)), 2))
    if len(columns) * len(pairs) > MOST_PANELS:
        raise ConfigError(
            f"a picture has at most {MOST_PANELS} panels, and {len(columns)} labels of {len(pairs)} pairs of "
            f"components take {len(columns) * len(pairs)}: give fewer labels"
        )
    marks = checked_marks(marked, source.shape[0])
    sheet = arranged(look, columns, pairs)
    each = source.shape[0] <= most_discs
    panels = filled_panels(source, columns, pairs, sheet, look, np.ones(len(marks), bool) if each else ringed(marks))
    captions = [caption(name, pair, len(pairs)) for name in columns for pair in pairs]
    n_outside = max(panel.canvas.n_outside for panel in panels)
    return compose(panels, captions, sheet, look, (marks, each)), n_outside


def coloured_columns(labels: Any, n_points: int) -> dict[str, LabelColours | None]:
    """Return the colours of labels by their names; one set has no name; none has no colours."""
    if isinstance(labels, Mapping):
        return {str(name): colours_of_labels(values, n_points) for name, values in labels.items()}
    return {"": None if labels is None else colours_of_labels(labels, n_points)}


def checked_marks(marked: Any, n_points: int) -> np.ndarray:
    """Return which points are to be ringed: (n_points,) bool."""
    found = np.zeros(n_points, bool) if marked is None else np.asarray(marked)
    if found.shape != (n_points,) or found.dtype != bool:
        raise DataError(
            f"marked must say true or false of each of {n_points} points, got {found.dtype} of shape {found.shape}"
        )
    return found


def arranged(look: Look, columns: Mapping[str, LabelColours | None], pairs: list[Pair | None]) -> Sheet:
    """Return where the panels and their legends go."""
    grid = grid_shape(len(columns), len(pairs), look.size)
    above = any(columns) or len(pairs) > 1, bool(look.title)
    flat = pairs == [None]
    height = arrange(look.size, grid, (), *above, flat).panel[1]
    widths = [
        legend_width(colours, [name for _, name in legend_entries(colours, look)], look.text, height)
        for colours in columns.values()
        for _ in pairs
    ]
    if len(pairs) > 1:  # one legend serves all panels of a row
        widths = [width if number % len(pairs) == len(pairs) - 1 else 0 for number, width in enumerate(widths)]
    return arrange(look.size, grid, widths, *above, flat)


def filled_panels(
    source: PointsSource,
    columns: Mapping[str, LabelColours | None],
    pairs: list[Pair | None],
    sheet: Sheet,
    look: Look,
    keeps: np.ndarray,
) -> list[Panel]:
    """Return the panels of a picture with all points counted, those of one column of labels after each other.

    Parameters
    ----------
    source : the embedding, read by blocks
    columns : colours by their names
    pairs : of components, a panel each
    sheet, look : where panels go, and how they look
    keeps : (N,) rows that are kept one by one
    """
    limits = column_limits(source, min(source.shape[1], 3))
    kept = keeps if keeps.any() else None
    panels = [
        Panel(sheet.panel, pair, limits, colours, names_classes(colours, look), kept)
        for colours in columns.values()
        for pair in pairs
    ]
    for start, rows in blocks(source):
        for panel in panels:
            panel.add(start, rows)
    return panels


def caption(name: str, pair: Pair | None, n_pairs: int) -> str:
    """Return the line above a panel: the name of its labels, and its components where there are several pairs."""
    of_pair = "" if pair is None or n_pairs == 1 else f"components {pair[0] + 1} (across) and {pair[1] + 1} (up)"
    return ": ".join(part for part in (" ".join(name.split()), of_pair) if part)
