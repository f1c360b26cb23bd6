"""Small runs of every kind of method, for the pages about them, and a browser that opens these."""

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalemani.params import Parameters
from scalemani.report.opened import open_run
from scalemani.routes import takes_labels
from scalemani.runs.walk import run
from scalemani.sources import open_points
from scalemani.sources.beside.labelled import LabelledPoints
from scalemani.workers.executor import Executor

N_POINTS = 1500
METHODS = (
    *("spectral-clustering", "diffusion-maps", "pca", "lda", "kernel-pca", "kernel-lda", "knn-graph", "t-sne"),
    *("locally-linear-embedding", "isomap"),
)
VALUES = {
    "neighbors": {"n_neighbors": 12, "exact_below": 1000},
    "affinities": {"perplexity": 4.0},
    "landmarks": {"n_landmarks": 60},
    "clustering": {"n_clusters": 4},
    "layout": {"max_iterations": 12, "direction": "spectral", "converged": 0, "repulsion": "exact"},
    "embedding": {"solver": "lll+refine"},
}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# No service of the browser's own may speak to the network; WebGL is computed on the processor.
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--window-size=1200,900",
    "--remote-debugging-pipe",
)
SECONDS = 60.0
SHIFT = 8


class Browser:
    """A headless Chromium that is driven by the DevTools protocol; `events` holds what its page has told so far."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir()
        self.folder, self.events, self.left, self.number = folder, [], b"", 0
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        # The protocol is spoken over the descriptors 3 and 4.
        start = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        command = [str(CHROMIUM), *OPTIONS, *options, f"--user-data-dir={folder}/profile"]
        self.process = subprocess.Popen(
            ["bash", "-c", start, "chromium", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def close(self) -> None:
        """End the browser."""
        self.process.terminate()
        self.process.wait(SECONDS)
        os.close(self.commands)
        os.close(self.answers)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session and not method.startswith("Browser."):
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        while b"\0" not in self.left:
            ready, _, _ = select.select([self.answers], [], [], SECONDS)
            found = os.read(self.answers, 2**20) if ready else b""
            assert found, "the browser does not answer"
            self.left += found
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.send("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + SECONDS
        while not self.value(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, shift: bool = False) -> None:
        """Move (Moved), press (Pressed) or let go (Released) the mouse at a place of the window."""
        button = {} if kind == "Moved" else {"button": "left", "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, modifiers=SHIFT * shift, **button)

    def key(self, key: str) -> None:
        """Press and let go a key."""
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        code = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "Escape": 27}.get(key, 0)
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)


@pytest.fixture(scope="module")
def open_browser(tmp_path_factory) -> Iterator[Callable[..., Browser]]:
    """Return what starts a browser with further options; where none is installed, the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    started: list[Browser] = []

    def start(*options: str) -> Browser:
        started.append(Browser(tmp_path_factory.mktemp("browser") / "chromium", *options))
        return started[-1]

    yield start
    for browser in started:
        browser.close()


@pytest.fixture(scope="session")
def classes(roll):
    return (roll[:N_POINTS, 0] > 0).astype(int)


@pytest.fixture(scope="session")
def runs(roll, classes, tmp_path_factory):
    """Runs of 1,500 points in two blocks, by method: all go on from one graph."""
    folder, params = tmp_path_factory.mktemp("report"), Parameters().with_values(VALUES)
    made = {}
    for method in METHODS:
        source = open_points(np.asarray(roll[:N_POINTS], np.float64))
        given = LabelledPoints(source, classes) if takes_labels(method) else source
        run(given, folder / method, method, params, Executor(), 1024)
        made[method] = open_run(folder / method)
    return made
