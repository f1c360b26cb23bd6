"""The check of a built site finds what it is for."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "pipelines" / "docs" / "check_site.py"


@pytest.fixture(scope="module")
def check_site():
    spec = importlib.util.spec_from_file_location("check_site", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TITLE = "<title>A - scalemani 1.2</title>"
GOOD = '<h1 id="top">A</h1><a href="b.html#place">b</a><a href="https://example.org">elsewhere</a><img src="a.png">'


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (GOOD, None),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js"),
        ('<link href="//example.org/a.css">', "loads //example.org/a.css"),
        ('<p style="background: url(https://example.org/a.png)">', "loads https://example.org/a.png"),
        ('<a href="c.html">c</a>', "links to c.html"),
        ('<a href="b.html#nowhere">b</a>', "links to b.html#nowhere"),
        ('<a href="#nowhere">here</a>', "links to #nowhere"),
        ('<img src="c.png">', "shows c.png, which is not there"),
        ("<title>A - scalemani</title>", "without 1.2"),
    ],
)
def test_what_is_loaded_from_elsewhere_and_what_leads_nowhere_is_found(check_site, tmp_path, page, told):
    (tmp_path / "a.html").write_text(page if "<title>" in page else TITLE + page)
    (tmp_path / "b.html").write_text(TITLE + '<p id="place">')
    (tmp_path / "a.png").touch()
    (tmp_path / "style.css").write_text("body { background: url(a.png) }")
    found = check_site.findings(tmp_path, "1.2")
    assert len(found) == (told is not None)
    assert told is None or told in found[0]


def test_pictures_that_are_not_drawn_are_not_looked_for(check_site, tmp_path):
    (tmp_path / "a.html").write_text(TITLE + '<img src="built/pages/a/map.png"><img src="_images/sphx_glr_a_001.png">')
    assert len(check_site.findings(tmp_path, "1.2")) == 2
    assert check_site.findings(tmp_path, "1.2", drawn=False) == []
