"""The limit of this process's address space, and what it leaves for a budget: what a run takes is fitted to it."""

import os

import psutil

from scalemani.errors import MemoryBudgetError
from scalemani.kernels.machine.address_room import address_limit, limit_command
from scalemani.memory.glibc import limit_arenas

LEAST_BYTES = 10**9  # 0.7 GB are taken once all libraries are loaded, resident or not
# A stack of 8 MB, a heap of glibc's, which takes 128 MB for a moment to place 64, and a buffer of OpenBLAS's.
THREAD_BYTES = (8 + 128 + 32) * 2**20
FURTHER_THREADS = 2  # beside those that run tasks: the one that samples memory, the main thread
BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def address_bytes_taken(n_threads: int) -> int:
    """Return the address space that this process has taken, and that so many more threads take as such."""
    return int(psutil.Process().memory_info().vms) + (n_threads + FURTHER_THREADS) * THREAD_BYTES


def fit_address_space() -> None:
    """Fit a process of ours to its limit of address space, if it has one, before libraries are loaded.

    Raises
    ------
    MemoryBudgetError
        Where the libraries have no room.
    """
    limit = address_limit()
    if limit is None:
        return
    if limit < LEAST_BYTES:
        raise MemoryBudgetError(
            f"the address space of this process is limited to {limit // 10**6} MB, and the libraries take "
            f"{LEAST_BYTES // 10**6} MB: raise that limit ({limit_command(LEAST_BYTES)}); a run says what it needs"
        )
    os.environ.setdefault(BLAS_THREADS, "1")  # runs use one; as many as processors would take a stack and a buffer each
    limit_arenas(limit)
