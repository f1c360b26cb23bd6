"""How quickly the page of a report answers: a search for text, what a lasso tells of a selection, and drags of the map.

    python pipelines/benchmarks/report_answers.py FOLDER [--times 5]

FOLDER gets two runs of synthetic points by landmark PCA, and their reports: 172,791 points with 26 columns, and 20,000
with a text each and five columns. Headless Chromium draws on the processor. A search counts from the key Enter, a lasso
from where the button is let go, until what the page tells is painted, and until the map is drawn again. Each is done
several times, with other texts and at other places. Processor time is that of all threads of the page and of the
process that draws.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from browser import BOX, Browser
from measuring import show
from reports import at_rest, frames_a_second, seconds_to_open

import scalemani as sm

CELLS, TEXTS = 172_791, 20_000
CLASSES = (2, 3, 5, 8, 12, 20, 40, 80, 150, 300)  # of the columns that have some
N_VALUES = 16  # columns of values
VOCABULARY, WORDS = 3000, 14  # different words, and words a text
CORNERS = 60  # of a lasso
PARTS = {"--type=renderer", "--type=gpu-process"}  # processes of Chromium
STATUS = "document.getElementById('status').textContent"
DRAWN = "document.getElementById('points').dataset.drawn"
# Milliseconds from an event of a kind until what the page tells is painted, and until the map is drawn again.
ANSWER = """(() => {
  const gl = document.getElementById('points').getContext('webgl2'), pixel = new Uint8Array(4);
  let began = NaN, painted, drawn;
  window.painted = new Promise((done) => { painted = done; });
  window.drawn = new Promise((done) => { drawn = done; });
  addEventListener('%s', (event) => { began = event.timeStamp; }, { capture: true, once: true });
  new MutationObserver((_, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => {
      painted(performance.now() - began);
      requestAnimationFrame(() => {
        gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
        drawn(performance.now() - began);
      });
    }));
  }).observe(document.getElementById('status'), { childList: true });
})()"""


def points_and_classes(generator: np.random.Generator, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters of unlike sizes in 20 dimensions, (N, 20), and the cluster of each point (N,)."""
    n_clusters = max(CLASSES)
    cluster = np.minimum(generator.geometric(1 / 60, n_points) - 1, n_clusters - 1)
    centres = generator.normal(size=(n_clusters, 20)) * np.linspace(6, 1, 20)
    return centres[cluster] + generator.normal(size=(n_points, 20)), cluster


def columns_of(generator: np.random.Generator, points: np.ndarray, cluster: np.ndarray, n_classes: Any) -> dict:
    """Return columns of classes, which follow the clusters with some exceptions, and of values, with some gaps."""
    columns: dict[str, np.ndarray] = {}
    for number in n_classes:
        codes = np.where(generator.random(len(cluster)) < 0.1, generator.integers(0, number, len(cluster)), cluster)
        columns[f"kind of {number}"] = np.array([f"type {code} of {number}" for code in range(number)])[codes % number]
    for number in range(N_VALUES if len(n_classes) == len(CLASSES) else 2):
        values = points[:, number] + generator.normal(size=len(points))
        columns[f"value {number}"] = np.where(generator.random(len(points)) < 0.02, np.nan, values)
    return columns


def texts_of(generator: np.random.Generator, n_texts: int) -> np.ndarray:
    """Return texts of words, of which some are frequent."""
    letters = generator.integers(ord("a"), ord("z") + 1, (VOCABULARY, 7)).astype(np.uint8)
    words = [bytes(word).decode() for word in letters]
    numbers = np.minimum(generator.zipf(1.3, (n_texts, WORDS)) - 1, VOCABULARY - 1)
    return np.array([f"{place}: {' '.join(words[number] for number in row)}" for place, row in enumerate(numbers)])


def written(folder: Path, name: str) -> tuple[Path, list[str]]:
    """Return the report of synthetic points, made unless it is there, and what is searched for in it."""
    generator = np.random.default_rng(0)
    with_texts = name == "texts"
    points, cluster = points_and_classes(generator, TEXTS if with_texts else CELLS)
    columns = columns_of(generator, points, cluster, CLASSES[:3] if with_texts else CLASSES)
    wanted = [f"type {number} of {max(CLASSES)}" for number in range(20)]
    if with_texts:
        columns["text"] = texts_of(generator, TEXTS)
        wanted = [columns["text"][row].split()[-1] for row in range(20)]
    report = folder / f"{name}.html"
    if not report.exists():
        model = sm.LandmarkPCA(n_components=2, n_landmarks=500, store=str(folder / name)).fit(points)
        model.run_.report(report, columns, n_sampled=0)
    return report, wanted


