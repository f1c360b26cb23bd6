"""A picture of an embedding that stays readable at ten million points and at hundreds of classes, with their names."""

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from scalemani.errors import ConfigError, DataError
from scalemani.io.export.atomic import replaced_file
from scalemani.io.export.writers import blocks
from scalemani.io.figures.look import (
    LARGEST_CLASSES,
    LARGEST_LEGEND,
    NO_LABEL_TEXT,
    RAMP_STEPS,
    LabelColours,
    Look,
    Page,
    checked_look,
    checked_suffix,
    colours_of_labels,
    rgb,
)
from scalemani.io.figures.panels import CELLS, Pair, Panel, column_limits, lone_opacity, point_radius, shade
from scalemani.io.sources.base import PointsSource, optional_module
from scalemani.io.sources.opening import open_points
from scalemani.kernels.arrays.draws import row_words

LONGEST_NAME = 32  # letters of a name that are shown
CLUSTER_CELLS = 2.0  # over which the density of a class is averaged
FEW_POINTS = 20  # of a class whose name is above it
SMALLEST_TEXT, SMALLEST_SHARE = 8, 0.55  # of names on a map: pixels, and of the height of other text
SHRINK = 0.88
FULLEST = 0.18  # of a panel that names may cover
FARTHEST = 0.12  # of the diagonal of a panel, from a cluster to its name
BOX = (0.5, 1.3)  # a name's box: heights of text left and right of it in sum, and its height
TURN = math.pi * (3 - math.sqrt(5))  # the golden angle: places on a spiral by it are spread evenly
TRIED = 1000  # places for a name around its cluster, nearest first
CROWDED = 0.3  # of its height that a name moves away for each other cluster that it covers
MOST_PANELS = 12
USUAL = checked_look()
VECTOR_POINTS = 5_000  # up to so many are discs one by one on a page; more are an image on it
MOST_RINGS = 2_000
RING = 0.4  # heights of text, the radius of a ring
ELLIPSE = 0.022  # of the extent of a panel, the median long half-axis of ellipses
OUTLINE = np.linspace(0.0, 2.0 * np.pi, 41)  # of an ellipse
SMALLEST_PANEL = 80  # pixels
ROW_SHAPE = 1.6  # width to height of a picture that grows with its panels
LINE = 1.5  # heights of text from line to line of a legend
BAR = 15  # heights of text, of the bar of a colour ramp
UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
Columns = Mapping[str, LabelColours]


def shortened(name: str) -> str:
    """Return a name on one line, its end cut off where it is long."""
    line = " ".join(name.split())
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def draw_names(axes: Any, panel: Panel, look: Look) -> int:
    """Draw the names of classes on their clusters, those of larger classes first; return how many have no place.

    Text gets smaller where names would cover much of the panel, or be far from their clusters, to which lines lead.
    """
    n_seen = panel.densities.sum(axis=0)
    seen = np.argsort(-n_seen, kind="stable")[: np.count_nonzero(n_seen)]
    if not len(seen):
        return 0
    shape, text = np.array(panel.shape), look.size.text
    names = [shortened(panel.colours.classes[number]) for number in panel.named[seen]]
    anchors = densest(panel.densities[:, seen]) * shape
    few = n_seen[seen] < FEW_POINTS  # a name over them would hide them: it is above, below at the upper rim
    anchors[few, 1] += np.where(anchors[few, 1] > shape[1] - 2 * text, -text, text)
    smallest = max(SMALLEST_TEXT, SMALLEST_SHARE * text)
    font = optional_module("matplotlib.font_manager", "figures").FontProperties(size=look.points(text))
    measure = axes.figure.canvas.get_renderer().get_text_width_height_descent
    extents = np.array([(measure(name, font, False)[0] / text + BOX[0], BOX[1]) for name in names])  # heights of text
    size = min(text, max(smallest, math.sqrt(FULLEST * shape.prod() / extents.prod(axis=1).sum())))
    while True:
        centres = place_boxes(anchors, extents * size, shape)
        away = np.linalg.norm(centres - anchors, axis=1)
        if size <= smallest or (away <= FARTHEST * math.hypot(*shape)).all():
            break
        size = max(smallest, size * SHRINK)
    effects = optional_module("matplotlib.patheffects", "figures")
    outline = [effects.Stroke(linewidth=look.points(size / 4), foreground=look.theme.paper)]
    style = {"fontsize": look.points(size), "ha": "center", "va": "center_baseline", "transform": axes.transAxes}
    reach = extents * size / 2
    nearest = np.clip(anchors, centres - reach, centres + reach)  # of each name to its cluster
    placed = np.flatnonzero(np.isfinite(away))
    for number in placed:
        colour = look.theme.readable(panel.colours.colours[panel.named[seen[number]]])
        ends = np.stack([anchors[number], nearest[number]])
        if np.linalg.norm(ends[1] - ends[0]) > size / 2:
            width = look.points(max(1.0, size / 14))
            axes.plot(*(ends / shape).T, color=colour, linewidth=width, transform=axes.transAxes, zorder=4)
        # The outline lies below the text itself, which stays one that can be searched and edited on a page.
        place = centres[number] / shape
        axes.text(*place, names[number], color=look.theme.paper, path_effects=outline, zorder=5, **style)
        axes.text(*place, names[number], color=colour, zorder=6, **style)
    return len(panel.colours.classes) - len(panel.named) + len(names) - len(placed)


