import itertools

import numpy as np
import pytest
from PIL import Image

from scalemani.errors import ConfigError
from scalemani.figures import grid_figure
from scalemani.figures.grids import place_of, scores_of, varied


def cells_of(**lists):
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def test_names_with_one_value_span_nothing():
    assert varied(cells_of(a=[1, 2], b=["x"], c=[None, 0.5])) == {"a": [1, 2], "c": [None, 0.5]}


def test_a_panel_holds_the_scores_of_its_cells():
    cells = cells_of(a=[1, 2, 3], b=["x", "y"], c=[0, 1])
    scores = np.arange(12.0)
    for number in (0, 1):
        table = scores_of(cells, scores, varied(cells), ["a", "b"], {"c": number})
        np.testing.assert_array_equal(table, scores.reshape(3, 2, 2)[:, :, number])
    assert place_of(cells[5], varied(cells), ["a", "b"], {"c": 0}) is None
    assert place_of(cells[5], varied(cells), ["a", "b"], {"c": 1}) == (1, 0)


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
