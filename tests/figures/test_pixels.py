"""A picture of clusters has the colour of its cluster at every pixel, frame beside frame."""

import numpy as np
from PIL import Image

from scalemani.figures import label_picture
from scalemani.figures.palette import class_colours
from scalemani.figures.pixels import GAP


def colours_of(labels):
    return np.rint(255 * class_colours(4)[labels]).astype(np.uint8)


def test_a_picture_shows_the_cluster_of_every_pixel(tmp_path):
    labels = np.random.default_rng(0).integers(0, 4, (7, 9))
    labels[0, 0] = 3
    label_picture(labels.ravel(), (1, 7, 9), tmp_path / "one.png")
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "one.png")), colours_of(labels))


def test_frames_stand_in_rows_from_left_to_right(tmp_path):
    labels = np.random.default_rng(0).integers(0, 4, (5, 7, 9))
    labels[0, 0, 0] = 3
    label_picture(labels.ravel(), (5, 7, 9), tmp_path / "all.png")
    sheet = np.asarray(Image.open(tmp_path / "all.png"))
    assert sheet.shape == (2 * 7 + GAP, 3 * 9 + 2 * GAP, 3)
    for frame, (down, across) in enumerate([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]):
        top, left = down * (7 + GAP), across * (9 + GAP)
        np.testing.assert_array_equal(sheet[top : top + 7, left : left + 9], colours_of(labels[frame]))
    assert (sheet[7 + GAP :, 2 * (9 + GAP) :] == 255).all()
