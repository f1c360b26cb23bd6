"""The live map of many points reads as density, shaded as `scalemani plot` shades its pixels."""

import base64
import io
import json
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from scalemani.interfaces.report.map_data import map_of
from scalemani.interfaces.report.page import MAP_SCRIPTS, rendered
from scalemani.io.figures.look import colours_of_labels
from scalemani.io.figures.panels import Mixed, cell_counts, layers_of, shade
from scalemani.io.sources import open_points
from tests.interfaces.report.resting import wait_for_rest, watch

N_POINTS = 60_000
WHITE = 255


def clusters() -> tuple[np.ndarray, np.ndarray]:
    """Return points of three Gaussian clusters of different width, and their classes, of which a few are missing."""
    generator = np.random.default_rng(3)
    classes = generator.choice(3, N_POINTS, p=[0.5, 0.3, 0.2])
    middles, widths = np.array([[-6.0, 0.0], [4.0, 3.0], [3.0, -4.0]]), np.array([1.5, 0.7, 1.0])
    embedding = middles[classes] + widths[classes, None] * generator.normal(size=(N_POINTS, 2))
    return embedding.astype(np.float32), np.array(["a", "b", "c"])[classes]


@pytest.fixture(scope="module")
def tiled(open_browser, tmp_path_factory):
    """A page of nothing but a map that draws one of 20 points on tiles in which all are counted."""
    embedding, classes = clusters()
    sampled = np.arange(0, N_POINTS, 20)
    found = map_of(open_points(embedding), {"class": classes}, sampled, side=512)
    path = tmp_path_factory.mktemp("tiled") / "map.html"
    path.write_text(rendered("live.html", MAP_SCRIPTS, map=found))
    browser = open_browser()
    browser.open(path)
    browser.wait("document.getElementById('map').dataset.ready === 'true'")
    browser.wait("document.getElementById('points').dataset.view")
    browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return browser


def test_tiles_of_few_points_run_into_each_other_and_are_no_grains(tiled):
    image = inks(canvas_of(tiled))
    for middle, reach in (((-6.0, 0.0), 1.5), ((4.0, 3.0), 0.7)):
        inside = within(tiled, image, middle, reach)
        assert (image[inside] > 0.05).mean() > 0.99
        assert np.abs(np.diff(image, axis=1))[inside[:, 1:]].mean() < 0.04


def test_tiles_keep_place_and_colour_while_the_map_moves(tiled):
    rest = blocks(canvas_of(tiled))
    with moving(tiled):
        found = blocks(canvas_of(tiled))
    inked = inks(rest) > 0.05
    assert 0.05 < inked.mean() < 0.6
    assert (found != rest).any()
    assert np.abs(found - rest)[inked].mean() < 12
    assert (inks(found)[~inked] < 0.1).mean() > 0.95


@pytest.fixture(scope="module")
def opened(open_browser, tmp_path_factory):
    """A page of nothing but a map that draws all points."""
    embedding, classes = clusters()
    partly = np.where(np.arange(N_POINTS) % 2, classes, "")
    found = map_of(open_points(embedding), {"class": classes, "partly": partly}, np.arange(N_POINTS))
    path = tmp_path_factory.mktemp("density") / "map.html"
    path.write_text(rendered("live.html", MAP_SCRIPTS, map=found))
    browser = open_browser()
    browser.open(path)
    browser.wait("document.getElementById('map').dataset.ready === 'true'")
    watch(browser)
    browser.wait(f"document.getElementById('points').dataset.drawn === '{N_POINTS}'")
    return browser


@pytest.fixture
def page(opened):
    """The page with the whole map in view, nothing selected and nothing pointed at."""
    opened.value("document.getElementById('whole').click()")
    opened.value("document.getElementById('points').dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    return opened


def drawn(page) -> np.ndarray:
    """Return the map at rest, as pixels (h, w, 3)."""
    wait_for_rest(page)
    assert page.value("document.getElementById('points').dataset.drawn") == str(N_POINTS)
    return canvas_of(page)


def canvas_of(page) -> np.ndarray:
    """Return the map as it is drawn at this moment, as pixels (h, w, 3)."""
    x, y, width, height = page.value(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('points').getBoundingClientRect())"
    )
    shot = base64.b64decode(page.send("Page.captureScreenshot", format="png")["data"])
    left, top = round(x), round(y)
    image = np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"))
    return image[top : top + round(height), left : left + round(width)].astype(float)


