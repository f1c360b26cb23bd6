"""Small named objects below one folder: the marks, manifests and plans that stand beside the zarr arrays."""

import errno
import hashlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from scalemani.errors import CorruptChunkError, DiskSpaceError, StoreError, UnsafeStoreError

SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
DIGEST_CHARACTERS = 32  # 128 bits of SHA-256: accidents, not adversaries, are what a manifest guards against


def digest(content: bytes | memoryview) -> str:
    """Return the hexadecimal digest by which the manifest knows a content."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def checked_path(root: Path, key: str) -> Path:
    """Return the file of `key` below `root`; refuse a key that could leave it, also through a symbolic link."""
    parts = key.split("/")
    if not all(SAFE_NAME.fullmatch(part) for part in parts):
        raise UnsafeStoreError(f"{key!r} is not a name inside a store: letters, digits, '_', '-' and '.' between '/'")
    path = root.joinpath(*parts)
    if not path.resolve().is_relative_to(root.resolve()):
        raise UnsafeStoreError(f"{path} leads outside the store {root} through a symbolic link: remove the link")
    return path


def as_store_error(error: OSError, path: Path) -> Exception:
    """Return the error to raise for a failed write: full disks are told apart from the rest."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskSpaceError(f"no space left to write {path}: free some and run the same command again")
    return StoreError(f"cannot write {path}: {error.strerror or error}; choose a place that can be written")


class Objects:
    """Bytes and JSON by key below a local folder; a write is a rename, so that a reader sees all of it or nothing."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def get(self, key: str) -> bytes | None:
        """Return the content of `key`, or None where there is none."""
        try:
            return checked_path(self.root, key).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def set(self, key: str, content: bytes) -> None:
        """Write `content` under `key`, replacing what was there in one step."""
        path = checked_path(self.root, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".partial", delete=False) as file:
                file.write(content)
            os.replace(file.name, path)
        except OSError as error:
            raise as_store_error(error, path) from error

    def delete(self, key: str) -> None:
        """Remove `key` if it is there."""
        checked_path(self.root, key).unlink(missing_ok=True)

    def names(self, prefix: str) -> list[str]:
        """Return the names directly below `prefix`, sorted; half-written temporaries are left out."""
        folder = checked_path(self.root, prefix)
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.endswith(".partial"))

    def get_json(self, key: str) -> Any:
        """Return the JSON value under `key`, or None where there is none."""
        content = self.get(key)
        if content is None:
            return None
        try:
            return json.loads(content)
        except ValueError as error:
            raise CorruptChunkError(
                f"{self.root / key} is not valid JSON: it was damaged after it was written"
            ) from error

    def set_json(self, key: str, value: Any) -> None:
        """Write `value` as JSON under `key`."""
        self.set(key, json.dumps(value, indent=1, sort_keys=True).encode())
