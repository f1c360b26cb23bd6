"""A zarr store that knows the digest of everything committed: zarr reads a lost chunk as its fill value, silently."""

import asyncio
import atexit
import contextlib
import functools
from collections.abc import AsyncIterator, Iterable
from typing import Any

from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype

from scalemani.errors import CorruptChunkError, MissingChunkError
from scalemani.store.objects import Committed, Objects, digest

Digests = dict[str, Committed]  # by key below the arrays of a group
CANCEL_SECONDS = 5.0


class VerifiedStore(Store):
    """A zarr store over objects that records what it writes and refuses to read anything but what was committed.

    `expected` holds the digests of committed objects and grows as blocks are committed; `written` holds those of
    objects that were written and not committed yet.
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True
    supports_partial_writes = False

    def __init__(self, objects: Objects, expected: Digests, written: Digests) -> None:
        super().__init__()
        self.objects = objects
        self._folders: set[str] = set()  # metadata of these are there
        self.expected = expected
        self.written = written
        self._is_open = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VerifiedStore) and self.objects is other.objects

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(self.objects.root)

    def with_read_only(self, read_only: bool = False) -> "VerifiedStore":
        """Return the same store, for reading only if requested."""
        store = VerifiedStore(self.objects, self.expected, self.written)
        store._read_only = read_only
        return store

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the object under `key` if it is what was committed there."""
        try:
            content = await asyncio.to_thread(self.read, key)
        except BaseException:
            cancel_at_exit(asyncio.get_running_loop())
            raise
        return None if content is None else prototype.buffer.from_bytes(content)

    async def set(self, key: str, value: Buffer, *arguments: Any) -> None:
        """Write `value` under `key` and remember its digest for the commit."""
        await asyncio.to_thread(self.write, key, value.to_bytes())

    async def delete(self, key: str) -> None:
        """Remove `key` if it is there."""
        await asyncio.to_thread(self.objects.delete, key)

    async def exists(self, key: str) -> bool:
        """Return whether there is an object under `key`."""
        return await asyncio.to_thread(self.objects.get, key) is not None

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return several objects; parts of one cannot be checked and are not given."""
        return [await self.get(key, prototype) for key, _ in key_ranges]

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names directly below `prefix`."""
        for name in await asyncio.to_thread(self.objects.names, prefix.strip("/")):
            yield name

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield the committed keys that start with `prefix`."""
        for key in sorted(self.expected):
            if key.startswith(prefix):
                yield key

    async def list(self) -> AsyncIterator[str]:
        """Yield all committed keys."""
        async for key in self.list_prefix(""):
            yield key

    # The same without zarr's event loop. What takes a thread above takes it once an object: the way there and back
    # costs more than small objects do.

    def read(self, key: str) -> bytes | None:
        """Return the content of `key` if it is what was committed; None for metadata that is not there."""
        expected, where = self.expected.get(key), f"{self.objects.root}/{key}"
        if expected is None and is_chunk(key):
            raise MissingChunkError(f"{where} was never committed: run the stage that writes it")
        if expected is None:
            return self.objects.get(key)
        content = self.objects.get(key, expected[0])
        if content is None:
            raise MissingChunkError(f"{where} is gone: run the same command again to compute it anew")
        length, content_digest = len(content), digest(content)
        if (length, content_digest) != expected[:2]:
            raise CorruptChunkError(
                f"{where} holds {length} bytes with digest {content_digest}, committed were {expected[0]} bytes with "
                f"digest {expected[1]}: run the same command again to compute it anew"
            )
        return content

    def write(self, key: str, content: bytes) -> None:
        """Write a content and remember its digest for the commit."""
        tag = self.objects.set(key, content)
        self.written[key] = (len(content), digest(content), tag)

    def write_if_new(self, key: str, content: bytes) -> None:
        """Write what stays as it is from then on, and belongs to no commit, where it is not there."""
        if key not in self._folders and self.objects.get(key) is None:
            self.objects.set(key, content)
        self._folders.add(key)


def is_chunk(key: str) -> bool:
    """Return whether `key` names a chunk of an array, not its metadata."""
    return "/c/" in key


@functools.cache
def cancel_at_exit(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks of an event loop when this process ends.

    After an error zarr still reads the other requested chunks; a process that ends meanwhile would report each of them.
    """
    atexit.register(cancel_tasks, loop)


def cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all tasks of a loop that runs in another thread, and wait for that."""

    async def cancel() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    if loop.is_running():
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(cancel(), loop).result(CANCEL_SECONDS)
