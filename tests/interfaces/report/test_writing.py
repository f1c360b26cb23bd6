"""The report of a run: one file, complete, without a word that could run or lead elsewhere."""

import json
import shlex
import shutil
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import scalemani as sm
from scalemani.config.params import Parameters, parse_assignments
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, ScalemaniWarning, StoreError
from scalemani.interfaces.functions.run_measures import measure_run
from scalemani.interfaces.report.certificates import judged_certificates, meanings_of
from scalemani.interfaces.report.opened import open_run
from scalemani.interfaces.report.page import commands, parameters_with_defaults
from scalemani.interfaces.report.reading import is_classes
from scalemani.io.figures import checked_look, drawn_embedding
from scalemani.io.sources import open_points
from scalemani.runs.opened import poor_points
from scalemani.runs.walk import run
from tests.every_stage import METHODS

CHARTS = {
    "spectral-clustering": {"Distances to neighbours", "Bandwidths", "Degrees", "Coverage by landmarks", "Clusters"},
    "knn-graph": {"Distances to neighbours"},
    "t-sne": {"Distances to neighbours", "Bandwidths", "Degrees", "Descent", "Distances against distances"},
    "pca": {"Spectrum", "Coverage by landmarks", "Distances against distances"},
}
VOID = {"meta", "rect", "circle", "polyline", "br", "input", "img", "link"}


