"""From counted panels to the parts of a picture: pixels or discs, rings, names, legends, and what is said below."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalemani.errors import ConfigError, nearest_name
from scalemani.figures.drawing import Discs, Drawing, Pixels, Stroke, Words
from scalemani.figures.legends import class_legend, names_on_map, shortened, value_bar
from scalemani.figures.palette import LARGEST_CLASSES, LARGEST_LEGEND, LabelColours, rgb
from scalemani.figures.panels import Panel
from scalemani.figures.shading import lone_opacity, point_radius, shade
from scalemani.figures.sheets import Page, Sheet, Size, checked_size, text_of
from scalemani.figures.themes import THEMES, Theme, theme_of

LEGENDS = ("auto", "beside", "map")
MOST_RINGS = 2_000
SMALLEST_POINTS, LARGEST_POINTS = 0.1, 20.0  # times the usual size
RING = 0.4  # heights of text, the radius of a ring
FEW_POINTS = 20  # of a class whose name is beside it
CAPTION_LIFT = 0.75  # heights of text above a panel, of the middle of its caption


@dataclass(frozen=True)
class Look:
    """The size, title, kind of legend and theme of a picture, and how much larger its points are than usual."""

    size: int | Page
    title: str
    legend: str
    theme: Theme = THEMES["light"]
    point_size: float = 1.0

    @property
    def text(self) -> int:
        """The height of text in pixels."""
        return text_of(self.size)


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
    theme : "light" or "dark" paper
    point_size : how many times as large discs are as usual, from 0.1 to 20; where points are dense there are no discs
    """
    if legend not in LEGENDS:
        raise ConfigError(f"unknown legend {legend!r}: {nearest_name(legend, LEGENDS)}")
    if not SMALLEST_POINTS <= point_size <= LARGEST_POINTS:
        raise ConfigError(
            f"point_size must be from {SMALLEST_POINTS} to {LARGEST_POINTS} times the usual, got {point_size}"
        )
    return Look(checked_size(size), " ".join(title.split()), legend, theme_of(theme), float(point_size))


def names_classes(colours: LabelColours | None, look: Look) -> bool:
    """Return whether classes have their names on their clusters."""
    if colours is None or not colours.classes:
        return False
    return look.legend == "map" or (look.legend == "auto" and len(colours.classes) > LARGEST_LEGEND)


def legend_entries(colours: LabelColours | None, look: Look) -> list[tuple[int, str]]:
    """Return the colours, by their index, that stand beside a panel, and their names: points without a label last."""
    if colours is None or not colours.classes:
        return []
    shown = () if names_classes(colours, look) else colours.classes[:LARGEST_CLASSES]
    entries = [(number, shortened(name)) for number, name in enumerate(shown)]
    if colours.missing is not None:
        entries.append((colours.missing, f"no label ({np.count_nonzero(colours.index == colours.missing):,})"))
    return entries


def compose(
    panels: Sequence[Panel], captions: Sequence[str], sheet: Sheet, look: Look, points: tuple[np.ndarray, bool]
) -> Drawing:
    """Return the whole picture.

    Parameters
    ----------
    panels, captions : row by row, and the line above each
    sheet, look : where they go, and how they look
    points : which points (N,) are marked, and whether all points are discs one by one
    """
    marks, each = points
    rings = ringed(marks)
    drawing = Drawing(sheet.width, sheet.height, sheet.dpi, look.theme)
    if look.title:
        drawing.add(Words(sheet.text, 1.7 * sheet.text, look.title, 1.4 * sheet.text))
    n_nameless = 0
    after = [*panels[1:], None]  # of panels with the same labels the last has the legend
    for panel, following, corner, caption in zip(panels, after, sheet.corners, captions, strict=False):
        draw_points(drawing, panel, corner, each, look.point_size)
        draw_rings(drawing, panel, corner, rings, sheet)
        n_nameless += draw_names(drawing, panel, corner, sheet)
        draw_frame(drawing, corner, sheet.panel)
        if caption:
            drawing.add(Words(corner[0], corner[1] - CAPTION_LIFT * sheet.text, caption, sheet.text))
        if following is None or following.colours is not panel.colours:
            draw_legend(drawing, panel.colours, look, corner, sheet)
    note = below(len(marks), max(panel.canvas.n_outside for panel in panels), int(marks.sum()), n_nameless)
    drawing.add(Words(sheet.text, sheet.height - 1.2 * sheet.text, note, sheet.text, "pale"))
    return drawing


