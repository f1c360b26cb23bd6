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
from scalemani.store.objects import as_errors_of, sync

UNFINISHED = ".scalemani-{}-{}.unfinished"  # name and token, of a length that no name of a target makes too long
LETTERS = 16  # hexadecimal, of each
THERE = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)  # what a rename says of a folder that is there


@contextlib.contextmanager
def replaced_file(target: str | Path, through_links: bool = True) -> Iterator[Any]:
    """Yield a temporary file that replaces `target` when the block ends.

    Of a symbolic link the file that it leads to is replaced, as cp and NumPy write it; not `through_links`, which is
    for names that the user did not choose, the link is.
    """
    path = Path(os.path.realpath(target) if through_links and os.path.islink(target) else target)
    with as_errors_of(path), temporary(path, Path.touch) as (temporary_path, lock):
        with temporary_path.open("wb") as file:
            yield file
        os.fsync(lock)
        os.replace(temporary_path, path)
        sync(path.parent)


@contextlib.contextmanager
def new_folder(target: str | Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `target` when the block ends.

    A folder of the same content may be there, as when a command runs again; anything else is refused.
    """
    path = Path(target)
    with as_errors_of(path), temporary(path, Path.mkdir) as (temporary_path, _):
        yield temporary_path
        sync_tree(temporary_path)
        try:
            temporary_path.rename(path)
        except OSError as error:
            if error.errno not in THERE:
                raise
            if not same_content(temporary_path, path):
                raise already_there(path) from error
        sync(path.parent)


@contextlib.contextmanager
def temporary(path: Path, create: Callable[[Path], None]) -> Iterator[tuple[Path, int]]:
    """Yield a new file or folder next to a path, and the descriptor of its lock; it is removed at the end.

    Temporaries of killed writers to the same target are removed.
    """
    for left in leftovers(path):
        remove(left)
    lock = None
    while lock is None:
        temporary_path = temporary_name(path)
        create(temporary_path)
        lock = lock_of(temporary_path)
    try:
        yield temporary_path, lock
    finally:
        remove(temporary_path)
        os.close(lock)


def remove(path: Path) -> None:
    """Remove a file or folder, where it is there and can be removed: what has failed before comes first."""
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def temporary_name(path: Path, token: str | None = None) -> Path:
    """Return a unique name next to a path; without its token, names of temporaries of the same target are the same."""
    target = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:LETTERS]
    return path.with_name(UNFINISHED.format(target, token or secrets.token_hex(LETTERS // 2)))


def lock_of(path: Path) -> int | None:
    """Lock a new file or folder and return the descriptor; None where one that looked for leftovers was quicker."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    if fcntl is not None:
        with contextlib.suppress(OSError):  # on a disk without locks no leftovers are removed either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    if path.exists():
        return descriptor
    os.close(descriptor)
    return None


def leftovers(path: Path) -> Iterator[Path]:
    """Yield temporaries of killed writers to a target, each locked while the caller handles it."""
    if fcntl is None:
        return
    for left in path.parent.glob(temporary_name(path, "[0-9a-f]" * LETTERS).name):
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
    names = [{str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()} for root in (one, other)]
    return names[0] == names[1] and len(filecmp.cmpfiles(one, other, names[0], shallow=False)[0]) == len(names[0])


def sync_tree(folder: Path) -> None:
    """Sync everything in a folder, then the folder, to disk."""
    for path in (*folder.rglob("*"), folder):
        sync(path)