def view_of(page) -> np.ndarray:
    """Return the limits (2, 2) of what the canvas shows, in the units of the embedding."""
    x0, y0, x1, y1 = json.loads(page.value("document.getElementById('points').dataset.view"))
    axes = json.loads(page.value("document.getElementById('map-data').textContent"))["axes"]
    low, high = (np.array([axis[end] for axis in axes[:2]]) for end in ("low", "high"))
    return (low + np.array([[x0, y1], [x1, y0]]) * (high - low)).T


def shaded(page, image: np.ndarray) -> np.ndarray:
    """Return what a picture of the same size and view has for pixels: an oracle that shares no code with the page."""
    embedding, classes = clusters()
    colours = colours_of_labels(classes, N_POINTS)
    counts = cell_counts(embedding.T, colours.index, view_of(page), len(colours.colours), image.shape[1::-1])
    mixed = Mixed.of(colours, image.shape[1::-1])
    mixed.add(np.arange(N_POINTS), colours.index, embedding.T, view_of(page))
    return shade((counts @ layers_of(colours)).reshape(*image.shape[:2], -1), mixed=mixed) * WHITE


def blocks(image: np.ndarray, side: int = 6) -> np.ndarray:
    """Return the means of blocks of pixels."""
    height, width = (extent // side * side for extent in image.shape[:2])
    return image[:height, :width].reshape(height // side, side, width // side, side, 3).mean(axis=(1, 3))


def inks(image: np.ndarray) -> np.ndarray:
    """Return how far each pixel (h, w) is from white, from 0 to 1."""
    return 1 - image.min(axis=2) / WHITE


def within(page, image: np.ndarray, middle: tuple[float, float], reach: float) -> np.ndarray:
    """Return which pixels lie within a reach of a place of the embedding."""
    limits = view_of(page)
    across, down = (np.arange(count) + 0.5 for count in image.shape[1::-1])
    x = limits[0, 0] + across / image.shape[1] * np.ptp(limits[0])
    y = limits[1, 1] - down / image.shape[0] * np.ptp(limits[1])
    return np.hypot(x[None, :] - middle[0], y[:, None] - middle[1]) < reach


def test_the_live_map_shades_as_a_picture_does(page):
    image = drawn(page)
    found, expected = blocks(image), blocks(shaded(page, image))
    inked = inks(expected) > 0.05
    assert 0.05 < inked.mean() < 0.6
    assert np.abs(found - expected)[inked].mean() < 12
    assert np.corrcoef(inks(found).ravel(), inks(expected).ravel())[0, 1] > 0.97


def test_clusters_are_even_regions_denser_in_their_middle_and_no_grains(page):
    image = inks(drawn(page))
    middle, rim = (within(page, image, (-6.0, 0.0), reach) for reach in (1.0, 2.2))
    assert (image[rim] > 0.1).mean() > 0.999  # no white between dots
    steps = np.abs(np.diff(image, axis=1))[rim[:, 1:]]
    assert steps.mean() < 0.05
    assert image[middle].mean() > image[rim & ~middle].mean() + 0.05
    assert int(page.value("document.getElementById('points').dataset.discs")) < N_POINTS / 4


def test_far_points_are_discs_and_all_are_in_a_close_view(page):
    page.value("document.getElementById('row').value = '17'; document.querySelector('#search button').click()")
    for _ in range(8):
        page.value("document.getElementById('closer').click()")
    page.value("document.getElementById('tip').style.visibility = 'hidden'")
    image = inks(drawn(page))
    limits, (embedding, _) = view_of(page), clusters()
    seen = ((embedding > limits[:, 0]) & (embedding < limits[:, 1])).all(axis=1)
    assert 0 < seen.sum() < 200
    assert int(page.value("document.getElementById('points').dataset.discs")) == pytest.approx(seen.sum(), abs=3)
    places = (embedding[seen] - limits[:, 0]) / np.ptp(limits, axis=1) * [image.shape[1], image.shape[0]]
    columns, rows = places[:, 0].astype(int), (image.shape[0] - 1 - places[:, 1]).astype(int)
    inside = (columns > 4) & (rows > 4) & (columns < image.shape[1] - 5) & (rows < image.shape[0] - 5)
    assert (image[rows[inside], columns[inside]] > 0.3).mean() > 0.95


MOVED = """window.moving = setInterval(() => {
  const end = performance.now() + 60; // a frame that takes long: fewer points are drawn in the next one
  while (performance.now() < end);
  document.getElementById('points').dispatchEvent(new PointerEvent('pointermove', {clientX: 400, clientY: 300}));
}, 1)"""


@contextmanager
def moving(page):
    """Drag the map again and again by nothing, on a slow machine: few points are drawn, and coarsely."""
    page.mouse("Moved", 400, 300)
    page.mouse("Pressed", 400, 300)
    page.value(MOVED)
    page.wait("Number(document.getElementById('points').dataset.drawn) <= 10000")
    page.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    yield
    page.value("clearInterval(window.moving)")
    page.mouse("Released", 400, 300)


def test_regions_stay_even_while_the_map_moves_and_few_points_are_drawn(page):
    rest = inks(drawn(page))
    with moving(page):
        image = inks(canvas_of(page))
    rim = within(page, image, (-6.0, 0.0), 1.7)
    assert (image[rim] > 0.1).mean() > 0.97  # no white between dots
    assert np.abs(np.diff(image, axis=1))[rim[:, 1:]].mean() < 0.05
    np.testing.assert_allclose(image[rim].mean(), rest[rim].mean(), rtol=0.25)


STEPS = """(() => {
  const extent = window.extent = Canvas.prototype.extent;
  Canvas.prototype.extent = function (step) { window.step = step; return extent.call(this, step); };
})()"""


def test_regions_are_computed_on_few_pixels_while_the_map_moves_and_on_all_at_rest(page):
    drawn(page)
    page.value(STEPS)
    with moving(page):
        assert page.value("window.step") >= 4
    drawn(page)
    assert page.value("window.step") == 1
    page.value("Canvas.prototype.extent = window.extent; 1")


SLOW = """(() => {
  const draw = window.quickly = Canvas.prototype.draw;
  window.drawings = [];
  Canvas.prototype.draw = function (asked) {
    const began = performance.now(), found = draw.call(this, asked);
    while (performance.now() < began + 400);
    window.drawings.push([asked.count, began, performance.now()]);
    return found;
  };
})()"""


def test_a_map_rests_after_its_frames_however_long_these_are(page):
    drawn(page)
    page.mouse("Moved", 400, 300)
    page.mouse("Pressed", 400, 300)
    page.value(SLOW)
    page.mouse("Moved", 410, 300)
    page.wait(f"window.drawings.some(([points]) => points === {N_POINTS})")
    few, all_of_them = page.value("window.drawings.slice(0, 2)")
    page.value("Canvas.prototype.draw = window.quickly; 1")
    page.mouse("Released", 410, 300)
    assert few[0] < N_POINTS == all_of_them[0]
    assert all_of_them[1] - few[2] > 150


def test_what_is_selected_stands_out_of_regions_too(page):
    whole = inks(drawn(page))
    page.value("document.querySelectorAll('#legend button')[1].click()")
    page.value("document.querySelectorAll('#legend input')[1].click()")
    page.value("document.getElementById('in-view').click()")
    page.value("document.querySelectorAll('#legend button')[0].click()")
    chosen = inks(drawn(page))
    page.value("document.getElementById('clear').click()")
    other, own = within(page, whole, (-6.0, 0.0), 1.5), within(page, whole, (4.0, 3.0), 0.7)
    assert chosen[other].mean() < 0.3 * whole[other].mean()
    assert chosen[own].mean() > 0.8 * whole[own].mean()
    np.testing.assert_array_equal(inks(drawn(page)), whole)


def test_points_without_a_label_lie_below_regions_of_the_others(page):
    choose = "(c => {{ c.value = '{}'; c.dispatchEvent(new Event('change')); }})(document.getElementById('column'))"
    classes = drawn(page)
    page.value(choose.format(1))
    image = drawn(page)
    page.value(choose.format(0))
    middle = within(page, image, (4.0, 3.0), 0.5)
    assert inks(image)[middle].mean() > 0.3
    # The colour of the class prevails, though half of the points have none.
    hue = classes[middle].mean(axis=0)
    assert np.argmin(image[middle].mean(axis=0)) == np.argmin(hue)
    assert np.ptp(image[middle].mean(axis=0)) > 0.5 * np.ptp(hue)


def test_points_without_a_label_are_pale_on_dark_paper_too(page):
    choose = "(c => {{ c.value = '{}'; c.dispatchEvent(new Event('change')); }})(document.getElementById('column'))"
    page.value(choose.format(1))
    page.value("document.querySelectorAll('#legend button')[1].click()")
    page.value("[...document.querySelectorAll('#legend input')].at(-1).click()")
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    image = drawn(page)
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.value(choose.format(0))
    middle = image[within(page, image, (4.0, 3.0), 0.5)]
    paper = np.array([0x15, 0x17, 0x1C])
    assert (middle.mean(axis=0) > paper + 15).all()
    assert middle.max() < 0x70
