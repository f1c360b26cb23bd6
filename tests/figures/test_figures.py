import sys

import numpy as np
import pytest
import zarr
from PIL import Image

from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.figures import checked_look, embedding_picture, line_figure
from scalemani.figures.drawing import Discs
from scalemani.figures.limits import panel_limits, robust_limits
from scalemani.figures.palette import class_colours, colours_of_labels, ramp
from scalemani.figures.picture import draw
from scalemani.figures.shading import (
    Canvas,
    bin_points,
    point_radius,
    shade,
    weighted_colours,
)
from scalemani.figures.themes import THEMES
from scalemani.sources import open_labels

RNG = np.random.default_rng(0)
EMBEDDING = RNG.normal(size=(4000, 3)).astype(np.float32)


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB"), dtype=float)


def test_bins_are_those_of_a_histogram():
    points = RNG.normal(size=(5000, 2))
    limits = np.array([[-2.0, 2.0], [-1.0, 3.0]])
    index = RNG.integers(0, 4, 5000).astype(np.int32)
    colours = weighted_colours(class_colours(4), None)
    counts, sums = np.zeros((30, 40)), np.zeros((30, 40, 4))
    outside = bin_points(points, limits, index, colours, counts, sums)
    expected, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=(30, 40), range=limits[::-1])
    assert np.array_equal(counts, expected[::-1])
    assert outside == 5000 - expected.sum()
    inside = (points >= limits[:, 0]).all(axis=1) & (points <= limits[:, 1]).all(axis=1)
    assert np.allclose(sums.sum(axis=(0, 1)), colours[index[inside]].sum(axis=0, dtype=float))


def test_points_that_are_not_numbers_fall_outside():
    points = np.array([[np.nan, 0], [0, np.inf], [0, 0], [1, 1], [-1, -1]])
    counts, sums = np.zeros((5, 5)), np.zeros((5, 5, 4))
    limits, colours = np.array([[-1.0, 1.0], [-1.0, 1.0]]), weighted_colours(class_colours(1), None)
    outside = bin_points(points, limits, np.zeros(5, dtype=np.int32), colours, counts, sums)
    assert outside == 2
    assert counts[2, 2] == counts[0, 4] == counts[4, 0] == 1


def test_view_holds_everything_but_far_outliers():
    bulk = RNG.normal(size=(10_000, 2))
    assert np.array_equal(
        robust_limits(bulk, bulk.min(axis=0), bulk.max(axis=0)).T, [bulk.min(axis=0), bulk.max(axis=0)]
    )
    far = np.concatenate([bulk, [[1e9, 0]]])
    limits = robust_limits(far, far.min(axis=0), far.max(axis=0))
    assert np.array_equal(limits[0], [bulk[:, 0].min(), bulk[:, 0].max()])
    assert np.array_equal(limits[1], [bulk[:, 1].min(), bulk[:, 1].max()])


@pytest.mark.parametrize("value", [0.0, 3.0, -1e8])
def test_constant_columns_have_an_extent(value):
    rows = np.full((10, 1), value)
    low, high = robust_limits(rows, rows.min(axis=0), rows.max(axis=0))[0]
    assert low < value < high


def test_one_unit_for_both_axes_unless_nearly_empty():
    square = panel_limits(np.array([[0.0, 2.0], [0.0, 1.0]]), 100, 100)
    assert np.allclose(np.diff(square, axis=1), 2 * 1.04)
    assert np.allclose(square.mean(axis=1), [1, 0.5])
    stretched = panel_limits(np.array([[0.0, 100.0], [0.0, 1.0]]), 100, 100)
    assert np.allclose(np.diff(stretched, axis=1)[:, 0], [104, 1.04])


