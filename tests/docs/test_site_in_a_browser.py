"""Every page of the built site in a browser: without barriers, on a phone too, and found by the search.

SCALEMANI_SITE names a site that `pipelines/docs/build.sh` has built, SCALEMANI_AXE the axe.min.js of axe-core.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
THEMES = {"light": {"runOnly": STANDARDS}, "dark": {"runOnly": ["color-contrast"]}}  # only colours differ in the dark
ALIKE = "built"  # pages that are made by programs: those of a folder have the same colours in the dark
PATIENCE = 600.0  # seconds: axe-core takes many over a page of a thousand rows on a loaded machine
MOST_TOLD = 200  # letters of an element
# What people search for, and the beginnings of addresses of which the first results have one.
SEARCHES = {
    "perplexity": ("guides/", "howto/", "faq", "built/gallery/", "built/reference/", "parameter_pictures"),
    "resume": ("guides/", "howto/", "faq", "five_minutes", "built/reference/", "promises", "scaling"),
    "install": ("install",),
    "landmarks": ("guides/", "howto/", "built/gallery/", "built/reference/"),
    "umap": ("coming_from", "faq", "which_method", "guides/", "howto/"),
}
RECORDS = ("changelog", "benchmarks", "contributing", "design", "limits", "reliability", "reproductions")
FIRST = 5  # results


class Looked(NamedTuple):
    """What a browser says of a page: how much wider it is than the phone, and what axe-core finds."""

    page: str
    beyond: int
    barriers: list[str]


def look_at(browser: Any, site: Path, page: Path, axe: str | None, themes: Iterable[str] = THEMES) -> Looked:
    """Return what a browser says of a page in some themes."""
    browser.open(page)
    beyond = browser.value("document.scrollingElement.scrollWidth - document.documentElement.clientWidth")
    barriers = []
    if axe:
        browser.value(f"{axe}; 1")
        for theme in themes:
            browser.value(f"document.documentElement.dataset.theme = {theme!r}")
            found = browser.value(
                f"axe.run(document, {json.dumps(THEMES[theme] | {'resultTypes': ['violations']})}).then((found) => "
                "found.violations.flatMap((one) => one.nodes.map((node) => [one.id, node.html])))"
            )
            barriers += [f"{theme}: {rule}: {element[:MOST_TOLD]}" for rule, element in found]
    return Looked(str(page.relative_to(site)), beyond, barriers)


@pytest.fixture(scope="module")
def browser(open_browser):
    browser = open_browser()
    browser.seconds = PATIENCE
    browser.send("Emulation.setDeviceMetricsOverride", **PHONE)
    return browser


@pytest.fixture(scope="module")
def axe():
    script = os.environ.get("SCALEMANI_AXE")
    return Path(script).read_text() if script else None


@pytest.fixture(scope="module")
def site():
    if "SCALEMANI_SITE" not in os.environ:
        pytest.skip("SCALEMANI_SITE does not name a site that pipelines/docs/build.sh has built")
    return Path(os.environ["SCALEMANI_SITE"])


@pytest.fixture(scope="module")
def pages(browser, site, axe):
    """What the browser says of all pages."""
    pages = sorted(page for page in site.rglob("*.html") if "_static" not in page.parts)
    assert len(pages) > 100
    of_folder = {page.parent: page for page in reversed(pages) if ALIKE in page.parts}
    return [
        look_at(browser, site, page, axe, THEMES if of_folder.get(page.parent, page) == page else ("light",))
        for page in pages
    ]


@pytest.mark.timeout(1800)
def test_no_page_is_scrolled_sideways_on_a_phone(pages):
    assert [(one.page, one.beyond) for one in pages if one.beyond > 0] == []


def test_axe_core_finds_nothing_on_any_page(pages, axe):
    if axe is None:
        pytest.skip("SCALEMANI_AXE does not name the axe.min.js of axe-core")
    assert {one.page: one.barriers for one in pages if one.barriers} == {}


@pytest.mark.parametrize("text", SEARCHES)
def test_the_search_leads_to_pages_for_readers(browser, site, text):
    browser.send("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q={text}")
    browser.wait("document.querySelectorAll('#search-results li a').length >= 3")
    links = browser.value("[...document.querySelectorAll('#search-results li a')].map((one) => one.pathname)")
    names = [link.partition(f"{site}/")[2] for link in links]
    assert all(name.startswith(SEARCHES[text]) for name in names[:1]), names[:FIRST]
    assert not [name for name in names[:FIRST] if Path(name).stem in RECORDS]


def test_what_is_looked_for_is_found(browser, axe, tmp_path):
    (tmp_path / "a.html").write_text('<html lang="en"><p style="width: 500px">wide</p>')
    (tmp_path / "b.html").write_text('<html lang="en"><title>B</title><main><h1>B</h1><img src="b.png"></main>')
    wide, nameless = (look_at(browser, tmp_path, tmp_path / name, axe) for name in ("a.html", "b.html"))
    assert wide.beyond > 100
    assert nameless.beyond == 0
    assert axe is None or [one.split(": ")[1] for one in nameless.barriers] == ["image-alt"]
