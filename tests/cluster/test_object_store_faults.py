"""A run of which points and store are in an object store that fails: the same result as without."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scalemani.io.export import export
from scalemani.runs.opened import open_run
from scalemani.store import buckets

PROXY = Path(__file__).parents[2] / "pipelines" / "benchmarks" / "faulty_proxy.py"


@pytest.mark.parametrize(
    "faults",
    [
        ["--failing", "0.1"],
        ["--failing", "0", "--outage-after", "1", "--outage", "4"],
    ],
)
def test_failures_and_outages_leave_no_trace(scalemani, roll, bucket, s3_server, values, tmp_path, monkeypatch, faults):
    settings = [f"--set={stage}.{name}={value}" for stage, group in values.items() for name, value in group.items()]
    settings.append("--method=knn-graph")
    few = roll[:1500]
    np.save(tmp_path / "roll.npy", few)
    assert scalemani("embed", tmp_path / "roll.npy", tmp_path / "run", *settings)[0] == 0
    export(few, f"{bucket}/points.zarr")
    command = [sys.executable, "-m", "scalemani", "embed", f"{bucket}/points.zarr", f"{bucket}/run", *settings]
    with subprocess.Popen(
        [sys.executable, str(PROXY), s3_server, *faults], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as proxy:
        environment = {**os.environ, "AWS_ENDPOINT_URL": proxy.stdout.readline().strip()}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            proxy.stdin.write("counts\n")
            proxy.stdin.flush()
            counts = proxy.stdout.readline()
        finally:
            proxy.kill()
    assert done.returncode == 0, done.stderr
    assert "'outage': 0" not in counts or "'slow down': 0" not in counts
    buckets.open_bucket.cache_clear()
    alone, together = open_run(tmp_path / "run"), open_run(f"{bucket}/run")
    for stage in alone.keys:
        assert alone.group(stage).content_digest == together.group(stage).content_digest, stage
