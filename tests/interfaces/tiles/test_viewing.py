"""The page of tiles in a real browser, from a static server: what it loads, shows, names and finds."""

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

MOST_BYTES = 2_000_000  # up to the first picture
READY = "document.getElementById('map')?.dataset.ready === 'true'"
COMPLETE = "document.getElementById('points').dataset.missing === '0'"
TIP = "document.getElementById('tip').textContent"
STATUS = "document.getElementById('status').textContent"
# How many pixels of the map are drawn: in the same task as the drawing, after which a canvas may be cleared.
DRAWN = """(() => {
  const canvas = document.getElementById('points'), gl = canvas.getContext('webgl2');
  viewer.drawAtOnce();
  const pixels = new Uint8Array(4 * canvas.width * canvas.height);
  gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  return pixels.filter((value, place) => place % 4 === 3 && value).length;
})()"""


class Quiet(SimpleHTTPRequestHandler):
    """A static server that writes no log: Python's, without ranges and without compression."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tiles) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tiles.folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(open_browser):
    return open_browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")


@pytest.fixture
def page(browser, address):
    browser.events.clear()
    url = f"{address}?{browser.number}"  # another than that of the page before, which may still be there
    browser.send("Page.navigate", url=url)
    browser.wait(f"location.href === '{url}' && {READY} && {COMPLETE}")
    return browser


def on_screen(page, places):
    """Return where places (n, 2), from 0 to 1, are in the window."""
    x0, y0, x1, y1 = json.loads(page.value("document.getElementById('points').dataset.view"))
    box = page.value(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('points').getBoundingClientRect())"
    )
    shares = (places - [x0, y1]) / [x1 - x0, y0 - y1]
    return np.array(box[:2]) + shares * box[2:]


def find(page, row):
    page.value(f"document.getElementById('row').value = {row}; document.querySelector('#search button').click()")


def test_the_first_picture_is_small_and_asks_its_server_alone(page, address):
    assert page.value(DRAWN) > 1000
    received = [event["params"]["encodedDataLength"] for event in page.events_of("Network.loadingFinished")]
    assert 0 < sum(received) < MOST_BYTES
    assert all(url.startswith((address, "data:", "blob:")) for url in page.requests())
    assert page.complaints() == []


def test_search_zooms_to_a_row_and_hover_names_it_and_its_labels(page, tiles, columns):
    row, places = 12345, None
    for leaf in tiles.leaves:
        found, rows, _ = tiles.points(leaf)
        if row in rows:
            places = found[rows == row]
    find(page, row)
    page.wait(f"{STATUS}.startsWith('row {row},') && {COMPLETE}")
    assert f"kind: {columns['kind'][row]}" in page.value(STATUS)
    assert int(page.value("document.getElementById('points').dataset.leaves")) > 0
    page.key("Escape")
    (place,) = on_screen(page, places)
    page.mouse("Moved", place[0] + 200, place[1])
    page.mouse("Moved", *place)
    page.wait(f"{TIP}.startsWith('row {row}\\n')")
    assert f"kind: {columns['kind'][row]}" in page.value(TIP).splitlines()
    assert page.complaints() == []


def test_hover_over_counts_says_how_many_points_a_pixel_has(page, tiles):
    level = int(page.value("document.getElementById('points').dataset.level"))
    place = max(
        (one for one, kind in tiles.kinds.items() if kind == 2 and one[0] == level),
        key=lambda one: tiles.counts(one)[0].max(),
    )
    counts = tiles.counts(place)[0]
    up, across = np.unravel_index(counts.argmax(), counts.shape)
    centre = (np.array(place[1:]) + (np.array([across, up]) + 0.5) / 256) / 2**level
    page.value("viewer.nearest = () => null")  # points of sparse tiles next to it are not what is asked here
    page.mouse("Moved", *on_screen(page, centre[None])[0])
    page.wait(f"{TIP}.includes('point')")
    near = counts[max(0, up - 1) : up + 2, max(0, across - 1) : across + 2]  # the mouse stands on whole pixels
    said = int(page.value(TIP).split()[0].replace(",", ""))
    assert said in near


def test_a_row_that_is_not_there_is_said(page, columns):
    find(page, len(columns["kind"]))
    page.wait(f"{STATUS}.includes('there is no row')")


def test_keys_move_and_zoom_and_describe(page):
    page.value("document.getElementById('points').focus()")
    start = page.value("document.getElementById('points').dataset.view")
    for key in ("ArrowLeft", "+", "+"):
        before = page.value("document.getElementById('points').dataset.view")
        page.key(key)
        page.wait(f"document.getElementById('points').dataset.view !== {json.dumps(before)}")
    page.key("Enter")
    page.wait(f"{STATUS} !== ''")
    page.key("0")
    page.wait(f"document.getElementById('points').dataset.view === {json.dumps(start)}")


def test_the_legend_hides_classes(page):
    whole = page.value(DRAWN)
    page.value("[...document.querySelectorAll('#legend button')].find((one) => one.textContent === 'None').click()")
    assert page.value(DRAWN) == 0
    page.value("document.querySelector('#legend input').click()")
    assert 0 < page.value(DRAWN) < whole


def test_themes_change_and_columns_too(page):
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.value(paper)
    page.value("document.getElementById('theme').click()")
    assert page.value(paper) != light
    page.value(
        "(one => { one.value = '1'; one.dispatchEvent(new Event('change')); })(document.getElementById('column'))"
    )
    assert "height" in page.value("document.getElementById('legend').textContent")
    assert page.value(DRAWN) > 1000
    assert page.complaints() == []


def test_from_a_disk_the_first_tile_is_there_and_the_page_says_what_to_do(browser, tiles):
    browser.open(tiles.folder / "index.html")
    browser.wait(READY)
    assert browser.value(DRAWN) > 1000
    assert "http.server" in browser.value("document.getElementById('no-map').textContent")
