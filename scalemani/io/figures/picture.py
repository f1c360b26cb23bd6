"""A picture of an embedding that stays readable at ten million points and at hundreds of classes, with their names."""

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping
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
    VIRIDIS,
    LabelColours,
    Look,
    checked_look,
    checked_suffix,
    colours_of_labels,
    ramp,
    rgb,
)
from scalemani.io.figures.panels import CELLS, Pair, Panel, column_limits, lone_opacity, point_radius, shade
from scalemani.io.sources.base import PointsSource, optional_module
from scalemani.io.sources.opening import open_points

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
MOST_PANELS = 12
USUAL = checked_look()
VECTOR_POINTS = 5_000  # up to so many are discs one by one on a page; more are an image on it
MOST_RINGS = 2_000
RING = 0.4  # heights of text, the radius of a ring
SMALLEST_PANEL = 80  # pixels
ROW_SHAPE = 1.6  # width to height of a picture that grows with its panels
LINE = 1.5  # heights of text from line to line of a legend
BAR = 15  # heights of text, of the bar of a colour ramp
UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
Columns = Mapping[str, LabelColours | None]


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
    while True:
        centres = place_boxes(anchors, extents * size, shape)
        away = np.linalg.norm(centres - anchors, axis=1)
        if size <= smallest or (away <= FARTHEST * math.hypot(*shape)).all():
            break
        size = max(smallest, size * SHRINK)
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


def embedding_picture(
    embedding: Any, path: str | Path, labels: Any = None, look: Look = USUAL, marked: Any = None
) -> int:
    """Draw an embedding as .png, .svg or .pdf, and return the number of points that lie outside the view.

    On pages (.svg, .pdf) text, lines and up to 5,000 points stay such; more points are an image of the given size. The
    same arguments give the same bytes.

    Parameters
    ----------
    embedding, labels, look, marked : those of `drawn_embedding`

    Raises
    ------
    ConfigError
        For another suffix, and what `drawn_embedding` refuses.
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    checked_suffix(target)
    with styled(look):
        figure, n_outside = draw(embedding, labels, look, marked, VECTOR_POINTS if suffix in UNDATED else 0)
        with replaced_file(target) as file:
            figure.savefig(file, format=suffix[1:], dpi=look.dpi, metadata=UNDATED.get(suffix))
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
        For more than 12 panels, a page too small for them, or where Matplotlib is not installed (extra `figures`).
    DataError
        For labels that do not fit, or an embedding without a finite row.
    """
    with styled(look):
        figure, n_outside = draw(embedding, labels, look, marked)
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    return optional_module("PIL.Image", "figures").fromarray(pixels.copy()), n_outside


def picture_or_path(embedding: Any, path: str | Path | None, labels: Any, look: Look, marked: Any) -> Any:
    """Return a picture of Pillow, or write it and return its path; parameters are those of `embedding_picture`."""
    if path is None:
        return drawn_embedding(embedding, labels, look, marked)[0]
    embedding_picture(embedding, path, labels, look, marked)
    return Path(path)


