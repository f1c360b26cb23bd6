"""Pictures as pixels and as pages: of the size asked for, with text that stays text, and the same each time."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from scalemani.errors import ConfigError
from scalemani.figures import embedding_picture
from scalemani.figures.composing import checked_look
from scalemani.figures.drawing import Discs, Drawing, Words, as_pixels
from scalemani.figures.picture import draw
from scalemani.figures.sheets import Page, checked_size, grid_shape

RNG = np.random.default_rng(1)
POINTS = RNG.normal(size=(6000, 2))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("size", "shape"), [("paper", (2160, 1620)), ("slide", (1920, 1080)), ((640, 480), (640, 480))]
)
def test_pictures_of_a_page_have_its_size(tmp_path, size, shape):
    columns = {"side": (POINTS[:, 0] > 0).astype(int), "value": POINTS[:, 1]}
    embedding_picture(POINTS, tmp_path / "a.png", columns, checked_look(size, "A title"))
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == shape
        assert np.asarray(picture)[:5].min() == 255
        if size == "paper":
            assert np.allclose(picture.info["dpi"], 300, atol=0.1)


def test_pages_keep_text_as_text_and_few_points_as_points(tmp_path):
    hostile = "<b>&\"' $x^2$"
    labels = np.where(POINTS[:, 0] > 0, hostile, "plain")
    for n_points, images in ((3000, 0), (6000, 1)):
        embedding_picture(
            POINTS[:n_points], tmp_path / "a.svg", labels[:n_points], checked_look("720x540", "A <title>")
        )
        root = ElementTree.parse(tmp_path / "a.svg").getroot()
        texts = {"".join(node.itertext()).strip() for node in root.iter(f"{SVG}text")}
        assert {"A <title>", hostile, "plain", f"{n_points:,} points"} <= texts
        assert len(list(root.iter(f"{SVG}image"))) == images
        assert len(list(root.iter(f"{SVG}use"))) >= (n_points if not images else 0)
        assert float(re.match(r"[\d.]+", root.attrib["width"])[0]) == pytest.approx(7.2 * 72)


def test_a_page_is_the_same_each_time(tmp_path):
    for form in ("svg", "pdf"):
        for name in "ab":
            embedding_picture(POINTS, tmp_path / f"{name}.{form}", np.arange(6000) % 30, checked_look("480x320"))
        assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert b"/Type0" in (tmp_path / "a.pdf").read_bytes() or b"TrueType" in (tmp_path / "a.pdf").read_bytes()


def test_discs_have_smooth_edges_and_rings_are_hollow():
    drawing = Drawing(60, 30, 100)
    black = np.zeros((1, 3))
    drawing.add(Discs(np.array([[15.0, 15.0]]), 8, black), Discs(np.array([[45.0, 15.0]]), 8, black, filled=False))
    drawing.add(Words(0, 15, "", 12))
    pixels = np.asarray(as_pixels(drawing))[..., 0]
    assert pixels[15, 15] == 0
    assert pixels[15, 45] == 255
    assert pixels[15, 38] < 60
    assert len(np.unique(pixels[:, :30])) > 4
    assert abs((255 - pixels[:, :30].astype(float)).sum() / 255 - np.pi * 64) < 8


def test_points_that_are_marked_have_rings(tmp_path):
    plain = embedding_picture(POINTS, tmp_path / "plain.png", look=checked_look(300))
    marked = np.zeros(6000, bool)
    marked[:7] = True
    embedding_picture(POINTS, tmp_path / "ringed.png", look=checked_look(300), marked=marked)
    one, other = (np.asarray(Image.open(tmp_path / f"{name}.png")).astype(int) for name in ("plain", "ringed"))
    changed = np.abs(one - other)[:300].max(axis=2) > 40
    assert plain == 0
    assert 7 * 8 < changed.sum() < 7 * 120


@pytest.mark.parametrize("most_discs", [0, 5000])
def test_of_many_points_that_are_marked_at_most_two_thousand_have_rings(most_discs):
    drawing, _ = draw(POINTS[:4500], None, checked_look(300, "", "auto"), np.arange(4500) % 10 > 0, most_discs)
    rings = [part for part in drawing.parts if isinstance(part, Discs) and not part.filled]
    assert [len(part.places) for part in rings] == [1350]
    assert drawing.parts[-1].text == "4,500 points, 4,050 of them ringed in part"


@pytest.mark.parametrize(
    ("n_labels", "n_pairs", "size", "grid"),
    [(1, 1, 900, (1, 1)), (2, 1, 900, (1, 2)), (4, 1, 900, (2, 2)), (6, 1, 900, (2, 3)), (2, 3, 900, (2, 3))],
)
def test_panels_stand_in_a_grid_that_leaves_them_large(n_labels, n_pairs, size, grid):
    assert grid_shape(n_labels, n_pairs, size) == grid


def test_sizes_are_read_in_every_form():
    assert checked_size("900") == checked_size(900) == 900
    assert checked_size("1600x900") == checked_size((1600, 900)) == Page(1600, 900, 100, 28)
    for wrong in ("", "axb", 1.5, (1, 2, 3), None, -300, "paperx"):
        with pytest.raises(ConfigError, match="size must be"):
            checked_size(wrong)
