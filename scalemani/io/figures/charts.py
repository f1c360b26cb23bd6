"""Charts of measurements: curves, scores over a grid of parameters, and the clusters of an image's pixels."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError
from scalemani.io.export.atomic import replaced_file
from scalemani.io.figures.look import class_colours
from scalemani.io.sources.base import optional_module

Curve = tuple[Any, Any]
MARKERS = "osD^vPX*<>"
MARKED = 12  # points of a long curve
MOST_PANELS = 24  # of heat maps, above which nobody finds the best one by eye
PANEL_INCHES = (4.4, 3.4)
MOST_GROUPS, MOST_BESIDE = 60, 3  # panels of bars, in all and in a row
BAR_INCHES = 0.22
LIGHT_FROM = 0.6  # share of the ramp from which the numbers in a heat map are dark
GAP = 2  # white pixels between the frames of a video


def line_figure(
    curves: Mapping[str, Curve],
    path: str | Path,
    x_label: str = "",
    y_label: str = "",
    title: str = "",
    log_axes: str = "",
) -> None:
    """Draw curves (x, y), each (n,), by name, with markers, and write them as .png, .svg or .pdf.

    `log_axes` is "", "x", "y" or "xy".
    """
    figure = new_figure(6.4, 4.2)
    scales = {f"{axis}scale": "log" for axis in log_axes}
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label, title=title, **scales)
    draw_curves(axes, curves)
    if len(curves) > 1:
        axes.legend(frameon=False)
    save_figure(figure, path)


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of Matplotlib of a size in inches, in which nothing overlaps."""
    return optional_module("matplotlib.figure", "figures").Figure(figsize=(width, height), layout="constrained")


