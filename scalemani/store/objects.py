"""Objects by key in a folder or a bucket: chunks of arrays, manifest entries, plans."""

import contextlib
import errno
import fnmatch
import hashlib
import itertools
import json
import os
import re
import shutil
import stat
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from scalemani.config.limits import LIMITS
from scalemani.errors import (
    FULL,
    CorruptChunkError,
    DiskSpaceError,
    ScalemaniError,
    StoreError,
    UnreachableStoreError,
    UnsafeStoreError,
    is_lasting,
    remedy_of,
)
from scalemani.store.locks import AS_IT_IS, RunLock, lock_folder

SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
PARTIAL = ".partial"
NOT_OF_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # what disks say that sync no folders
DIGEST = "digest"  # the field of a description that holds that of all its others
SWEEPS = 2  # of runs that take the lock, one after the other, while one file is written
REMOVAL_SECONDS = 10  # of a folder that tasks of others still write to
READS_AT_ONCE = 16  # of small objects: what counts is the way to the server and back
DESCRIPTION_BYTES, RECORD_BYTES = LIMITS["description"].most, LIMITS["record"].most
DIGEST_CHARACTERS = 32  # 128 bits of SHA-256: accidents, not adversaries, are what a manifest guards against

Item = TypeVar("Item")
Result = TypeVar("Result")
Committed = tuple[int, str, str]  # of an object: bytes, digest, tag


def digest(content: bytes | memoryview) -> str:
    """Return the first characters of the SHA-256 of a content, in hexadecimal: what manifests hold."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def sealed(value: Mapping[str, Any]) -> bytes:
    """Return a description as JSON with a digest of what it says: a flipped bit may leave valid JSON."""
    return json.dumps({**value, DIGEST: digest_of(value)}, indent=1, sort_keys=True).encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """Return the content of a sealed description; ValueError where its digest does not match."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"no valid JSON ({error})") from error
    if not isinstance(value, dict) or value.pop(DIGEST, None) != digest_of(value):
        raise ValueError("its digest is not that of what it says")
    return value


def is_committed(content: bytes, committed: Committed) -> bool:
    """Return whether a content has the length and digest of a manifest entry; its tag is not compared."""
    return (len(content), digest(content)) == committed[:2]


def digest_of(value: Mapping[str, Any]) -> str:
    """Return the digest of a description in compact JSON with sorted keys."""
    return digest(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def checked_key(key: str) -> str:
    """Return a key as it is; refuse one that could lead elsewhere."""
    if not all(SAFE_NAME.fullmatch(part) for part in key.split("/")):
        raise UnsafeStoreError(f"{key!r} is not a name inside a store: letters, digits, '_', '-' and '.' between '/'")
    return key


def read_file(path: Path, most: int = DESCRIPTION_BYTES) -> bytes:
    """Return the content of a regular file of at most so many bytes; refuse pipes and devices, which may never end."""
    descriptor = os.open(path, os.O_RDONLY | AS_IT_IS)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeStoreError(f"{path} is no regular file: remove it")
        check_length(status.st_size, most, path)
        return file.read()


def check_length(n_bytes: int, most: int, where: Path | str) -> None:
    """Refuse an object of more bytes than are ever written there, before it is read."""
    if n_bytes > most:
        raise CorruptChunkError(
            f"{where} holds {n_bytes} bytes, at most {most} are written there: {LIMITS['description'].remedy}"
        )


def checked_path(root: Path, key: str) -> Path:
    """Return the file of `key` below `root`; refuse a key that could leave it, also through a symbolic link."""
    path = root / checked_key(key)
    if leads_out(root, key):
        raise UnsafeStoreError(f"{path} leads outside the store {root} through a symbolic link: remove the link")
    return path


def leads_out(root: Path, key: str) -> bool:
    """Return whether what a key names below `root` lies outside it, by a symbolic link on the way."""
    below = itertools.accumulate(key.split("/"), os.path.join, initial=str(root))
    # Paths are resolved only where there is a link: that asks for every folder from the root of the disk on, twice.
    linked = any(map(os.path.islink, itertools.islice(below, 1, None)))
    return linked and not (root / key).resolve().is_relative_to(root.resolve())


def as_store_error(error: OSError, path: Path, n_bytes: int | None = None) -> Exception:
    """Return the error of a failed write of `n_bytes`, with its remedy: space, another place, or time."""
    if isinstance(error, ScalemaniError):
        return error
    if error.errno in FULL:
        amount = "" if n_bytes is None else f"{n_bytes} bytes of "
        if not free_inodes(path):
            return DiskSpaceError(
                f"no inode is left to write {amount}{path}, its disk holds as many files as it can: remove some and "
                "run the same command again"
            )
        return DiskSpaceError(
            f"no space left to write {amount}{path}, {free_bytes(path)} bytes are free on its disk"
            f"{' and a quota ends before' if error.errno == errno.EDQUOT else ''}: free some and run the same command "
            "again"
        )
    if not is_lasting(error):
        return UnreachableStoreError(f"cannot write {path}: {error.strerror or error}; {remedy_of(error)}")
    return StoreError(f"cannot write {path}: {error.strerror or error}; choose a place that can be written")


@contextlib.contextmanager
def as_errors_of(path: Path, n_bytes: int | None = None) -> Iterator[None]:
    """Raise the errors of a failed write, of `n_bytes`, as those of `as_store_error`."""
    try:
        yield
    except ScalemaniError:
        raise
    except OSError as error:
        raise as_store_error(error, path, n_bytes) from error


def sync(path: Path) -> None:
    """Flush a file or folder to disk (fsync); a folder that cannot be read is skipped."""
    if path.is_dir() and not os.access(path, os.R_OK):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not (path.is_dir() and error.errno in NOT_OF_FOLDERS):
            raise
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that is seen whole or not at all, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=PARTIAL, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # a name must not come to stand for content that a power cut takes away
            os.replace(file.name, path)
        except BaseException:  # a signal too; on a full disk it takes what space there is
            with contextlib.suppress(OSError):  # what has failed comes first
                os.unlink(file.name)
            raise


def free_bytes(path: Path) -> int:
    """Return what is free on the disk of a file or folder, which need not be there yet."""
    return shutil.disk_usage(place_of(path)).free


def free_inodes(path: Path) -> bool:
    """Return whether the disk of a file or folder can hold another file, as far as its system counts them."""
    if not hasattr(os, "statvfs"):
        return True
    status = os.statvfs(place_of(path))
    return status.f_files == 0 or status.f_favail > 0


def place_of(path: Path) -> Path:
    """Return a file or folder, or the first folder above it that is there."""
    return next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())