@contextlib.contextmanager
def styled(look: Look) -> Iterator[None]:
    """Have Matplotlib draw by its own defaults and a theme, whatever style is in use, while the block lasts."""
    theme = look.theme
    papers = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), f"#{theme.paper}")
    inks = dict.fromkeys(("text.color", "xtick.color", "ytick.color"), f"#{theme.ink}")
    sizes = dict.fromkeys(("font.size", "axes.titlesize", "legend.fontsize"), look.points(look.text))
    texts = {"text.parse_math": False, "svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "scalemani"}
    settings = {**papers, **inks, **sizes, **texts, "axes.edgecolor": f"#{theme.frame}"}
    style = optional_module("matplotlib.style", "figures")
    with style.context(settings, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # they are drawn as boxes
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        yield


def draw(embedding: Any, labels: Any, look: Look, marked: Any = None, most_discs: int = 0) -> tuple[Any, int]:
    """Return a figure of Matplotlib, and the number of points outside the view.

    Up to `most_discs` points are discs of their own, and no part of an image; others are those of `drawn_embedding`.
    """
    source = open_points(embedding)
    n_points, n_components = source.shape
    columns = {name: look.theme.recoloured(colours) for name, colours in coloured_columns(labels, n_points).items()}
    pairs: list[Pair | None] = [None] if n_components == 1 else [*combinations(range(min(n_components, 3)), 2)]
    if (n_panels := len(columns) * len(pairs)) > MOST_PANELS:
        raise ConfigError(
            f"a picture has at most {MOST_PANELS} panels, and {len(columns)} labels of {len(pairs)} pairs of "
            f"components take {n_panels}: give fewer labels"
        )
    marks = np.zeros(n_points, bool) if marked is None else np.asarray(marked)
    if marks.shape != (n_points,) or marks.dtype != bool:
        raise DataError(
            f"marked must say true or false of each of {n_points} points, got {marks.dtype} of shape {marks.shape}"
        )
    limits = column_limits(source, min(n_components, 3))
    figure, axes, shape = laid_out(look, columns, pairs)
    panels = [
        Panel(shape, pair, limits, colours, names_classes(colours, look))
        for colours in columns.values()
        for pair in pairs
    ]
    ringed = np.flatnonzero(marks)
    ringed = ringed[:: max(1, -(-len(ringed) // MOST_RINGS))]  # spread evenly over the rows
    each = n_points <= most_discs
    kept = counted(source, panels, np.arange(n_points) if each else ringed)
    n_nameless = 0
    for place, panel in zip(axes, panels, strict=True):
        place.set(xlim=panel.limits[0], ylim=panel.limits[1])
        draw_points(place, panel, look, kept if each else None)
        across, up, _ = panel.points(ringed, kept[ringed] if each else kept)
        style = {"facecolors": "none", "edgecolors": f"#{look.theme.ink}", "zorder": 3}
        radius = look.points(RING * look.text)
        place.scatter(across, up, (2 * radius) ** 2, linewidths=radius / 4, **style)
        n_nameless += draw_names(place, panel, look)
    n_outside = max(panel.canvas.n_outside for panel in panels)
    figure.texts[-1].set_text(below(n_points, n_outside, int(marks.sum()), n_nameless))
    return figure, n_outside


def coloured_columns(labels: Any, n_points: int) -> Columns:
    """Return the colours of labels by their names; one set has no name; none has no colours."""
    if isinstance(labels, Mapping):
        return {str(name): colours_of_labels(values, n_points) for name, values in labels.items()}
    return {"": None if labels is None else colours_of_labels(labels, n_points)}


def counted(source: PointsSource, panels: list[Panel], kept: np.ndarray) -> np.ndarray:
    """Count all points in the panels, block by block, and return the kept rows (n,) of the first three columns."""
    rows_kept = [np.zeros((0, min(source.shape[1], 3)))]
    for start, rows in blocks(source):
        for panel in panels:
            panel.add(np.arange(start, start + len(rows)), rows)
        rows_kept.append(rows[kept[(kept >= start) & (kept < start + len(rows))] - start, :3])
    return np.concatenate(rows_kept)


def laid_out(look: Look, columns: Columns, pairs: list[Pair | None]) -> tuple[Any, list[Any], tuple[int, int]]:
    """Return a figure with titles and legends, the axes of its panels, and their width and height in pixels."""
    size, text = look.size, look.text
    rows, across = grid_shape(len(columns), len(pairs), size)
    figure = optional_module("matplotlib.figure", "figures").Figure(dpi=look.dpi, layout="constrained")
    optional_module("matplotlib.backends.backend_agg", "figures").FigureCanvasAgg(figure)
    padding = text / look.dpi / 2
    figure.get_layout_engine().set(w_pad=padding, h_pad=padding, wspace=0, hspace=0)
    if isinstance(size, int):
        side = size if across == 1 else size * 2 // 3
        wanted = np.array([side, side // 2 if pairs == [None] else side])
        pixels = wanted * (across, rows) + 20 * text * np.array([across, rows])
    else:
        pixels = np.array([size.width, size.height])
        wanted = pixels // (across, rows)
    axes = list(figure.subplots(rows, across, squeeze=False).ravel())
    panels = list(zip(axes, product(columns.items(), pairs), strict=False))
    for spare in axes[len(panels) :]:
        spare.set_axis_off()
    titles = [figure.suptitle(look.title, ha="left", fontsize=look.points(1.4 * text))] if look.title else []
    titles.append(figure.supxlabel(" ", ha="left", fontsize=look.points(text), color=f"#{look.theme.pale}"))
    for place, ((name, colours), pair) in panels:
        place.set(xticks=[], yticks=[])
        place.set_title(caption(name, pair, len(pairs)), loc="left")
        if pair == pairs[-1] and colours is not None:  # one legend serves all panels of the same labels
            draw_legend(figure, place, colours, look, int(wanted[1]))
    try:
        for _ in range(2):  # legends and titles have a size of their own: panels get what is left of the second
            figure.set_size_inches(*pixels / look.dpi)
            figure.draw_without_rendering()
            box = axes[0].get_window_extent()
            if isinstance(size, int):
                pixels = np.rint(pixels + (wanted - box.size) * (across, rows))
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
        left, bottom = np.rint(place.get_window_extent().min)
        place.set_position(np.array([left, bottom, *shape]) / np.tile(figure.bbox.size, 2))
    for title in titles:
        title.set_x(axes[0].get_position().x0)
    return figure, axes[: len(panels)], shape


def grid_shape(n_labels: int, n_pairs: int, size: Any) -> tuple[int, int]:
    """Return rows and columns of panels: a row for each labels where these have several pairs, else large panels."""
    if n_pairs > 1:
        return n_labels, n_pairs
    shape = ROW_SHAPE if isinstance(size, int) else size.width / size.height
    columns = max(range(1, n_labels + 1), key=lambda count: (min(shape / count, 1 / -(-n_labels // count)), -count))
    return -(-n_labels // columns), columns


def caption(name: str, pair: Pair | None, n_pairs: int) -> str:
    """Return the line above a panel: the name of its labels, and its components where there are several pairs."""
    of_pair = "" if pair is None or n_pairs == 1 else f"components {pair[0] + 1} (across) and {pair[1] + 1} (up)"
    return ": ".join(part for part in (" ".join(name.split()), of_pair) if part)


def names_classes(colours: LabelColours | None, look: Look) -> bool:
    """Return whether classes have their names on their clusters."""
    if colours is None or not colours.classes:
        return False
    return look.legend == "map" or (look.legend == "auto" and len(colours.classes) > LARGEST_LEGEND)


def draw_legend(figure: Any, axes: Any, colours: LabelColours, look: Look, height: int) -> None:
    """Draw what colours mean beside a panel of about so many pixels: names of classes, or the bar of a ramp."""
    if not colours.classes:
        maps = optional_module("matplotlib.colors", "figures")
        scale = optional_module("matplotlib.cm", "figures").ScalarMappable(
            maps.Normalize(*colours.limits), maps.ListedColormap(ramp(VIRIDIS))
        )
        bar = figure.colorbar(scale, ax=axes, shrink=min(1, BAR * look.text / height), aspect=BAR, anchor=(0, 1))
        bar.outline.set_visible(False)
        return
    shown = () if names_classes(colours, look) else colours.classes[:LARGEST_CLASSES]
    entries = {number: shortened(name) for number, name in enumerate(shown)}
    if colours.missing is not None:
        entries[colours.missing] = f"no label ({np.count_nonzero(colours.index == colours.missing):,})"
    if not entries:
        return
    line = optional_module("matplotlib.lines", "figures").Line2D
    discs = [
        line([], [], linestyle="", marker="o", markersize=look.points(0.84 * look.text), color=colours.colours[number])
        for number in entries
    ]
    columns = -(-len(entries) // max(1, int(height / (LINE * look.text))))
    legend = axes.legend(
        discs,
        [str(number) for number in entries],
        loc="upper left",
        bbox_to_anchor=(1, 1),
        frameon=False,
        ncols=columns,
        handlelength=1,
        handletextpad=0.5,
        columnspacing=1,
        labelspacing=LINE - 1.2,
        borderpad=0,
        borderaxespad=0.5,
    )
    for text, name in zip(legend.get_texts(), entries.values(), strict=True):
        text.set_text(name)  # a label that begins with an underscore would be left out


def draw_points(axes: Any, panel: Panel, look: Look, rows: np.ndarray | None) -> None:
    """Draw the points of a panel: shaded pixels, or discs of all rows (N, d), those without a label first."""
    canvas, colours = panel.canvas, panel.colours
    if rows is None:
        shades = shade(canvas, colours is None, look.theme, look.point_size)
        image = np.rint(np.clip(shades, 0, 1) * 255).astype(np.uint8)
        axes.imshow(image, extent=panel.limits.ravel(), aspect="auto", interpolation="none")
        return
    across, up, index = panel.points(np.arange(len(rows)), rows)
    table = rgb(look.theme.density)[2:3] if colours is None else colours.colours
    order = np.argsort(index != colours.missing, kind="stable") if colours else np.arange(len(rows))
    radius = look.points(point_radius(len(rows) - canvas.n_outside, canvas.counts.size) * look.point_size)
    style = {"facecolors": table[index[order]], "linewidths": 0, "alpha": lone_opacity(len(rows))}
    axes.scatter(across[order], up[order], (2 * radius) ** 2, **style)


def below(n_points: int, n_outside: int, n_marked: int, n_nameless: int) -> str:
    """Return the line below a picture: points, those outside the view, those to be ringed, names without a place."""
    ringed = "of them ringed" if n_marked <= MOST_RINGS else "of them ringed in part"
    counts = {"points": n_points, "of them outside the view": n_outside, ringed: n_marked}
    counts["names have no place"] = n_nameless
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
