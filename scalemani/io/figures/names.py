"""The names of classes on a map: on their clusters, and none over another."""

import math
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from scalemani.io.figures.look import Look
from scalemani.io.figures.panels import CELLS, Panel
from scalemani.io.sources.base import optional_module

LONGEST_NAME = 32  # letters of a name that are shown
CLUSTER_CELLS = 2.0  # over which the density of a class is averaged
FEW_POINTS = 20  # of a class whose name is above it
SMALLEST_TEXT, SMALLEST_SHARE = 8, 0.55  # of names on a map: pixels, and of the height of other text
SHRINK = 0.88
FULLEST = 0.18  # of a panel that names may cover
FARTHEST = 0.12  # of the diagonal of a panel, from a cluster to its name
BOX = (0.5, 1.3)  # a name's box: heights of text beside it in sum, and its height
TURN = math.pi * (3 - math.sqrt(5))  # the golden angle: places on a spiral by it are spread evenly
TRIED = 1000  # places for a name around its cluster, nearest first
CROWDED = 0.3  # of its height that a name moves away for each other cluster that it covers


def shortened(name: str) -> str:
    """Return a name on one line, its end cut off where it is long."""
    line = " ".join(name.split())
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def draw_names(axes: Any, panel: Panel, look: Look) -> int:
    """Draw the names of classes on their clusters, those of larger classes first; return how many have no place.

    Text gets smaller where names would cover much of the panel, or be far from their clusters, to which lines lead.
    """
    if panel.colours is None or not len(panel.named):
        return 0
    sizes = panel.densities.sum(axis=(1, 2))
    order = [place for place in np.argsort(-sizes, kind="stable") if sizes[place]]
    shape, text = np.array([panel.canvas.width, panel.canvas.height]), look.text
    names = [shortened(panel.colours.classes[panel.named[place]]) for place in order]
    anchors = densest(panel.densities[order]) * shape
    few = sizes[order] < FEW_POINTS  # a name over them would hide them: it is above, below at the upper rim
    anchors[few, 1] += np.where(anchors[few, 1] > shape[1] - 2 * text, -text, text)
    widths, smallest = widths_of(axes.figure, names, look), max(SMALLEST_TEXT, SMALLEST_SHARE * text)
    extents = np.stack([widths + BOX[0], np.full(len(names), BOX[1])], axis=1)  # in heights of text
    size = min(text, max(smallest, math.sqrt(FULLEST * shape.prod() / max(extents.prod(axis=1).sum(), 1e-9))))
    centres = place_boxes(anchors, extents * size, shape)
    while size > smallest and not (np.linalg.norm(centres - anchors, axis=1) <= FARTHEST * math.hypot(*shape)).all():
        size = max(smallest, size * SHRINK)
        centres = place_boxes(anchors, extents * size, shape)
    effects = optional_module("matplotlib.patheffects", "figures")
    outline = [effects.Stroke(linewidth=look.points(size / 4), foreground=f"#{look.theme.paper}")]
    style = {"fontsize": look.points(size), "ha": "center", "va": "center_baseline", "transform": axes.transAxes}
    placed = np.flatnonzero(np.isfinite(centres[:, 0]))
    for number in placed:
        colour = look.theme.readable(panel.colours.colours[panel.named[order[number]]])
        reach = extents[number] * size / 2
        ends = np.stack([anchors[number], np.clip(anchors[number], centres[number] - reach, centres[number] + reach)])
        if np.linalg.norm(ends[1] - ends[0]) > size / 2:
            line = {"color": colour, "linewidth": look.points(max(1.0, size / 14)), "zorder": 4}
            axes.plot(*(ends / shape).T, transform=axes.transAxes, **line)
        # The outline lies below the text itself, which stays one that can be searched and edited on a page.
        place = centres[number] / shape
        axes.text(*place, names[number], color=f"#{look.theme.paper}", path_effects=outline, zorder=5, **style)
        axes.text(*place, names[number], color=colour, zorder=6, **style)
    return len(panel.colours.classes) - len(panel.named) + len(names) - len(placed)


def widths_of(figure: Any, names: list[str], look: Look) -> np.ndarray:
    """Return the widths (n,) of names in heights of their text."""
    font = optional_module("matplotlib.font_manager", "figures").FontProperties(size=look.points(look.text))
    renderer = figure.canvas.get_renderer()
    return np.array([renderer.get_text_width_height_descent(name, font, False)[0] for name in names]) / look.text


def densest(densities: np.ndarray) -> np.ndarray:
    """Return where each class (K, rows, columns) is densest, across and up as shares of the panel: (K, 2)."""
    smooth = gaussian_filter(densities, (0, CLUSTER_CELLS, CLUSTER_CELLS), mode="constant", truncate=2)
    rows, columns = np.divmod(smooth.reshape(len(smooth), -1).argmax(axis=1), CELLS)
    return np.stack([(columns + 0.5) / CELLS, 1 - (rows + 0.5) / CELLS], axis=1)


def place_boxes(anchors: np.ndarray, extents: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the centres (n, 2) of boxes near their anchors, none over another and all within (0, 0) and the bounds.

    Boxes are placed in the order given, each at the nearest place that is free; one over the anchors of others goes
    further away. NaN stands for a box that no place was found for. All are in pixels: the anchors (n, 2), width and
    height of each box (n, 2), and the bounds (2,).
    """
    turns = np.arange(TRIED)[:, None]
    spiral = np.hstack([np.cos(turns * TURN), np.sin(turns * TURN)]) * np.hypot(*bounds) * turns / TRIED
    centres = np.full((len(anchors), 2), np.nan)
    for number, (anchor, extent) in enumerate(zip(anchors, extents, strict=True)):
        if (extent > bounds).any():
            continue
        places = np.clip(anchor + spiral, extent / 2, bounds - extent / 2)  # what leaves the panel goes to its rim
        covered = (np.abs(places[:, None] - anchors) < extent / 2).all(axis=2).sum(axis=1)
        own = (np.abs(places - anchor) < extent / 2).all(axis=1)
        cost = np.linalg.norm(places - anchor, axis=1) + CROWDED * extent[1] * (covered - own)
        others = (extents[:number] + extent) / 2
        taken = (np.abs(places[:, None] - centres[:number]) < others).all(axis=2).any(axis=1)
        cost[taken] = np.inf
        if np.isfinite(cost).any():
            centres[number] = places[cost.argmin()]
    return centres
