"""The map in a real browser: it asks for nothing, says the right rows, and can be used by keyboard."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image
from scipy.spatial import cKDTree

from tests.interfaces.report.conftest import write_tiled
from tests.interfaces.report.resting import wait_for_rest, watch

HOSTILE = "</script><img src=x onerror='window.hacked=1'>"
CONTROLS = "button, input, select, canvas[tabindex], summary, [tabindex='0']"


@pytest.fixture(scope="module")
def report(runs, classes, tmp_path_factory):
    """A page with a column of classes, one of values and one with a hostile name and hostile classes."""
    values = np.where(np.arange(len(classes)) % 7, np.arange(len(classes)) / 100, np.nan)
    hostile = np.where(classes == 1, HOSTILE, "<b>bold</b>")
    columns = {"side": classes, "value": values, HOSTILE: hostile}
    path = tmp_path_factory.mktemp("map") / "report.html"
    return runs["t-sne"].report(path, columns, n_sampled=50)


@pytest.fixture(scope="module")
def browser(open_browser):
    return open_browser()


@pytest.fixture
def page(browser, report):
    """The page, opened anew: the map is there and at rest."""
    browser.open(report)
    browser.wait("document.getElementById('map').dataset.ready === 'true'")
    browser.wait("document.getElementById('points').dataset.view")
    browser.value("document.getElementById('map').scrollIntoView()")
    return browser


def test_nothing_is_asked_for_and_nothing_complains(page):
    assert page.requests()
    assert [url for url in page.requests() if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.complaints() == []


def test_names_and_classes_of_a_column_are_text(page):
    assert page.value("[...document.querySelectorAll('#column option')].map(o => o.textContent)") == [
        "nothing",
        "side",
        "value",
        HOSTILE,
    ]
    page.value("(c => { c.value = '2'; c.dispatchEvent(new Event('change')); })(document.getElementById('column'))")
    assert HOSTILE in page.value("document.getElementById('legend').textContent")
    assert page.value("document.querySelectorAll('img:not(.picture), b').length") == 0
    assert page.value("window.hacked") is None


def test_hover_names_the_nearest_point(page, runs):
    places = page.pixels(np.asarray(runs["t-sne"].embedding[...]))
    tree = cKDTree(places)
    tried = 0
    for place in places[::150] + np.array([2.0, 1.0]):
        distances, rows = tree.query(place, 2)
        if distances[1] - distances[0] < 0.1:
            continue  # two points are equally near for whoever rounds
        tried += 1
        page.mouse("Moved", *place)
        assert page.value("document.getElementById('tip').textContent").splitlines()[0] == f"row {rows[0]}"
    assert tried > 5


def test_a_lasso_gives_the_rows_within_it(page, runs):
    places = page.pixels(np.asarray(runs["t-sne"].embedding[...]))
    middle, extent = places.mean(axis=0), places.std(axis=0)
    corners = middle + extent * [[-1.3, -1.0], [1.1, -0.2], [-0.4, 1.2]]
    page.lasso(corners)
    sides = []
    for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (other - one) / np.linalg.norm(other - one)
        sides.append((places - one) @ [-along[1], along[0]])
    depth = np.min(sides, axis=0)  # how deep in the triangle each point lies, in pixels
    found = page.downloaded()
    assert set(np.flatnonzero(depth > 1)) <= set(found) <= set(np.flatnonzero(depth > -1))
    assert 100 < len(found) < len(places)
    assert page.value("document.getElementById('status').textContent") == f"{len(found):,} points selected"


def test_the_legend_filters_what_is_drawn_and_selected(page, classes):
    page.value("document.querySelectorAll('#legend input')[1].click()")
    page.value("document.getElementById('in-view').click()")
    np.testing.assert_array_equal(page.downloaded(), np.flatnonzero(classes == 0))


def test_a_row_can_be_searched_for(page, classes):
    page.value("document.getElementById('row').value = '1234'; document.querySelector('#search button').click()")
    told = page.value("document.getElementById('status').textContent")
    assert told.startswith(f"row 1234, side: {classes[1234]}, value: about 12.3, {HOSTILE}: ")
    page.value("document.getElementById('row').value = '1500'; document.querySelector('#search button').click()")
    assert page.value("document.getElementById('status').textContent") == "there is no row 1500"


def test_every_control_is_reached_by_keyboard(page):
    wanted = page.value(
        f'[...document.querySelectorAll("{CONTROLS}")].filter(e => e.checkVisibility() && !e.disabled).length'
    )
    page.value("window.reached = new Set(); document.addEventListener('focusin', e => window.reached.add(e.target)); 1")
    for _ in range(wanted + 2):
        page.key("Tab")
    assert page.value(f'[...window.reached].filter(e => e.matches("{CONTROLS}")).length') == wanted > 15


def test_the_map_is_moved_and_read_by_keyboard(page):
    page.value("document.getElementById('points').focus()")
    view = "JSON.parse(document.getElementById('points').dataset.view)"
    before = page.value(view)
    for key in ("ArrowLeft", "ArrowUp", "+"):
        page.key(key)
    width = f"({view}[2] - {view}[0])"
    page.wait(f"Math.abs({width} * 1.5 / {before[2] - before[0]} - 1) < 1e-6")
    after = page.value(view)
    assert np.mean([after[0], after[2]]) < np.mean([before[0], before[2]])
    assert np.mean([after[1], after[3]]) > np.mean([before[1], before[3]])
    page.key("0")
    page.wait(f"{view}[0] === {before[0]}")
    page.value("document.getElementById('row').value = '77'; document.querySelector('#search button').click()")
    page.value("document.getElementById('status').textContent = ''; document.getElementById('points').focus()")
    page.key("Enter")
    assert page.value("document.getElementById('status').textContent").startswith("row 77, ")


def test_a_picture_stands_in_where_there_is_no_webgl(open_browser, report):
    page = open_browser("--disable-3d-apis")
    page.open(report)
    page.wait("document.getElementById('no-map').textContent")
    assert "picture" in page.value("document.getElementById('no-map').textContent")
    assert page.value("document.querySelector('.picture').naturalWidth") > 500
    assert page.value("document.querySelector('.picture').offsetParent !== null")
    assert page.value("document.getElementById('map').offsetParent === null")


@pytest.fixture(scope="module")
def tiled(open_browser, runs, classes, tmp_path_factory):
    """A map of which 30 points are drawn, and all counted in tiles."""
    names = np.array([f"point {number}" for number in range(len(classes))])
    columns = {"side": classes, "row": np.arange(len(classes)) / 2, "name": names}
    path = write_tiled(tmp_path_factory.mktemp("tiled") / "report.html", runs["t-sne"], columns)
    page = open_browser()
    page.open(path)
    page.wait(
        "document.getElementById('map').dataset.ready === 'true' || document.getElementById('no-map').textContent"
    )
    assert page.value("document.getElementById('no-map').textContent") == ""
    page.wait("document.getElementById('in-sight').textContent")
    watch(page)
    page.value("document.getElementById('map').scrollIntoView()")
    return page


def show_whole(page) -> None:
    """Have the whole map in view with nothing pointed at, and wait until the page tells that it is."""
    page.value("document.getElementById('points').dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    page.value("document.getElementById('whole').click()")
    page.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def seen(page) -> np.ndarray:
    """Return the window as it is drawn: (h, w, 3)."""
    wait_for_rest(page)
    shot = base64.b64decode(page.send("Page.captureScreenshot", format="png")["data"])
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)


def strongest(image, places) -> np.ndarray:
    """Return the colours (n, 3) farthest from white within a pixel of places (n, 2)."""
    around = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1]), axis=-1).reshape(-1, 2)
    across, up = np.moveaxis(np.floor(places).astype(int)[:, None] + around, 2, 0)
    colours = image[up, across]
    return colours[np.arange(len(places)), np.argmin(colours.sum(axis=2), axis=1)]


def lone_points(page, embedding) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the pixels of points that are not drawn, and far from those that are."""
    places = page.pixels(embedding)
    away = cKDTree(places[drawn_rows(page)]).query(places)[0]
    rows = np.flatnonzero(away > 25)
    return rows, places[rows]


