"""Reports of finished runs: seconds and memory to write one, and what a browser makes of it that has no graphics card.

    python pipelines/benchmarks/reports.py RUN [--labels FILE ...] [--out REPORT.html] [--picture PAGE.png]

The page is opened from its file in headless Chromium, without a network: seconds until something is painted and until
all points are drawn, frames a second while the mouse drags the map and while its wheel zooms (each waits until it is
drawn), requests that leave, errors told. Rows that hovering names and a lasso saves are compared with a k-d tree and
with a triangle, up to the part of a pixel by which pages know the height of what they draw on.
"""

import argparse
import base64
import itertools
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from browser import LOCAL, Browser
from measuring import scalemani, show
from scipy.spatial import cKDTree

from scalemani.runs.opened import open_run

SECONDS = 4.0  # of motion
PART = 0.5  # of a pixel: heights of elements are told in whole ones
HOVERED = 200
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# What is drawn is known to be there when a pixel of it can be read.
FRAMES = """(() => {
  const gl = document.getElementById('points').getContext('webgl2'), pixel = new Uint8Array(4);
  window.frames_seen = [performance.now()];
  const next = () => {
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    window.frames_seen.push(performance.now());
    window.next_frame = requestAnimationFrame(next);
  };
  next();
})()"""


def seconds_to_open(page: Browser, report: Path) -> dict[str, float]:
    """Return when the page was painted first and when the whole map was drawn, in seconds after it was asked for."""
    page.open(report)
    page.wait("document.getElementById('map').dataset.ready === 'true'")
    page.wait("document.getElementById('points').dataset.view")
    drawn = page.value(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
    )
    return {"first paint s": page.value(PAINTED) / 1e3, "map drawn s": drawn / 1e3}


def frames_a_second(page: Browser, move: Callable[[int], None]) -> float:
    """Return frames a second while something moves the map again and again."""
    page.value(FRAMES)
    end = time.monotonic() + SECONDS
    for step in itertools.count():
        if time.monotonic() > end:
            break
        move(step)
    times = page.value("cancelAnimationFrame(window.next_frame), window.frames_seen")
    return (len(times) - 1) / (times[-1] - times[0]) * 1e3


def motion(page: Browser) -> dict[str, float]:
    """Return frames a second of a map that is dragged in circles, and of one that is zoomed in and out."""
    page.value("document.getElementById('map').scrollIntoView()")
    x, y, width, height = page.value(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('points').getBoundingClientRect())"
    )
    middle = x + width / 2, y + height / 2

    def drag(step: int) -> None:
        page.mouse("Moved", middle[0] + 80 * np.sin(step / 9), middle[1] + 60 * np.cos(step / 9))

    def zoom(step: int) -> None:
        delta = -40 if step // 50 % 2 == 0 else 40
        page.send("Input.dispatchMouseEvent", type="mouseWheel", x=middle[0], y=middle[1], deltaX=0, deltaY=delta)

    at_rest(page)
    page.mouse("Moved", *middle)
    page.mouse("Pressed", *middle)
    dragged = frames_a_second(page, drag)
    page.mouse("Released", *middle)
    at_rest(page)
    zoomed = frames_a_second(page, zoom)
    page.value("document.getElementById('whole').click()")
    return {"frames/s dragged": dragged, "frames/s zoomed": zoomed}


def at_rest(page: Browser) -> None:
    """Wait until nothing moves."""
    page.value("new Promise(done => setTimeout(done, 1000))")


def hovers_right(page: Browser, shown: np.ndarray, rows: np.ndarray) -> str:
    """Return how many hovers at points that are drawn name the nearest one: points (M, 2) and their rows (M,)."""
    at_rest(page)
    places = page.pixels(shown)
    tree, right = cKDTree(places), 0
    tried = np.random.default_rng(0).choice(len(rows), HOVERED)
    for place in places[tried]:
        page.mouse("Moved", *place)
        named = int(page.value("document.getElementById('tip').textContent").splitlines()[0].removeprefix("row "))
        found = places[np.searchsorted(rows, named)]
        right += bool(np.linalg.norm(found - place) <= tree.query(place)[0] + PART)
    return f"{right} of {HOVERED}"


def limits_of(page: Browser) -> np.ndarray:
    """Return two opposite corners (2, 2) of the map, in the units of the embedding."""
    axes = json.loads(page.value("document.getElementById('map-data').textContent"))["axes"]
    return np.array([[axis[end] for axis in axes[:2]] for end in ("low", "high")])


def lasso_right(page: Browser, shown: np.ndarray, rows: np.ndarray) -> str:
    """Return whether a lasso saves the rows (M,) of the points (M, 2) within a triangle, of those that are drawn."""
    at_rest(page)
    places = page.pixels(shown)
    corners = places.mean(axis=0) + 0.8 * places.std(axis=0) * [[-1.3, -1.0], [1.1, -0.2], [-0.4, 1.2]]
    page.lasso(corners.tolist())
    sides = []
    for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (other - one) / np.linalg.norm(other - one)
        sides.append((places - one) @ [-along[1], along[0]])
    depth = np.min(sides, axis=0)  # in pixels: the corners that the page hears of are whole numbers of them
    found = np.zeros(len(rows), dtype=bool)
    found[np.searchsorted(rows, page.downloaded())] = True
    page.value("document.getElementById('clear').click()")
    right = found[depth > 1].all() and not found[depth < -1].any()
    return f"{'right' if right else 'WRONG'}: {np.count_nonzero(found):,} rows"


def drawn_rows(page: Browser, n_points: int) -> np.ndarray:
    """Return the rows of the points that the page draws, ascending."""
    described = json.loads(page.value("document.getElementById('map-data').textContent"))
    if described["points"] == n_points:
        return np.arange(n_points)
    page.value("document.getElementById('in-view').click()")
    rows = page.downloaded()
    page.value("document.getElementById('clear').click()")
    return np.sort(rows)


def opened(report: Path, run: Path, picture: Path | None) -> dict[str, Any]:
    """Return what a browser does with a report."""
    embedding = np.asarray(open_run(run).embedding[...], dtype=np.float64)[:, :2]
    with tempfile.TemporaryDirectory() as folder:
        page = Browser(Path(folder) / "chromium")
        try:
            found: dict[str, Any] = dict(seconds_to_open(page, report))
            found |= motion(page)
            rows = drawn_rows(page, len(embedding))
            shown = np.clip(embedding[rows], *limits_of(page))  # far outliers stand on the rim
            found |= {"hovers right": hovers_right(page, shown, rows)}
            found |= {"lasso": lasso_right(page, shown, rows)}
            found |= {"requests": sum(not url.startswith(LOCAL) for url in page.requests())}
            found |= {"errors": len(page.complaints())}
            if picture:
                picture.write_bytes(base64.b64decode(page.send("Page.captureScreenshot", format="png")["data"]))
        finally:
            page.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--labels", nargs="+", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    out = (arguments.out or arguments.run / "report.html").resolve()
    labels = [word for file in arguments.labels for word in ("--labels", str(file))]
    written = scalemani("report", str(arguments.run), str(out), *labels)
    row = {"run": arguments.run.name, "write s": written.seconds, "peak GB": written.peak_bytes / 1e9}
    row |= {"file MB": out.stat().st_size / 1e6} | opened(out, arguments.run, arguments.picture)
    show([row])


if __name__ == "__main__":
    main()