def draw_points(drawing: Drawing, panel: Panel, corner: tuple[int, int], each: bool, enlarged: float) -> None:
    """Draw the points of a panel: as discs one by one, those without a label first, or as shaded pixels.

    Parameters
    ----------
    drawing : is drawn on
    panel : whose points
    corner : of the panel, left and top, in pixels
    each : whether points are discs
    enlarged : how many times as large these are as usual
    """
    colours = panel.colours
    if not each:
        found = shade(panel.canvas, colours is None, drawing.theme, enlarged)
        shades = np.rint(np.clip(found, 0, 1) * 255).astype(np.uint8)
        drawing.add(Pixels(*corner, shades))
        return
    places, index, rows = panel.kept_points()
    table = rgb(drawing.theme.density)[2:3] if colours is None else colours.colours
    order = np.argsort(index != colours.missing, kind="stable") if colours else np.arange(len(rows))
    width, height = panel.shape
    radius = point_radius(len(places), width * height) * enlarged
    drawing.add(Discs(places[order] + corner, radius, table[index[order]], lone_opacity(len(places))))


def ringed(marks: np.ndarray) -> np.ndarray:
    """Return which of the marked points (N,) have rings: at most 2,000, spread evenly over their rows."""
    rows = np.flatnonzero(marks)
    chosen = np.zeros(len(marks), bool)
    chosen[rows[:: max(1, -(-len(rows) // MOST_RINGS))]] = True
    return chosen


def draw_rings(drawing: Drawing, panel: Panel, corner: tuple[int, int], rings: np.ndarray, sheet: Sheet) -> None:
    """Draw rings around those points of a panel that have one, which are among the points that are kept.

    Parameters
    ----------
    drawing, panel, corner : as of `draw_points`
    rings : (N,) bool, which points have one
    sheet : whose text the rings grow with
    """
    if panel.keeps is None or not rings.any():
        return
    places, _, rows = panel.kept_points()
    places = places[rings[rows]]
    ink = np.tile(np.array(drawing.theme.ink) / 255, (len(places), 1))
    drawing.add(Discs(places + corner, RING * sheet.text, ink, filled=False))


def draw_names(drawing: Drawing, panel: Panel, corner: tuple[int, int], sheet: Sheet) -> int:
    """Draw the names of classes on their clusters, and return how many have no place; larger classes come first.

    Parameters
    ----------
    drawing, panel, corner : as of `draw_points`
    sheet : whose text is as high as the names
    """
    if panel.places is None or panel.colours is None:
        return 0
    order = np.argsort(-panel.places.sizes, kind="stable")
    order = order[panel.places.sizes[order] > 0]
    classes = panel.named_classes[order]
    names = [shortened(panel.colours.classes[number]) for number in classes]
    anchors = panel.places.densest()[order] * panel.shape
    few = (
        panel.places.sizes[order] < FEW_POINTS
    )  # a name over them would hide them: it is above, at the upper rim below
    anchors[few, 1] += np.where(anchors[few, 1] < 2 * sheet.text, sheet.text, -sheet.text)
    inks = [drawing.theme.readable(colour) for colour in panel.colours.colours[classes]]
    parts, n_lacking = names_on_map(names, anchors, inks, panel.shape, sheet.text)
    drawing.add(*(part.moved(*corner) for part in parts))
    return n_lacking + len(panel.colours.classes) - len(panel.named_classes)


def draw_frame(drawing: Drawing, corner: tuple[int, int], shape: tuple[int, int]) -> None:
    """Draw a pale line around a panel."""
    left, top, right, bottom = corner[0] - 0.5, corner[1] - 0.5, corner[0] + shape[0] + 0.5, corner[1] + shape[1] + 0.5
    drawing.add(Stroke(((left, top), (right, top), (right, bottom), (left, bottom), (left, top))))


def draw_legend(
    drawing: Drawing, colours: LabelColours | None, look: Look, corner: tuple[int, int], sheet: Sheet
) -> None:
    """Draw what colours mean beside a panel.

    Parameters
    ----------
    drawing, corner : as of `draw_points`
    colours : None where points have no labels: nothing is drawn
    look : how the legend looks
    sheet : the width of its panels, and its text
    """
    if colours is None:
        return
    entries = legend_entries(colours, look)
    place = corner[0] + sheet.panel[0] + sheet.text, corner[1]
    if entries:
        shown = colours.colours[[number for number, _ in entries]]
        drawing.add(*class_legend(shown, [name for _, name in entries], place, sheet.text, sheet.panel[1]))
    if not colours.classes:
        drawing.add(*value_bar(colours.limits, place, sheet.text, sheet.panel[1]))


def below(n_points: int, n_outside: int, n_marked: int, n_nameless: int) -> str:
    """Return the line below a picture.

    Parameters
    ----------
    n_points, n_outside : of the embedding, and outside the view
    n_marked : points that were to be ringed
    n_nameless : classes whose name has no place
    """
    parts = [f"{n_points:,} points"]
    if n_outside:
        parts.append(f"{n_outside:,} of them outside the view")
    if n_marked:
        parts.append(f"{n_marked:,} of them ringed" + ("" if n_marked <= MOST_RINGS else " in part"))
    if n_nameless:
        parts.append(f"{n_nameless:,} names have no place")
    return ", ".join(parts)
