"""What one works with in the report: text search, neighbours of a point, what a selection is made of, its rows."""

import csv
import time

import numpy as np
import pytest
from scipy.spatial import cKDTree

from scalemani.interfaces.report.map_data import map_of, with_doubtful, with_neighbors
from scalemani.interfaces.report.page import MAP_SCRIPTS, rendered
from scalemani.io.sources import open_points

WORDS = ("apple", "banana", "cherry <b>", 'date, "dry"')
N_POINTS = 1500
GENERATOR = np.random.default_rng(5)
CLASSES = GENERATOR.integers(0, 2, N_POINTS)
EMBEDDING = GENERATOR.normal(size=(N_POINTS, 2)) + 4 * CLASSES[:, None]
DOUBTFUL = GENERATOR.random(N_POINTS) < 0.03
NEIGHBORS = cKDTree(GENERATOR.normal(size=(N_POINTS, 5))).query(GENERATOR.normal(size=(N_POINTS, 5)), 9)[1]


@pytest.fixture(scope="module")
def classes():
    return CLASSES


@pytest.fixture(scope="module")
def columns():
    """A column of classes, values that differ by class, noise, and names of all points."""
    names = np.array([f"{WORDS[number % 4]} {number}" for number in range(N_POINTS)])
    names[-1] = "\0banana 1"  # which parts texts where all are searched as one
    others = {f"noise {number}": GENERATOR.normal(size=N_POINTS) for number in range(7)}
    level = CLASSES + others["noise 0"] / 9
    return {"side": np.where(CLASSES == 1, "right", "left"), **others, "level": level, "name": names}


@pytest.fixture(scope="module")
def browser(open_browser):
    return open_browser()


@pytest.fixture
def page(browser, columns, tmp_path):
    """A page of nothing but a map, opened anew."""
    found = with_doubtful(map_of(open_points(EMBEDDING), columns, np.arange(N_POINTS)), DOUBTFUL)
    found = with_neighbors(found, NEIGHBORS)
    (tmp_path / "map.html").write_text(rendered("live.html", MAP_SCRIPTS, map=found))
    browser.open(tmp_path / "map.html")
    browser.wait("document.getElementById('map').dataset.ready === 'true'")
    browser.wait("document.getElementById('points').dataset.view")
    browser.value("document.getElementById('map').scrollIntoView()")
    return browser


INKED = (
    "(() => { const c = document.getElementById('overlay'); const d = c.getContext('2d')"
    ".getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; "
    "return n; })()"
)
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def status(page) -> str:
    return page.value("document.getElementById('status').textContent")


def tables(page) -> list[list[list[str]]]:
    return page.value(
        "[...document.querySelectorAll('#selection table')].map((table) => [...table.rows].map((row) => "
        "[...row.cells].map((cell) => cell.textContent)))"
    )


def find(page, text: str) -> None:
    page.value(f"document.getElementById('words').value = {text!r}; document.querySelector('#find button').click()")


def test_texts_and_names_of_classes_are_searched_for(page, columns, classes):
    names = columns["name"]
    find(page, "BANANA 1")
    holding = np.flatnonzero(np.char.find(names, "banana 1") >= 0)
    assert status(page) == f"{len(holding)} points hold this text"
    for row in holding[:2]:
        page.value("document.getElementById('next').click()")
        assert status(page).startswith(f"row {row}, name: {names[row]}")
    page.value("document.getElementById('choose-found').click()")
    np.testing.assert_array_equal(page.downloaded(), holding)
    find(page, "right")
    assert status(page) == f"{np.count_nonzero(classes == 1)} points hold this text"
    find(page, "no such")
    assert status(page) == "no points hold this text"
    assert page.value("document.getElementById('next').disabled")


def test_what_is_found_is_ringed(page, columns):
    assert page.value(INKED) == 0
    page.value(FRAMES)
    page.value("document.getElementById('points').dataset.drawn = 'before'")
    find(page, "cherry")
    page.value(FRAMES)
    assert page.value(INKED) > 1000
    assert page.value("document.getElementById('points').dataset.drawn") == "before"  # rings alone are drawn


def test_points_that_could_lie_elsewhere_are_ringed_where_they_are_shown(page, classes):
    def told() -> str:
        page.value(FRAMES)
        return page.value("document.getElementById('ringed').textContent")

    assert (told(), page.value(INKED)) == ("", 0)
    page.value("document.getElementById('rings').click()")
    assert told() == f"({np.count_nonzero(DOUBTFUL)} in view)"
    all_inked = page.value(INKED)
    assert all_inked > 100
    page.value("document.querySelector('#legend input').click()")  # hides the first class
    assert told() == f"({np.count_nonzero(DOUBTFUL & (classes == 1))} in view)"
    assert 0 < page.value(INKED) < all_inked
    page.value("document.getElementById('rings').click()")
    assert (told(), page.value(INKED)) == ("", 0)


