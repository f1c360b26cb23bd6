"""A headless Chromium without a network that opens reports: what tests and benchmarks of the page share."""

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
KEYS = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "Escape": 27}
LOCAL = ("file:", "data:", "blob:")
VIEW = "document.getElementById('points').dataset.view"
BOX = "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('points').getBoundingClientRect())"
DESCRIPTION = "document.getElementById('map-data').textContent"


class Browser:
    """A headless Chromium that is driven by the DevTools protocol; `events` holds what its page has told so far."""

    seconds = SECONDS  # that an answer may take

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
            ready, _, _ = select.select([self.answers], [], [], self.seconds)
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
        code = KEYS.get(key, 0)
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def requests(self) -> list[str]:
        """Return the addresses that pages have asked for so far."""
        return [event["params"]["request"]["url"] for event in self.events_of("Network.requestWillBeSent")]

    def complaints(self) -> list[dict[str, Any]]:
        """Return exceptions and errors that pages have told of so far."""
        logged = [event for event in self.events_of("Log.entryAdded") if event["params"]["entry"]["level"] == "error"]
        said = [event for event in self.events_of("Runtime.consoleAPICalled") if event["params"]["type"] == "error"]
        return self.events_of("Runtime.exceptionThrown") + logged + said

    def events_of(self, method: str) -> list[dict[str, Any]]:
        """Return the events of one name."""
        return [event for event in self.events if event["method"] == method]

    def pixels(self, embedding: np.ndarray) -> np.ndarray:
        """Return where points (N, 2) are in the window, by the view that the canvas tells and by limits of the axes."""
        x0, y0, x1, y1 = json.loads(self.value(VIEW))
        box = self.value(BOX)
        axes = json.loads(self.value(DESCRIPTION))["axes"]
        low, high = (np.array([axis[end] for axis in axes[:2]]) for end in ("low", "high"))
        shares = ((embedding[:, :2] - low) / (high - low) - [x0, y0]) / [x1 - x0, y1 - y0]
        return np.array(box[:2]) + shares * box[2:]

    def lasso(self, corners: Sequence[Sequence[float]]) -> None:
        """Draw a lasso around what lies between corners in the window."""
        self.mouse("Pressed", *corners[0], shift=True)
        for corner in [*corners[1:], corners[0]]:
            self.mouse("Moved", *corner, shift=True)
        self.mouse("Released", *corners[0], shift=True)

    def downloaded(self) -> np.ndarray:
        """Return the rows that the page of a report gives away."""
        file = self.folder / "rows.txt"
        file.unlink(missing_ok=True)
        self.value("document.getElementById('download').click()")
        end = time.monotonic() + SECONDS
        while not (file.exists() and file.stat().st_size):
            assert time.monotonic() < end, "nothing was downloaded"
            self.value("new Promise(done => setTimeout(done, 20))")
        return np.loadtxt(file, dtype=int, ndmin=1)