def processor_seconds(page: Browser) -> float:
    """Return the processor seconds of all threads of the page, and of the process that draws."""
    seconds = 0.0
    for process in psutil.Process(page.process.pid).children(recursive=True):
        if PARTS & set(process.cmdline()):
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                seconds += int((task / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def answer(page: Browser, kind: str, act: Callable[[], None]) -> tuple[float, float, float]:
    """Return milliseconds until the page has told what it found, of the processor, and until the map is drawn again."""
    at_rest(page)
    page.value(ANSWER % kind)
    before = processor_seconds(page)
    act()
    painted = page.value("window.painted")
    return painted, 1e3 * (processor_seconds(page) - before), page.value("window.drawn")


def searches(page: Browser, wanted: list[str], times: int) -> dict[str, Any]:
    """Return milliseconds of the first search, which makes an index, and the medians of others."""
    taken, n_found = [], []
    for text in wanted[: times + 1]:
        page.value(f"document.getElementById('words').value = {text!r}")
        page.value("document.getElementById('words').focus({preventScroll: true})")
        taken.append(answer(page, "keydown", lambda: page.key("Enter")))
        n_found.append(int(page.value(STATUS).split()[0].replace(",", "").replace("no", "0")))
    walls, processor, _ = zip(*taken[1:], strict=True)
    row = {"first search ms": taken[0][0], "processor ms of it": taken[0][1]}
    return row | {"search ms": median(walls), "processor ms": median(processor), "found": median(n_found)}


def selections(page: Browser, times: int) -> dict[str, Any]:
    """Return medians of milliseconds from the end of a lasso until its tables are painted, and the map is drawn."""
    page.value("document.getElementById('map').scrollIntoView()")
    left, top, width, height = page.value(BOX)
    angles, taken, sizes = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False), [], []
    for turn in range(times):
        middle = left + width * (0.42 + 0.03 * turn), top + height / 2
        around = np.column_stack([np.cos(angles), np.sin(angles)]) * min(width, height) * (0.2 + 0.02 * turn) + middle
        first, *others = around.tolist()
        page.mouse("Pressed", *first, shift=True)
        for corner in [*others, first]:
            page.mouse("Moved", *corner, shift=True)
        taken.append(answer(page, "pointerup", lambda first=first: page.mouse("Released", *first, shift=True)))
        sizes.append(int(page.value(STATUS).split()[0].replace(",", "")))
    tables = page.value("document.querySelectorAll('#selection table').length")
    page.value("document.getElementById('clear').click()")
    painted, processor, drawn = (median(values) for values in zip(*taken, strict=True))
    row = {"tables of a selection ms": painted, "processor ms of them": processor, "map of it ms": drawn}
    return row | {"selected": median(sizes), "tables": tables}


def drags(page: Browser, times: int) -> dict[str, Any]:
    """Return medians of frames a second and of processor milliseconds a frame while the map is dragged in circles."""
    left, top, width, height = page.value(BOX)
    middle, rates, costs = (left + width / 2, top + height / 2), [], []

    def drag(step: int) -> None:
        page.mouse("Moved", middle[0] + 80 * np.sin(step / 9), middle[1] + 60 * np.cos(step / 9))

    for _ in range(times):
        at_rest(page)
        page.mouse("Moved", *middle)
        page.mouse("Pressed", *middle)
        before, began = processor_seconds(page), time.monotonic()
        rate = frames_a_second(page, drag)
        costs.append(1e3 * (processor_seconds(page) - before) / (rate * (time.monotonic() - began)))
        drawn = int(page.value(DRAWN))
        page.mouse("Released", *middle)
        rates.append(rate)
    return {"frames/s": median(rates), "processor ms a frame": median(costs), "drawn in motion": drawn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in ("columns", "texts"):
        report, wanted = written(arguments.folder, name)
        row: dict[str, Any] = {"report": name, "MB": report.stat().st_size / 1e6}
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Chromium may still be writing
            page = Browser(Path(folder) / "chromium")
            try:
                row |= seconds_to_open(page, report.resolve())
                row |= searches(page, wanted, arguments.times)
                row |= selections(page, arguments.times)
                row |= drags(page, arguments.times)
                row |= {"errors": len(page.complaints())}
            finally:
                page.close()
        show([row | {"load": os.getloadavg()[0]}])


if __name__ == "__main__":
    main()
