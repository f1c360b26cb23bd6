"""Pictures of embeddings: of the size asked for, readable for any number of points, the same each time."""

import re
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import zarr
from matplotlib.collections import PathCollection
from PIL import Image

from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.figures import checked_look, drawn_embedding, embedding_picture, line_figure
from scalemani.io.figures.look import THEMES, Page, checked_size, class_colours, rgb
from scalemani.io.figures.picture import ROW_SHAPE, draw, grid_shape, styled

RNG = np.random.default_rng(0)
EMBEDDING = RNG.normal(size=(4000, 3)).astype(np.float32)
POINTS = np.random.default_rng(1).normal(size=(6000, 2))
SVG = "{http://www.w3.org/2000/svg}"


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB"), dtype=float)


def discs_of(points, look, marked=None, most_discs=0):
    """The figure of a picture, its discs and its rings."""
    with styled(look):
        figure, _ = draw(points, None, look, marked, most_discs)
    (axes,) = figure.axes
    found = [part for part in axes.collections if isinstance(part, PathCollection)]
    return figure, found[:-1], found[-1]


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
    for form in ("png", "svg", "pdf"):
        for name in "ab":
            embedding_picture(POINTS, tmp_path / f"{name}.{form}", np.arange(6000) % 30, checked_look("480x320"))
        assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert b"/Type0" in (tmp_path / "a.pdf").read_bytes() or b"TrueType" in (tmp_path / "a.pdf").read_bytes()


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
    marked = np.arange(4500) % 10 > 0
    figure, _, rings = discs_of(POINTS[:4500], checked_look(300), marked, most_discs)
    assert len(rings.get_offsets()) == 1350
    assert figure.get_supxlabel() == "4,500 points, 4,050 of them ringed in part"


@pytest.mark.parametrize(
    ("n_labels", "n_pairs", "grid"),
    [(1, 1, (1, 1)), (2, 1, (1, 2)), (4, 1, (2, 2)), (6, 1, (2, 3)), (2, 3, (2, 3))],
)
def test_panels_stand_in_a_grid_that_leaves_them_large(n_labels, n_pairs, grid):
    assert grid_shape(n_labels, n_pairs, ROW_SHAPE) == grid


def test_sizes_are_read_in_every_form():
    assert checked_size("900") == checked_size(900) == Page(900, 900, 100, 20, panel=True)
    assert checked_size("1600x900") == checked_size((1600, 900)) == Page(1600, 900, 100, 28)
    for wrong in ("", "axb", 1.5, (1, 2, 3), None, -300, "paperx"):
        with pytest.raises(ConfigError, match="size must be"):
            checked_size(wrong)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("labels", [None, RNG.integers(0, 5, 4000), RNG.normal(size=4000)])
def test_pictures_of_every_dimension(tmp_path, dimensions, labels):
    outside = embedding_picture(EMBEDDING[:, :dimensions], tmp_path / "a.png", labels, checked_look(300, "A title"))
    drawn = pixels(tmp_path / "a.png")
    assert outside == 0
    assert (drawn[:3] == 255).all()
    assert (drawn[-3:] == 255).all()
    assert 0.01 < np.mean(drawn.min(axis=2) < 230) < 0.9
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.png"]


def test_rows_of_several_blocks_are_drawn_with_their_labels_in_any_order(tmp_path):
    rows = np.tile(EMBEDDING[:, :2], (300, 1))  # 19 MB: two blocks
    labels, order = (rows[:, 0] > 0).astype(int), RNG.permutation(len(rows))
    rows[labels == 1] += 20  # pixels with points of both would show another of them
    embedding_picture(rows, tmp_path / "a.png", labels, look=checked_look(300))
    embedding_picture(rows[order], tmp_path / "b.png", labels[order], look=checked_look(300))
    assert np.array_equal(pixels(tmp_path / "a.png"), pixels(tmp_path / "b.png"))