class Page(HTMLParser):
    """What a page holds: elements with their attributes, and its text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.inside: list[str] = []
        self.feed(text)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.inside.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.words.append(data)


@pytest.fixture(scope="module")
def pages(runs, classes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        method: Page(found.report(folder / f"{method}.html", [classes], n_sampled=100).read_text())
        for method, found in runs.items()
    }


@pytest.mark.parametrize("method", METHODS)
def test_a_page_shows_every_stage_certificate_and_parameter(pages, runs, method):
    text = pages[method].text
    for stage, record in runs[method].records().items():
        assert f"{stage} {record['seconds']:.1f}" in text
        assert all(f"{stage} {name}" in text for name in record["certificates"])
    assert all(parameter.name in text for parameter in parameters_with_defaults(runs[method]))


@pytest.mark.parametrize("method", METHODS)
def test_every_certificate_has_a_meaning(runs, method):
    found = runs[method].certificates
    assert [(stage, name) for stage in found for name in found[stage] if name not in meanings_of(stage)] == []


@pytest.mark.parametrize("method", METHODS)
def test_a_page_is_whole_and_asks_for_nothing_outside_itself(pages, method):
    found = pages[method]
    assert found.inside == []
    named = [value for _, attributes in found.elements for name, value in attributes.items() if name in ("src", "href")]
    assert [value for value in named if not value.startswith(("data:", "#"))] == []
    policy = next(
        attributes["content"] for tag, attributes in found.elements if tag == "meta" and "http-equiv" in attributes
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy + "".join(map(str, named))
    assert "https:" not in policy + "".join(map(str, named))


@pytest.mark.parametrize("method", sorted(CHARTS))
def test_a_page_draws_what_its_method_has(pages, method):
    drawn = {attributes["aria-label"].split(":")[0] for tag, attributes in pages[method].elements if tag == "svg"}
    assert CHARTS[method] <= drawn


def test_quality_is_that_of_measure(pages, runs, classes):
    found = measure_run(runs["t-sne"], classes, n_sampled=100)
    of_labels = {"1-nn accuracy", "15-nn accuracy", "silhouette"}  # two classes have no triplet of centres
    assert len(found) == 10
    for name, measure in found.items():
        of_column = " of labels 1" if name in of_labels else ""
        assert (
            f"{name.replace('_', ' ')}{of_column} {measure.value:.4f} ± {measure.error:.4f} {measure.n_sampled:,}"
            in pages["t-sne"].text
        )


def test_each_column_of_classes_has_its_measures_and_the_page_its_title_note_date_and_columns(roll, tmp_path):
    frame = pd.DataFrame(np.asarray(roll[:400]), columns=["height", "width", "<depth>"])
    model = sm.LaplacianEigenmaps(perplexity=5, store=tmp_path / "run").fit(frame)
    labels = {"side": (frame["height"] > 0).to_numpy(), "third": np.arange(400) % 3, "far": np.arange(400) / 7}
    text = model.run_.report(tmp_path / "a.html", labels, title="A <title>", note="one line\nand another", n_sampled=50)
    page = Page(text.read_text())
    for name in ("side", "third"):
        expected = measure_run(model.run_, labels[name], n_sampled=50)["1-nn accuracy"]
        assert f"1-nn accuracy of {name} {expected.value:.4f} ±" in page.text
    assert "accuracy of far" not in page.text
    assert "height, width, <depth>" in page.text
    assert "one line and another" in page.text
    assert page.text.count("A <title>") == 2
    assert f"Written {datetime.now(UTC):%d %B %Y}" in page.text


def test_values_that_auto_chose_are_told_from_those_that_were_requested(roll, tmp_path):
    for name, settings in (("chosen", {}), ("requested", {"neighbors.method": "partition"})):
        model = sm.LaplacianEigenmaps(perplexity=5, store=tmp_path / name, settings=settings)
        run = model.fit(np.asarray(roll[:400])).run_
        method = next(one for one in parameters_with_defaults(run) if one.name == "neighbors.method")
        assert (method.changed, method.chosen) == (name == "requested", False) or method.chosen == (name == "chosen")
        assert not (method.changed and method.chosen)
        solver = next(one for one in parameters_with_defaults(run) if one.name == "embedding.solver")
        assert (solver.changed, solver.chosen) == (False, True)
        page = Page(run.report(tmp_path / "a.html", n_sampled=0).read_text())
        assert f"embedding.solver {solver.value} (chosen by auto)" in page.text


def test_a_graph_alone_is_measured_by_its_recall(pages, runs):
    measure = measure_run(runs["knn-graph"], n_sampled=100)["recall"]
    assert f"recall {measure.value:.4f} ±" in pages["knn-graph"].text
    assert "trustworthiness" not in pages["knn-graph"].text


@pytest.mark.parametrize("method", METHODS)
def test_the_command_of_a_page_has_the_parameters_of_its_run(runs, method):
    words = shlex.split(commands(runs[method])[0])
    assert words[:6] == ["scalemani", "embed", "POINTS", "RUN", "--method", method]
    values = parse_assignments(words[i + 1] for i, word in enumerate(words) if word == "--set")
    again = Parameters().with_values(values).resolved(method, runs[method].dimensions.n_points)
    assert [again.of_stage(stage) for stage in runs[method].keys] == [
        runs[method].params.of_stage(stage) for stage in runs[method].keys
    ]


def test_the_same_run_gives_the_same_page(runs, classes, tmp_path):
    one = runs["t-sne"].report(tmp_path / "one.html", [classes], n_sampled=100).read_bytes()
    assert one == runs["t-sne"].report(tmp_path / "other.html", [classes], n_sampled=100).read_bytes()


def test_a_descent_that_was_cut_short_falls_short(runs, pages):
    judged = {(one.stage, one.name): one.judged.verdict for one in judged_certificates(runs["t-sne"])}
    assert judged["layout", "stopped"] == "short"
    assert judged["neighbors", "recall"] == "good"
    assert judged["affinities", "largest_entropy_residual"] == "good"
    assert "short of the requested target" in pages["t-sne"].text


@pytest.mark.parametrize(
    ("stage", "name", "poor", "verdict"),
    [
        ("neighbors", "recall", 0.9, "short"),
        ("affinities", "largest_entropy_residual", 1e-5, "short"),
        ("affinities", "saturated_points", 3, "look"),
        ("components", "components", 2, "look"),
        ("embedding", "residual", 0.5, "short"),
        ("embedding", "eigengap", -1e-9, "look"),
        ("landmark_weights", "mean_reconstruction_error", 1.5, "look"),
        ("landmark_embedding", "near_zero_eigenvalues", 3, "look"),
        ("clustering", "settled", False, "short"),
    ],
)
def test_what_is_poor_is_told_from_what_is_good(runs, stage, name, poor, verdict):
    found = runs["spectral-clustering"]
    scale = meanings_of(stage)[name].scale
    assert scale(poor, {"method": "partition"}, found).verdict == verdict
    good = found.certificates[stage][name]
    assert scale(good, found.certificates[stage], found).verdict in ("good", "says")


def test_forces_of_single_points_may_err_by_ten_tolerances(runs):
    scale = meanings_of("layout")["worst_decile_force_error"].scale
    tolerance = runs["t-sne"].params.layout.tolerance
    assert scale(9.9 * tolerance, {}, runs["t-sne"]).verdict == "good"
    judged = scale(10.1 * tolerance, {}, runs["t-sne"])
    assert (judged.verdict, judged.scale) == ("short", "at most 0.01, 10 times what layout.tolerance asks for")


def test_a_run_that_is_not_finished_has_a_page_too(roll, tmp_path):
    source = open_points(np.asarray(roll[:300]))
    run(source, tmp_path / "run", "laplacian-eigenmaps", Parameters(), Executor(), only="points")
    page = Page(open_run(tmp_path / "run").report().read_text())
    assert "Not finished: partition," in page.text
    assert "nothing was measured" in page.text


def test_hostile_texts_are_shown_and_not_run(runs, tmp_path):
    hostile = "<img src=x onerror=alert(1)>&\"'"
    root = runs["knn-graph"].store.root
    plain = Page(runs["knn-graph"].report(tmp_path / "plain.html", n_sampled=0).read_text())
    shutil.copytree(root, tmp_path / hostile)
    shown = Page(open_run(tmp_path / hostile).report(tmp_path / "hostile.html", n_sampled=0).read_text())
    assert [tag for tag, _ in shown.elements] == [tag for tag, _ in plain.elements]
    assert hostile in shown.text


def test_an_estimator_reports_the_run_in_its_store(roll, tmp_path):
    model = sm.LaplacianEigenmaps(perplexity=5, store=tmp_path / "run")
    model.fit(np.asarray(roll[:400]))
    assert model.report() == tmp_path / "run" / "report.html"
    assert "laplacian-eigenmaps of 400 points" in (tmp_path / "run" / "report.html").read_text()
    with pytest.raises(AttributeError, match="store=FOLDER"):
        sm.LaplacianEigenmaps(perplexity=5).fit(np.asarray(roll[:400])).report()


def test_reports_that_cannot_be_written_are_refused(runs, tmp_path, scalemani):
    with pytest.raises(ConfigError, match=r"\.html"):
        runs["knn-graph"].report(tmp_path / "report.pdf")
    with pytest.raises(DataError, match="labels for 1500 points"):
        runs["knn-graph"].report(tmp_path / "report.html", [np.zeros(3)])
    status, _, error = scalemani(
        "report", runs["knn-graph"].store.root, tmp_path / "none" / "report.html", "--sampled", 0
    )
    assert (status, "none" in error) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_all_columns_of_a_table_colour_the_map(runs, classes, tmp_path):
    rows = [f"{side},{number / 10}" for number, side in enumerate(classes)]
    (tmp_path / "table.csv").write_text("\n".join(["side,place", *rows, ""]))
    text = runs["pca"].report(tmp_path / "a.html", [tmp_path / "table.csv", classes], n_sampled=0).read_text()
    described = json.loads(text.split('id="map-data">')[1].split("</script>")[0])
    assert [column["name"] for column in described["columns"]] == ["side", "place", "labels 2"]
    assert is_classes(classes)
    assert is_classes(classes.astype(str))
    assert is_classes(np.where(classes == 1, "one", ""))
    for others in (np.arange(1500), np.arange(3) / 2, np.full(9, np.nan), np.array(["", "", "a"])):
        assert not is_classes(others)
    assert described["columns"][0]["counts"] == described["columns"][2]["counts"] == np.bincount(classes).tolist()


def test_the_command_writes_into_the_run(runs, scalemani):
    root = runs["knn-graph"].store.root
    status, output, _ = scalemani("report", root, "--sampled", 50)
    assert (status, output.strip()) == (0, f"{root}/report.html")
    assert "knn-graph of 1,500 points" in (root / "report.html").read_text()
    (root / "report.html").unlink()


def test_points_with_poor_certificates_are_those_of_the_store(runs, tmp_path):
    run, again = runs["t-sne"], open_run(runs["t-sne"].store.root)
    stored = run.certificates["affinities"]["saturated_points"]
    assert poor_points(run).shape == (1500,)
    assert np.count_nonzero(poor_points(again)) == stored == 0
    twins = np.asarray(open_points(np.repeat(np.random.default_rng(0).normal(size=(40, 3)), 10, axis=0)).read(0, 400))
    points = np.concatenate([twins, np.random.default_rng(1).normal(size=(300, 3)) + 9])
    model = sm.TSNE(perplexity=5, n_neighbors=9, max_iter=2, store=tmp_path / "run")
    with pytest.warns(ScalemaniWarning):
        model.fit(points)
    np.testing.assert_array_equal(poor_points(model.run_), np.arange(700) < 400)
    assert model.plot(poor=True, size=300, path=tmp_path / "a.pdf") == tmp_path / "a.pdf"
    with pytest.raises(StoreError, match="no certificate of each point"):
        poor_points(runs["pca"])


def test_models_and_runs_are_drawn_alike(runs, classes, roll):
    model = sm.LandmarkPCA(n_landmarks=20).fit(np.asarray(roll[:500]))
    picture = np.asarray(model.plot(classes[:500], size=300, title="roll"))
    assert picture.shape[2] == 3
    blue, orange = (np.array(list(bytes.fromhex(colour))) for colour in ("50afff", "ff7d3c"))
    assert all((np.abs(picture.astype(int) - colour).max(axis=2) < 12).any() for colour in (blue, orange))
    embedding = np.asarray(runs["pca"].embedding[...])
    np.testing.assert_array_equal(
        runs["pca"].plot(classes, 300), drawn_embedding(embedding, classes, checked_look(300))[0]
    )


def test_theme_and_point_size_reach_the_pictures_of_models_runs_and_the_command_line(runs, tmp_path, roll, scalemani):
    look = checked_look(300, theme="dark", point_size=2.0)
    model = sm.LandmarkPCA(n_landmarks=20).fit(np.asarray(roll[:500]))
    expected = drawn_embedding(model.embedding_, look=look)[0]
    np.testing.assert_array_equal(model.plot(size=300, theme="dark", point_size=2.0), expected)
    expected = drawn_embedding(np.asarray(runs["pca"].embedding[...]), look=look)[0]
    np.testing.assert_array_equal(runs["pca"].plot(size=300, theme="dark", point_size=2.0), expected)
    asked = ("--size", 300, "--theme", "dark", "--point-size", 2)
    assert scalemani("plot", runs["pca"].store.root, tmp_path / "dark.png", *asked)[0] == 0
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "dark.png").convert("RGB")), expected)