def drawn_rows(page) -> np.ndarray:
    """Return the rows that are drawn, as the page gives them away."""
    page.value("document.getElementById('in-view').click()")
    rows = page.downloaded()
    page.value("document.getElementById('clear').click()")
    return rows


def test_a_page_says_how_many_points_are_drawn_and_how_many_counted(tiled):
    words = " ".join(tiled.value("document.getElementById('the-map').parentElement.textContent").split())
    assert "All 1,500 points are counted" in words
    assert "30 of them, drawn at random, lie on top" in words
    tiled.wait("document.getElementById('in-sight').textContent === 'In view: 1,500 points counted, 30 drawn.'")
    ids = tiled.value("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_rows_of_a_sample_are_those_of_the_run(tiled, runs):
    rows, embedding = drawn_rows(tiled), np.asarray(runs["t-sne"].embedding[...])
    assert len(rows) == 30
    assert rows.max() > 1000
    tiled.mouse("Moved", *tiled.pixels(embedding)[rows[7]])
    assert tiled.value("document.getElementById('tip').textContent").splitlines()[:2] == [
        f"row {rows[7]}",
        f"name: point {rows[7]}",
    ]
    tiled.value(f"document.getElementById('row').value = '{rows[5]}'; document.querySelector('#search button').click()")
    assert tiled.value("document.getElementById('status').textContent").startswith(
        f"row {rows[5]}, name: point {rows[5]}, side: "
    )
    show_whole(tiled)


def test_tiles_have_the_colour_of_their_class_where_no_point_is_drawn(tiled, runs, classes):
    rows, places = lone_points(tiled, np.asarray(runs["t-sne"].embedding[...]))
    assert len(rows) > 300
    shown = strongest(seen(tiled), places)
    coloured = np.abs(shown - 255).sum(axis=1) > 8
    assert coloured.mean() > 0.9
    blue = shown[:, 2] > shown[:, 0]  # the first class is blue, the second orange
    agree = (blue == (classes[rows] == 0))[coloured]
    assert agree.mean() > 0.95
    tiled.value("document.getElementById('tiles').click()")
    without = strongest(seen(tiled), places)
    assert (np.abs(without - 255).sum(axis=1) <= 8).mean() > 0.99
    tiled.value("document.getElementById('tiles').click()")


def test_the_legend_hides_tiles_of_a_class(tiled, runs, classes):
    rows, places = lone_points(tiled, np.asarray(runs["t-sne"].embedding[...]))
    tiled.value("document.querySelectorAll('#legend input')[0].click()")
    shown = strongest(seen(tiled), places)
    tiled.value("document.querySelectorAll('#legend input')[0].click()")
    coloured = np.abs(shown - 255).sum(axis=1) > 8
    assert coloured[classes[rows] == 0].mean() < 0.1
    assert coloured[classes[rows] == 1].mean() > 0.9


def test_a_tile_tells_what_it_holds(tiled, runs):
    _, places = lone_points(tiled, np.asarray(runs["t-sne"].embedding[...]))
    told = 0
    for place in places[::60]:
        tiled.mouse("Moved", *place)
        text = tiled.value("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
        if text:  # a pixel may be another tile than that of the point
            told += 1
            assert re.fullmatch(r"\d+ points? counted in this tile\nside: most are [01]", text)
    assert told > 2


def test_what_is_in_view_is_counted_by_tiles(tiled, runs):
    embedding = np.asarray(runs["t-sne"].embedding[...])
    tiled.value("document.getElementById('closer').click(); document.getElementById('closer').click()")
    seen(tiled)
    x0, y0, x1, y1 = json.loads(tiled.value("document.getElementById('points').dataset.view"))
    axes = json.loads(tiled.value("document.getElementById('map-data').textContent"))["axes"]
    low, high = (np.array([axis[end] for axis in axes[:2]]) for end in ("low", "high"))
    places = (embedding - low) / (high - low)
    tile = 1 / 2048
    box = np.array([[x0, y1], [x1, y0]])
    least, most = (
        int(((places > box[0] + edge) & (places < box[1] - edge)).all(axis=1).sum()) for edge in (tile, -tile)
    )
    counted = int(
        re.search(r"([\d,]+) points counted", tiled.value("document.getElementById('in-sight').textContent"))[
            1
        ].replace(",", "")
    )
    assert least <= counted <= most < 1500
    show_whole(tiled)