def test_outliers_and_constant_coordinates(tmp_path):
    rows = EMBEDDING[:, :2].copy()
    rows[7] = 1e12
    assert embedding_picture(rows, tmp_path / "a.png", look=checked_look(300)) == 1
    assert np.mean(pixels(tmp_path / "a.png").min(axis=2) < 250) > 0.01
    rows[:, 1] = 3
    embedding_picture(rows, tmp_path / "b.png", look=checked_look(300))
    embedding_picture(np.zeros((5, 2)), tmp_path / "c.png", look=checked_look(300))
    embedding_picture(np.zeros((1, 1)), tmp_path / "d.png", look=checked_look(300))
    for name in "bcd":
        assert pixels(tmp_path / f"{name}.png").min() < 100


def test_rows_that_are_not_finite_are_left_out_and_counted(tmp_path):
    rows = EMBEDDING[:, :2].copy()
    rows[::10] = np.nan
    assert embedding_picture(zarr.array(rows), tmp_path / "a.png", look=checked_look(300)) == 400
    with pytest.raises(DataError, match="no finite row"):
        embedding_picture(zarr.array(np.full((10, 2), np.nan)), tmp_path / "b.png", look=checked_look(300))


def test_classes_keep_their_colours_and_legend(tmp_path):
    places = np.repeat([[0.0, 0.0], [1.0, 1.0]], 500, axis=0) + RNG.normal(size=(1000, 2)) * 0.01
    embedding_picture(places, tmp_path / "a.png", np.repeat(["left", "right"], 500), look=checked_look(300))
    drawn = pixels(tmp_path / "a.png")
    for colour in class_colours(2) * 255:
        near = np.abs(drawn - colour).max(axis=2) < 12
        assert near[:, :310].any()  # in the panel
        assert near[:, 320:].any()  # in the legend


def test_hundreds_of_classes_have_a_short_legend(tmp_path):
    embedding_picture(EMBEDDING[:, :2], tmp_path / "a.png", np.arange(4000) % 200, look=checked_look(300))
    assert pixels(tmp_path / "a.png").shape[1] < 700


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"path": "a.jpg"}, ConfigError, r"\.png, \.svg or \.pdf"),
        ({"path": "a.png", "size": 10}, ConfigError, "at least 200"),
        ({"path": "a.png", "size": "letter"}, ConfigError, "paper or slide, got 'letter'"),
        ({"path": "a.png", "size": "300x20000"}, ConfigError, "at most 10,000"),
        ({"path": "a.png", "size": True}, ConfigError, "paper or slide, got True"),
        ({"path": "a.png", "size": "250x210"}, ConfigError, "larger size"),
        ({"path": "a.png", "legend": "maps"}, ConfigError, "did you mean 'map'"),
        ({"path": "a.png", "theme": "drak"}, ConfigError, "did you mean 'dark'"),
        ({"path": "a.png", "point_size": 0}, ConfigError, "from 0.1 to 20.0 times the usual, got 0"),
        ({"path": "a.png", "labels": dict.fromkeys("abcde", np.arange(4000))}, ConfigError, "at most 12 panels"),
        ({"path": "a.png", "marked": [1, 0]}, DataError, "of each of 4000 points"),
        ({"path": "a.png", "labels": [1, 2]}, DataError, "2 labels for 4000 points"),
        ({"path": "missing/a.png"}, StoreError, "cannot write"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, kind, message):
    given = {key: arguments[key] for key in ("labels", "marked") if key in arguments}
    look = {key: value for key, value in arguments.items() if key not in (*given, "path")}
    with pytest.raises(kind, match=message):
        embedding_picture(EMBEDDING, tmp_path / arguments["path"], look=checked_look(**look), **given)


