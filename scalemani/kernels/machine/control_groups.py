"""What the control groups of this process, and a batch system that started it, allow it: memory and processors.

A process lies in a group, and what limits that one or any above it limits the process: the least of all counts. Of
version 1 there is a tree of groups for memory and another one for processors, version 2 has one for all.
`/proc/self/cgroup` names the group in each tree, `/proc/self/mountinfo` where a tree is mounted, and from which of its
groups on: in a container that may be the container's group, whose path outside of it is then that of the mount.
"""

import contextlib
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import psutil

PROCESS = Path("/proc/self")
ROOT = Path("/")
ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}  # of names in mountinfo
MEGABYTE = 2**20
SLURM_PROCESSORS = ("SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK", "SLURM_JOB_CPUS_PER_NODE")
BY_NODE = re.compile(r"[0-9]+(\(x[0-9]+\))?(,[0-9]+(\(x[0-9]+\))?)*")  # such as 72(x2),36: of three nodes


class Mount(NamedTuple):
    """A tree of groups: its controllers, none for version 2; its folder here, and the group that lies there."""

    controllers: frozenset[str]
    folder: Path
    group: PurePosixPath


def memory_limits(process: Path = PROCESS, root: Path = ROOT) -> Iterator[int]:
    """Yield the bytes that each control group of a process, and the batch system, allow; nothing where none is set.

    `process` is its folder below /proc; paths that it names are taken below `root`.
    """
    for version, group in groups_of("memory", process, root):
        names = (
            ("memory.max", "memory.high") if version == 2 else ("memory.limit_in_bytes", "memory.soft_limit_in_bytes")
        )
        for name in names:
            yield from numbers(group / name)[:1]
    yield from batch_memory(process, root)


def batch_memory(process: Path = PROCESS, root: Path = ROOT) -> Iterator[int]:
    """Yield the bytes that Slurm grants on this node: in all, or for each of the processors that it grants there.

    Where it does not say how many these are, they are those that this process may use.
    """
    if megabytes := _least("SLURM_MEM_PER_NODE"):  # zero is all that there is
        yield megabytes * MEGABYTE
    if megabytes := _least("SLURM_MEM_PER_CPU"):
        granted = next(filter(None, map(_least, SLURM_PROCESSORS)), 0)
        yield megabytes * MEGABYTE * (granted or usable_processors(process, root))


def usable_processors(process: Path = PROCESS, root: Path = ROOT) -> int:
    """Return how many processors a process may keep at work, a share of one as one.

    They are those of this process's affinity, which are within the set of its group, and no more than the quotas of the
    groups of `process`.
    """
    allowed = [os.cpu_count() or 1]
    if hasattr(psutil.Process, "cpu_affinity"):  # not on macOS
        allowed.append(len(psutil.Process().cpu_affinity()))
    for version, group in groups_of("cpu", process, root):
        quota = numbers(group / "cpu.max") if version == 2 else []
        if version == 1:
            quota = [*numbers(group / "cpu.cfs_quota_us")[:1], *numbers(group / "cpu.cfs_period_us")[:1]]
        if len(quota) == 2 and min(quota) > 0:
            allowed.append(math.ceil(quota[0] / quota[1]))
    return min(allowed)


def groups_of(controller: str, process: Path = PROCESS, root: Path = ROOT) -> Iterator[tuple[int, Path]]:
    """Yield the version and the folder of each group, from that of a process up to the outermost that it sees."""
    mounts = list(mounts_of(process, root))
    for line in lines_of(process / "cgroup"):
        _, names, path = line.split(":", 2)
        version = 1 if names else 2
        if version == 1 and controller not in names.split(","):
            continue
        for mount in mounts:
            if (controller in mount.controllers) if version == 1 else not mount.controllers:
                yield from ((version, folder) for folder in _up(mount, PurePosixPath(path)))


def _up(mount: Mount, path: PurePosixPath) -> Iterator[Path]:
    """Yield the folders from a group up to the outermost of a mount.

    A group that the mount does not show is that of a container whose tree begins at its group, or above it.
    """
    inside = path.relative_to(mount.group) if path.is_relative_to(mount.group) else path.relative_to(path.anchor)
    folder = mount.folder / inside
    if ".." in inside.parts or not folder.is_dir():
        folder = mount.folder
    yield folder
    while folder != mount.folder:
        folder = folder.parent
        yield folder


def mounts_of(process: Path = PROCESS, root: Path = ROOT) -> Iterator[Mount]:
    """Yield the trees of control groups that a process sees."""
    for line in lines_of(process / "mountinfo"):
        before, _, after = line.partition(" - ")
        (group, folder), (kind, _, options) = before.split(" ")[3:5], after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            controllers = frozenset(options.split(",")) if kind == "cgroup" else frozenset()
            place = root / _unescaped(folder).lstrip("/")
            yield Mount(controllers, place, PurePosixPath(_unescaped(group)))


def _unescaped(name: str) -> str:
    for escape, letter in ESCAPES.items():
        name = name.replace(escape, letter)
    return name


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file of the system; none where there is no such file, or it may not be read."""
    with contextlib.suppress(OSError):
        return file.read_text(errors="surrogateescape").splitlines()
    return []


def numbers(file: Path) -> list[int]:
    """Return the whole numbers of a file of a control group; those before the first word that is none, as "max"."""
    values: list[int] = []
    with contextlib.suppress(ValueError):
        values.extend(map(int, " ".join(lines_of(file)).split()))
    return values


def _least(name: str) -> int:
    """Return the least number of a variable of Slurm, which may have one by node; zero of others."""
    value = os.environ.get(name, "")
    return min(map(int, re.findall(r"(?:^|,)([0-9]+)", value))) if BY_NODE.fullmatch(value) else 0
