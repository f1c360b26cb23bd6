"""The clusters of an image or a video as a picture: a pixel a pixel, a colour a cluster."""

import math
from pathlib import Path

import numpy as np

from scalemani.figures.drawing import save
from scalemani.figures.palette import class_colours
from scalemani.sources.base import optional_module

GAP = 2  # white pixels between frames


def label_picture(labels: np.ndarray, image: tuple[int, int, int], path: str | Path) -> None:
    """Draw the clusters of all pixels as a .png; the frames of a video stand in rows, from left to right.

    Parameters
    ----------
    labels : (N,) integers from 0, frame by frame and row by row
    image : frames, rows and columns, whose product is N
    path : ends in .png

    Raises
    ------
    ConfigError
        Where Pillow is not installed (extra `figures`).
    """
    pictures = optional_module("PIL.Image", "figures")
    frames, rows, columns = image
    shown = np.asarray(labels).reshape(image)
    colours = np.rint(255 * class_colours(int(shown.max()) + 1)).astype(np.uint8)
    across = math.ceil(math.sqrt(frames))
    down = math.ceil(frames / across)
    sheet = np.full((down * (rows + GAP) - GAP, across * (columns + GAP) - GAP, 3), 255, np.uint8)
    for number, frame in enumerate(shown):
        top, left = number // across * (rows + GAP), number % across * (columns + GAP)
        sheet[top : top + rows, left : left + columns] = colours[frame]
    save(pictures.fromarray(sheet), Path(path))
