"""The walking figure: a table of pixels in raster order, the same in any block, of a figure that moves."""

import runpy
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[2] / "pipelines" / "reproductions"
FIGURE = runpy.run_path(str(FOLDER / "walking_figure.py"))
WalkingFigure, COLUMNS, LEGS, ROWS = (FIGURE[name] for name in ("WalkingFigure", "COLUMNS", "LEGS", "ROWS"))

AREA = ROWS * COLUMNS


def test_a_video_is_a_table_of_its_pixels():
    video = WalkingFigure(3 * AREA, seed=5)
    frame, row, column = np.unravel_index(np.arange(3 * AREA), (3, ROWS, COLUMNS))
    pixels = video.read(0, 3 * AREA)
    np.testing.assert_array_equal(pixels[:, :3], np.stack([row, column, frame], axis=1))
    assert (pixels[:, 3:] >= 0).all()
    assert (pixels[:, 3:] <= 255).all()
    np.testing.assert_array_equal(video.read(777, 30_001), pixels[777:30_001])
    np.testing.assert_array_equal(WalkingFigure(AREA, seed=5).read(0, AREA), pixels[:AREA])
    assert WalkingFigure.default_points == 41 * AREA


def test_the_figure_walks_and_the_room_stays():
    video = WalkingFigure(41 * AREA)
    labels = video.labels(0, 41 * AREA).reshape(41, AREA)
    columns = np.arange(AREA) % COLUMNS
    middles = [columns[frame >= LEGS].mean() for frame in labels]
    assert (np.diff(middles) > 2).all()
    assert (np.diff(middles) < 4).all()
    assert [np.bincount(frame, minlength=6).min() > 50 for frame in labels] == [True] * 41
    still = (labels < LEGS).all(axis=0)
    assert (labels[:, still] == labels[0, still]).all()


def test_light_falls_from_the_left_as_far_as_the_last_column():
    pixels = WalkingFigure(AREA, seed=5).read(0, AREA).reshape(ROWS, COLUMNS, 6)
    colours = pixels[:20, :, 3:].mean(axis=(0, 2))  # of the wall
    slope, _ = np.polyfit(np.arange(COLUMNS), colours, 1)
    assert -0.2 < slope < -0.1
    assert colours.min() > 100