def damaged_object(where: str, reason: str) -> CorruptChunkError:
    """Return the error of an entry, plan or description that cannot be what was written."""
    return CorruptChunkError(
        f"{where} was damaged after it was written: {reason}; run the same command again, or start a new run in "
        "another folder if that does not write it anew"
    )


def side_by_side(act: Callable[[Item], Result], items: Sequence[Item], most: int = READS_AT_ONCE) -> list[Result]:
    """Return act(item) of all items, by up to so many threads: most of the time each waits for a disk or a server."""
    if len(items) < 2:
        return [act(item) for item in items]
    with ThreadPoolExecutor(min(len(items), most)) as pool:
        return list(pool.map(act, items))


class Objects(ABC):
    """Bytes and JSON by key below one place; what is written under a key is seen whole or not at all.

    `root` is the place for messages. `tag` is what the place itself says of a content: empty for folders, the ETag of
    an S3 object.
    """

    root: Path | str

    @abstractmethod
    def below(self, path: str) -> "Objects":
        """Return the objects whose keys start with `path`."""

    @abstractmethod
    def get(self, key: str, most: int = DESCRIPTION_BYTES) -> bytes | None:
        """Return the content of `key`, or None where there is none; CorruptChunkError for more than so many bytes."""

    @abstractmethod
    def set(self, key: str, content: bytes) -> str:
        """Write `content` under `key`, replacing what was there in one step; return its tag."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove `key`; nothing happens where it is not there."""

    @abstractmethod
    def delete_below(self, prefix: str) -> None:
        """Remove every key that starts with `prefix` and a slash."""

    @abstractmethod
    def names(self, prefix: str = "") -> list[str]:
        """Return the names directly below `prefix`, sorted; half-written temporaries are left out."""

    def damaged(self, committed: Mapping[str, Committed], threads: int) -> AbstractSet[str]:
        """Return the keys that are gone or are not what was committed under them: reads all, and compares digests."""
        keys = list(committed)
        contents = side_by_side(lambda key: self.intact_bytes(key, committed[key]) is not None, keys, threads)
        return {key for key, whole in zip(keys, contents, strict=True) if not whole}

    def prepare(self) -> None:
        """Make sure, before any work, that the place is there and accepts this user."""
        self.names()

    def free_bytes(self) -> int | None:
        """Return how many bytes can be written here; None, as of buckets, where nothing says."""
        return None

    @property
    def scratch_folder(self) -> Path:
        """A folder of this machine for files without a name: by default where temporary files go."""
        return Path(tempfile.gettempdir())

    @abstractmethod
    def sweep(self) -> None:
        """Remove temporary files of killed writers; called by the only writer."""

    @abstractmethod
    def lock(self) -> AbstractContextManager[RunLock]:
        """Hold the run as its only writer, or raise StoreLockedError."""

    def take(self, key: str, other: "Objects", committed: Committed) -> Committed | None:
        """Copy an object of another place and return its entry here; None where it is missing or damaged there."""
        content = other.intact_bytes(key, committed)
        return None if content is None else (*committed[:2], self.set(key, content))

    def intact_bytes(self, key: str, committed: Committed) -> bytes | None:
        """Return the content of `key`, or None where it is gone or is not what was committed."""
        try:
            content = self.get_committed(key, committed)
        except CorruptChunkError:
            return None
        return content if content is not None and is_committed(content, committed) else None

    def get_committed(self, key: str, committed: Committed) -> bytes | None:
        """Return the content of `key`, as the place gives it, or None where there is none."""
        return self.get(key, committed[0])

    def get_json(self, key: str, most: int = DESCRIPTION_BYTES) -> dict[str, Any] | None:
        """Return the description under `key`, or None where there is none; CorruptChunkError if it was damaged."""
        content = self.get(key, most)
        if content is None:
            return None
        try:
            return unsealed(content)
        except ValueError as error:
            raise damaged_object(f"{self.root}/{key}", str(error)) from error

    def set_json(self, key: str, value: Mapping[str, Any]) -> None:
        """Write a description as JSON under `key`, with its digest inside, which `get_json` compares."""
        self.set(key, sealed(value))

    def intact(self, key: str, most: int = DESCRIPTION_BYTES) -> dict[str, Any] | None:
        """Return the description under `key`; None for a damaged one, whose subject is then recomputed."""
        try:
            return self.get_json(key, most)
        except CorruptChunkError:
            return None

    def many_intact(self, keys: Sequence[str]) -> list[dict[str, Any] | None]:
        """Return the descriptions under several keys, read in parallel."""
        return side_by_side(self.intact, keys)


