"""Curves of measurements, for benchmark pages and reports."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.export.atomic import replaced_file
from scalemani.figures.palette import TEN_COLOURS
from scalemani.sources.base import optional_module

Curve = tuple[Any, Any]
MARKERS = "osD^vPX*<>"
MARKED = 12  # points of a long curve


def line_figure(
    curves: Mapping[str, Curve],
    path: str | Path,
    x_label: str = "",
    y_label: str = "",
    title: str = "",
    log_axes: str = "",
) -> None:
    """Draw curves with markers, told apart by shape as well as colour, and write them as .png, .svg or .pdf.

    Parameters
    ----------
    curves : name to (x, y), each (n,)
    path : where to; the suffix decides the format
    x_label, y_label, title : text, with units
    log_axes : "", "x", "y" or "xy"
    """
    figure_module = optional_module("matplotlib.figure", "figures")
    figure = figure_module.Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot(
        xlabel=x_label,
        ylabel=y_label,
        title=title,
        xscale="log" if "x" in log_axes else "linear",
        yscale="log" if "y" in log_axes else "linear",
    )
    for number, (name, (x, y)) in enumerate(curves.items()):
        colour = f"#{TEN_COLOURS[number % len(TEN_COLOURS)]}"
        marker = MARKERS[number % len(MARKERS)]
        every = max(1, len(x) // MARKED)
        style = {"marker": marker, "markersize": 4, "markevery": every, "color": colour, "linewidth": 1.5}
        axes.plot(np.asarray(x), np.asarray(y), label=name, **style)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if len(curves) > 1:
        axes.legend(frameon=False)
    save_figure(figure, path)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure of Matplotlib as .png (where there is no suffix too), .svg or .pdf, in one step."""
    target = Path(path) if Path(path).suffix else Path(f"{path}.png")
    with replaced_file(target) as file:
        figure.savefig(file, format=target.suffix.lower()[1:], dpi=150)