def densest(densities: np.ndarray) -> np.ndarray:
    """Return where each class (cells, K) is densest, across and up as shares of the panel: (K, 2)."""
    cells = densities.reshape(CELLS, CELLS, -1)
    smooth = gaussian_filter(cells, (CLUSTER_CELLS, CLUSTER_CELLS, 0), mode="constant", truncate=2)
    rows, columns = np.divmod(smooth.reshape(densities.shape).argmax(axis=0), CELLS)
    return np.stack([(columns + 0.5) / CELLS, 1 - (rows + 0.5) / CELLS], axis=1)


def place_boxes(anchors: np.ndarray, extents: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the centres (n, 2) of boxes near their anchors, none over another and all within (0, 0) and the bounds.

    Boxes are placed in their order, each at the nearest place that is free; one over the anchors of others goes
    further away. NaN stands for a box without a place. All are in pixels: the anchors (n, 2), width and
    height of each box (n, 2), and the bounds (2,).
    """
    turns = np.arange(TRIED)[:, None]
    spiral = np.hstack([np.cos(turns * TURN), np.sin(turns * TURN)]) * np.hypot(*bounds) * turns / TRIED
    centres = np.full((len(anchors), 2), np.nan)
    for number, (anchor, extent) in enumerate(zip(anchors, extents, strict=True)):
        places = np.clip(anchor + spiral, extent / 2, bounds - extent / 2)  # what leaves the panel goes to its rim
        covered = (np.abs(places[:, None] - anchors) < extent / 2).all(axis=2)
        taken = (np.abs(places[:, None] - centres) < (extents + extent) / 2).all(axis=2).any(axis=1) | (
            extent > bounds
        ).any()
        cost = np.linalg.norm(places - anchor, axis=1)
        cost += CROWDED * extent[1] * np.delete(covered, number, axis=1).sum(axis=1)
        if not taken.all():
            centres[number] = places[np.where(taken, np.inf, cost).argmin()]
    return centres


def embedding_picture(
    embedding: Any, path: str | Path, labels: Any = None, look: Look = USUAL, marked: Any = None, panels: Any = None
) -> int:
    """Draw an embedding as .png, .svg or .pdf, and return the number of points that lie outside the view.

    On pages (.svg, .pdf) text, lines and up to 5,000 points stay such; more points are an image of the requested size.
    The same arguments give the same bytes.

    Parameters
    ----------
    embedding, labels, look, marked, panels : those of `embedding_figure`

    Raises
    ------
    ConfigError
        For another suffix, and what `embedding_figure` refuses.
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    suffix = checked_suffix(Path(path))
    with styled(look):
        figure, n_outside = draw(
            embedding, labels, look, marked, VECTOR_POINTS if suffix in UNDATED else 0, panels=panels
        )
        with replaced_file(path) as file:
            figure.savefig(file, format=suffix[1:], dpi=look.size.dpi, metadata=UNDATED.get(suffix))
    return n_outside


def drawn_embedding(
    embedding: Any, labels: Any = None, look: Look = USUAL, marked: Any = None, panels: Any = None
) -> tuple[Any, int]:
    """Return an embedding as a picture of Pillow, and the number of points that lie outside the view.

    Parameters and errors are those of `embedding_figure`.
    """
    with styled(look):
        figure, n_outside = draw(embedding, labels, look, marked, panels=panels)
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    return optional_module("PIL.Image", "figures").fromarray(pixels), n_outside


def embedding_figure(
    embedding: Any, labels: Any = None, look: Look = USUAL, marked: Any = None, panels: Any = None
) -> Any:
    """Return an embedding as a figure of Matplotlib.

    Two dimensions give one panel, three or more the three pairs of the first three, one a strip in which height means
    nothing but the class. Pixels are shaded by the logarithm of how many points they hold. Axes have one unit unless
    their extents differ more than fourfold. Far outliers are left outside the view, and counted below it.

    Parameters
    ----------
    embedding : (N, d) array or any input of `open_points`; read by blocks of rows, twice
    labels : one for each point, as `open_labels` takes them: texts and up to 256 whole numbers are classes, of which
        every pixel shows one, as often as points near it have it; other numbers follow a colour ramp from their 0.5th
        to their 99.5th percentile; points without a label are pale, below all others; several labels by their names
        give a panel each; None colours by density
    look : its size, title, legend, theme, point size and colours, made by `checked_look`
    marked : (N,) bool, points to be ringed, such as those whose certificate is poor; at most 2,000 of them are. Or
        (N, d, d), the metric at points that have an ellipse, NaN at others: all in one unit of length
    panels : labels of classes, one for each point: a panel for each class, in which all other points are pale

    Raises
    ------
    ConfigError
        For more than 12 panels, a page too small for them, or where Matplotlib is not installed (extra `figures`).
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    with styled(look):
        return draw(embedding, labels, look, marked, panels=panels)[0]


def draw_on(axes: Any, embedding: Any, labels: Any = None, look: Look = USUAL, marked: Any = None) -> None:
    """Draw an embedding of one or two dimensions on axes of Matplotlib, as many pixels large as these are now.

    The title and the legend are those of the axes; the size of the look has no effect.

    Raises
    ------
    ConfigError
        For several labels or more than two dimensions, which take several panels.
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    draw(embedding, labels, look, marked, axes=axes)


@contextlib.contextmanager
def styled(look: Look) -> Iterator[None]:
    """Have Matplotlib draw by its defaults and a theme, in place of the style in use, while the block lasts."""
    theme = look.theme
    settings = {
        "figure.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
        "axes.edgecolor": theme.frame,
        "text.color": theme.ink,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "font.size": look.points(look.size.text),
        "axes.titlesize": "medium",
        "text.parse_math": False,
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "svg.hashsalt": "scalemani",
    }
    style = optional_module("matplotlib.style", "figures")
    with style.context(settings, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # they are drawn as boxes
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        yield


def draw(
    embedding: Any,
    labels: Any,
    look: Look,
    marked: Any = None,
    most_discs: int = 0,
    panels: Any = None,
    axes: Any = None,
) -> tuple[Any, int]:
    """Return a figure of Matplotlib, and the number of points outside the view; with axes, draw on these.

    Up to `most_discs` points are separate discs, and no part of an image; others are those of `embedding_figure`.
    """
    source = open_points(embedding)
    n_points, n_components = source.shape
    columns = coloured_columns(labels, n_points, look, panels)
    pairs: list[Pair | None] = [None] if n_components == 1 else [*combinations(range(min(n_components, 3)), 2)]
    check_panels(len(columns), len(pairs), 1 if axes is not None else MOST_PANELS)
    marks, metric = checked_marks(marked, n_points, n_components)
    limits = column_limits(source, min(n_components, 3))
    if axes is None:
        figure, places, shape = laid_out(look, columns, pairs, panels is None)
    else:
        figure, places, (look, shape) = axes.figure, [axes], laid_on(axes, look, *columns.values())
    drawn = [
        Panel(shape, pair, limits, colours, names_classes(colours, look))
        for colours in columns.values()
        for pair in pairs
    ]
    ringed = np.flatnonzero(marks)
    ringed = ringed[:: max(1, -(-len(ringed) // MOST_RINGS))]  # spread evenly over the rows
    each = n_points <= most_discs
    drawn_rows = np.arange(n_points) if each else ringed
    rows = counted(source, drawn, drawn_rows)
    n_nameless = 0
    for place, panel in zip(places, drawn, strict=True):
        place.set(xlim=panel.limits[0], ylim=panel.limits[1])
        if each:
            draw_discs(place, panel, look, rows)
        else:
            draw_pixels(place, panel, look)
        centres, _ = panel.points(ringed, rows[np.searchsorted(drawn_rows, ringed)])
        radius = look.points(RING * look.size.text)
        style = {"facecolors": "none", "edgecolors": look.theme.ink, "zorder": 3, "linewidths": radius / 4}
        if metric is None:
            place.scatter(*centres, (2 * radius) ** 2, **style)
        else:
            outlines = ellipse_outlines(centres, metric[ringed], panel)
            place.add_collection(optional_module("matplotlib.collections", "figures").PolyCollection(outlines, **style))
        n_nameless += draw_names(place, panel, look)
    n_outside = n_points - int(min(panel.layers[..., 0].sum() for panel in drawn))
    if axes is None:
        figure.texts[-1].set_text(below(n_points, n_outside, int(marks.sum()), n_nameless, metric is not None))
    return figure, n_outside


def checked_marks(marked: Any, n_points: int, n_components: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return which points (N,) are marked, and the metric (N, d, d) where marks are ellipses."""
    marks = np.zeros(n_points, bool) if marked is None else np.asarray(marked)
    if marks.shape == (n_points, n_components, n_components) and n_components > 1:
        return np.isfinite(marks).all(axis=(1, 2)), marks
    if marks.shape != (n_points,) or marks.dtype != bool:
        raise DataError(
            f"marked must say true or false of each of {n_points} points, or be a metric of two columns or more at "
            f"each, got {marks.dtype} of shape {marks.shape}"
        )
    return marks, None


def ellipse_outlines(centres: np.ndarray, metric: np.ndarray, panel: Panel) -> np.ndarray:
    """Return the outlines (n, 41, 2) of the ellipses about centres (2, n) that the metric (n, d, d) makes of a circle.

    The circle has one radius in the data, and the projection of an ellipsoid is that of the two columns of the panel.
    """
    if not len(metric):
        return np.empty((0, len(OUTLINE), 2))
    squares, axes = np.linalg.eigh(metric[:, panel.pair][:, :, panel.pair])
    lengths = np.sqrt(squares.clip(0.0))
    radius = ELLIPSE * np.ptp(panel.limits, axis=1).min() / (np.median(lengths[:, -1]) or 1.0)
    circle = np.stack([np.cos(OUTLINE), np.sin(OUTLINE)])
    return centres.T[:, np.newaxis] + (radius * (axes * lengths[:, np.newaxis]) @ circle).transpose(0, 2, 1)


def check_panels(n_labels: int, n_pairs: int, most: int) -> None:
    """Refuse more panels than there may be: one for each labels and pair of components."""
    if n_labels * n_pairs > most:
        raise ConfigError(
            f"a picture has at most {most} panels{' on axes' if most == 1 else ''}, and {n_labels} labels of {n_pairs} "
            f"pairs of components take {n_labels * n_pairs}: give fewer labels{' or components' if most == 1 else ''}"
        )


def coloured_columns(labels: Any, n_points: int, look: Look, panels: Any = None) -> Columns:
    """Return the colours of labels by their names; one set has no name; without any, all points have one colour.

    With panels, labels of classes, each of these has those of its points, and others are pale.
    """
    pale = look.theme.no_label
    if labels is None and look.colours.groups:
        raise ConfigError("groups are classes of labels: give labels")
    if labels is None and panels is None:
        return {"": LabelColours(np.broadcast_to(np.int32(0), n_points), rgb(look.theme.density[2]))}
    named = {} if labels is None else labels if isinstance(labels, Mapping) else {"": labels}
    columns = {str(name): colours_of_labels(values, n_points, pale, look.colours) for name, values in named.items()}
    if panels is None:
        return columns
    split = colours_of_labels(panels, n_points, pale, replace(look.colours, groups=()))
    if not split.classes:
        raise ConfigError("panels are of classes, and these labels are values: give texts, or few whole numbers")
    return {
        ": ".join(filter(None, (name, title))): colours.of(split.index == number, pale)
        for name, colours in (columns or {"": split}).items()
        for number, title in enumerate(split.classes)
    }


def counted(source: PointsSource, panels: list[Panel], selected: np.ndarray) -> np.ndarray:
    """Count all points in the panels, block by block, and return the selected rows (n,) of the first three columns."""
    parts = []
    for start, rows in blocks(source):
        numbers = np.arange(start, start + len(rows))
        for panel in panels:
            panel.add(numbers, rows)
        parts.append(rows[np.isin(numbers, selected), :3])
    return np.concatenate(parts)


def laid_on(axes: Any, look: Look, colours: LabelColours) -> tuple[Look, tuple[int, int]]:
    """Make axes ready, with title and legend; return the look that their figure gives, and their size in pixels."""
    figure, box = axes.figure, axes.get_window_extent()
    shape = max(1, int(box.width)), max(1, int(box.height))
    text = optional_module("matplotlib", "figures").rcParams["font.size"] * figure.dpi / 72
    look = replace(look, size=Page(*shape, round(figure.dpi), round(text)))
    axes.set(xticks=[], yticks=[], title=look.title)
    draw_legend(axes, colours, look, shape[1])
    return look, shape


def laid_out(
    look: Look, columns: Columns, pairs: list[Pair | None], each_legend: bool
) -> tuple[Any, list[Any], tuple[int, int]]:
    """Return a figure with titles and legends, the axes of its panels, and their width and height in pixels.

    Each of the columns has a legend, or the last alone.
    """
    size, text = look.size, look.size.text
    rows, across = grid_shape(len(columns), len(pairs), ROW_SHAPE if size.panel else size.width / size.height)
    figure = optional_module("matplotlib.figure", "figures").Figure(dpi=size.dpi, layout="constrained")
    optional_module("matplotlib.backends.backend_agg", "figures").FigureCanvasAgg(figure)
    padding = text / size.dpi / 2
    figure.get_layout_engine().set(w_pad=padding, h_pad=padding, wspace=0, hspace=0)
    grid, pixels = np.array([across, rows]), np.array([size.width, size.height])
    target = pixels // grid
    if size.panel:
        side = size.width if across == 1 else size.width * 2 // 3
        target = np.array([side, side // 2 if pairs == [None] else side])
        pixels = (target + 20 * text) * grid
    if look.title:
        figure.suptitle(look.title, ha="left", fontsize=look.points(1.4 * text))
    figure.supxlabel(" ", ha="left", fontsize=look.points(text), color=look.theme.pale)
    axes = []
    for number, ((name, colours), pair) in enumerate(product(columns.items(), pairs), start=1):
        place = figure.add_subplot(rows, across, number, xticks=[], yticks=[])
        place.set_title(caption(name, pair, len(pairs)), loc="left")
        # One legend serves all panels of the same labels.
        if pair == pairs[-1] and (each_legend or number == len(columns) * len(pairs)):
            draw_legend(place, colours, look, int(target[1]))
        axes.append(place)
    try:
        for _ in range(2):  # the size of legends and titles is fixed: panels get what is left of the second
            figure.set_size_inches(*pixels / size.dpi)
            figure.draw_without_rendering()
            box = axes[0].get_window_extent()
            if size.panel:
                pixels = np.rint(pixels + (target - box.size) * grid)
        least = int(min(box.size))
    except UserWarning:
        least = 0
    if least < SMALLEST_PANEL:
        raise ConfigError(
            f"{rows * across} panels with their legends leave {least} pixels to the side of each: "
            "give a larger size, fewer labels, or the names of classes on the map"
        )
    figure.set_layout_engine("none")
    shape = int(box.width), int(box.height)
    for place in axes:  # on whole pixels
        corner = np.rint(place.get_window_extent().min)
        place.set_position(np.array([*corner, *shape]) / np.tile(figure.bbox.size, 2))
    for title in figure.texts:
        title.set_x(axes[0].get_position().x0)
    return figure, axes, shape


def grid_shape(n_labels: int, n_pairs: int, shape: float) -> tuple[int, int]:
    """Return rows and columns of panels: a row for each labels where these have several pairs, else large panels.

    `shape` is the width of the picture to its height.
    """
    if n_pairs > 1:
        return n_labels, n_pairs
    columns = max(range(1, n_labels + 1), key=lambda count: (min(shape / count, 1 / -(-n_labels // count)), -count))
    return -(-n_labels // columns), columns


def caption(name: str, pair: Pair | None, n_pairs: int) -> str:
    """Return the line above a panel: the name of its labels, and its components where there are several pairs."""
    of_pair = "" if pair is None or n_pairs == 1 else f"components {pair[0] + 1} (across) and {pair[1] + 1} (up)"
    return ": ".join(filter(None, (" ".join(name.split()), of_pair)))


def names_classes(colours: LabelColours, look: Look) -> bool:
    """Return whether names of classes lie on their clusters: as requested, by default where a legend is too long."""
    return look.legend == "map" or (look.legend == "auto" and len(colours.classes) > LARGEST_LEGEND)


def draw_legend(axes: Any, colours: LabelColours, look: Look, height: int) -> None:
    """Draw what colours mean next to a panel of about so many pixels: names of classes, or the bar of a ramp."""
    text = look.size.text
    if colours.limits is not None:
        maps = optional_module("matplotlib.colors", "figures")
        scale = optional_module("matplotlib.cm", "figures").ScalarMappable(
            maps.Normalize(*colours.limits), maps.ListedColormap(colours.colours[:RAMP_STEPS])
        )
        bar = axes.figure.colorbar(scale, ax=axes, shrink=min(1, BAR * text / height), aspect=BAR, anchor=(0, 1))
        bar.outline.set_visible(False)
        return
    shown = () if names_classes(colours, look) else colours.classes[:LARGEST_CLASSES]
    groups = look.colours.groups or colours.classes
    entries = {number: shortened(name) for number, name in enumerate(shown) if name in groups}
    if colours.missing is not None:
        count = f" ({np.count_nonzero(colours.index == colours.missing):,})" if colours.others == NO_LABEL_TEXT else ""
        entries[colours.missing] = colours.others + count  # of panels one legend serves all
    if not entries:
        return
    line = optional_module("matplotlib.lines", "figures").Line2D
    style = {"linestyle": "", "marker": "o", "markersize": look.points(0.84 * text)}
    legend = axes.legend(
        [line([], [], color=colours.colours[number], **style) for number in entries],
        map(str, entries),
        loc="upper left",
        bbox_to_anchor=(1, 1),
        frameon=False,
        ncols=-(-len(entries) // max(1, int(height / (LINE * text)))),
        handlelength=1,
        handletextpad=0.5,
        columnspacing=1,
        labelspacing=LINE - 1.2,
        borderpad=0,
        borderaxespad=0.5,
    )
    for shown_text, name in zip(legend.get_texts(), entries.values(), strict=True):
        shown_text.set_text(name)  # a label that begins with an underscore would be left out


def draw_pixels(axes: Any, panel: Panel, look: Look) -> None:
    """Draw the layers of a panel as one image, shaded by the theme, without interpolation."""
    image = np.rint(np.clip(shade(panel.layers, look.theme, look.point_size, panel.mixed), 0, 1) * 255).astype(np.uint8)
    axes.imshow(image, extent=panel.limits.ravel(), aspect="auto", interpolation="none")


def draw_discs(axes: Any, panel: Panel, look: Look, rows: np.ndarray) -> None:
    """Draw all rows (N, d) of a panel as discs in an order drawn at random, those without a label first.

    They are as pale as the opacity of a lone point makes them, and opaque: colours of two classes do not mix.
    """
    numbers = np.arange(len(rows))
    places, index = panel.points(numbers, rows)
    order = np.lexsort((row_words(0, "picture/rows", 0, len(rows)), index != panel.colours.missing))
    counts = panel.layers[..., 0]
    radius = look.points(point_radius(counts.sum(), counts.size) * look.point_size)
    (paper,) = rgb(look.theme.paper)
    colours = paper + lone_opacity(len(rows)) * (panel.colours.colours[index[order]] - paper)
    axes.scatter(*places[:, order], (2 * radius) ** 2, facecolors=colours, linewidths=0)


def below(n_points: int, n_outside: int, n_marked: int, n_nameless: int, ellipses: bool) -> str:
    """Return the line below a picture: points, those outside the view, those marked, names without a place."""
    ringed = "of them ringed" if n_marked <= MOST_RINGS else "of them ringed in part"
    if ellipses:
        ringed = "ellipses of circles of one size in the data"
    counts = {"points": n_points, "of them outside the view": n_outside, ringed: n_marked}
    counts["names have no place"] = n_nameless
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
