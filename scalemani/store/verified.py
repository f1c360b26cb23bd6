"""A zarr store that knows the digest of everything committed: zarr reads a lost chunk as its fill value, silently."""

import asyncio
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore, WrapperStore

from scalemani.errors import CorruptChunkError, MissingChunkError
from scalemani.store.objects import as_store_error, digest

Digests = dict[str, tuple[int, str]]  # key below the group -> (bytes, digest)


class VerifiedStore(WrapperStore[LocalStore]):
    """A local zarr store that records what it writes and refuses to read anything but what was committed.

    `expected` holds the digests of committed objects and grows as blocks are committed; `written` holds those of
    objects that were written and not committed yet.
    """

    def __init__(self, store: LocalStore, expected: Digests, written: Digests) -> None:
        super().__init__(store)
        self.expected = expected
        self.written = written

    def _with_store(self, store: LocalStore) -> "VerifiedStore":
        return type(self)(store, self.expected, self.written)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the object under `key` if it is what was committed there."""
        content = await super().get(key, prototype, None)
        expected = self.expected.get(key)
        if expected is None:
            if is_chunk(key):
                raise MissingChunkError(f"{self._store.root / key} was never committed: run the stage that writes it")
            return content
        if content is None:
            raise MissingChunkError(f"{self._store.root / key} is gone: run the same command again to compute it anew")
        found = (len(content), await asyncio.to_thread(digest, content.to_bytes()))
        if found != expected:
            raise CorruptChunkError(
                f"{self._store.root / key} holds {found[0]} bytes with digest {found[1]}, committed were {expected[0]} "
                f"bytes with digest {expected[1]}: run the same command again to compute it anew"
            )
        return content

    async def set(self, key: str, value: Buffer, *arguments: Any) -> None:
        """Write `value` under `key` and remember its digest for the commit."""
        try:
            await super().set(key, value)
        except OSError as error:
            raise as_store_error(error, self._store.root / key) from error
        self.written[key] = (len(value), await asyncio.to_thread(digest, value.to_bytes()))


def is_chunk(key: str) -> bool:
    """Return whether `key` names a chunk of an array, not its metadata."""
    return "/c/" in key