def test_shades_are_colours_and_darken_with_density():
    canvas = Canvas(50, 50, np.array([[0.0, 1.0], [0.0, 1.0]]))
    for n_points, at in ((2_000_000, 0.25), (2, 0.75)):
        place = np.full(n_points, at)
        canvas.add(place, place, np.zeros(n_points, dtype=np.int32), weighted_colours(class_colours(1), None))
    for density_only in (True, False):
        shades = shade(canvas, density_only)
        assert shades.min() >= 0
        assert shades.max() <= 1
        dense, thin, empty = shades[37, 12], shades[12, 37], shades[0, 0]
        assert np.array_equal(empty, [1, 1, 1])
        assert dense.sum() < thin.sum() < 3


def test_points_are_larger_where_they_are_few():
    assert point_radius(100, 10**6) == 4
    assert 1 < point_radius(30_000, 10**6) < 4
    assert point_radius(10**7, 10**6) == 1


@pytest.mark.parametrize("n_points", [70_000, 300_000, 1_000_000])
def test_regions_of_one_density_are_even_and_not_like_sand(n_points):
    side = 600
    canvas = Canvas(side, side, np.array([[0.0, 1.0], [0.0, 1.0]]))
    index = np.zeros(n_points, np.int32)
    canvas.add(RNG.random(n_points), RNG.random(n_points), index, weighted_colours(class_colours(1), None))
    for density_only in (True, False):
        inner = shade(canvas, density_only)[50:-50, 50:-50].mean(axis=2)
        grain = canvas.counts[50:-50, 50:-50].std() / canvas.counts.mean()
        assert inner.std() < 0.05 < grain


def test_lone_points_beside_many_can_be_seen():
    canvas = Canvas(600, 600, np.array([[0.0, 1.0], [0.0, 1.0]]))
    colours = weighted_colours(class_colours(1), None)
    canvas.add(RNG.random(10**6) / 2, RNG.random(10**6), np.zeros(10**6, np.int32), colours)
    canvas.add(np.array([0.9]), np.array([0.5]), np.zeros(1, np.int32), colours)
    assert shade(canvas, density_only=False)[299:301, 539:541].min() < 0.9
    assert (shade(canvas, density_only=False)[:200, 400:] == 1).all()


def test_points_without_a_label_lie_below_the_others():
    canvas = Canvas(100, 100, np.array([[0.0, 1.0], [0.0, 1.0]]))
    table = np.array([[0.0, 0.0, 1.0], [0.8, 0.8, 0.8]], np.float32)
    place = np.full(2000, 0.5)
    canvas.add(place, place, (np.arange(2000) > 99).astype(np.int32), weighted_colours(table, 1))
    drawn = shade(canvas, density_only=False)[50, 50]
    assert drawn[2] - drawn[0] > 0.3


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


def test_picture_of_blocks_equals_picture_of_the_whole(tmp_path, monkeypatch):
    labels = RNG.integers(0, 3, 4000)
    embedding_picture(EMBEDDING[:, :2], tmp_path / "a.png", labels, look=checked_look(300))
    monkeypatch.setattr("scalemani.export.rows.BLOCK_BYTES", 1)
    embedding_picture(zarr.array(EMBEDDING[:, :2], chunks=(333, 2)), tmp_path / "b.png", labels, look=checked_look(300))
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


def test_colours_of_labels_by_kind():
    assert colours_of_labels(["b", "a", "b"], 3).classes == ("a", "b")
    assert colours_of_labels([1.0, 2.0, 2.0], 3).classes == ("1", "2")
    assert colours_of_labels(np.arange(3000), 3000).classes == ()
    along = colours_of_labels(np.linspace(0, 1, 101), 101)
    assert along.classes == ()
    assert (np.diff(along.index) >= 0).all()
    assert along.limits == pytest.approx((0.005, 0.995))
    assert colours_of_labels(["10", "2", "²"], 3).classes == ("2", "10", "²")
    assert len(np.unique(class_colours(256), axis=0)) == 256
    assert len(class_colours(300)) == 300
    assert len(colours_of_labels([f"class {i}" for i in range(300)], 300).colours) == 300


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float64])
def test_classes_that_are_numbers_have_names_of_all_their_digits(kind):
    numbers = np.array([1234567, 1234568, 2**53], kind)
    assert [int(name) for name in colours_of_labels(numbers, 3).classes] == numbers.tolist()


