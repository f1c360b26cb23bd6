"""The limits of control groups: those of a process's own group and of all above it, of both versions, in containers."""

import os
from pathlib import Path

import psutil
import pytest

from scalemani.engine.memory.peak import memory_limit
from scalemani.kernels.machine.control_groups import memory_limits, usable_processors

MEMORY, PROCESSORS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/cpu")
SLURM_PROCESSORS = ("SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK", "SLURM_JOB_CPUS_PER_NODE")
SLURM = ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", *SLURM_PROCESSORS)


@pytest.fixture(autouse=True)
def without_slurm(monkeypatch):
    for name in SLURM:
        monkeypatch.delenv(name, raising=False)


def system(folder, groups, mounts, files):
    """Write what /proc says of a process and its control groups; return its folder there and the root of the files."""
    process, root = folder / "proc", folder / "root"
    process.mkdir(parents=True)
    (process / "cgroup").write_text("".join(f"{line}\n" for line in groups))
    (process / "mountinfo").write_text(
        "25 1 0:22 / / rw - ext4 /dev/root rw\n" + "".join(f"31 23 0:28 {line}\n" for line in mounts)
    )
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return process, root


V2 = "/ /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate"
OF_MEMORY = "/ /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
OF_PROCESSORS = "/ /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"


@pytest.mark.parametrize(
    ("groups", "mounts", "files", "expected"),
    [
        pytest.param(
            ["0::/user.slice/job"],
            [V2],
            {"sys/fs/cgroup/user.slice/job/memory.max": 10**6, "sys/fs/cgroup/user.slice/memory.max": "max"},
            10**6,
            id="own group, version 2",
        ),
        pytest.param(
            ["0::/user.slice/job"],
            [V2],
            {"sys/fs/cgroup/user.slice/job/memory.max": 10**7, "sys/fs/cgroup/user.slice/memory.high": 10**5},
            10**5,
            id="a group above has less, version 2",
        ),
        pytest.param(
            ["5:cpu,cpuacct:/other", "4:memory:/slurm/job 7", "0::/"],
            [OF_MEMORY, OF_PROCESSORS, "/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"],
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": 9223372036854771712,
                "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes": 10**7,
                "sys/fs/cgroup/memory/slurm/job 7/memory.limit_in_bytes": 10**6,
                "sys/fs/cgroup/memory/other/memory.limit_in_bytes": 10,
            },
            10**6,
            id="own group, version 1, not that of another controller",
        ),
        pytest.param(
            ["4:memory:/docker/abc"],
            ["/docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"],
            {"sys/fs/cgroup/memory/memory.limit_in_bytes": 10**6},
            10**6,
            id="a container whose own group is mounted",
        ),
        pytest.param(
            ["4:memory:/docker/abc/inner"],
            ["/docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"],
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": 10**7,
                "sys/fs/cgroup/memory/inner/memory.limit_in_bytes": 10**6,
            },
            10**6,
            id="a group made in such a container",
        ),
        pytest.param(["0::/"], [V2], {"sys/fs/cgroup/memory.max": 10**6}, 10**6, id="a namespace of its own"),
        pytest.param(
            ["0::/../../kubepods/pod1"],
            ["/../../kubepods /sys/fs/cgroup rw - cgroup2 cgroup2 rw"],
            {"sys/fs/cgroup/pod1/memory.max": 10**6, "sys/fs/cgroup/memory.max": 10**7},
            10**6,
            id="a mount of another namespace",
        ),
        pytest.param(
            ["0::/kubepods/pod1"],
            [V2],
            {"sys/fs/cgroup/memory.max": 10**6},
            10**6,
            id="a path outside of it",
        ),
        pytest.param(
            ["0::/../elsewhere"],
            [V2],
            {"sys/fs/cgroup/memory.max": 10**6, "sys/fs/elsewhere/memory.max": 10},
            10**6,
            id="a path that leads out of the mount",
        ),
        pytest.param(
            ["0::/job"],
            ["/ /mnt/all\\040groups rw - cgroup2 cgroup2 rw"],
            {"mnt/all groups/job/memory.max": 10**6},
            10**6,
            id="mounted elsewhere",
        ),
        pytest.param(["0::/job"], [V2], {"sys/fs/cgroup/job/memory.max": "max"}, None, id="no limit"),
        pytest.param([], [], {}, None, id="no groups"),
    ],
)
def test_memory_is_the_least_of_all_groups(tmp_path, groups, mounts, files, expected):
    process, root = system(tmp_path, groups, mounts, files)
    assert memory_limit(process, root) == expected or (expected is None and not list(memory_limits(process, root)))
    assert memory_limit(process, root) <= psutil.virtual_memory().total


def test_slurm_says_the_memory_of_a_node_or_of_a_processor(tmp_path, monkeypatch):
    process, root = system(tmp_path, [], [], {})
    monkeypatch.setenv("SLURM_MEM_PER_CPU", "3")
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "4")
    assert memory_limit(process, root) == 12 * 2**20
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "5")
    assert memory_limit(process, root) == 5 * 2**20
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "0")  # all that there is
    assert memory_limit(process, root) == 12 * 2**20


@pytest.mark.parametrize(
    ("variables", "n_processors"),
    [
        ({"SLURM_CPUS_PER_TASK": "7"}, 7),
        ({"SLURM_JOB_CPUS_PER_NODE": "9"}, 9),
        ({"SLURM_JOB_CPUS_PER_NODE": "72(x2),36,40(x12)"}, 36),  # of nodes: it does not say which of them this is
        ({"SLURM_CPUS_PER_TASK": "5", "SLURM_JOB_CPUS_PER_NODE": "9"}, 5),
        ({"SLURM_CPUS_ON_NODE": "3", "SLURM_CPUS_PER_TASK": "5"}, 3),
        ({}, 1),
        ({"SLURM_CPUS_ON_NODE": "many", "SLURM_CPUS_PER_TASK": "0", "SLURM_JOB_CPUS_PER_NODE": "72(x"}, 1),
    ],
)
def test_memory_of_a_processor_counts_for_all_that_slurm_grants_or_else_for_those_in_use(
    tmp_path, monkeypatch, variables, n_processors
):
    process, root = system(tmp_path, ["0::/a"], [V2], {"sys/fs/cgroup/a/cpu.max": "100000 100000"})
    for name, value in {"SLURM_MEM_PER_CPU": "3", **variables}.items():
        monkeypatch.setenv(name, value)
    assert list(memory_limits(process, root)) == [n_processors * 3 * 2**20]


@pytest.mark.parametrize(
    ("groups", "mounts", "files", "expected"),
    [
        (["0::/a/b"], [V2], {"sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "100000 100000"}, 1),
        (["0::/a"], [V2], {"sys/fs/cgroup/a/cpu.max": "20000 100000"}, 1),
        (
            ["5:cpu,cpuacct:/a"],
            [OF_PROCESSORS],
            {
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "60000",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            },
            1,
        ),
        (
            ["5:cpu,cpuacct:/a"],
            [OF_PROCESSORS],
            {
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            },
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        ),
    ],
)
def test_processors_are_those_of_the_smallest_quota(tmp_path, groups, mounts, files, expected):
    assert usable_processors(*system(tmp_path, groups, mounts, files)) == expected
