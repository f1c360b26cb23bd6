"""Charts: curves, scores over grids of parameters, clusters of pixels."""

import itertools

import numpy as np
import pytest
from PIL import Image

from scalemani.errors import ConfigError
from scalemani.io.figures import charts, grid_figure, label_picture, line_figure
from scalemani.io.figures.charts import GAP, varied
from scalemani.io.figures.look import class_colours


def cells_of(**lists):
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def test_names_with_one_value_span_nothing():
    assert varied(cells_of(a=[1, 2], b=["x"], c=[None, 0.5])) == {"a": [1, 2], "c": [None, 0.5]}


@pytest.fixture
def drawn(monkeypatch):
    """The figures of Matplotlib that are saved."""
    figures = []
    monkeypatch.setattr(charts, "save_figure", lambda figure, path: figures.append(figure))
    return figures


def test_a_panel_shows_the_scores_of_its_cells(drawn):
    cells = cells_of(a=[3, 1, 2], b=["x", "y"], c=[0, 1])
    scores = np.arange(12.0)
    scores[-1] = np.nan
    grid_figure(cells, scores, "grid.png", "score", best=3)
    maps = [axes for axes in drawn[0].axes if axes.images]
    curves = [axes for axes in drawn[0].axes if not axes.images]
    assert [axes.get_title() for axes in curves] == ["c 0", "c 1"]
    table = np.moveaxis(scores.reshape(3, 2, 2)[[1, 2, 0]], 2, 0)
    for number in (0, 1):
        np.testing.assert_array_equal(maps[number].images[0].get_array().filled(np.nan), table[number].T)
        lines = [line.get_ydata() for line in curves[number].lines]
        np.testing.assert_array_equal(lines, table[number].T)
        assert {text.get_text() for text in maps[number].texts} == set(map("{:.3g}".format, table[number].ravel())) - {
            "nan"
        }
        assert maps[number].get_xlabel() == curves[number].get_xlabel() == "a"
    assert [len(axes.patches) for axes in maps] == [0, 1]
    np.testing.assert_array_equal(maps[1].patches[0].get_bbox().get_points(), [[1.5, 0.5], [2.5, 1.5]])


@pytest.mark.parametrize(
    "lists", [{"a": [1, 2, 3]}, {"a": [1, 2], "b": [1, 2]}, {"a": [1, 2], "b": [1, 2], "c": [3, 4]}]
)
def test_a_better_cell_changes_the_picture(tmp_path, lists):
    cells = cells_of(**lists)
    scores = np.linspace(0, 1, len(cells))
    scores[1] = np.nan
    pictures = []
    for best, given in ((0, scores), (len(cells) - 1, scores[::-1])):
        grid_figure(cells, given, tmp_path / "grid.png", "score", best)
        pictures.append(np.asarray(Image.open(tmp_path / "grid.png")))
    assert not np.array_equal(*pictures)


def test_grids_that_no_picture_shows_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="one cell"):
        grid_figure(cells_of(a=[1]), [0.5], tmp_path / "grid.png")
    cells = cells_of(a=range(6), b=range(6), c=range(5), d=range(5))
    with pytest.raises(ConfigError, match="25 panels"):
        grid_figure(cells, np.zeros(len(cells)), tmp_path / "grid.png")


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


def test_line_figure(tmp_path):
    curves = {"one": ([1, 10, 100], [3, 2, 1]), "two": ([1, 10, 100], [1, 2, 3])}
    line_figure(curves, tmp_path / "a.png", "points", "seconds", "A title", log_axes="x")
    assert np.asarray(Image.open(tmp_path / "a.png")).min() < 100
