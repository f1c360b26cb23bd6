"""Colours of labels: told apart with any kind of colour vision, on white."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.sources import open_labels

# Petroff (2021), Accessible color sequences for data visualization, arXiv:2107.02270: ten colours.
TEN_COLOURS = ("3f90da", "ffa90e", "bd1f01", "94a4a2", "832db6", "a96b59", "e76300", "b9ac70", "717581", "92dadd")
# Van der Walt and Smith (2015), viridis: even in lightness, read alike with and without colour.
VIRIDIS = ("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")
DENSITY = ("b8d4ea", "6baed6", "3182bd", "08519c", "08306b")
RAMP_STEPS = 256
DARKER = 0.6  # the second ten colours are the first ten, darker
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
    """Return one colour for each class: (n_classes, 3); from the 21st class on they repeat."""
    ten = rgb(TEN_COLOURS)
    return np.concatenate([ten, ten * DARKER])[np.arange(n_classes) % (2 * len(ten))]


@dataclass(frozen=True)
class LabelColours:
    """The colour of each point is `colours[index[row]]`; `classes` are the names, empty for values along `limits`."""

    index: np.ndarray
    colours: np.ndarray
    classes: tuple[str, ...]
    limits: tuple[float, float] = (0.0, 1.0)


def colours_of_labels(labels: Any, n_points: int) -> LabelColours:
    """Return colours by class for strings and up to 256 different integers, along a ramp for all other numbers."""
    values = open_labels(labels, n_points)
    whole = values.dtype.kind in "biuU" or bool(np.all(values == np.round(values)))
    if whole:
        names, index = np.unique(values, return_inverse=True)
        if len(names) <= LARGEST_CLASSES or values.dtype.kind == "U":
            shown = names if values.dtype.kind == "U" else [f"{name:g}" for name in names]
            return LabelColours(index.astype(np.int32), class_colours(len(names)), tuple(map(str, shown)))
    finite = values[np.isfinite(values)].astype(np.float64)
    low, high = np.percentile(finite, ROBUST_PERCENT) if finite.size else (0.0, 1.0)
    share = np.clip((np.nan_to_num(values.astype(np.float64), nan=low) - low) / max(high - low, 1e-300), 0, 1)
    index = np.rint(share * (RAMP_STEPS - 1)).astype(np.int32)
    return LabelColours(index, ramp(VIRIDIS), (), (float(low), float(high)))
