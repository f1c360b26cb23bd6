"""What one process holds in memory for the stage it works on, in one object: `PROCESS`.

Tasks of a stage share whole small arrays, models and prepared tables. The first task makes each of them, the others
wait for it. All of it goes when the stage ends. The C library returns freed memory as early as it can be made to.
"""

import contextlib
import ctypes
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import scipy.sparse as sp

from scalemani.kernels.machine.forks import new_lock
from scalemani.kernels.rows.compressed import Points
from scalemani.store.groups import StageGroup

M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3  # of mallopt(3)
ARENAS = 2
SHORT_OF_MEMORY = 2 * 10**9  # with more, mapping each array anew costs time for nothing
MAPPED_FROM_BYTES = 2**18  # larger arrays are mapped, and go back to the system as soon as they are freed
BlockKey = tuple[str, str, str, int]


class BlockCache:
    """Decoded blocks of rows. The least recently used are dropped once there are more than `limit` bytes."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._blocks: OrderedDict[BlockKey, Points] = OrderedDict()
        self._bytes = 0

    def read(
        self,
        group: StageGroup,
        name: str,
        block: int,
        limit: int,
        load: Callable[[int], Points] | None = None,
    ) -> Points:
        """Return a block of rows of an array, decoded before or read now; `load` reads what is no row array."""
        key = (group.root, group.path, name, block)
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key]
        rows = group.read_block(name, block) if load is None else load(block)
        with self._lock:
            if key not in self._blocks and bytes_of(rows) <= limit:
                self._blocks[key] = rows
                self._bytes += bytes_of(rows)
                while self._bytes > limit:
                    self._bytes -= bytes_of(self._blocks.popitem(last=False)[1])
        return rows

    def clear(self) -> None:
        """Drop all blocks."""
        with self._lock:
            self._blocks.clear()
            self._bytes = 0


def bytes_of(rows: Points) -> int:
    """Return the bytes of rows in memory."""
    return sum(part.nbytes for part in (rows.indptr, rows.indices, rows.data)) if sp.issparse(rows) else rows.nbytes


Made = TypeVar("Made")


class Key(NamedTuple):
    """What distinguishes shared objects: the group of a store, the function that makes them, and its arguments.

    Two of them are equal only if they are made in the same way, so that no label can be used twice.
    """

    group: tuple[str, str]
    function: str
    arguments: tuple[Hashable, ...]

    @classmethod
    def of(
        cls, function: Callable[..., Any], arguments: tuple[Hashable, ...], group: StageGroup | None = None
    ) -> "Key":
        """Return the key of what `function` makes of a group of a store, or of nothing but its arguments.

        Raises
        ------
        TypeError
            For a lambda, a nested or a partial function: their names do not say what they are bound to.
        """
        name = getattr(function, "__qualname__", "<no name>")
        if "<" in name:
            raise TypeError(f"{function!r} has no unique name: pass a function of a module")
        place = ("", "") if group is None else (str(group.root), group.path)
        return cls(place, f"{function.__module__}.{name}", arguments)


class ProcessMemory:
    """Objects made once and decoded blocks: all that a process shares between tasks."""

    def __init__(self) -> None:
        self.blocks = BlockCache()
        self._lock = new_lock()
        self._made: dict[Hashable, tuple[Hashable, Any]] = {}
        self._making: dict[Hashable, Any] = {}
        self._scope = ""

    def once(self, key: Key, make: Callable[[], Made]) -> Made:
        """Return what `make` returns, called once for `key` until `free`."""
        return self._version(key, (), make)

    def latest(self, key: Key, make: Callable[[], Made]) -> Made:
        """As `once`, for what is large: what was made with other arguments is dropped before."""
        return self._version(key._replace(arguments=()), key.arguments, make)

    def _version(self, slot: Key, version: tuple[Hashable, ...], make: Callable[[], Made]) -> Made:
        with self._lock:
            making = self._making.setdefault(slot, new_lock())
        with making:
            # Another run in this process may end a stage, and free everything, at any moment.
            shared = self._made.get(slot)
            if shared is not None and shared[0] == version:
                return shared[1]
            shared = None
            self._made.pop(slot, None)  # nothing refers to the version before while the next one is made
            made = make()
            self._made[slot] = version, made
            return made

    def start_scope(self, scope: str) -> None:
        """Free everything when the first task of another scope starts: workers do not know when a stage ends."""
        with self._lock:
            before, self._scope = self._scope, scope
        if before not in ("", scope):
            self.free()

    def free(self) -> None:
        """Drop shared objects and decoded blocks, and return their memory to the system."""
        with self._lock:
            self._made.clear()
            self._making.clear()
        self.blocks.clear()
        return_freed_memory()


PROCESS = ProcessMemory()


def limit_arenas(memory: int) -> None:
    """Limit glibc to two arenas that all threads share, for good: called in processes of ours, before threads start.

    Where the budget of `memory` bytes is short, arrays from 256 kB on are mapped one by one. glibc would otherwise keep
    freed arrays of up to 32 MB, with holes between them that nothing fits into.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(M_ARENA_MAX, ARENAS)
        if memory < SHORT_OF_MEMORY:
            libc.mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)


def return_freed_memory() -> None:
    """Return freed memory to the system: glibc retains what threads have freed until this call."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
