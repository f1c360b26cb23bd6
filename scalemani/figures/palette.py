"""Colours of labels: told apart with any kind of colour vision, on white."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.figures.distinct import distinct_colours
from scalemani.sources import open_labels
from scalemani.sources.base import natural_order
from scalemani.sources.categories import categories_of, colours_of_categories

# Petroff (2021), Accessible color sequences for data visualization, arXiv:2107.02270: ten colours.
TEN_COLOURS = ("3f90da", "ffa90e", "bd1f01", "94a4a2", "832db6", "a96b59", "e76300", "b9ac70", "717581", "92dadd")
# Van der Walt and Smith (2015), viridis: even in lightness, read alike with and without colour.
VIRIDIS = ("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")
DENSITY = ("b8d4ea", "6baed6", "3182bd", "08519c", "08306b")
NO_LABEL, PAPER = "d4d4d4", "ffffff"
RAMP_STEPS = 256
LARGEST_CLASSES = 256
LARGEST_LEGEND = 20
ROBUST_PERCENT = (0.5, 99.5)


def rgb(codes: tuple[str, ...]) -> np.ndarray:
    """Return colours from hexadecimal codes: (n, 3) float32 from 0 to 1."""
    return np.array([list(bytes.fromhex(code)) for code in codes], dtype=np.float32) / 255


def ramp(codes: tuple[str, ...], steps: int = RAMP_STEPS) -> np.ndarray:
    """Return colours interpolated between the codes: (steps, 3) float32."""
    stops = rgb(codes)
    at = np.linspace(0, len(stops) - 1, steps)
    return np.stack([np.interp(at, np.arange(len(stops)), channel) for channel in stops.T], axis=1).astype(np.float32)


def class_colours(n_classes: int) -> np.ndarray:
    """Return one colour for each class: (n_classes, 3), all different up to 256, then again the same."""
    found = distinct_colours(rgb(TEN_COLOURS), min(n_classes, LARGEST_CLASSES), rgb((PAPER, NO_LABEL)))
    return found[np.arange(n_classes) % len(found)] if n_classes else found


@dataclass(frozen=True)
class LabelColours:
    """The colour of each point is `colours[index[row]]`; `classes` are the names, empty for values along `limits`.

    Points without a label have the last colour, a pale grey, where there are any: `missing` is its index, else None.
    The names of classes leave it out.
    """

    index: np.ndarray
    colours: np.ndarray
    classes: tuple[str, ...]
    limits: tuple[float, float] = (0.0, 1.0)
    missing: int | None = None


def colours_of_labels(labels: Any, n_points: int) -> LabelColours:
    """Return colours by class for strings and up to 256 different integers, along a ramp for all other numbers.

    NaN and empty strings are no labels. Classes are in the order of their categories where the labels have one, else
    in natural order: 2 before 10, in texts too. Categories with a colour of their own have that.
    """
    opened = open_labels(labels, n_points)
    categories, values = categories_of(opened), np.asarray(opened)
    absent = values == "" if values.dtype.kind == "U" else np.isnan(values.astype(np.float64))
    given = values[~absent]
    if values.dtype.kind in "biuU" or bool(np.all(given == np.round(given))):
        names, codes = np.unique(given, return_inverse=True)
        if len(names) <= LARGEST_CLASSES or values.dtype.kind == "U":
            order = class_order(names, categories)
            places = np.empty(len(names), np.int32)
            places[order] = np.arange(len(names))
            whole = values.dtype.kind in "iuU"
            classes = tuple(str(names[number]) if whole else f"{names[number]:.17g}" for number in order)
            colours = own_colours(classes, colours_of_categories(opened))
            return with_missing(places[codes], absent, colours, classes)
    finite = given[np.isfinite(given)].astype(np.float64)
    low, high = np.percentile(finite, ROBUST_PERCENT) if finite.size else (0.0, 1.0)
    share = np.clip((given.astype(np.float64) - low) / max(high - low, 1e-300), 0, 1)
    index = np.rint(share * (RAMP_STEPS - 1)).astype(np.int32)
    return with_missing(index, absent, ramp(VIRIDIS), (), (float(low), float(high)))


def own_colours(classes: tuple[str, ...], given: Mapping[str, str]) -> np.ndarray:
    """Return the colours (K, 3) of classes: those given (#rrggbb) by their names, else those of the palette."""
    colours = class_colours(len(classes))
    for number, name in enumerate(classes):
        if name in given:
            colours[number] = rgb((given[name][1:],))[0]
    return colours


def class_order(names: np.ndarray, categories: tuple[str, ...]) -> list[int]:
    """Return the positions of sorted names (K,) in the order in which a legend has them; categories come first."""
    if names.dtype.kind != "U":
        return list(range(len(names)))
    ranks = {category: rank for rank, category in enumerate(categories)}
    keys = [(ranks.get(str(name), len(ranks)), natural_order(str(name))) for name in names]
    return sorted(range(len(names)), key=keys.__getitem__)


def with_missing(
    given: np.ndarray,
    absent: np.ndarray,
    colours: np.ndarray,
    classes: tuple[str, ...],
    limits: tuple[float, float] = (0.0, 1.0),
) -> LabelColours:
    """Return colours of labels that were given and, in pale grey, of points where they are absent.

    Parameters
    ----------
    given : (M,) int32, the colour of each point that has a label
    absent : (N,) bool, which points have none: N - M of them
    colours : (n, 3) float64, from 0 to 1
    classes : their names; empty where labels are numbers
    limits : the lowest and the highest of such labels
    """
    if not absent.any():
        return LabelColours(given, colours, classes, limits)
    index = np.full(len(absent), len(colours), np.int32)
    index[~absent] = given
    return LabelColours(index, np.concatenate([colours, rgb((NO_LABEL,))]), classes, limits, len(colours))
