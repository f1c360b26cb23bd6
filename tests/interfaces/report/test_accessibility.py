"""The page for those who see little contrast, read by ear, or use no mouse: in light and in dark, with and without map.

What axe-core finds is asked where SCALEMANI_AXE names its axe.min.js; what matters most is checked here without it.
"""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from scalemani.io.figures.look import contrast
from tests.interfaces.report.conftest import write_tiled

LEVEL_AA, OF_LARGE_TEXT = 4.5, 3.0
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Every text with its colour, what is painted behind it, and whether it is large: 24 pixels, or 18.66 and bold.
TEXTS = """(() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number), found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility() || element.closest("script, style, :disabled")) continue;
    const style = getComputedStyle(element);
    let behind = element, paint = [0, 0, 0, 0];
    while (behind && (paint.length > 3 && paint[3] === 0)) {
      paint = parse(getComputedStyle(behind).backgroundColor);
      behind = behind.parentElement;
    }
    if (paint.length > 3 && paint[3] === 0) paint = parse(getComputedStyle(document.documentElement).backgroundColor);
    const ink = parse(element.closest("svg") ? style.fill : style.color), size = parseFloat(style.fontSize);
    found.push([text.slice(0, 40), ink.slice(0, 3), paint, size >= 24 || (size >= 18.66 && style.fontWeight >= 700)]);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def browser(open_browser):
    return open_browser()


@pytest.fixture(scope="module", params=["t-sne", "knn-graph", "tiles", "live map"])
def report(request, runs, classes, tmp_path_factory):
    """A page with a map, coloured by classes and by values of which some are missing; one without a map, and one with
    tiles below a sample of its points; and the page that a notebook shows in a frame."""
    values = np.where(np.arange(len(classes)) % 7, np.arange(len(classes)) / 100, np.nan)
    columns, path = {"side": classes, "value": values}, tmp_path_factory.mktemp("accessible") / "report.html"
    if request.param == "live map":
        path.write_text(runs["t-sne"].live_map(columns).document)
        return path
    if request.param == "tiles":
        return write_tiled(path, runs["t-sne"], columns, 50)
    return runs[request.param].report(path, columns, n_sampled=50)


@pytest.fixture(params=["light", "dark"])
def page(request, browser, report):
    """The page in light or in dark, at rest, all that folds open."""
    scheme = [{"name": "prefers-color-scheme", "value": request.param}]
    browser.send("Emulation.setEmulatedMedia", features=scheme)
    browser.open(report)
    if browser.value("!!document.getElementById('map')"):
        browser.wait("document.getElementById('map').dataset.ready === 'true'")
    browser.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    return browser


def test_all_text_has_the_contrast_of_level_aa(page):
    texts = page.value(TEXTS)
    assert len(texts) > 15
    poor = [
        (text, ink, paint)
        for text, ink, paint, large in texts
        if contrast(np.array(ink) / 255, np.array(paint[:3]) / 255) < (OF_LARGE_TEXT if large else LEVEL_AA)
    ]
    assert poor == []


def test_controls_and_pictures_have_names_and_regions_order(page):
    page.send("Accessibility.enable")
    nodes = [node for node in page.send("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
    roles = {"button", "checkbox", "combobox", "spinbutton", "slider", "application", "image", "link"}
    nameless = [
        node["role"]["value"]
        for node in nodes
        if node["role"]["value"] in roles and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    assert page.value("document.documentElement.lang") == "en"
    assert page.value("document.querySelectorAll('main').length") == 1
    headings = page.value("[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => Number(one.tagName[1]))")
    assert headings[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(headings))


def test_focus_goes_through_the_page_in_the_order_in_which_it_is_read(page):
    page.value("document.activeElement.blur(); window.met = []; 1")
    page.value("document.addEventListener('focusin', (event) => window.met.push(event.target)); 1")
    page.key("Tab")
    outline = "(({outlineStyle, outlineWidth}) => [outlineStyle, outlineWidth])(getComputedStyle(window.met[0]))"
    assert page.value(outline) == ["solid", "3px"]
    for _ in range(11):
        page.key("Tab")
    first = "theme" if page.value("!!document.getElementById('theme')") else "column"
    assert page.value("window.met[0].id") == first
    # From the last control focus goes back to the first one.
    assert page.value(
        "window.met.every((one, at) => !at || one === window.met[0] "
        "|| !!(window.met[at - 1].compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING))"
    )
    assert page.value('document.querySelectorAll(\'[tabindex]:not([tabindex="0"]):not([tabindex="-1"])\').length') == 0


def test_a_narrow_window_is_scrolled_down_and_never_sideways(page):
    page.send("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    page.wait("innerWidth === 400")
    width = page.value("document.documentElement.scrollWidth")
    page.send("Emulation.clearDeviceMetricsOverride")
    assert width <= 400


def test_axe_core_finds_nothing(page):
    script = os.environ.get("SCALEMANI_AXE")
    if not script:
        pytest.skip("SCALEMANI_AXE does not name the axe.min.js of axe-core")
    page.value(f"{Path(script).read_text()}; 1")
    options = json.dumps({"runOnly": STANDARDS, "resultTypes": ["violations"]})
    found = page.value(
        f"axe.run(document, {options}).then((found) => found.violations.map((one) => "
        "[one.id, one.help, one.nodes.map((node) => node.html + ' ' + node.failureSummary)]))"
    )
    assert found == []