class LocalObjects(Objects):
    """Objects as files below a folder, which may be shared between machines; a write is a rename."""

    def __init__(self, root: str | Path) -> None:
        self.root: Path = Path(root)

    def below(self, path: str) -> "LocalObjects":
        """Return the objects whose keys start with `path`."""
        return LocalObjects(checked_path(self.root, path))

    def get(self, key: str, most: int = DESCRIPTION_BYTES) -> bytes | None:
        """Return the content of `key`, or None where there is none; CorruptChunkError for more than so many bytes."""
        path = checked_path(self.root, key)
        try:
            return read_file(path, most)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}; choose a place that can be read") from error

    def set(self, key: str, content: bytes) -> str:
        """Write `content` under `key`, replacing what was there in one step.

        A run that takes the lock meanwhile sweeps the temporary file away where this process has not locked the run,
        as when it writes the marker or a copy of points: it is written again.
        """
        path = checked_path(self.root, key)
        with as_errors_of(path, len(content)):
            for _ in range(SWEEPS):
                with contextlib.suppress(FileNotFoundError):
                    replace_file(path, content)
                    return ""
            replace_file(path, content)
        return ""

    def take(self, key: str, other: Objects, committed: Committed) -> Committed | None:
        """Hard-link the file of another folder: files are replaced as a whole and never changed."""
        if not isinstance(other, LocalObjects):
            return super().take(key, other, committed)
        if other.intact_bytes(key, committed) is None:
            return None
        source, path = checked_path(other.root, key), checked_path(self.root, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            os.link(source, path)
        except OSError:  # a disk that knows no second names, or a file that has as many as there may be
            return super().take(key, other, committed)
        return committed

    def delete(self, key: str) -> None:
        """Remove the file of `key`; nothing happens where it is not there."""
        path = checked_path(self.root, key)
        with as_errors_of(path):
            path.unlink(missing_ok=True)

    def delete_below(self, prefix: str) -> None:
        """Remove the folder `prefix` with all that it holds, and what a cancelled task still writes meanwhile."""
        folder = checked_path(self.root, prefix)
        last = time.monotonic() + REMOVAL_SECONDS
        while True:
            try:
                return shutil.rmtree(folder)
            except OSError as error:
                if not folder.exists():
                    return
                if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or time.monotonic() > last:
                    raise as_store_error(error, folder) from error
            time.sleep(0.01)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names directly below `prefix`, sorted; half-written temporaries are left out."""
        folder = checked_path(self.root, prefix) if prefix else self.root
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.endswith(PARTIAL))

    def prepare(self) -> None:
        """Create the folder with its parents; StoreError where it cannot be written."""
        with as_errors_of(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        if not os.access(self.root, os.W_OK):
            raise StoreError(f"{self.root} cannot be written: choose a folder that can")

    def free_bytes(self) -> int | None:
        """Return what is free on the disk of the folder, which need not be there yet."""
        return free_bytes(self.root)

    @property
    def scratch_folder(self) -> Path:
        """The folder itself, whose disk has room for a run."""
        return self.root

    def sweep(self) -> None:
        """Remove temporary files that were never renamed; other files of their suffix stay.

        Others may write to and remove copies of points in the folder meanwhile: what is gone is passed over.
        """
        for folder, _, names in os.walk(self.root):
            for name in fnmatch.filter(names, f"{tempfile.gettempprefix()}*{PARTIAL}"):
                left = Path(folder, name)
                with as_errors_of(left):
                    left.unlink(missing_ok=True)

    def lock(self) -> AbstractContextManager[RunLock]:
        """Hold the run by flock, or raise StoreLockedError."""
        return lock_folder(self.root)