@pytest.mark.parametrize("form", ["png", "svg"])
def test_dark_pictures_have_dark_paper_light_text_and_dim_points_without_a_label(tmp_path, form):
    theme, labels = THEMES["dark"], np.where(EMBEDDING[:, 0] > 0, "right", "")
    embedding_picture(EMBEDDING[:, :2], tmp_path / f"a.{form}", labels, checked_look(300, "A title", theme="dark"))
    if form == "svg":
        text = (tmp_path / "a.svg").read_text()
        assert "#15171c" in text
        assert "#e8eaef" in text
        assert "#ffffff" not in text
        return
    drawn = pixels(tmp_path / "a.png")
    paper, ink = np.rint(rgb(theme.paper, theme.ink) * 255)
    np.testing.assert_array_equal(drawn[0, 0], paper)
    assert (np.abs(drawn - ink).max(axis=2) < 10).any()
    assert (np.abs(drawn - paper).max(axis=2) < 4).mean() > 0.3
    assert drawn[..., 0].max() < 250
    lights = drawn[40:320, :310].mean(axis=2)
    assert (
        lights[:, :140].max() < 110
    )  # beside the points with one: at most as light as the palette's grey for the dark
    light = tmp_path / "light.png"
    embedding_picture(EMBEDDING[:, :2], light, None, checked_look(300))
    embedding_picture(EMBEDDING[:, :2], tmp_path / "dark.png", None, checked_look(300, theme="dark"))
    inked = [
        np.abs(pixels(path)[30:300, 30:300] - pixels(path)[0, 0]).max(axis=2) > 12
        for path in (light, tmp_path / "dark.png")
    ]
    assert (inked[0] == inked[1]).mean() > 0.97


def test_larger_points_cover_more_and_stay_where_they_are(tmp_path):
    covers = []
    for size in (0.5, 1, 2):
        embedding_picture(EMBEDDING[:200, :2], tmp_path / "a.png", None, checked_look(300, point_size=size))
        covers.append((pixels(tmp_path / "a.png")[20:310, 20:310].min(axis=2) < 230).sum())
    assert covers[0] * 2 < covers[1]
    assert covers[1] * 2 < covers[2]
    for size, radius in ((1, 4.0), (2, 8.0)):
        look = checked_look(300, point_size=size)
        _, (discs,), _ = discs_of(EMBEDDING[:100, :2], look, None, 1000)
        assert discs.get_sizes() == pytest.approx((2 * look.points(radius)) ** 2)
        assert len(discs.get_offsets()) == 100


def test_missing_extra_is_named_before_the_embedding_is_read(tmp_path, monkeypatch):
    for name in ("matplotlib.style", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    for draw_something in (
        lambda: embedding_picture("missing.npy", tmp_path / "a.png"),
        lambda: drawn_embedding("missing.npy"),
        lambda: line_figure({}, tmp_path / "a.png"),
    ):
        with pytest.raises(ConfigError, match=r"pip install 'matplotlib>=\S+' 'pillow>=\S+'"):
            draw_something()


def test_a_panel_is_as_high_as_asked_and_a_picture_as_wide_as_its_legend_needs():
    wide = drawn_embedding(POINTS, np.where(POINTS[:, 0] > 0, "a rather long name", "b"), checked_look(400))[0]
    narrow = drawn_embedding(POINTS, None, checked_look(400))[0]
    assert narrow.width < 430
    assert wide.width > narrow.width + 120
    for picture in (wide, narrow):
        frame = (np.abs(np.asarray(picture).astype(int) - rgb(THEMES["light"].frame) * 255) < 3).all(axis=2)
        assert frame[:, :60].sum(axis=0).max() == pytest.approx(400, abs=4)


def test_settings_of_matplotlib_in_use_neither_change_a_picture_nor_change(tmp_path):
    import matplotlib

    embedding_picture(POINTS, tmp_path / "a.png", POINTS[:, 0] > 0, checked_look(300))
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "text.usetex": True}):
        embedding_picture(POINTS, tmp_path / "b.png", POINTS[:, 0] > 0, checked_look(300))
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
