"""Static tiles of a map: seconds, memory and bytes to write them, and what a browser without a graphics card does.

    python pipelines/benchmarks/tiles.py [--n-points 1000000] [--run RUN] [--labels FILE ...] [--folder FOLDER]

Without a run, the map is a mixture of normal clouds of different width with a class each, in the place of the embedding
of a run. Chromium opens the tiles from Python's static server: seconds until the first picture, and until every tile in
view is there; bytes received by then; frames a second while the mouse drags the map, as a whole and zoomed in to its
points; milliseconds until a search for a row has found it.
"""

import argparse
import functools
import json
import resource
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from browser import Browser
from measuring import show
from reports import frames_a_second

from scalemani.interfaces.report.opened import CLUSTERS, DrawnEmbedding, open_run
from scalemani.interfaces.tiles.writing import write_tiles

N_CLASSES = 30
N_SEARCHES = 10
PATHWAY = 60  # pixels that the mouse goes each way
COMPLETE = "document.getElementById('points').dataset.missing === '0'"
FIRST = "performance.getEntriesByName('first-picture')[0]?.startTime"


def run_like(n_points: int, folder: Path) -> Any:
    """Return what has a map of so many points as a run has one, stored in a file."""
    draw = np.random.default_rng(0)
    centres, widths = draw.normal(size=(N_CLASSES, 2)) * 6, draw.uniform(0.05, 1.2, N_CLASSES)
    positions = np.lib.format.open_memmap(folder / "embedding.npy", "w+", np.float32, (n_points, 2))
    classes = np.empty(n_points, np.uint8)
    for start in range(0, n_points, 2**20):
        part = slice(start, min(start + 2**20, n_points))
        classes[part] = draw.integers(0, N_CLASSES, part.stop - start)
        noise = draw.normal(size=(part.stop - start, 2)) * widths[classes[part], None]
        positions[part] = centres[classes[part]] + noise
    drawn = DrawnEmbedding(positions, n_points, lambda values: values, None, {CLUSTERS: classes})
    return SimpleNamespace(_n_drawn=n_points, _drawn=lambda: drawn, method="t-sne", store=SimpleNamespace(root=folder))


class Quiet(SimpleHTTPRequestHandler):
    """Python's static server without a log."""

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def opened(folder: Path) -> dict[str, Any]:
    """Return what a browser does with tiles from a static server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as scratch:
        page = Browser(Path(scratch) / "chromium", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        try:
            return looked_at(page, f"http://127.0.0.1:{server.server_port}/")
        finally:
            page.close()
            server.shutdown()


def looked_at(page: Browser, url: str) -> dict[str, Any]:
    """Return seconds and bytes to the first picture, frames a second, and milliseconds of a search."""
    page.send("Page.navigate", url=url)
    page.wait(f"{FIRST} > 0")
    seen: dict[str, Any] = {"first picture s": page.value(FIRST) / 1e3}
    page.wait(COMPLETE)
    seen["all in view s"] = page.value("performance.now()") / 1e3
    page.value("0")
    received = [event["params"]["encodedDataLength"] for event in page.events_of("Network.loadingFinished")]
    seen |= {"files": len(received), "MB received": sum(received) / 1e6}
    seen["frames/s, whole"] = dragged(page)
    n_points = json.loads(page.value("document.getElementById('map-data').textContent"))["of"]
    waits = []
    for row in np.random.default_rng(1).choice(n_points, N_SEARCHES).tolist():
        page.value("viewer.show(0.5, 0.5, 1)")
        page.value(f"document.getElementById('row').value = {row}")
        began = time.perf_counter()
        page.value("document.querySelector('#search button').click()")
        page.wait(f"document.getElementById('status').textContent.startsWith('row {row}')")
        waits.append(1e3 * (time.perf_counter() - began))
    seen["search ms"] = float(np.median(waits))
    page.wait(COMPLETE)
    seen["points in view"] = page.value("viewer.leaves.reduce((sum, tile) => sum + tile.data.x.length, 0)")
    seen["frames/s, points"] = dragged(page)
    return seen | {"errors": len(page.complaints())}


def dragged(page: Browser) -> float:
    """Return frames a second while the mouse drags the map in circles."""
    x, y, width, height = page.value(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('points').getBoundingClientRect())"
    )
    middle = x + width / 2, y + height / 2

    def move(step: int) -> None:
        page.mouse("Moved", middle[0] + PATHWAY * np.sin(step / 9), middle[1] + PATHWAY * np.cos(step / 9))

    page.mouse("Moved", *middle)
    page.mouse("Pressed", *middle)
    frames = frames_a_second(page, move)
    page.mouse("Released", *middle)
    return frames


def written(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Write the tiles of a run, or of what is like one; return seconds, memory and bytes."""
    run = open_run(arguments.run) if arguments.run else run_like(arguments.n_points, folder.parent)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    if arguments.run:
        run.tiles(folder, arguments.labels)
    else:
        write_tiles(run, folder, {})
    seconds, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    n_points = run._n_drawn
    return {
        "points": n_points,
        "write s": seconds,
        "peak GB": peak / 2**20,
        "GB before": before / 2**20,
        "files written": len(sizes),
        "MB written": sum(sizes) / 1e6,
        "bytes a point": sum(sizes) / n_points,
    }


def main() -> None:
    """Write tiles and open them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-points", type=int, default=1_000_000)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--labels", action="append", default=[])
    parser.add_argument("--folder", type=Path, help="where the tiles stay; default: nowhere")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch) / "tiles"
        show([written(arguments, folder) | opened(folder)])


if __name__ == "__main__":
    main()
