"""What says what colours mean: names beside a panel or on its clusters, and the bar of a colour ramp."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from scalemani.figures.drawing import Discs, Pixels, Stroke, Words, widths_of
from scalemani.figures.palette import VIRIDIS, LabelColours, ramp
from scalemani.figures.placing import place_boxes
from scalemani.figures.themes import Colour

LINE = 1.5  # heights of text from line to line
LONGEST_NAME = 32  # letters of a name that are shown
SMALLEST_TEXT, SMALLEST_SHARE = 8, 0.55  # of names on a map: pixels, and of the height of other text
SHRINK = 0.88
FULLEST = 0.18  # of a panel that names may cover
FARTHEST = 0.12  # of the diagonal of a panel, from a cluster to its name
BOX = (0.5, 1.3)  # a name's box: heights of text beside it in sum, and its height
MOST_TICKS = 6


def shortened(name: str) -> str:
    """Return a name on one line, its end cut off where it is long."""
    line = " ".join(name.split())
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def legend_width(colours: LabelColours | None, names: Sequence[str], text: int, height: int) -> int:
    """Return the pixels that a legend takes beside a panel.

    Parameters
    ----------
    colours : None where points have no labels
    names : of the classes it shows
    text, height : of its letters and of the panel, in pixels
    """
    if colours is None or (colours.classes and not names):
        return 0
    entries = list(names) or [text_of_tick(tick) for tick in ticks(*colours.limits)]
    columns = legend_columns(len(entries), text, height) if names else 1
    return round(columns * (3 * text + max(widths_of(entries, text))))


def legend_columns(n_entries: int, text: int, height: int) -> int:
    """Return in how many columns a legend fits beside a panel."""
    return -(-n_entries // max(1, int(height / (LINE * text))))


def class_legend(
    colours: np.ndarray, names: Sequence[str], corner: tuple[float, float], text: int, height: int
) -> Iterator[Words | Discs]:
    """Yield a disc and a name for each class.

    Parameters
    ----------
    colours : (n, 3) float64, from 0 to 1
    names : of the n classes
    corner : of the legend, left and top, in pixels
    text, height : as of `legend_width`
    """
    per_column = max(1, int(height / (LINE * text)))
    width = 3 * text + max(widths_of(names, text))
    for number, name in enumerate(names):
        column, row = divmod(number, per_column)
        x, y = corner[0] + column * width + text / 2, corner[1] + (row + 0.5) * LINE * text
        yield Discs(np.array([[x, y]]), text * 0.42, colours[number : number + 1])
        yield Words(x + text, y, name, text)


def value_bar(
    limits: tuple[float, float], corner: tuple[float, float], text: int, height: int
) -> Iterator[Pixels | Words | Stroke]:
    """Yield the colour ramp with the values it stands for.

    Parameters
    ----------
    limits : the lowest and the highest value
    corner, text, height : as of `class_legend`
    """
    left, tall = corner[0], min(height - text, round(10 * LINE * text))
    top = corner[1] + text // 2
    shades = np.rint(ramp(VIRIDIS, tall)[::-1, None] * 255).astype(np.uint8)
    yield Pixels(left, top, np.repeat(shades, text, axis=1))
    low, high = limits
    for tick in ticks(low, high):
        y = top + tall * (1 - (tick - low) / (high - low) if high > low else 0.5)
        yield Stroke(((left + text, y), (left + 1.3 * text, y)), "pale")
        yield Words(left + 1.6 * text, y, text_of_tick(tick), text)


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers from low to high: at most six, steps of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / (MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def text_of_tick(value: float) -> str:
    """Return a value as it stands beside a ramp."""
    return f"{value:.6g}".replace("-", "−")


def names_on_map(
    names: Sequence[str], anchors: np.ndarray, colours: Sequence[Colour], panel: tuple[int, int], text: int
) -> tuple[list[Words | Stroke], int]:
    """Return names at their clusters, none over another, with a line to a cluster that is not near; and how many lack.

    Text gets smaller until all names have a place and leave most of the panel free.

    Parameters
    ----------
    names, anchors, colours : (n,), (n, 2) pixels within the panel, (n,) of the text; those placed first come first
    panel : its width and height
    text : the largest height of text
    """
    size = float(text)
    while True:
        extents = np.stack([widths_of(names, size) + BOX[0] * size, np.full(len(names), BOX[1] * size)], axis=1)
        last = size * SHRINK < max(SMALLEST_TEXT, SMALLEST_SHARE * text)
        if last or extents.prod(axis=1).sum() <= FULLEST * panel[0] * panel[1]:
            centres = place_boxes(anchors, extents, panel)
            away = np.linalg.norm(centres - anchors, axis=1)  # NaN, which is not within reach, where there is no place
            if last or (away <= FARTHEST * math.hypot(*panel)).all():
                break
        size *= SHRINK
    found: list[Words | Stroke] = []
    placed = [number for number in range(len(names)) if np.isfinite(centres[number, 0])]
    for number in placed:
        nearest = np.clip(anchors[number], *(centres[number] + sign * extents[number] / 2 for sign in (-1, 1)))
        if np.linalg.norm(nearest - anchors[number]) > size / 2:
            (x, y), (to_x, to_y) = anchors[number], nearest
            ends = (float(x), float(y)), (float(to_x), float(to_y))
            found.append(Stroke(ends, colours[number], max(1.0, size / 14)))
    for number in placed:
        x, y = map(float, centres[number])
        found.append(Words(x, y, names[number], size, colours[number], "m", halo=True))
    return found, len(names) - len(placed)
