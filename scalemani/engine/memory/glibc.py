"""The allocator of the C library: what it keeps of freed memory. Other C libraries are left as they are."""

import contextlib
import ctypes

M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3  # of mallopt(3)
ARENAS = 2
SHORT_OF_MEMORY = 2 * 10**9  # with more, mapping each array anew costs time for nothing
MAPPED_FROM_BYTES = 2**18  # larger arrays are mapped, and go back to the system as soon as they are freed


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
    """Return freed memory to the system: glibc keeps what threads have freed until it is asked to."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