def test_points_without_a_label_are_pale_and_last_and_no_class():
    for labels in ([2.0, np.nan, 10.0], ["b2", None, "b10"], np.array(["b2", "", "b10"])):
        found = colours_of_labels(labels, 3)
        assert [name.strip("b") for name in found.classes] == ["2", "10"]
        assert (list(found.index), found.missing) == ([0, 2, 1], 2)
        assert np.ptp(found.colours[2]) == 0
        assert found.colours[2].min() > 0.8
    values = colours_of_labels([0.5, np.nan, 0.25, 0.75], 4)
    assert list(values.index == values.missing) == [False, True, False, False]
    assert values.index[2] == 0
    assert colours_of_labels(["1", "2"], 2).missing is None


def test_categories_keep_their_own_order_and_others_the_natural_one(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    codes = arrow.array([2, 0, 1, None], arrow.int8())
    names = arrow.array(["low", "mid", "high"])
    for ordered, expected in ((True, ("low", "mid", "high")), (False, ("high", "low", "mid"))):
        column = arrow.DictionaryArray.from_arrays(codes, names, ordered=ordered)
        parquet.write_table(arrow.table({"level": column}), tmp_path / "levels.parquet")
        labels = open_labels(tmp_path / "levels.parquet", 4)
        found = colours_of_labels(labels, 4)
        assert found.classes == expected
        assert [(*found.classes, "")[place] for place in found.index] == ["high", "low", "mid", ""]
        assert colours_of_labels(labels[[1, 0]], 2).classes == tuple(name for name in expected if name != "mid")


def test_hundreds_of_classes_have_a_short_legend(tmp_path):
    embedding_picture(EMBEDDING[:, :2], tmp_path / "a.png", np.arange(4000) % 200, look=checked_look(300))
    assert pixels(tmp_path / "a.png").shape[1] < 700


def test_lightness_of_the_ramp_is_even():
    from scalemani.figures.palette import VIRIDIS

    assert (np.diff(ramp(VIRIDIS) @ [0.2126, 0.7152, 0.0722]) > -1e-3).all()


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"path": "a.jpg"}, ConfigError, r"\.png, \.svg or \.pdf"),
        ({"path": "a.png", "size": 10}, ConfigError, "at least 200"),
        ({"path": "a.png", "size": "letter"}, ConfigError, "paper or slide, got 'letter'"),
        ({"path": "a.png", "size": "300x20000"}, ConfigError, "at most 10,000"),
        ({"path": "a.png", "size": True}, ConfigError, "paper or slide, got True"),
        ({"path": "a.png", "size": "250x210"}, ConfigError, "larger size"),
        ({"path": "a.png", "legend": "mpa"}, ConfigError, "did you mean 'map'"),
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
    np.testing.assert_array_equal(drawn[0, 0], theme.paper)
    assert (np.abs(drawn - theme.ink).max(axis=2) < 10).any()
    assert (np.abs(drawn - theme.paper).max(axis=2) < 4).mean() > 0.3
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
        drawing, _ = draw(EMBEDDING[:100, :2], None, checked_look(300, point_size=size), None, 1000)
        (discs,) = (part for part in drawing.parts if isinstance(part, Discs))
        assert discs.radius == radius


def test_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ConfigError, match=r"pip install 'matplotlib>=\S+' 'pillow>=\S+'"):
        embedding_picture(EMBEDDING, tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match=r"pip install 'matplotlib>=\S+' 'pillow>=\S+'"):
        line_figure({}, tmp_path / "a.png")


def test_line_figure(tmp_path):
    curves = {"one": ([1, 10, 100], [3, 2, 1]), "two": ([1, 10, 100], [1, 2, 3])}
    line_figure(curves, tmp_path / "a.png", "points", "seconds", "A title", log_axes="x")
    assert pixels(tmp_path / "a.png").min() < 100
