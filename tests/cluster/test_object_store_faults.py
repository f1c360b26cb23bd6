"""A run of which points and store are in an object store that fails: the same result as without."""

import importlib.util
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalemani.io.export import export
from scalemani.runs.opened import open_run
from scalemani.store import buckets

PROXY = Path(__file__).parents[2] / "pipelines" / "benchmarks" / "faulty_proxy.py"
REQUESTS_BEFORE_OUTAGE, OUTAGE_SECONDS = 40, 4.0


def proxies() -> Any:
    """Return the module of the proxy that fails, which benchmarks start too."""
    spec = importlib.util.spec_from_file_location("faulty_proxy", PROXY)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Outage(proxies().FaultyProxy):
    """Fails every request for some seconds from the one of a number on, which no machine is too slow to reach."""

    def fate(self) -> str:
        if self.first is not None and not self.outage[1] and sum(self.counts.values()) >= REQUESTS_BEFORE_OUTAGE:
            self.outage = (time.monotonic() - self.first, OUTAGE_SECONDS)
        return super().fate()


@pytest.mark.parametrize(
    ("kind", "failing", "fault"), [(proxies().FaultyProxy, 0.1, "slow down"), (Outage, 0.0, "outage")]
)
def test_failures_and_outages_leave_no_trace(
    scalemani, roll, bucket, s3_server, values, tmp_path, kind, failing, fault
):
    settings = [f"--set={stage}.{name}={value}" for stage, group in values.items() for name, value in group.items()]
    settings.append("--method=knn-graph")
    few = roll[:1500]
    np.save(tmp_path / "roll.npy", few)
    assert scalemani("embed", tmp_path / "roll.npy", tmp_path / "run", *settings)[0] == 0
    export(few, f"{bucket}/points.zarr")
    command = [sys.executable, "-m", "scalemani", "embed", f"{bucket}/points.zarr", f"{bucket}/run", *settings]
    with kind(s3_server, failing, (0.0, 0.0), 0) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        environment = {**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.server_port}"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        proxy.shutdown()
    assert done.returncode == 0, done.stderr
    assert proxy.counts[fault] > 0
    buckets.open_bucket.cache_clear()
    alone, together = open_run(tmp_path / "run"), open_run(f"{bucket}/run")
    for stage in alone.keys:
        assert alone.group(stage).content_digest == together.group(stage).content_digest, stage
