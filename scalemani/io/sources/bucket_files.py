"""Files of points in a bucket: read by ranges of bytes, never whole, and never two versions of one file."""

import io
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from scalemani.errors import ConfigError, StoreError, refuse_credentials
from scalemani.io.sources.base import without_credentials
from scalemani.store.buckets import SCHEMES, ConflictError, MissingObjectError, ask, open_bucket

BUFFER_BYTES = 2**20  # that readers of many small pieces get at once


class BucketFile:
    """A file at s3://bucket/key, gs:// or az://, as it was when it was opened.

    Without `size` in bytes and `tag`, its ETag, they are requested from the server.
    """

    def __init__(self, location: str, size: int | None = None, tag: str | None = None) -> None:
        refuse_credentials(location)
        self.location, self.shown = location, without_credentials(location)
        scheme, _, place = location.partition("://")
        bucket, _, self.key = place.partition("/")
        if not location.startswith(SCHEMES) or not bucket or not self.key:
            raise ConfigError(f"a file in an object store is at s3://bucket/name, got {self.shown!r}: give its name")
        self.bucket = f"{scheme}://{bucket}"
        if size is None or tag is None:
            there = self._answer(lambda bucket: bucket.head(self.key))
            size, tag = int(there["size"]), str(there["e_tag"])
        self.size, self.tag = size, tag

    def __str__(self) -> str:
        return self.shown

    def __reduce__(self) -> tuple[type["BucketFile"], tuple[str, int, str]]:
        return BucketFile, (self.location, self.size, self.tag)

    @property
    def suffix(self) -> str:
        """The suffix of the name with its dot, as `Path.suffix`."""
        return PurePosixPath(self.key).suffix

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop), as many as the file has; refuse a file that was replaced meanwhile."""
        stop = min(stop, self.size)
        if start >= stop:
            return b""
        options = {"range": (start, stop), "if_match": self.tag}
        content: bytes = self._answer(lambda bucket: bucket.get(self.key, options=options).bytes().to_bytes())
        return content

    def open(self, buffer_bytes: int = BUFFER_BYTES) -> io.BufferedReader:
        """Return the file as one that is open for reading, for one reader; what it reads is at least so many bytes."""
        return io.BufferedReader(_Ranges(self), buffer_bytes)

    def _answer(self, request: Callable[[Any], Any]) -> Any:
        bucket = open_bucket(self.bucket)
        try:
            return ask(f"read {self.shown}", lambda: request(bucket))
        except MissingObjectError as error:
            raise StoreError(f"no file {self.shown}: give one that is there, and no folder of files") from error
        except ConflictError as error:
            raise StoreError(
                f"{self.shown} was replaced while it was read: run again when nothing writes to it"
            ) from error


Place = Path | BucketFile  # of a file, on this machine or in a bucket


class _Ranges(io.RawIOBase):
    """A file in a bucket as a raw stream: each read is one request for a range of bytes."""

    def __init__(self, file: BucketFile) -> None:
        self.file, self.position = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.file.size}[whence]
        return self.position

    def tell(self) -> int:
        return self.position

    def readinto(self, buffer: Any) -> int:
        content = self.file.read(self.position, self.position + len(buffer))
        buffer[: len(content)] = content
        self.position += len(content)
        return len(content)
