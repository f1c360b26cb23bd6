"""A video that is computed: a figure walks before a wall. Figures 4.16 of the thesis are drawn from it."""

from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from scalemani.datasets import Generator

ROWS, COLUMNS, FRAMES = 120, 160, 41  # of the video
FLOOR, WALL, DOOR, LEGS, TORSO, HEAD = range(6)
# Red, green and blue of each, and how much darker a pixel is for each pixel from the left: light falls from there.
COLOURS = np.array([[120, 95, 70], [190, 190, 175], [90, 55, 40], [40, 45, 90], [170, 50, 45], [215, 170, 140]])
DARKER = 0.15
NOISE = 4.0  # deviation of each colour
HORIZON = 78  # the row where the wall ends
DOOR_ROWS, DOOR_COLUMNS = (30, HORIZON), (118, 142)
START, STEP = 22.0, 2.6  # column of the figure in the first frame, and how much farther it is in each
FEET = 104  # the row on which it walks
SWAY, BEAT = 6.0, 0.8  # of its legs: columns, and radians a frame


class WalkingFigure(Generator):
    """Frames of 120 x 160 pixels in colour: a figure walks from left to right before a wall with a door.

    A point is a pixel: its row, column, frame, red, green and blue (float32), frame by frame and row by row. The label
    is what it shows: 0 the floor, 1 the wall, 2 the door, and of the figure 3 the legs, 4 the torso, 5 the head.
    """

    name: ClassVar[str] = "walking-figure"
    default_points: ClassVar[int] = FRAMES * ROWS * COLUMNS
    n_features = 6
    dtype = np.dtype(np.float32)

    def places(self, start: int, stop: int) -> np.ndarray:
        """Return row, column and frame of pixels [start, stop): (3, stop - start) int64."""
        frame, place = np.divmod(np.arange(start, stop), ROWS * COLUMNS)
        return np.stack([*np.divmod(place, COLUMNS), frame])

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return what each pixel shows, 0 to 5."""
        row, column, frame = self.places(start, stop)
        middle = START + STEP * frame
        parts = np.where(row < HORIZON, WALL, FLOOR)
        door = (row >= DOOR_ROWS[0]) & (row < DOOR_ROWS[1]) & (column >= DOOR_COLUMNS[0]) & (column < DOOR_COLUMNS[1])
        parts[door] = DOOR
        up = FEET - row
        sway = SWAY * np.sin(BEAT * frame) * np.clip(1 - up / 30, 0, 1)
        legs = (up >= 0) & (up < 30) & (np.minimum(abs(column - middle - sway), abs(column - middle + sway)) < 4)
        parts[legs] = LEGS
        parts[(up >= 28) & (up < 62) & (abs(column - middle) < 9)] = TORSO
        parts[(row - (FEET - 70)) ** 2 + (column - middle) ** 2 < 8**2] = HEAD
        return parts

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return pixels [start, stop): (stop - start, 6)."""
        places = self.places(start, stop)
        noise = NOISE * ndtri(self.uniform("noise", start, stop, 3))
        colours = COLOURS[self.labels(start, stop)] - DARKER * places[1][:, np.newaxis] + noise
        return np.concatenate([places.T, np.clip(colours, 0, 255)], axis=1).astype(np.float32)
