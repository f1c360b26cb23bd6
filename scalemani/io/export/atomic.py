"""Atomic writes: temporary file or folder, fsync, rename.

Temporaries lie next to their target and are locked (flock) while their writer lives. The next writer to the same target
removes those of killed writers.
"""

import contextlib
import errno
import filecmp
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # a system without locks of files, on which no leftovers are removed
    fcntl = None  # type: ignore[assignment]

from scalemani.errors import StoreError
from scalemani.io.sources.opening import ZARR_MARKERS
from scalemani.store.objects import as_errors_of, sync

UNFINISHED = ".scalemani-{}-{}.unfinished"  # name and token, of a length that no name of a target makes too long
LETTERS = 16  # hexadecimal, of each
THERE = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)  # what a rename says of a folder that is there


@contextlib.contextmanager
def replaced_file(target: str | Path) -> Iterator[Any]:
    """Yield a temporary file that replaces `target` when the block ends."""
    path = Path(target)
    with as_errors_of(path):
        own, lock = new_locked(path, Path.touch)
        try:
            with own.open("wb") as file:
                yield file
            os.fsync(lock)
            os.replace(own, path)
            sync(path.parent)
        finally:
            with contextlib.suppress(OSError):  # what has failed comes first
                own.unlink(missing_ok=True)
            os.close(lock)


@contextlib.contextmanager
def new_folder(target: str | Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `target` when the block ends.

    A zarr store of the same content may be there, as when a command is given again; anything else is refused.
    """
    path = Path(target)
    if path.exists() and not any((path / marker).exists() for marker in ZARR_MARKERS):
        raise already_there(path)
    with as_errors_of(path), temporary_folder(path) as own:
        yield own
        sync_tree(own)
        try:
            own.rename(path)
        except OSError as error:
            if error.errno not in THERE:
                raise
            if not same_content(own, path):
                raise already_there(path) from error
        sync(path.parent)


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Yield a locked temporary folder next to a path, removed at the end."""
    own, lock = new_locked(path, Path.mkdir)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(lock)


def new_locked(path: Path, create: Callable[[Path], None]) -> tuple[Path, int]:
    """Create a temporary next to a path, by a name by which it is found; return it and a descriptor with its lock.

    Temporaries of killed writers to the same target are removed.
    """
    for left in leftovers(path):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)
    while True:
        own = temporary_name(path)
        create(own)
        with contextlib.suppress(FileNotFoundError):  # one that looked for leftovers was quicker
            lock = os.open(own, os.O_RDONLY)
            if is_locked_here(lock, own):
                return own, lock


def temporary_name(path: Path) -> Path:
    """Return a unique name by which temporaries of the same target are found."""
    return path.with_name(UNFINISHED.format(name_digest(path), secrets.token_hex(LETTERS // 2)))


def name_digest(path: Path) -> str:
    """Return the digest of the name of a target, which is part of the names of its temporaries."""
    return hashlib.sha256(os.fsencode(path.name)).hexdigest()[:LETTERS]


def is_locked_here(descriptor: int, own: Path) -> bool:
    """Lock a new file or folder and return whether it still exists; the descriptor is closed where it does not."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # on a disk without locks no leftovers are removed either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    if own.exists():
        return True
    os.close(descriptor)
    return False


def leftovers(path: Path) -> Iterator[Path]:
    """Yield temporaries of killed writers to a target, each locked while the caller handles it."""
    if fcntl is None:
        return
    for left in path.parent.glob(UNFINISHED.format(name_digest(path), "[0-9a-f]" * LETTERS)):
        with contextlib.suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield left
            finally:
                os.close(descriptor)


def already_there(path: Path | str) -> StoreError:
    """Return the error of a place where something else lies."""
    return StoreError(f"{path} is already there and is not overwritten: remove it or choose another name")


def same_content(one: Path, other: Path) -> bool:
    """Return whether two folders hold the same files with the same bytes."""
    names = [sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()) for root in (one, other)]
    return names[0] == names[1] and all(filecmp.cmp(one / name, other / name, shallow=False) for name in names[0])


def sync_tree(folder: Path) -> None:
    """Flush a folder with all that it holds to disk."""
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync(Path(root, name))
        sync(Path(root))
