"""What `doctor` reports about this machine: versions, processors, memory, disk, and what is slow here and why."""

import importlib.metadata
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from llvmlite import binding
from threadpoolctl import threadpool_info

from scalemani.config.units import format_bytes
from scalemani.engine.memory.peak import memory_limit
from scalemani.interfaces.cli.output import say
from scalemani.kernels.machine.code_cache import CACHE_VARIABLE, cache_home, distrust, installed_code, writable_folder
from scalemani.kernels.machine.compile import PLAIN, PLAIN_VARIABLE
from scalemani.kernels.machine.control_groups import usable_processors
from scalemani.store.objects import free_bytes, place_of

PACKAGES = (
    "dask",
    "distributed",
    "zarr",
    "numcodecs",
    "numpy",
    "scipy",
    "scikit-learn",
    "pynndescent",
    "numba",
    "llvmlite",
)
EXTRAS = {
    "figures": ("matplotlib", "pillow"),
    "parquet": ("pyarrow",),
    "anndata": ("h5py",),
    "s3": ("obstore",),
    "tls": ("cryptography",),
    "slurm": ("dask-jobqueue",),
    "ssh": ("asyncssh",),
    "graph": ("pygraphviz",),
}
MEMORY_FILESYSTEMS = {"tmpfs", "ramfs"}
NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "lustre", "ceph"}
LEAST_FREE = 10 * 10**9  # bytes of disk: what a million points of 784 bytes take, twice
LEAST_BYTES = 2**20  # of a number that is a size
WIDE_VECTORS = {"avx2", "avx512f", "neon"}  # without one of them kernels add four numbers at a time, or fewer


def examine(folder: Path) -> dict[str, Any]:
    """Return what there is: versions, extras, processors, memory, the disk of a folder, and what is slow here."""
    disk = disk_of(folder)
    subjects = {
        "scalemani": importlib.metadata.version("scalemani"),
        "python": f"{platform.python_version()} on {platform.platform()}",
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "extras": {extra: all(map(installed, needed)) for extra, needed in EXTRAS.items()},
        "processors": {"usable": usable_processors(), "all": os.cpu_count(), "load": psutil.getloadavg()[0]},
        "blas": [
            f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if pool["user_api"] == "blas"
        ],
        "memory": {
            "usable": memory_limit(),
            "all": psutil.virtual_memory().total,
            "free": psutil.virtual_memory().available,
        },
        "disk": disk,
        "temporary files": disk_of(Path(tempfile.gettempdir())),
        "machine code": installed_code()._asdict(),
        "compiled kernels": str(cache_home() or "nowhere"),
    }
    return {**subjects, "slow": list(slow_here(subjects))}


def installed(name: str) -> bool:
    """Return whether a distribution is installed."""
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def disk_of(folder: Path) -> dict[str, Any]:
    """Return the path of a folder, what is free on its disk in bytes, and its file system."""
    there = place_of(folder).resolve()
    mounts = [part for part in psutil.disk_partitions(all=True) if there.is_relative_to(part.mountpoint)]
    innermost = max(mounts, key=lambda part: len(part.mountpoint), default=None)
    return {
        "path": str(folder),
        "free": free_bytes(folder),
        "filesystem": innermost.fstype if innermost else "unknown",
    }


def slow_here(subjects: dict[str, Any]) -> Iterator[str]:
    """Yield what makes runs slow on this machine, and what to do about it."""
    processors, memory, disk = subjects["processors"], subjects["memory"], subjects["disk"]
    if PLAIN:
        yield f"{PLAIN_VARIABLE} is set: kernels run as Python, hundreds of times slower; unset it"
    if not any(binding.get_host_cpu_features().get(name) for name in WIDE_VECTORS):
        yield "the processor has no wide vector instructions: kernels take two to four times as long"
    if processors["usable"] < processors["all"]:
        yield f"{processors['usable']} of {processors['all']} processors may be used (affinity or control group)"
    if processors["load"] > processors["usable"]:
        yield f"{processors['load']:.1f} processes want {processors['usable']} processors: others are at work here"
    if memory["usable"] < memory["all"]:
        yield f"a control group or limit allows {format_bytes(memory['usable'])} of {format_bytes(memory['all'])}"
    if memory["free"] < memory["usable"] // 4:
        yield f"only {format_bytes(memory['free'])} of memory are free: give a budget with --memory"
    if untrusted := distrust():
        yield untrusted
    elif writable_folder() is None:
        yield (
            f"compiled kernels cannot be cached: every command compiles them again, half a minute; let "
            f"{CACHE_VARIABLE} name a folder that is yours"
        )
    if disk["filesystem"] in NETWORK_FILESYSTEMS:
        yield f"{disk['path']} is on a network file system ({disk['filesystem']}): every block is synced over it"
    if subjects["temporary files"]["filesystem"] in MEMORY_FILESYSTEMS:
        yield "temporary files are in memory: fits without store= take it from the run; set TMPDIR, or give store="
    if disk["free"] < LEAST_FREE:
        yield f"{format_bytes(disk['free'])} are free for runs in {disk['path']}: 'scalemani plan' says what one takes"


def show_examination(subjects: dict[str, Any]) -> None:
    """Print what `examine` returns, a line a subject."""
    for name, value in subjects.items():
        if name != "slow":
            say(f"{name:<18}{text_of(value)}")
    for line in subjects["slow"] or ["nothing here"]:
        say(f"slow: {line}")


def text_of(value: Any) -> str:
    """Return a value as words: large integers are bytes."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {text_of(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    if isinstance(value, bool | None):
        return "yes" if value else "no"
    return format_bytes(value) if isinstance(value, int) and value >= LEAST_BYTES else str(value)
