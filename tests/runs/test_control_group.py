"""A run in a control group of its own takes no more memory than the group has, without being told how much that is."""

import re
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import numpy as np
import pytest

from scalemani.engine.memory.peak import memory_limit

MEMORY = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def group():
    """A control group of version 1 below the root of what is mounted, for memory; removed at the end."""
    folder = MEMORY / f"scalemani-{uuid.uuid4().hex}"
    try:
        folder.mkdir()
        (folder / "cgroup.procs").open("a").close()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield folder
    finally:
        (folder / "memory.force_empty").write_text("0")  # pages of files that are still cached
        folder.rmdir()


@pytest.fixture
def disk():
    """A folder on a disk: files of a file system in memory count to the group."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def largest_projection(text):
    """Return the largest memory of a stage that a plan prints, in MB."""
    sizes = re.findall(r"^\w+ +[0-9a-f]{16} +(?:\d+ of \d+|all) +([0-9.]+) (MB|GB)", text, re.MULTILINE)
    return max(float(size) * {"MB": 1, "GB": 1000}[unit] for size, unit in sizes)


# With a budget of the machine, so much more than the group has is projected: for arrays of blocks, in memory, and for
# arrays of all points, in mapped files. The second goes on from the neighbours that the first has stored.
LEAST_RATIOS = {"knn-graph": 1.7, "laplacian-eigenmaps": 1.4}


def test_a_run_without_a_budget_finishes_within_its_own_group(group, disk):
    """The group has little more than stages need at least."""
    points, limit = disk / "points.npy", 780
    np.save(points, np.random.default_rng(0).normal(size=(300_000, 3)).astype(np.float32))
    (group / "memory.limit_in_bytes").write_text(str(limit * 2**20))
    join = f'echo $$ > {group}/cgroup.procs && exec "$@"'

    def ended(*arguments, inside=True):
        command = [*(("sh", "-c", join, "sh") if inside else ()), sys.executable, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout + done.stderr

    told = ended("-c", "from scalemani.engine.memory.peak import memory_limit; print(memory_limit())")
    assert int(told) == limit * 2**20 < memory_limit()
    for method, least_ratio in LEAST_RATIOS.items():
        whole = ("-m", "scalemani", "plan", str(points), str(disk / "none"), "--method", method, "--memory", "64GB")
        assert largest_projection(ended(*whole, inside=False)) * 10**6 > least_ratio * limit * 2**20
        ended("-m", "scalemani", "embed", str(points), str(disk / "run"), "--method", method)
        assert int((group / "memory.max_usage_in_bytes").read_text()) <= limit * 2**20
