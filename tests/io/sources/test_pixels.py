"""Pixels as points: where each lies and what it shows, whatever holds the image."""

import numpy as np
import pytest
from PIL import Image

from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources import open_pixels


def read(source):
    return source.read(0, source.shape[0])


def test_a_grey_image_has_a_row_a_pixel_of_row_column_and_grey():
    image = np.random.default_rng(0).integers(0, 255, (4, 5)).astype(np.uint8)
    source = open_pixels(image)
    expected = [(row, column, image[row, column]) for row in range(4) for column in range(5)]
    np.testing.assert_array_equal(read(source), np.array(expected, np.float32))
    assert (source.dtype, source.image) == (np.float32, (1, 4, 5))
    np.testing.assert_array_equal(source.read(7, 9), read(source)[7:9])


@pytest.mark.parametrize("colours", [1, 3, 4])
def test_a_colour_image_has_its_colours_behind_the_place(colours):
    image = np.random.default_rng(0).normal(size=(4, 6, colours))
    source = open_pixels(image)
    assert (source.shape, source.dtype, source.image) == ((24, 2 + colours), np.float64, (1, 4, 6))
    np.testing.assert_array_equal(read(source)[:, 2:], image.reshape(24, colours))


def test_a_video_has_its_frame_behind_the_place():
    grey = np.random.default_rng(0).integers(0, 255, (3, 4, 5)).astype(np.int16)
    source = open_pixels(grey)
    assert (source.shape, source.image) == ((60, 4), (3, 4, 5))
    frame, row, column = np.unravel_index(np.arange(60), (3, 4, 5))
    np.testing.assert_array_equal(read(source), np.stack([row, column, frame, grey.ravel()], axis=1))
    colour = np.stack([grey, grey + 1, grey + 2], axis=3)
    np.testing.assert_array_equal(read(open_pixels(colour))[:, 3:], colour.reshape(60, 3))


def test_files_hold_the_same_pixels(tmp_path):
    grey = np.random.default_rng(0).integers(0, 255, (6, 7)).astype(np.uint8)
    colour = np.random.default_rng(1).integers(0, 255, (6, 7, 3)).astype(np.uint8)
    np.save(tmp_path / "grey.npy", grey)
    np.savez(tmp_path / "both.npz", grey=grey, colour=colour)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(colour).save(tmp_path / "colour.png")
    for name, image in (
        ("grey.npy", grey),
        ("both.npz::grey", grey),
        ("both.npz::colour", colour),
        ("grey.png", grey),
        ("colour.png", colour),
    ):
        np.testing.assert_array_equal(read(open_pixels(str(tmp_path / name))), read(open_pixels(image)))
    with pytest.raises(ConfigError, match="say which array of"):
        open_pixels(tmp_path / "both.npz")
    (tmp_path / "torn.png").write_bytes((tmp_path / "grey.png").read_bytes()[:40])
    with pytest.raises(DataError, match="truncated or damaged"):
        open_pixels(tmp_path / "torn.png")
    (tmp_path / "torn.npy").write_bytes((tmp_path / "grey.npy").read_bytes()[:140])
    with pytest.raises(DataError, match="truncated: 140 bytes, its header promises 170"):
        open_pixels(tmp_path / "torn.npy")


def test_what_is_no_image_is_refused(tmp_path):
    for shape in ((5,), (2, 3, 4, 5, 6), (0, 4)):
        with pytest.raises(DataError, match=r"an image is an array \(rows, columns\)"):
            open_pixels(np.zeros(shape))
    with pytest.raises(StoreError, match="no file"):
        open_pixels(tmp_path / "none.png")
    with pytest.raises(ConfigError, match="an image is an array"):
        open_pixels(tmp_path / "points.parquet")


def test_pixels_that_are_not_finite_are_named_by_their_place():
    image = np.zeros((5, 6))
    image[3, 4], image[4, 1] = np.nan, np.inf
    with pytest.raises(
        DataError, match=r"2 pixels of ndarray in memory are NaN or infinite.*column\) \(0, 3, 4\), \(0, 4, 1\)"
    ):
        open_pixels(image)
    with pytest.raises(DataError, match=r"\(frame, row, column\) \(1, 3, 4\)"):
        open_pixels(np.stack([np.zeros((5, 6)), image]))
