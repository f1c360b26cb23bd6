"""Scores over a grid of parameters: a heat map of two of them, curves of one, a panel for each value of the others."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import ConfigError
from scalemani.figures.lines import MARKERS, save_figure
from scalemani.figures.palette import RAMP_STEPS, TEN_COLOURS, VIRIDIS, ramp
from scalemani.sources.base import optional_module

MOST_PANELS = 24  # of heat maps, above which nobody finds the best one by eye
PANEL_INCHES = (4.4, 3.4)
PANELS_A_ROW = 3
LIGHT_FROM = 0.6  # share of the ramp from which the numbers in a heat map are dark


def grid_figure(
    cells: Sequence[Mapping[str, Any]], scores: Any, path: str | Path, label: str = "", best: int | None = None
) -> None:
    """Draw scores over a grid and write them as .png, .svg or .pdf.

    The two names with the most values span heat maps, with curves over the first beside them; others have a panel for
    each combination. One name alone gives a curve. Cells without a score stay empty.

    Parameters
    ----------
    cells : (n,) values of each cell, by name
    scores : (n,) numbers, NaN where a cell has none
    path : where to; the suffix decides the format
    label : what the scores are
    best : the cell that is marked

    Raises
    ------
    ConfigError
        For a grid of one cell, one that takes too many panels, and where matplotlib is not installed.
    """
    found = np.asarray(scores, dtype=np.float64)
    axes = varied(cells)
    if not axes:
        raise ConfigError("a grid of one cell has no picture: give two values or more of a parameter")
    names = sorted(axes, key=lambda name: -len(axes[name]))[:2]
    others = [name for name in axes if name not in names]
    panels = list(itertools.product(*(axes[name] for name in others)))
    if len(panels) > MOST_PANELS:
        raise ConfigError(f"a picture of {len(panels)} panels is too large, at most {MOST_PANELS}: give fewer values")
    figure_module = optional_module("matplotlib.figure", "figures")
    drawn = len(panels) * (2 if len(names) == 2 else 1)
    columns = min(drawn, PANELS_A_ROW if len(names) == 1 else 2 * (PANELS_A_ROW // 2))
    shape = -(-drawn // columns), columns
    size = PANEL_INCHES[0] * shape[1], PANEL_INCHES[1] * shape[0]
    figure = figure_module.Figure(figsize=size, layout="constrained")
    places = iter(figure.subplots(*shape, squeeze=False).ravel())
    finite = found[np.isfinite(found)]
    limits = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    for panel in panels:
        table = scores_of(cells, found, axes, names, dict(zip(others, panel, strict=True)))
        marked = None if best is None else place_of(cells[best], axes, names, dict(zip(others, panel, strict=True)))
        title = ", ".join(f"{name} {value}" for name, value in zip(others, panel, strict=True))
        if len(names) == 2:
            draw_map(next(places), table, [axes[name] for name in names], names, limits, marked)
        curves = next(places)
        draw_curves(curves, table, [axes[name] for name in names], names)
        curves.set_ylabel(label)
        curves.set_title(title, fontsize="medium")
    for place in places:
        place.set_axis_off()
    save_figure(figure, path)


def varied(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of each name that has more than one: numbers ascending, others as they come."""
    names = list(dict.fromkeys(name for cell in cells for name in cell))
    values = {name: list({repr(cell.get(name)): cell.get(name) for cell in cells}.values()) for name in names}
    return {name: ordered(found) for name, found in values.items() if len(found) > 1}


def ordered(values: list[Any]) -> list[Any]:
    """Return values ascending where all are numbers, else as they are."""
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values


def place_of(
    cell: Mapping[str, Any], axes: Mapping[str, list[Any]], names: Sequence[str], panel: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """Return where a cell lies in the table of a panel, None where it is in another panel.

    Parameters
    ----------
    cell : the value of every name
    axes : the values that each name has in the grid
    names : of the axes of the table
    panel : the values of the other names
    """
    if any(cell.get(name) != value for name, value in panel.items()):
        return None
    return tuple(axes[name].index(cell.get(name)) for name in names)


def scores_of(
    cells: Sequence[Mapping[str, Any]],
    scores: np.ndarray,
    axes: Mapping[str, list[Any]],
    names: Sequence[str],
    panel: Mapping[str, Any],
) -> np.ndarray:
    """Return the scores of a panel as a table with an axis a name, NaN where there is no cell.

    Parameters
    ----------
    cells : of the grid
    scores : (n_cells,) float64
    axes, names, panel : as of `place_of`
    """
    table = np.full([len(axes[name]) for name in names], np.nan)
    for cell, score in zip(cells, scores, strict=True):
        place = place_of(cell, axes, names, panel)
        if place is not None:
            table[place] = score
    return table


def draw_map(
    axes: Any,
    table: np.ndarray,
    values: Sequence[Sequence[Any]],
    names: Sequence[str],
    limits: tuple[float, float],
    marked: tuple[int, ...] | None,
) -> None:
    """Draw a table of scores as coloured cells with their numbers.

    Parameters
    ----------
    axes : of Matplotlib
    table : (n, m) float64, NaN where there is no cell
    values, names : of the two axes of the table
    limits : the scores that the ends of the colours stand for
    marked : the place of a cell with a frame; None for none
    """
    colours = optional_module("matplotlib.colors", "figures").ListedColormap(ramp(VIRIDIS, RAMP_STEPS))
    axes.imshow(table.T, origin="lower", aspect="auto", cmap=colours, vmin=limits[0], vmax=limits[1])
    span = max(limits[1] - limits[0], np.finfo(float).tiny)
    for place in np.ndindex(table.shape):
        if np.isfinite(table[place]):
            ink = "0.1" if (table[place] - limits[0]) / span > LIGHT_FROM else "white"
            axes.text(*place, f"{table[place]:.3g}", ha="center", va="center", color=ink, fontsize="small")
    if marked is not None:
        corner = marked[0] - 0.5, marked[1] - 0.5
        frame = optional_module("matplotlib.patches", "figures").Rectangle(
            corner, 1, 1, fill=False, edgecolor=f"#{TEN_COLOURS[2]}", linewidth=2.5
        )
        axes.add_patch(frame)
    axes.set_xticks(range(len(values[0])), list(map(str, values[0])))
    axes.set_yticks(range(len(values[1])), list(map(str, values[1])))
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])


def draw_curves(axes: Any, table: np.ndarray, values: Sequence[Sequence[Any]], names: Sequence[str]) -> None:
    """Draw the scores over the first name, a curve for each value of the second where there is one.

    Parameters
    ----------
    axes : of Matplotlib
    table : (n,) or (n, m) float64
    values, names : of each axis of the table
    """
    lines = table[:, np.newaxis] if table.ndim == 1 else table
    for number in range(lines.shape[1]):
        style = {
            "marker": MARKERS[number % len(MARKERS)],
            "color": f"#{TEN_COLOURS[number % len(TEN_COLOURS)]}",
            "markersize": 4,
            "linewidth": 1.5,
        }
        name = None if table.ndim == 1 else str(values[1][number])
        axes.plot(range(len(lines)), lines[:, number], label=name, **style)
    axes.set_xticks(range(len(values[0])), list(map(str, values[0])))
    axes.set_xlabel(names[0])
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if table.ndim == 2:
        axes.legend(frameon=False, title=names[1], fontsize="small", title_fontsize="small")