def draw_curves(axes: Any, curves: Mapping[str, Curve]) -> None:
    """Draw a line for each curve (x, y), in a separate colour, with some twelve markers, over a grid."""
    colours = class_colours(len(curves))
    for (name, (x, y)), colour, marker in zip(curves.items(), colours, itertools.cycle(MARKERS), strict=False):
        every = max(1, len(x) // MARKED)
        axes.plot(x, y, label=name, marker=marker, markersize=4, markevery=every, color=colour, linewidth=1.5)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def grid_figure(
    cells: Sequence[Mapping[str, Any]], scores: Any, path: str | Path, label: str = "", best: int | None = None
) -> None:
    """Draw scores over a grid and write them as .png, .svg or .pdf.

    The two names with the most values span heat maps, with curves over the first next to them; others have a panel for
    each combination. One name alone gives a curve. Cells without a score stay empty.

    Parameters
    ----------
    cells : (n,) values of each cell, by name
    scores : (n,) numbers, NaN where a cell has none

    Raises
    ------
    ConfigError
        For a grid of one cell, one that takes too many panels, and where matplotlib is not installed.
    """
    values = varied(cells)
    if not values:
        raise ConfigError("a grid of one cell has no picture: give two values or more of a parameter")
    places = [tuple(listed.index(cell.get(name)) for name, listed in values.items()) for cell in cells]
    table = np.full([len(listed) for listed in values.values()], np.nan)
    table[tuple(np.transpose(places))] = scores
    names, others = list(values)[:2], list(values)[2:]
    panels = list(np.ndindex(table.shape[2:]))
    if len(panels) > MOST_PANELS:
        raise ConfigError(f"a picture of {len(panels)} panels is too large, at most {MOST_PANELS}: give fewer values")
    figure = new_figure(PANEL_INCHES[0] * len(names), PANEL_INCHES[1] * len(panels))
    shades = optional_module("matplotlib.colors", "figures").Normalize()  # of all panels
    shades.autoscale(np.ma.masked_invalid(table))
    for panel, (*maps, chart) in zip(panels, figure.subplots(len(panels), len(names), squeeze=False), strict=True):
        shown = table[(..., *panel)]
        keys = [label]
        if maps:
            keys = list(map(str, values[names[1]]))
            marked = places[best][:2] if best is not None and places[best][2:] == panel else None
            draw_map(maps[0], shown, {name: values[name] for name in names}, shades, marked)
        lines = shown.reshape(len(shown), -1).T
        draw_curves(chart, {key: (range(len(shown)), line) for key, line in zip(keys, lines, strict=True)})
        name_axis(chart.xaxis, names[0], values[names[0]])
        chart.set_ylabel(label)
        title = ", ".join(f"{name} {values[name][at]}" for name, at in zip(others, panel, strict=True))
        chart.set_title(title, fontsize="medium")
        if maps:
            chart.legend(frameon=False, title=names[1], fontsize="small", title_fontsize="small")
    save_figure(figure, path)


def front_figure(
    table: Mapping[str, Any], scores: Sequence[str], names: Sequence[str], front: Sequence[int], path: str | Path
) -> None:
    """Draw two scores of each cell with two standard errors, and a line through the cells of the front.

    Parameters
    ----------
    table : columns (n,) of both scores, and of their standard errors by the name with `_error`
    scores : the names of the two, along x and y
    names : (n,) words of each cell, written at those of the front
    front : numbers of the cells that none exceeds in both, in their order along x
    """
    figure = new_figure(*PANEL_INCHES)
    chart = figure.subplots()
    values, errors = ([np.asarray(table[f"{score}{end}"], float) for score in scores] for end in ("", "_error"))
    chart.errorbar(*values, xerr=2 * errors[0], yerr=2 * errors[1], fmt="o", markersize=3, linewidth=0.8)
    chart.plot(*(value[list(front)] for value in values), linewidth=1.0)
    for number in front:
        place = (values[0][number], values[1][number])
        chart.annotate(names[number], place, fontsize="x-small", xytext=(4, 4), textcoords="offset points")
    chart.set_xlabel(scores[0])
    chart.set_ylabel(scores[1])
    save_figure(figure, path)


def bar_figure(bars: Mapping[str, Mapping[str, float]], path: str | Path, label: str = "") -> None:
    """Draw numbers by name as bars, a panel for each group, the first on top, and write them as .png, .svg or .pdf.

    Raises
    ------
    ConfigError
        For more than 60 groups, and where matplotlib is not installed.
    """
    if len(bars) > MOST_GROUPS:
        raise ConfigError(f"a picture has {MOST_GROUPS} groups at most, got {len(bars)}: give fewer groups")
    widest, longest = min(len(bars), MOST_BESIDE), max(map(len, bars.values()))
    rows = -(-len(bars) // widest)
    figure = new_figure(PANEL_INCHES[0] * widest, (1.0 + BAR_INCHES * longest) * rows)
    charts = figure.subplots(rows, widest, squeeze=False).ravel()
    for chart, (title, numbers) in zip(charts, bars.items(), strict=False):
        chart.barh(range(len(numbers)), list(numbers.values()), color=class_colours(1)[0])
        chart.invert_yaxis()
        name_axis(chart.yaxis, "", list(numbers))
        chart.set(title=title, xlabel=label)
        chart.spines[["top", "right"]].set_visible(False)
    for chart in charts[len(bars) :]:
        chart.set_axis_off()
    save_figure(figure, path)


def name_axis(axis: Any, name: str, values: Sequence[Any]) -> None:
    """Write the name of a parameter and its values along an axis, value by value."""
    axis.set_ticks(range(len(values)), list(map(str, values)))
    axis.set_label_text(name)


def varied(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of each name that has more than one, numbers ascending; names with the most values first."""
    names = dict.fromkeys(itertools.chain(*cells))
    values = {name: list({repr(cell.get(name)): cell.get(name) for cell in cells}.values()) for name in names}
    for listed in values.values():
        if all(isinstance(value, int | float) for value in listed):
            listed.sort()
    most_first = sorted(values.items(), key=lambda item: -len(item[1]))
    return {name: listed for name, listed in most_first if len(listed) > 1}


def draw_map(
    axes: Any, table: np.ndarray, values: Mapping[str, Sequence[Any]], shades: Any, marked: tuple[int, ...] | None
) -> None:
    """Draw a table of scores (n, m), NaN where there is no cell, as coloured cells with their numbers.

    `values` are those of its two axes by name; `shades` brings scores to a range from 0 to 1; `marked` has a frame.
    """
    axes.imshow(table.T, origin="lower", aspect="auto", cmap="viridis", norm=shades)
    for place in np.argwhere(np.isfinite(table)):
        score = table[tuple(place)]
        ink = "0.1" if shades(score) > LIGHT_FROM else "white"
        axes.text(*place, f"{score:.3g}", ha="center", va="center", color=ink, fontsize="small")
    if marked is not None:
        frame = {"edgecolor": class_colours(3)[2], "linewidth": 2.5, "clip_on": False, "fill": False}
        corner = np.array(marked) - 0.5
        axes.add_patch(optional_module("matplotlib.patches", "figures").Rectangle(corner, 1, 1, **frame))
    for axis, named in zip((axes.xaxis, axes.yaxis), values.items(), strict=True):
        name_axis(axis, *named)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure of Matplotlib as .png (where there is no suffix too), .svg or .pdf, in one step."""
    suffix = Path(path).suffix or ".png"
    with replaced_file(Path(path).with_suffix(suffix)) as file:
        figure.savefig(file, format=suffix.lower()[1:], dpi=150)


def label_picture(labels: np.ndarray, image: tuple[int, int, int], path: str | Path) -> None:
    """Draw the clusters (N,) of all pixels as a .png; frames of a video are tiled in rows.

    `labels` are integers from 0, frame by frame and row by row; `image` is (frames, rows, columns).
    """
    pictures = optional_module("PIL.Image", "figures")
    frames, rows, columns = image
    across = math.ceil(math.sqrt(frames))
    shown = np.asarray(labels).reshape(image)
    colours = np.rint(255 * class_colours(int(shown.max()) + 1)).astype(np.uint8)
    cell = np.array([rows + GAP, columns + GAP])
    sheet = np.full((*(cell * (-(-frames // across), across) - GAP), 3), 255, np.uint8)
    for number, frame in enumerate(shown):
        top, left = cell * divmod(number, across)
        sheet[top : top + rows, left : left + columns] = colours[frame]
    with replaced_file(path) as file:
        pictures.fromarray(sheet).save(file, format="PNG")
