"""The map in a real browser: it asks for nothing, says the right rows, and can be used by keyboard."""

import json

import numpy as np
import pytest
from scipy.spatial import cKDTree

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


def pixels(page, embedding) -> np.ndarray:
    """Return where points (N, 2) are in the window, by the view that the canvas tells: an oracle of its own."""
    x0, y0, x1, y1 = json.loads(page.value("document.getElementById('points').dataset.view"))
    box = page.value(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('points').getBoundingClientRect())"
    )
    axes = json.loads(page.value("document.getElementById('map-data').textContent"))["axes"]
    low, high = (np.array([axis[end] for axis in axes[:2]]) for end in ("low", "high"))
    places = (embedding[:, :2] - low) / (high - low)
    shares = (places - [x0, y0]) / [x1 - x0, y1 - y0]
    return np.array(box[:2]) + shares * box[2:]


def select(page, corners) -> None:
    """Draw a lasso."""
    page.mouse("Pressed", *corners[0], shift=True)
    for corner in [*corners[1:], corners[0]]:
        page.mouse("Moved", *corner, shift=True)
    page.mouse("Released", *corners[0], shift=True)


def downloaded(page) -> np.ndarray:
    """Return the rows that the page gives away."""
    file = page.folder / "rows.txt"
    file.unlink(missing_ok=True)
    page.value("document.getElementById('download').click()")
    for _ in range(200):
        if file.exists() and file.stat().st_size:
            return np.loadtxt(file, dtype=int, ndmin=1)
        page.value("new Promise(done => setTimeout(done, 20))")
    raise AssertionError("nothing was downloaded")


def test_nothing_is_asked_for_and_nothing_complains(page):
    told = [(event["method"], event.get("params", {})) for event in page.events]
    asked = [found["request"]["url"] for method, found in told if method == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert [found for method, found in told if method == "Runtime.exceptionThrown"] == []
    assert [found for method, found in told if method == "Log.entryAdded" and found["entry"]["level"] == "error"] == []
    assert [found for method, found in told if method == "Runtime.consoleAPICalled" and found["type"] == "error"] == []


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
    places = pixels(page, np.asarray(runs["t-sne"].embedding[...]))
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
    places = pixels(page, np.asarray(runs["t-sne"].embedding[...]))
    middle, extent = places.mean(axis=0), places.std(axis=0)
    corners = middle + extent * [[-1.3, -1.0], [1.1, -0.2], [-0.4, 1.2]]
    select(page, corners)
    sides = []
    for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (other - one) / np.linalg.norm(other - one)
        sides.append((places - one) @ [-along[1], along[0]])
    depth = np.min(sides, axis=0)  # how deep in the triangle each point lies, in pixels
    found = downloaded(page)
    assert set(np.flatnonzero(depth > 1)) <= set(found) <= set(np.flatnonzero(depth > -1))
    assert 100 < len(found) < len(places)
    assert page.value("document.getElementById('status').textContent") == f"{len(found):,} points selected"


def test_the_legend_filters_what_is_drawn_and_selected(page, classes):
    page.value("document.querySelectorAll('#legend input')[1].click()")
    page.value("document.getElementById('in-view').click()")
    np.testing.assert_array_equal(downloaded(page), np.flatnonzero(classes == 0))


def test_a_row_can_be_searched_for(page, classes):
    page.value("document.getElementById('row').value = '1234'; document.querySelector('#search button').click()")
    told = page.value("document.getElementById('status').textContent")
    assert told.startswith(f"row 1234, side: {classes[1234]}, value: about 12.3, {HOSTILE}: ")
    page.value("document.getElementById('row').value = '1500'; document.querySelector('#search button').click()")
    assert page.value("document.getElementById('status').textContent") == "there is no row 1500"


def test_every_control_is_reached_by_keyboard(page):
    wanted = page.value(
        f'[...document.querySelectorAll("{CONTROLS}")].filter(e => e.offsetParent && !e.disabled).length'
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


def test_more_points_than_are_drawn_have_a_sample_on_top_of_the_density_of_all(
    open_browser, runs, tmp_path, monkeypatch
):
    monkeypatch.setattr("scalemani.report.map_data.MOST_POINTS", 500)
    page = open_browser()
    page.open(runs["t-sne"].report(tmp_path / "report.html", n_sampled=0))
    page.wait(
        "document.getElementById('map').dataset.ready === 'true' || document.getElementById('no-map').textContent"
    )
    assert page.value("document.getElementById('no-map').textContent") == ""
    assert page.value("document.getElementById('density').offsetParent !== null")
    ids = page.value("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