def test_a_click_lists_the_neighbors_of_a_point_in_the_data(page, columns):
    places = page.pixels(EMBEDDING)
    away = np.linalg.norm(places[:, None] - places[None], axis=2) + 1e9 * np.eye(len(places))
    row = int(away.min(axis=1).argmax())  # the point that is most alone
    page.mouse("Moved", *places[row])
    page.mouse("Pressed", *places[row])
    page.mouse("Released", *places[row])
    told = page.value("[...document.querySelectorAll('#neighbors button')].map((one) => one.textContent)")
    nearest = NEIGHBORS[row][:6]
    assert told == [f"row {other} ({columns['name'][other]})" for other in nearest]
    page.value("document.querySelector('#neighbors button').click()")
    assert status(page).startswith(f"row {nearest[0]}, ")
    page.key("Escape")
    assert page.value("document.getElementById('neighbors').hidden")


def test_a_selection_tells_its_classes_and_the_columns_that_differ_most(page, columns, classes):
    find(page, "right")
    page.value("document.getElementById('choose-found').click()")
    by_class, differing = tables(page)
    count = int((classes == 1).sum())
    assert by_class[1:] == [["right", str(count), "100.0 %", "0.0 %"]]
    assert [row[0] for row in differing[1:3]] == ["side", "level"]
    assert [float(row[1]) for row in differing[1:3]] == pytest.approx([1, 1], abs=0.02)
    noise = next(float(row[1]) for row in differing[1:] if row[0] == "noise 3")
    values = np.sort(columns["noise 3"])
    ends = [np.searchsorted(np.sort(columns["noise 3"][classes == kind]), values) for kind in (0, 1)]
    expected = np.abs(ends[0] / ends[0].max() - ends[1] / ends[1].max()).max()
    assert noise == pytest.approx(expected, abs=0.03)
    page.value("document.getElementById('clear').click()")
    assert page.value("document.getElementById('selection').hidden")


def test_what_is_told_of_a_selection_is_there_before_the_map_is_drawn_again(page):
    find(page, "right")
    told, drawn = page.value(
        "document.getElementById('points').dataset.drawn = 'before'; document.getElementById('choose-found').click();"
        "new Promise(done => requestAnimationFrame(() => done([document.querySelectorAll('#selection table').length, "
        "document.getElementById('points').dataset.drawn])))"
    )
    assert (told, drawn) == (2, "before")
    page.wait(f"document.getElementById('points').dataset.drawn === '{N_POINTS}'")


def test_selected_rows_are_saved_with_their_labels(page, columns):
    find(page, 'date, "dry" 1')
    page.value("document.getElementById('choose-found').click()")
    file = page.folder / "rows.csv"
    file.unlink(missing_ok=True)
    page.value("document.getElementById('save').click()")
    end = time.monotonic() + 60
    while not (file.exists() and file.stat().st_size):
        assert time.monotonic() < end
        page.value("new Promise(done => setTimeout(done, 20))")
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    numbers = [int(row["row"]) for row in rows]
    assert [row["name"] for row in rows] == columns["name"][numbers].tolist()
    assert [row["side"] for row in rows] == columns["side"][numbers].tolist()
    embedding = EMBEDDING[numbers]
    found = np.array([[float(row["component 1"]), float(row["component 2"])] for row in rows])
    np.testing.assert_allclose(found, embedding, atol=1e-3 * np.ptp(embedding))


def test_a_tooltip_has_few_columns_until_others_are_chosen(page):
    place = page.pixels(EMBEDDING)[7]
    page.mouse("Moved", *place)
    lines = page.value("document.getElementById('tip').textContent").splitlines()
    assert len(lines) == 2 + 6 + 2  # row and name, six of nine columns, the place
    page.value("document.querySelector('#told').open = true; document.querySelectorAll('#told input')[8].click()")
    page.mouse("Moved", place[0] + 300, place[1] + 200)
    page.mouse("Moved", *place)
    assert any(
        line.startswith("level: ") for line in page.value("document.getElementById('tip').textContent").splitlines()
    )


def test_names_of_points_are_drawn_and_nothing_complains(page):
    page.value("document.getElementById('names').click()")
    for _ in range(6):
        page.value("document.getElementById('closer').click()")
    page.value("new Promise(done => setTimeout(done, 400))")
    assert page.value(INKED)
    assert page.complaints() == []
