"""The live map shows mixed classes as they are: a pixel has the colour of one, areas their shares of the points."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from scalemani.interfaces.report.map_data import map_of
from scalemani.interfaces.report.page import MAP_SCRIPTS, rendered
from scalemani.io.figures.look import THEMES, class_colours, rgb
from scalemani.io.sources import open_points
from tests.interfaces.report.resting import wait_for_rest, watch

N_POINTS = 40_000
CHOOSE = "(c => {{ c.value = '{}'; c.dispatchEvent(new Event('change')); }})(document.getElementById('column'))"
BOX = "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('points').getBoundingClientRect())"
COUNTS = (2, 5, 8, 12)
INKED = 0.25  # opacity from which the colour of a pixel is known


@pytest.fixture(scope="module")
def columns():
    """Labels of 2 to 12 classes, drawn at random, some of equal and some of unequal shares."""
    generator = np.random.default_rng(1)
    return {
        f"{count} classes": generator.choice(count, N_POINTS, p=shares / shares.sum())
        for count in COUNTS
        for shares in [np.ones(count) if count % 2 == 0 else np.arange(1.0, count + 1)]
    }


@pytest.fixture(scope="module")
def page(open_browser, columns, tmp_path_factory):
    """A map of clusters of several densities, from regions to lone points."""
    generator = np.random.default_rng(2)
    middles, widths = generator.normal(size=(7, 2)) * 6, generator.uniform(0.3, 2.5, 7)
    cluster = generator.integers(0, 7, N_POINTS)
    embedding = middles[cluster] + widths[cluster, None] * generator.normal(size=(N_POINTS, 2))
    found = map_of(open_points(embedding), columns, np.arange(N_POINTS))
    path = tmp_path_factory.mktemp("mixing") / "map.html"
    path.write_text(rendered("live.html", MAP_SCRIPTS, map=found))
    browser = open_browser()
    browser.open(path)
    browser.wait("document.getElementById('map').dataset.ready === 'true'")
    watch(browser)
    return browser


def canvas_of(page) -> np.ndarray:
    """The map as it is drawn, as pixels (n, 3)."""
    wait_for_rest(page)
    x, y, width, height = page.value(BOX)
    clip = {"x": x + 2, "y": y + 2, "width": int(width) - 4, "height": int(height) - 4, "scale": 1}
    shot = base64.b64decode(page.send("Page.captureScreenshot", format="png", clip=clip)["data"])
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).reshape(-1, 3).astype(float)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("number", range(len(COUNTS)))
def test_areas_of_mixed_classes_are_in_the_proportion_of_their_points(page, columns, number, theme):
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    page.value(CHOOSE.format(number))
    (paper,) = rgb(THEMES[theme].paper) * 255
    lines = class_colours(COUNTS[number]) * 255.0 - paper
    pixels = np.unique(canvas_of(page), axis=0, return_counts=True)
    ink, times = pixels[0] - paper, pixels[1]
    along = np.clip(ink @ lines.T / (lines**2).sum(axis=1), 0, 1)
    away = np.linalg.norm(ink[:, None] - along[..., None] * lines, axis=2)
    nearest = away.argmin(axis=1)
    inked = np.take_along_axis(along, nearest[:, None], axis=1)[:, 0] > INKED
    assert times[inked & (away.min(axis=1) > 4)].sum() < 0.01 * times[inked].sum()  # but for the frame of the focus
    shares = np.bincount(nearest[inked], times[inked], len(lines)) / times[inked].sum()
    expected = np.bincount(columns[f"{COUNTS[number]} classes"]) / N_POINTS
    np.testing.assert_allclose(shares, expected, atol=0.03)
