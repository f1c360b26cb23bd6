"""What notebooks show: a map that lives in a frame of its own, and a picture where no script runs."""

import base64
import io
import json
from html import unescape

import numpy as np
import pytest
from PIL import Image
from sklearn.pipeline import make_pipeline

import scalemani as sm
from scalemani.interfaces.report.opened import Shown
from scalemani.interfaces.report.page import MAPPED_POINTS, LiveMap

BLUE, ORANGE = (np.array(list(bytes.fromhex(colour))) for colour in ("50afff", "ff7d3c"))


@pytest.fixture(scope="module")
def model(roll):
    return sm.LandmarkPCA(n_landmarks=20).fit(np.asarray(roll[:500]))


def described(document: str) -> dict:
    return json.loads(document.split('id="map-data">')[1].split("</script>")[0])


def framed(shown: str) -> str:
    """Return the page that a frame holds."""
    return unescape(shown.split('srcdoc="')[1].split('"')[0])


def has_colour(image: np.ndarray, colour: np.ndarray) -> bool:
    return int((np.abs(image.astype(int) - colour).max(axis=2) < 30).sum()) > 20


def test_a_live_map_is_drawn_in_its_frame(open_browser, model, classes, tmp_path):
    shown = model.live_map({"side": classes[:500]})._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>notebook</title>{shown}")
    browser = open_browser()
    browser.open(tmp_path / "notebook.html")
    for _ in range(2000):
        image = screenshot(browser)
        if has_colour(image, BLUE) and has_colour(image, ORANGE):
            break
        browser.value("new Promise(done => setTimeout(done, 100))")
    assert has_colour(image, BLUE)
    assert has_colour(image, ORANGE)
    told = [event.get("params", {}) for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    assert [
        one["request"]["url"] for one in told if not one["request"]["url"].startswith(("file:", "data:", "about:"))
    ] == []
    assert [event for event in browser.events if event["method"] == "Runtime.exceptionThrown"] == []


def screenshot(browser) -> np.ndarray:
    shot = base64.b64decode(browser.send("Page.captureScreenshot", format="png")["data"])
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"))


def test_a_picture_stands_in_where_the_frame_has_no_webgl(open_browser, model, tmp_path):
    (tmp_path / "map.html").write_text(model.live_map().document)
    browser = open_browser("--disable-3d-apis")
    browser.open(tmp_path / "map.html")
    browser.wait("document.getElementById('no-map').textContent.includes('picture')")
    assert browser.value("document.querySelector('.picture').naturalWidth") >= 300


def test_a_notebook_draws_as_many_points_as_a_megabyte_holds():
    generator = np.random.default_rng(0)
    embedding = generator.normal(size=(70_000, 2))
    live = LiveMap(embedding, {"class": generator.integers(0, 10, 70_000)})
    assert len(live._repr_html_()) < 1_000_000
    found = described(live.document)
    assert (found["points"], found["of"], found["tiles"]) == (70_000, 70_000, None)


def test_of_many_points_a_notebook_has_a_sample_on_tiles_in_less_than_a_megabyte(open_browser, tmp_path):
    generator = np.random.default_rng(0)
    embedding = generator.normal(size=(100_000, 3))
    columns = {"class": (embedding[:, 0] > 0).astype(int), "value": generator.normal(size=100_000)}
    live = LiveMap(embedding, columns)
    assert len(live._repr_html_()) < 1_000_000
    found = described(framed(live._repr_html_()))
    assert (found["points"], found["of"], len(found["axes"])) == (MAPPED_POINTS, 100_000, 2)
    (tmp_path / "map.html").write_text(live.document)
    browser = open_browser()
    browser.open(tmp_path / "map.html")
    browser.wait("document.getElementById('in-sight').textContent")
    assert browser.value("document.getElementById('in-sight').textContent") == (
        "In view: 100,000 points counted, 10,000 drawn."
    )


def test_rows_of_a_live_map_are_those_that_were_given(roll):
    twice = np.concatenate([np.asarray(roll[:300]), np.asarray(roll[:40]) + 1000])
    model = sm.LaplacianEigenmaps(perplexity=5, n_neighbors=10, disconnected="largest").fit(twice)
    found = described(model.live_map(np.arange(340) < 9).document)
    assert found["points"] == np.isfinite(model.embedding_[:, 0]).sum() < 340
    assert 'id="array-rows"' in model.live_map().document
    assert found["columns"][0]["counts"] == [found["points"] - 9, 9]


def test_a_fitted_model_shows_its_map_below_the_diagram_of_scikit_learn(model):
    bundle = model._repr_mimebundle_()
    assert "sk-" in bundle["text/html"]
    assert described(framed(bundle["text/html"]))["points"] == 500
    assert Image.open(io.BytesIO(model._repr_png_())).size[0] >= 300
    unfitted = sm.LandmarkPCA()
    assert "<iframe" not in unfitted._repr_html_()
    assert unfitted._repr_png_() is None
    assert "<iframe" not in make_pipeline(model)._repr_html_()


def test_clusters_colour_the_map_of_a_model_and_of_a_run(runs):
    found = described(runs["spectral-clustering"].live_map().document)
    assert [column["name"] for column in found["columns"]] == ["clusters of the run"]


def test_a_run_shows_itself(runs):
    shown = runs["t-sne"]._repr_html_()
    assert "<strong>t-sne</strong> of 1,500 points of 3 features" in shown
    assert "layout, stopped max_iterations: falls short (converged, and not max_iterations)" in shown
    assert described(framed(shown))["of"] == 1500
    assert Image.open(io.BytesIO(runs["t-sne"]._repr_png_())).size[0] >= 300
    assert "<iframe" not in runs["knn-graph"]._repr_html_()
    assert runs["knn-graph"]._repr_png_() is None


@pytest.mark.parametrize(("n_points", "mapped"), [(1_000_000, True), (1_000_001, False), (None, False)])
def test_a_map_is_shown_of_up_to_a_million_points(n_points, mapped):
    class Run(Shown):
        _n_drawn = n_points

        def live_map(self, labels=()):
            return "a map"

    assert Run()._shown_map() == ("a map" if mapped else None)


def test_hostile_names_stay_text_in_a_frame(model):
    hostile = '"></iframe><script>alert(1)</script>'
    shown = model.live_map({hostile: np.arange(500) % 2})._repr_html_()
    assert shown.count("<script") == shown.count("</iframe") - 1 == 0
    assert described(framed(shown))["columns"][0]["name"] == hostile
