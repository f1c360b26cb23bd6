"""An HTTP server in front of an object store that fails as real ones do: errors at random, and an outage.

    python pipelines/benchmarks/faulty_proxy.py http://127.0.0.1:5000 --failing 0.1 --outage-after 3 --outage 20

prints its own address, then serves until it is ended. Half of the failures are answers (503 SlowDown), half are
connections closed without one, before or after the request reached the store.
"""

import argparse
import http.client
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>reduce your rate</Message></Error>"
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


class FaultyProxy(ThreadingHTTPServer):
    """Passes requests on to a store, or fails them."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str, failing: float, outage: tuple[float, float], seed: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = urlparse(upstream).netloc
        self.failing = failing
        self.outage = outage
        self.draws = random.Random(seed)
        self.first: float | None = None
        self.lock = threading.Lock()
        self.counts = {"passed": 0, "slow down": 0, "closed before": 0, "closed after": 0, "outage": 0}

    def fate(self) -> str:
        """Return what becomes of a request."""
        with self.lock:
            now = time.monotonic()
            self.first = self.first or now
            after, seconds = self.outage
            if after <= now - self.first < after + seconds:
                found = "outage"
            elif self.draws.random() >= self.failing:
                found = "passed"
            else:
                found = self.draws.choice(["slow down", "slow down", "closed before", "closed after"])
            self.counts[found] += 1
            return found


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle_request(self) -> None:
        """Pass a request on and its answer back, or fail it."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fate = self.server.fate()
        if fate in ("outage", "closed before"):
            self.close_connection = True
            return
        if fate == "slow down":
            self.answer(503, [("Content-Type", "application/xml")], SLOW_DOWN)
            return
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if fate == "closed after":
            self.close_connection = True
            return
        self.answer(answer.status, answer.getheaders(), content, answer.getheader("Content-Length"))

    def answer(self, status: int, headers: list[tuple[str, str]], content: bytes, length: str | None = None) -> None:
        """Send an answer; that to HEAD has a length and no content."""
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("upstream")
    parser.add_argument("--failing", type=float, default=0.1, help="share of requests that fail")
    parser.add_argument("--outage-after", type=float, default=0.0, help="seconds after the first request")
    parser.add_argument("--outage", type=float, default=0.0, help="seconds")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    outage = (arguments.outage_after, arguments.outage)
    proxy = FaultyProxy(arguments.upstream, arguments.failing, outage, arguments.seed)
    print(f"http://127.0.0.1:{proxy.server_port}", flush=True)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    for _ in sys.stdin:  # a line asks for the counts, the end of input ends the proxy
        print(proxy.counts, flush=True)


if __name__ == "__main__":
    main()
